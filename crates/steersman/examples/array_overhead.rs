//! What an expression costs beyond its arithmetic: ten chained ops on 100 numbers, built anew each time.
//!
//! Prints the time to build and drop the graph, the time of everything including the read, and the time of the
//! plan's workloads run alone, all interleaved; the rest is walking, looking up, memory and handing over.

use std::time::Instant;
use steersman::{Array, Error, Knobs, Runtime};

fn chain(x: &Array) -> Array {
    (((((x * 1.5 + 0.5).sqrt() - 0.25) * x).abs() + 1.0) / 2.0).maximum(0.125).neg()
}

fn main() -> Result<(), Error> {
    let mut knobs = Knobs::default();
    knobs.set("wisdom.enabled", "false")?;
    knobs.set("calibrate.background", "false")?;
    let rt = Runtime::with_knobs(knobs)?;
    println!("{:>10} {:>10} {:>10} {:>10}", "elements", "build", "build+read", "last run");
    for n in [100usize, 1000, 10_000, 100_000, 1_000_000] {
        let x = rt.from_vec((0..n).map(|i| i as f32 / n as f32).collect(), [n])?;
        let rounds = (20_000_000 / (n + 2000)).clamp(50, 5000);
        let (mut build, mut all) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let started = Instant::now();
            drop(chain(&x));
            build.push(started.elapsed());
            let started = Instant::now();
            chain(&x).eval()?;
            all.push(started.elapsed());
        }
        let y = chain(&x);
        y.eval()?;
        build.sort();
        all.sort();
        let measured = y.plan()?.measured_s.unwrap_or(f64::NAN);
        println!(
            "{n:>10} {:>7.2} µs {:>7.2} µs {:>7.2} µs",
            build[rounds / 2].as_secs_f64() * 1e6,
            all[rounds / 2].as_secs_f64() * 1e6,
            measured * 1e6
        );
        if n == 100 {
            println!("{}", y.plan()?);
        }
    }
    Ok(())
}
