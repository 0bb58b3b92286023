//! What a knob says is obeyed, or it is said that it was not; what cannot fit is no candidate.

use crate::simulated::{Line, Script, World, exp, honest};
use steersman_core::{Bytes, Device, EngineError, Identity, Place, ReasonCode, Settings};

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

#[test]
fn what_no_memory_holds_is_refused_with_both_sizes() {
    let refused = |settings: Settings, n: usize| {
        let world = world(settings);
        let identity = Identity {
            family: "sim".into(),
            part: "sim".into(),
            driver: "1".into(),
            memory: Some(1 << 30),
            parallelism: 2,
            isa: Vec::new(),
        };
        world.engine.add_device(Device { identity, place: Place::Host, machine: Default::default() });
        match world.engine.decide(&exp(n)) {
            Ok(_) => None,
            Err(EngineError::NoCandidate { refused, .. }) => Some(refused[0].1.clone()),
            Err(other) => panic!("{other}"),
        }
    };
    let any = Settings::default;
    // One operand and one result of 4 bytes an element; both may be the same memory.
    assert_eq!(refused(any(), 1 << 28), None);
    let why = refused(any(), (1 << 28) + 1).expect("more than the device has");
    assert!(why.contains("1.07 GB where there are 1.07 GB"), "{why}");
    let limited = || Settings { memory: Some(Bytes(1_000_000)), ..any() };
    assert_eq!(refused(limited(), 125_000), None);
    let why = refused(limited(), 125_001).expect("more than it may have");
    assert!(why.contains("may have 1.00 MB (memory.limit)"), "{why}");
}
