//! What one process learned, the next one knows.

use std::ops::ControlFlow;
use std::time::Duration;
use steersman::{Adaptive, Calibrate, Knobs, Runtime};
use steersman_core::Workload;
use steersman_core::cost::Estimate;
use steersman_core::guard::Offence;
use steersman_core::wisdom::{Batch, DeviceRow, MetaRow, Wisdom};

fn runtime(file: &std::path::Path) -> Runtime {
    let mut knobs = Knobs::default();
    knobs.set("webgpu.enabled", "false").unwrap();
    knobs.set("wisdom.path", file.to_str().expect("a path in letters")).expect("a path");
    knobs.set("calibrate.background", "false").expect("a switch");
    // Every call is timed, and none is spent on exploring.
    knobs.set("observe.every", "1").expect("a number");
    knobs.set("explore.budget", "0").expect("a share");
    Runtime::with_knobs(knobs).expect("a runtime")
}

type Sleep = Adaptive<u64, u64, steersman::adaptive::Reading>;

fn sleeper(rt: &Runtime, revision: u32) -> Sleep {
    Adaptive::reading("sleep", rt.engine())
        .variant("long", |n: &u64| {
            std::thread::sleep(Duration::from_micros(4 * n));
            4
        })
        .variant("short", |n: &u64| {
            std::thread::sleep(Duration::from_micros(*n));
            1
        })
        .size(|n| *n as usize)
        .revision(revision)
        .build()
        .expect("two variants")
}

/// Samples behind the estimates of both variants.
fn samples(rt: &Runtime) -> Vec<u64> {
    let w = Workload::custom("sleep", &[500]).expect("a size");
    rt.engine().estimates(&w).iter().map(|c| c.estimate.evidence.samples).collect()
}

#[test]
fn a_function_knows_in_the_next_process_what_it_learned_in_this_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("wisdom.db");
    {
        let rt = runtime(&file);
        let sleep = sleeper(&rt, 1);
        assert_eq!(samples(&rt), [0, 0]);
        assert_eq!(sleep.call(&500), 4, "the first is the default");
        sleep.calibrate(&[100, 500], |n| n as u64, Duration::from_secs(1));
        assert_eq!(sleep.call(&500), 1);
    }
    {
        let rt = runtime(&file);
        let sleep = sleeper(&rt, 1);
        assert!(samples(&rt).iter().all(|&n| n > 0), "{:?}", samples(&rt));
        assert_eq!(sleep.call(&500), 1, "known from the start");
    }
    assert_eq!(samples(&runtime(&file)), Vec::<u64>::new(), "no kernel, nothing to say");
}

#[test]
fn what_other_code_learned_is_a_hint_that_is_soon_outweighed() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("wisdom.db");
    let at = |n: usize| Workload::custom("sleep", &[n]).expect("a size");
    // A microsecond for each unit of size, give or take two hundredths.
    let learn = |rt: &Runtime, sizes: &[usize], rounds: usize, slower: f64| {
        for c in &rt.engine().estimates(&at(500)) {
            for (i, n) in sizes.repeat(rounds).into_iter().enumerate() {
                let seconds = n as f64 * 1e-6 * (0.98 + 0.01 * (i % 5) as f64);
                rt.engine().learn(c.variant, &at(n), seconds * slower, 1.0);
            }
        }
    };
    {
        let rt = runtime(&file);
        sleeper(&rt, 1);
        learn(&rt, &[50, 100, 200, 400, 800], 4, 1.0);
        rt.save().expect("saved");
    }
    // Judged beside what was learned, where no run of exactly this answers, before and after four runs thrice as slow.
    let of_revision = |revision: u32| {
        let copy = dir.path().join(format!("{revision}.db"));
        std::fs::copy(&file, &copy).expect("copied");
        let rt = runtime(&copy);
        sleeper(&rt, revision);
        let said = || rt.engine().estimates(&at(300))[0].estimate;
        let before = said();
        learn(&rt, &[200, 400], 2, 3.0);
        (before, said())
    };
    let (same, other) = (of_revision(1), of_revision(2));
    assert!((other.0.mean.0 / same.0.mean.0 - 1.0).abs() < 0.01, "the hint says the same: {other:?}");
    assert!(other.0.spread > 2.0 * same.0.spread, "and is less sure: {} {}", other.0.spread, same.0.spread);
    let moved = |(before, after): (Estimate, Estimate)| after.mean.0 / before.mean.0;
    assert!(moved(same) < 1.1 && moved(other) > 1.3, "{} {}", moved(same), moved(other));
}

#[test]
fn runs_of_an_exact_workload_are_known_in_the_next_process() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("wisdom.db");
    let w: Workload = "exp f32 1000".parse().expect("a workload");
    let exact = |rt: &Runtime| -> u64 {
        rt.engine().estimates(&w).iter().map(|c| c.estimate.evidence.exact).max().unwrap_or(0)
    };
    let learned = {
        let rt = runtime(&file);
        assert_eq!(exact(&rt), 0);
        let (x, mut y) = (vec![0u8; 4000], vec![0u8; 4000]);
        for _ in 0..40 {
            rt.run_raw(&w, &[&x], &mut y, None).expect("exp runs");
        }
        exact(&rt)
    };
    assert!(learned > 16, "{learned}");
    let rt = runtime(&file);
    assert_eq!(exact(&rt), 16, "known, with the say of a few runs");
    let shown = rt.wisdom().load(rt.fingerprint());
    assert!(shown.history.iter().all(|h| h.workload == "exp f32 1000"), "{:?}", shown.history);
}

/// A calibration that is broken off where measuring begins.
fn probe(rt: &Runtime, quick: bool) {
    let how = Calibrate { quick, ..Calibrate::default() };
    rt.calibrate(&how, &mut |s| match s.phase.starts_with("measuring") {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })
    .expect("calibrated");
}

/// What every kernel is thought to take for some additions, in seconds: of a type that quick calibrations look at, and
/// of one that they do not.
const ADDITIONS: [&str; 2] = ["add f32 701 701", "add i32 701 701"];

fn additions(rt: &Runtime, text: &str) -> Vec<f64> {
    let w: Workload = text.parse().expect("a workload");
    rt.engine().estimates(&w).iter().map(|c| c.estimate.mean.0).collect()
}

/// A file in which additions were seen to take a second, very often, and a function a few times.
fn weeks_of_nonsense(file: &std::path::Path) {
    let rt = runtime(file);
    sleeper(&rt, 1);
    probe(&rt, true);
    for text in ADDITIONS {
        let w: Workload = text.parse().expect("a workload");
        for c in rt.engine().estimates(&w) {
            (0..3000).for_each(|_| rt.engine().learn(c.variant, &w, 1.0, 1.0));
        }
    }
    let at = Workload::custom("sleep", &[500]).expect("a size");
    for c in rt.engine().estimates(&at) {
        (0..4).for_each(|_| rt.engine().learn(c.variant, &at, 1e-3, 1.0));
    }
    rt.engine().with_model_mut(|m| m.refit());
    assert!(ADDITIONS.iter().all(|text| additions(&rt, text).iter().all(|&s| s > 0.5)));
    rt.save().expect("saved");
}

#[test]
fn a_refreshed_machine_is_not_outdone_by_what_was_known_of_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("wisdom.db");
    weeks_of_nonsense(&file);
    {
        let rt = runtime(&file);
        sleeper(&rt, 1);
        let budget = Some(Duration::from_millis(500));
        let how = Calibrate { quick: true, refresh: true, budget };
        let report = rt.calibrate(&how, &mut |_| ControlFlow::Continue(())).expect("calibrated");
        assert!(!report.interrupted && report.samples > 0, "{report:?}");
        assert!(samples(&rt).iter().all(|&n| n == 4), "nobody calibrates users' functions");
    }
    let rt = runtime(&file);
    sleeper(&rt, 1);
    for text in ADDITIONS {
        assert!(additions(&rt, text).iter().all(|&s| s < 0.1), "{text}: {:?}", additions(&rt, text));
    }
    assert!(samples(&rt).iter().all(|&n| n == 4), "{:?}", samples(&rt));
}

#[test]
fn a_refresh_that_is_broken_off_loses_only_what_it_replaces() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("wisdom.db");
    weeks_of_nonsense(&file);
    let known = |text: &str, rt: &Runtime| additions(rt, text).iter().all(|&s| s > 0.5);
    // Time enough to get anywhere on a busy machine.
    let budget = Some(Duration::from_secs(120));
    let how = Calibrate { quick: true, refresh: true, budget };
    {
        let rt = runtime(&file);
        let report = rt.calibrate(&how, &mut |_| ControlFlow::Break(())).expect("calibrated");
        assert!(report.interrupted && report.samples == 0, "{report:?}");
        assert!(ADDITIONS.iter().all(|text| known(text, &rt)), "in this process");
    }
    assert!(ADDITIONS.iter().all(|text| known(text, &runtime(&file))), "and in the next");
    // Who finds its cores shared puts workloads off: it goes on until one was timed.
    let report = {
        let rt = runtime(&file);
        let w: Workload = ADDITIONS[0].parse().expect("a workload");
        let measured = |e: &Estimate| e.evidence.samples > 0 && e.mean.0 < 0.1;
        let mut until_measured =
            |_: &steersman::Step| match rt.engine().estimates(&w).iter().any(|c| measured(&c.estimate)) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
        rt.calibrate(&how, &mut until_measured).expect("calibrated")
    };
    assert!(report.interrupted && report.samples > 0, "{report:?}");
    let rt = runtime(&file);
    let now = additions(&rt, ADDITIONS[0]);
    assert!(now.iter().any(|&s| s < 0.1), "measured anew: {now:?}");
    assert!(known(ADDITIONS[1], &rt), "{:?}", additions(&rt, ADDITIONS[1]));
}

#[test]
fn a_full_calibration_probes_what_a_quick_one_left_out() {
    let dir = tempfile::tempdir().expect("a folder");
    let rt = runtime(&dir.path().join("wisdom.db"));
    let rates = |rt: &Runtime, dtype: &str| {
        let machine = rt.engine().devices()[0].machine.clone();
        machine.rates.keys().filter(|key| key.split('|').nth(2) == Some(dtype)).count()
    };
    probe(&rt, true);
    assert!(rates(&rt, "f32") > 0 && rates(&rt, "i32") == 0);
    let learn = |text: &str| {
        let w: Workload = text.parse().expect("a workload");
        for c in rt.engine().estimates(&w) {
            (0..20).for_each(|_| rt.engine().learn(c.variant, &w, 1.0, 1.0));
        }
        rt.engine().with_model_mut(|m| m.forget_history());
        w
    };
    let (old, new) = (learn("add f32 701 701"), learn("add i32 701 701"));
    let known = rt.engine().devices()[0].machine.clone();
    probe(&rt, false);
    assert!(rates(&rt, "i32") > 0);
    let machine = rt.engine().devices()[0].machine.clone();
    assert_eq!(machine.levels, known.levels, "limits are known");
    assert!(known.rates.iter().all(|(key, rate)| machine.rates.get(key) == Some(rate)), "as before");
    // What was learned without rates does not count with them.
    let samples = |w: &Workload| -> u64 {
        rt.engine().estimates(w).iter().map(|c| c.estimate.evidence.samples).max().unwrap_or(0)
    };
    assert_eq!((samples(&old), samples(&new)), (20, 0));
}

#[test]
fn what_was_learned_in_the_background_is_kept_though_the_runtime_never_ends() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("wisdom.db");
    let mut knobs = runtime(&file).knobs().clone();
    knobs.set("calibrate.background", "true").expect("a switch");
    // As in a program that ends by a signal.
    std::mem::forget(Runtime::with_knobs(knobs).expect("a runtime"));
    let begun = std::time::Instant::now();
    // Of a machine with much to do it may be no more than what it was probed to.
    let saved = |rt: Runtime| rt.wisdom().load(rt.fingerprint()).machine.is_some();
    while !saved(runtime(&file)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never saved");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_frozen_runtime_is_not_calibrated() {
    let mut knobs = Knobs::default();
    for (name, value) in [("wisdom.enabled", "false"), ("webgpu.enabled", "false"), ("frozen", "true")] {
        knobs.set(name, value).expect("a knob");
    }
    let rt = Runtime::with_knobs(knobs).expect("a runtime");
    let mut told = 0;
    let result = rt.calibrate(&Calibrate::default(), &mut |_| {
        told += 1;
        ControlFlow::Continue(())
    });
    let why = result.expect_err("frozen").to_string();
    assert!(why.contains("calibrate") && why.contains("STEERSMAN_FROZEN"), "{why}");
    assert_eq!((told, rt.engine().with_model(|m| m.changes())), (0, 0));
}

#[test]
fn rates_that_cannot_be_read_are_said_and_probed_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("wisdom.db");
    let fingerprint = runtime(&file).fingerprint();
    let store = |machine: &str| {
        let text = |s: &str| s.to_string();
        let device = DeviceRow { device: fingerprint, machine: text(machine), ..DeviceRow::default() };
        let key = format!("calibrated/{fingerprint:016x}");
        let meta = MetaRow { key, value: text("true"), updated: 0.0 };
        let batch = Batch { devices: vec![device], meta: vec![meta], ..Batch::default() };
        Wisdom::open(Some(&file)).wisdom.save(batch).expect("saved");
    };
    store(r#"{"levels":[],"peak_f32":{},"handoff":null}"#);
    let rt = runtime(&file);
    assert!(rt.calibrated() && rt.notices().is_empty(), "{:?}", rt.notices());
    drop(rt);
    store(r#"{"levels":[],"peak_f32":{"avx2":null},"handoff":null}"#);
    let rt = runtime(&file);
    assert!(!rt.calibrated(), "it is to be calibrated again");
    let said: Vec<String> = rt.notices().iter().map(|n| n.to_string()).collect();
    assert!(said.len() == 1 && said[0].contains("steer calibrate"), "{said:?}");
}

/// The first breaks on large arguments, which the second copes with.
fn fragile(rt: &Runtime, revision: u32) -> Adaptive<u64, u64, steersman::adaptive::Reading> {
    Adaptive::reading("fragile", rt.engine())
        .variant("broken", |n: &u64| if *n > 10 { panic!("too large") } else { 1 })
        .variant("sound", |_: &u64| 2)
        .revision(revision)
        .build()
        .expect("two variants")
}

#[test]
fn a_variant_put_away_in_one_process_is_in_the_next_until_it_is_lifted_or_changed() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("wisdom.db");
    let rows = |rt: &Runtime| rt.wisdom().load(rt.fingerprint()).quarantine;
    let put_away = |rt: &Runtime| rt.engine().guard().list();
    {
        let rt = runtime(&file);
        assert_eq!(fragile(&rt, 1).call(&100), 2);
    }
    {
        let rt = runtime(&file);
        assert_eq!(rows(&rt)[0].reason, "panicked: too large");
        assert!(put_away(&rt).is_empty());
        fragile(&rt, 1);
        assert_eq!(put_away(&rt).len(), 1, "known from the start");
        let why = put_away(&rt)[0].1.clone();
        assert_eq!((why.offence, why.detail.as_str()), (Offence::Panicked, "too large"));
    }
    {
        let rt = runtime(&file);
        fragile(&rt, 2);
        assert!(put_away(&rt).is_empty(), "other code");
    }
    {
        let (here, other) = (runtime(&file), runtime(&file));
        fragile(&here, 1);
        let theirs = fragile(&other, 1);
        assert_eq!(here.lift("nobody").expect("writable").len(), 0);
        assert_eq!(here.lift("fragile/*").expect("writable").len(), 1);
        assert!(put_away(&here).is_empty());
        // Whoever runs on knows it still, and does not write it again.
        assert_eq!((theirs.call(&3), put_away(&other).len()), (2, 1));
        other.save().expect("saved");
    }
    let rt = runtime(&file);
    fragile(&rt, 1);
    assert!(rows(&rt).is_empty() && put_away(&rt).is_empty());
}
