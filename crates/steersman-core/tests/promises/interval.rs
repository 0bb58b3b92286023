//! Nine in ten measurements fall inside their 90% interval, and predictions are near.

use crate::simulated::{Line, Script, World, exp};
use steersman_core::Settings;

#[test]
fn nine_in_ten_measurements_of_unseen_sizes_fall_inside_their_interval() {
    for noise in [0.03, 0.05, 0.10] {
        let (mut inside, mut all, mut off) = (0, 0, 0.0);
        for seed in 0..40 {
            let truth = Line(3e-6, 0.7e-9);
            let script = Script { name: "a", threads: 1, prior: Line(1e-6, 1e-9), truth };
            let mut world = World::new(&[script], noise, seed, Settings::default());
            world.calibrate(&[300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000], 8);
            for n in [500, 2_000, 7_000, 20_000, 50_000, 200_000] {
                let estimate = world.engine.estimates(&exp(n))[0].estimate;
                off += (estimate.mean.0 / truth.at(n) - 1.0).abs();
                for _ in 0..20 {
                    let seconds = world.sample(0, n);
                    inside += u32::from((estimate.low.0..=estimate.high.0).contains(&seconds));
                    all += 1;
                }
            }
        }
        let (coverage, mape) = (f64::from(inside) / f64::from(all), off / f64::from(all) * 20.0);
        println!("noise {noise}: {:.1}% inside, MAPE {:.2}%", coverage * 100.0, mape * 100.0);
        assert!((0.85..=0.95).contains(&coverage), "noise {noise}: {coverage}");
        assert!(mape < 0.5 * noise, "noise {noise}: MAPE {mape}");
    }
}

#[test]
fn the_interval_of_a_workload_run_often_holds_nine_in_ten_as_well() {
    let (mut inside, mut all) = (0, 0);
    for seed in 0..40 {
        let script = Script { name: "a", threads: 1, prior: Line(1e-6, 1e-9), truth: Line(3e-6, 0.7e-9) };
        let mut world = World::new(&[script], 0.05, seed, Settings::default());
        let w = exp(20_000);
        world.calls(&w, 3_000);
        let estimate = world.engine.estimates(&w)[0].estimate;
        for _ in 0..200 {
            let seconds = world.sample(0, 20_000);
            inside += u32::from((estimate.low.0..=estimate.high.0).contains(&seconds));
            all += 1;
        }
    }
    let coverage = f64::from(inside) / f64::from(all);
    println!("{:.1}% inside", coverage * 100.0);
    assert!((0.85..=0.95).contains(&coverage), "{coverage}");
}
