//! What a plan-cache hit costs apart from the graph before it and the kernels after it.
//!
//! A chain of ten ops on an array without elements: walked, hashed, looked up and handed over as any other, and nothing
//! runs. Prints the time to build and drop the graph, and how much longer it takes with the read, in nanoseconds.

use std::time::Instant;
use steersman::{Array, Error, Knobs, Runtime};

const ROUNDS: usize = 20_000;

fn chain(x: &Array) -> Array {
    (((((x * 1.5 + 0.5).sqrt() - 0.25) * x).abs() + 1.0) / 2.0).maximum(0.125).neg()
}

fn main() -> Result<(), Error> {
    let mut knobs = Knobs::default();
    knobs.set("wisdom.enabled", "false")?;
    knobs.set("calibrate.background", "false")?;
    let rt = Runtime::with_knobs(knobs)?;
    let x = rt.from_vec(Vec::<f32>::new(), [0])?;
    let clock = Instant::now();
    let (mut tick, mut build, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = clock.elapsed();
        tick.push(clock.elapsed() - started);
        let started = clock.elapsed();
        drop(chain(&x));
        build.push(clock.elapsed() - started);
        let started = clock.elapsed();
        let y = chain(&x);
        y.eval()?;
        drop(y);
        all.push(clock.elapsed() - started);
    }
    let median = |list: &mut Vec<std::time::Duration>| {
        list.sort();
        list[ROUNDS / 2].as_nanos() as i64
    };
    let (tick, build, all) = (median(&mut tick), median(&mut build), median(&mut all));
    println!("graph of ten nodes, built and dropped  {:>6} ns", build - tick);
    println!("plan-cache hit: walk, look up, hand over {:>4} ns", all - build);
    println!("plans made {}", rt.plans());
    Ok(())
}
