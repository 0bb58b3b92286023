//! A dozen functions of a long vector, and their mean.
//!
//! `cargo run --release --example elementwise -- --n 10000000 --json`

mod program;

use program::{Flags, report, runtime, start, time};
use std::f64::consts::PI;
use steersman::{Array, Error, Runtime};

fn curve(rt: &Runtime, n: usize) -> Array {
    let x = rt.linspace(0.0f32, (4.0 * PI) as f32, n);
    let y0 = x.sin() * (&x / -10.0).exp();
    let y1 = &y0 * (&x / 4.0).cos() + 0.25 * (&y0 * &y0);
    let y2 = y1.tanh() + 0.1 * &y1;
    y2.mean(..)
}

fn reference(n: usize) -> f64 {
    let step = if n > 1 { 4.0 * PI / (n - 1) as f64 } else { 0.0 };
    let sum: f64 = (0..n)
        .map(|i| {
            let x = i as f64 * step;
            let y0 = x.sin() * (-x / 10.0).exp();
            let y1 = y0 * (x / 4.0).cos() + 0.25 * y0 * y0;
            y1.tanh() + 0.1 * y1
        })
        .sum();
    sum / n as f64
}

fn main() -> std::process::ExitCode {
    start("elementwise", run)
}

fn run() -> Result<(), Error> {
    let flags = Flags::parse(&[("n", 10_000_000)]);
    let n = flags.get("n");
    let rt = runtime()?;
    let (result, times) = time(|| Ok(f64::from(curve(&rt, n).item::<f32>()?)))?;
    let plan = rt.explain(&curve(&rt, n))?;
    if !flags.json {
        println!("{plan}");
    }
    let more = [("peak_bytes", plan.peak_bytes as f64), ("stages", plan.stages.len() as f64)];
    let reference = reference(n);
    // Of few elements nearly all lie where the curve is near zero: then the error of a single sine counts.
    let within = 1e-4 * reference.abs().max(0.1);
    report(&flags, "elementwise", result, reference, within, &times, &more);
    Ok(())
}
