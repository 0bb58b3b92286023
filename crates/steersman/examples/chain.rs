//! Ten element-wise ops in a chain, built and read anew each time: what small expressions cost, what large ones reach.
//!
//! `cargo run --release --example chain -- --n 1000000 --json`

mod program;

use program::{Flags, report, runtime, start, time};
use steersman::{Array, Error};

fn chain(x: &Array) -> Array {
    (((((x * 1.5 + 0.5).sqrt() - 0.25) * x).abs() + 1.0) / 2.0).maximum(0.125).neg()
}

fn reference(x: f64) -> f64 {
    -((((x * 1.5 + 0.5).sqrt() - 0.25) * x).abs() + 1.0).max(0.25) / 2.0
}

fn main() -> std::process::ExitCode {
    start("chain", run)
}

fn run() -> Result<(), Error> {
    let flags = Flags::parse(&[("n", 1_000_000)]);
    let n = flags.get("n");
    let rt = runtime()?;
    let input = |i: usize| i as f32 / n as f32;
    let mut numbers: Vec<f32> = Vec::new();
    numbers
        .try_reserve_exact(n)
        .map_err(|why| Error::Memory { workload: format!("{n} numbers"), why: why.to_string() })?;
    numbers.extend((0..n).map(input));
    let x = rt.from_vec(numbers, [n])?;
    let (_, times) = time(|| Ok(f64::from(chain(&x).data::<f32>()?[n - 1])))?;
    let y = chain(&x);
    let values = y.data::<f32>()?;
    let wanted = |i: usize| reference(f64::from(input(i)));
    let worst = (0..n).map(|i| (f64::from(values[i]) / wanted(i) - 1.0).abs()).fold(0.0, f64::max);
    let mean = |value: &dyn Fn(usize) -> f64| (0..n).map(value).sum::<f64>() / n as f64;
    let result = mean(&|i| f64::from(values[i]));
    let plan = rt.explain(&chain(&x))?;
    if !flags.json {
        println!("{plan}");
    }
    let more = [("worst_relative_error", worst), ("stages", plan.stages.len() as f64)];
    let reference = mean(&wanted);
    report(&flags, "chain", result, reference, 1e-6 * reference.abs(), &times, &more);
    if worst > 1e-6 {
        eprintln!("chain: an element is {worst:e} of its value off");
        std::process::exit(1);
    }
    Ok(())
}
