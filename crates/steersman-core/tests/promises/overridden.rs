//! What a knob says is obeyed, or it is said that it was not.

use crate::simulated::{Line, Script, World, exp, honest};
use steersman_core::{ReasonCode, Settings};

fn two() -> [Script; 2] {
    [honest("serial", 1, Line(1e-6, 2e-9)), honest("parallel", 2, Line(3e-6, 1e-9))]
}

fn world(settings: Settings) -> World {
    World::new(&two(), 0.05, 1, settings)
}

#[test]
fn a_kernel_that_is_named_runs_and_one_that_cannot_is_said_not_to() {
    for (name, kernel, reason) in [
        ("parallel", 1, ReasonCode::Forced),
        ("serial", 0, ReasonCode::Forced),
        ("paralel", 1, ReasonCode::NotForced),
    ] {
        for frozen in [false, true] {
            let force = Some(name.to_string());
            let world = world(Settings { force, frozen, ..Settings::default() });
            // Also by hits, which come after a few calls.
            for _ in 0..40 {
                let d = world.engine.decide(&exp(100_000)).unwrap();
                assert_eq!((d.kernel(), d.reason()), (kernel, reason), "{name}");
            }
        }
    }
}

#[test]
fn what_is_small_by_a_knob_runs_on_one_thread_and_says_so() {
    let world = world(Settings { small_batch: Some(200_000), ..Settings::default() });
    let of = |n| world.engine.judge(&exp(n)).map(|d| (d.kernel(), d.reason())).unwrap();
    assert_eq!(of(100_000), (0, ReasonCode::SmallBatch));
    assert_eq!(of(200_000), (1, ReasonCode::Prior));
    let refused = world.engine.explain(&exp(100_000)).unwrap().refused;
    assert!(matches!(&refused[..], [(1, why)] if why.to_string().contains("small_batch")), "{refused:?}");
}
