//! Slow-downs that come and go: the choice follows, and predictions recover.

use crate::simulated::{Line, Script, World, exp, honest};
use steersman_core::Settings;

const SERIAL: usize = 0;
const PARALLEL: usize = 1;
const N: usize = 100_000;

/// At [`N`] two threads take 60 µs where one takes 100 µs.
fn pair() -> [Script; 2] {
    [honest("serial", 1, Line(0.0, 1e-9)), honest("parallel", 2, Line(10e-6, 0.5e-9))]
}

fn calibrated(seed: u64) -> World {
    let mut world = World::new(&pair(), 0.05, seed, Settings::default());
    world.calibrate(&[1_000, 10_000, 30_000, 100_000, 300_000], 3);
    world
}

/// Calls until `done`, and how many of them were observed; `None` if `most` observed ones do not suffice.
fn observed_until(world: &mut World, most: u64, mut done: impl FnMut(&World) -> bool) -> Option<u64> {
    let (w, before) = (exp(N), world.observed);
    while world.observed - before < most {
        if done(world) {
            return Some(world.observed - before);
        }
        world.call(&w);
    }
    None
}

/// Mean of |predicted ÷ true − 1| for a kernel over sizes it was calibrated for.
fn error(world: &World, kernel: usize) -> f64 {
    let sizes = [3_000, 20_000, 100_000, 200_000];
    let off = |n: usize| {
        let estimate = world.engine.estimates(&exp(n))[kernel].estimate.mean.0;
        (estimate / world.true_seconds(kernel, n) - 1.0).abs()
    };
    sizes.iter().map(|&n| off(n)).sum::<f64>() / sizes.len() as f64
}

#[test]
fn when_threads_are_slowed_the_serial_kernel_takes_over_and_gives_back_afterwards() {
    for seed in 0..10 {
        let mut world = calibrated(seed);
        let w = exp(N);
        world.calls(&w, 2_000);
        assert_eq!(world.choice(N), PARALLEL);

        world.slowed[PARALLEL] = 3.0;
        let away = observed_until(&mut world, 20, |w| w.choice(N) == SERIAL);
        assert!(away.is_some(), "seed {seed}: still parallel after 20 observed calls");
        world.calls(&w, 5_000);
        assert_eq!(world.choice(N), SERIAL, "seed {seed}");

        world.slowed[PARALLEL] = 1.0;
        let back = observed_until(&mut world, 2_000, |w| w.choice(N) == PARALLEL);
        println!("seed {seed}: away after {away:?}, back after {back:?} observed calls");
        assert!(back.is_some(), "seed {seed}: still serial 2,000 observed calls after the slow-down ended");
        world.calls(&w, 2_000);
        assert_eq!(world.choice(N), PARALLEL, "seed {seed}");
        let ledger = world.engine.ledger();
        assert!(ledger.lost <= ledger.budget * ledger.spent, "{ledger:?}");
    }
}

#[test]
fn a_device_slowed_by_a_third_is_predicted_right_during_and_after() {
    for seed in 0..10 {
        let mut world = calibrated(seed);
        let workloads = [3_000, 20_000, 100_000, 200_000].map(exp);
        let run = |world: &mut World, calls: usize| {
            for i in 0..calls {
                world.call(&workloads[i % workloads.len()]);
            }
        };
        run(&mut world, 4_000);
        let before = error(&world, PARALLEL);
        world.slowed = vec![1.3; 2];
        run(&mut world, 4_000);
        let during = error(&world, PARALLEL);
        assert_eq!(world.choice(N), PARALLEL, "seed {seed}: both are slowed alike");
        world.slowed = vec![1.0; 2];
        run(&mut world, 4_000);
        let after = error(&world, PARALLEL);
        println!("seed {seed}: off by {before:.3} before, {during:.3} during, {after:.3} after");
        assert!(before < 0.05 && during < 0.08 && after < 0.06, "seed {seed}: {before} {during} {after}");
    }
}

#[test]
fn slow_downs_that_come_and_go_ten_times_cost_little_over_knowing_them() {
    let mut world = calibrated(11);
    let w = exp(N);
    let mut best = 0.0;
    for round in 0..20 {
        world.slowed[PARALLEL] = if round % 2 == 1 { 3.0 } else { 1.0 };
        for _ in 0..20_000 {
            best += world.true_seconds(SERIAL, N).min(world.true_seconds(PARALLEL, N));
            world.call(&w);
        }
    }
    println!("{:.4} of a run that knew", world.total / best);
    assert!(world.total < 1.05 * best, "{:.4}", world.total / best);
}
