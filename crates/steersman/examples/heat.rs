//! Heat that spreads over a plate with cold edges, as a stencil of slices, against the exact solution of the scheme.

mod program;

use program::{Flags, report, runtime, start, time};
use std::f64::consts::PI;
use steersman::{Array, Error, Runtime};

/// Share of the difference to its neighbours that a cell takes on in one step.
const RATE: f64 = 0.2;

/// One step. The plate's edges stay at zero, and `u` holds the cells inside.
fn step(rt: &Runtime, u: &Array) -> Array {
    let n = u.shape()[0] as isize;
    let (row, column) = (rt.zeros::<f64>([1, n as usize]), rt.zeros::<f64>([n as usize, 1]));
    let up = rt.concat(&[&u.slice((1..,)), &row], 0);
    let down = rt.concat(&[&row, &u.slice((..n - 1,))], 0);
    let left = rt.concat(&[&u.slice((.., 1..)), &column], 1);
    let right = rt.concat(&[&column, &u.slice((.., ..n - 1))], 1);
    u + RATE * (up + down + left + right - 4.0 * u)
}

fn main() -> std::process::ExitCode {
    start("heat", run)
}

fn run() -> Result<(), Error> {
    let flags = Flags::parse(&[("n", 256), ("steps", 100)]);
    let (n, steps) = (flags.get("n"), flags.get("steps"));
    let rt = runtime()?;
    let line =
        (rt.arange(1i64, n as i64 + 1, 1).cast(steersman::core::DType::F64) * (PI / (n + 1) as f64)).sin();
    let start = line.expand(1) * line.expand(0);
    let (result, times) = time(|| {
        let mut u = start.clone();
        for _ in 0..steps {
            u = step(&rt, &u);
        }
        u.max(..).item::<f64>()
    })?;
    // A sine keeps its form; each step takes the same share of its height.
    let share = 1.0 - 8.0 * RATE * (PI / (n + 1) as f64 / 2.0).sin().powi(2);
    let highest = (PI * n.div_ceil(2) as f64 / (n + 1) as f64).sin().powi(2);
    let reference = highest * share.powf(steps as f64);
    report(&flags, "heat", result, reference, 1e-9 * reference, &times, &[]);
    Ok(())
}
