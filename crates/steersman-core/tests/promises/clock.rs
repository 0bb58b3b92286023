//! A clock that changes: what is learned is in its ticks, what is foretold in seconds of now.

use crate::simulated::{Line, World, exp, honest};
use steersman_core::cost::Machine;
use steersman_core::{Device, DeviceId, Identity, Place, Settings};

const CPU: DeviceId = DeviceId(0);

/// One kernel of a device whose tick takes a microsecond.
fn world(settings: Settings) -> World {
    let world = World::new(&[honest("k", 1, Line(1e-6, 1e-9))], 0.0, 1, settings);
    let identity = Identity {
        family: "cpu".into(),
        part: String::new(),
        driver: String::new(),
        memory: None,
        parallelism: 1,
        isa: Vec::new(),
    };
    let machine = Machine { tick: Some(1e-6), ..Machine::default() };
    assert_eq!(world.engine.add_device(Device { identity, place: Place::Host, machine }), CPU);
    world
}

fn expected(world: &World, n: usize) -> f64 {
    world.engine.estimates(&exp(n))[0].estimate.mean.0
}

#[test]
fn a_slower_clock_is_foretold_before_anything_ran_by_it() {
    let mut world = world(Settings::default());
    world.calibrate(&[100, 1_000, 10_000, 100_000], 3);
    let before = expected(&world, 5_000);
    world.engine.set_tick(CPU, 1.25e-6);
    assert!((expected(&world, 5_000) / before - 1.25).abs() < 1e-9);
    world.engine.set_tick(CPU, 1.26e-6);
    assert!((expected(&world, 5_000) / before - 1.25).abs() < 1e-9, "a hundredth is no other clock");
    world.engine.set_tick(CPU, f64::NAN);
    world.engine.set_tick(DeviceId(7), 3e-6);
    assert!((expected(&world, 5_000) / before - 1.25).abs() < 1e-9);
    world.engine.set_tick(CPU, 1e-6);
    assert!((expected(&world, 5_000) / before - 1.0).abs() < 1e-9);
}

#[test]
fn what_is_learned_by_a_slower_clock_holds_for_a_faster_one() {
    let mut world = world(Settings::default());
    world.engine.set_tick(CPU, 1.5e-6);
    world.slowed = vec![1.5];
    world.calibrate(&[100, 1_000, 10_000, 100_000], 3);
    assert!((expected(&world, 10_000) / world.true_seconds(0, 10_000) - 1.0).abs() < 0.02);
    world.engine.set_tick(CPU, 1e-6);
    world.slowed = vec![1.0];
    assert!((expected(&world, 10_000) / world.true_seconds(0, 10_000) - 1.0).abs() < 0.02);
}

#[test]
fn a_frozen_engine_does_not_look_at_the_clock() {
    let mut world = world(Settings::default());
    world.calibrate(&[100, 1_000, 10_000], 3);
    world.engine.configure(|s| s.frozen = true);
    let before = expected(&world, 5_000);
    world.engine.set_tick(CPU, 2e-6);
    assert_eq!(expected(&world, 5_000), before);
}
