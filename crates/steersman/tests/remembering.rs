//! What one process learned, the next one knows.

use std::time::Duration;
use steersman::{Adaptive, Knobs, Runtime};
use steersman_core::Workload;

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
    // Other code: what was learned is a hint that the first measurements outweigh.
    let rt = runtime(&file);
    let known = samples(&runtime(&file));
    assert_eq!(known, Vec::<u64>::new(), "no kernel, nothing to say");
    sleeper(&rt, 2);
    let w = Workload::custom("sleep", &[500]).expect("a size");
    let means =
        || rt.engine().estimates(&w).iter().map(|c| (c.variant, c.estimate.mean.0)).collect::<Vec<_>>();
    let hint = means();
    assert!(hint.len() == 2 && samples(&rt).iter().all(|&n| n > 0), "{hint:?}");
    for (variant, mean) in &hint {
        (0..12).for_each(|_| rt.engine().learn(*variant, &w, mean * 3.0, 1.0));
    }
    for ((_, before), (_, after)) in hint.iter().zip(means()) {
        assert!(after > before * 1.4, "{after} s after {before} s");
    }
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
