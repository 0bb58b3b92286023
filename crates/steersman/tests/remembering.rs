//! What one process learned, the next one knows.

use std::time::Duration;
use steersman::{Adaptive, Knobs, Runtime};
use steersman_core::Workload;
use steersman_core::cost::Estimate;
use steersman_core::guard::Offence;

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
