//! Cores that change places: what two threads take is learned for one distance, and foretold for that of now.

use crate::simulated::{Line, World, exp, honest};
use steersman_core::cost::{Machine, Rest};
use steersman_core::{Device, DeviceId, Identity, Place, Settings};

const CPU: DeviceId = DeviceId(0);
const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];
const NEAR: f64 = 0.1e-6;
const FAR: f64 = 0.4e-6;

/// One thread, and two that need half a microsecond to meet when their cores are near.
fn world(rest: Option<f64>) -> World {
    let scripts = [honest("alone", 1, Line(1e-8, 1e-9)), honest("two", 2, Line(0.5e-6, 0.5e-9))];
    let world = World::new(&scripts, 0.0, 1, Settings::default());
    let identity = Identity {
        family: "cpu".into(),
        part: String::new(),
        driver: String::new(),
        memory: None,
        parallelism: 2,
        isa: Vec::new(),
    };
    let rest = Rest { handoff: rest, pulse: None };
    let machine = Machine { met: Some(NEAR), rest, ..Machine::default() };
    assert_eq!(world.engine.add_device(Device { identity, place: Place::Host, machine }), CPU);
    world
}

/// What the kernel on so many threads is expected to take.
fn expected(world: &World, threads: u16, n: usize) -> f64 {
    let all = world.engine.estimates(&exp(n));
    all.iter().find(|c| c.variant.params.threads == threads).unwrap().estimate.mean.0
}

fn chosen(world: &World, n: usize) -> u16 {
    world.engine.decide(&exp(n)).unwrap().params().threads
}

#[test]
fn two_threads_give_way_to_one_when_cores_move_apart_and_come_back_with_them() {
    let mut world = world(None);
    world.calibrate(&SIZES, 3);
    assert_eq!([chosen(&world, 400), chosen(&world, 1_500), chosen(&world, 50_000)], [1, 2, 2]);
    let before = [1, 2].map(|threads| expected(&world, threads, 1_500));
    world.engine.set_handoff(CPU, FAR);
    assert_eq!([chosen(&world, 400), chosen(&world, 1_500), chosen(&world, 50_000)], [1, 1, 2]);
    assert_eq!(expected(&world, 1, 1_500), before[0], "one thread meets nobody");
    assert!(expected(&world, 2, 1_500) > before[1] + 2.0 * (FAR - NEAR));
    for ignored in [f64::NAN, f64::INFINITY, 0.0, FAR + 1e-9] {
        world.engine.set_handoff(CPU, ignored);
    }
    world.engine.set_handoff(DeviceId(7), NEAR);
    assert_eq!(chosen(&world, 1_500), 1);
    world.engine.set_handoff(CPU, NEAR);
    assert_eq!(chosen(&world, 1_500), 2);
}

#[test]
fn what_far_cores_teach_holds_for_near_ones() {
    let mut world = world(None);
    world.calibrate(&SIZES, 3);
    world.engine.set_handoff(CPU, FAR);
    let lag = expected(&world, 2, 10_000) - world.true_seconds(1, 10_000);
    assert!(lag > 2.0 * (FAR - NEAR), "{lag}");
    let near = world.scripts[1].truth;
    let mut again = self::world(None);
    again.engine.set_handoff(CPU, FAR);
    again.scripts[1].truth = Line(near.0 + lag, near.1);
    again.calibrate(&SIZES, 3);
    let off = |w: &World, n: usize| (expected(w, 2, n) / w.true_seconds(1, n) - 1.0).abs();
    assert!(off(&again, 10_000) < 0.02, "{}", off(&again, 10_000));
    again.engine.set_handoff(CPU, NEAR);
    again.scripts[1].truth = near;
    assert!(off(&again, 10_000) < 0.02, "{}", off(&again, 10_000));
}

#[test]
fn a_frozen_engine_goes_by_where_cores_lay_when_the_machine_was_learned() {
    for (rest, threads) in [(Some(NEAR), 2), (Some(FAR), 1)] {
        let mut world = world(rest);
        // Learned near, whatever the machine was like afterwards.
        world.engine.set_handoff(CPU, NEAR);
        world.calibrate(&SIZES, 3);
        let wise = world.engine.devices()[0].machine.clone();
        world.engine.set_machine(CPU, Machine { meets: None, ..wise });
        world.engine.configure(|s| s.frozen = true);
        for handoff in [NEAR, FAR] {
            world.engine.set_handoff(CPU, handoff);
            assert_eq!(chosen(&world, 1_500), threads, "{rest:?}");
        }
    }
}
