//! Prices a call option by simulated paths, one normal number per path and step, against Black and Scholes.
//!
//! `cargo run --release --example monte_carlo -- --paths 250000 --steps 256 --json`

mod program;

use program::{Flags, report, runtime, start, time};
use steersman::{Array, Error, Runtime, Seed};

const START: f64 = 100.0;
const STRIKE: f64 = 100.0;
const DRIFT: f64 = 0.05;
const VOLATILITY: f64 = 0.2;
const STEP: f64 = 1.0 / 252.0;

/// What the option is worth on average over the paths.
fn price(rt: &Runtime, paths: usize, steps: usize, seed: Seed) -> Array {
    let drift = (DRIFT - VOLATILITY * VOLATILITY / 2.0) * STEP;
    let spread = VOLATILITY * STEP.sqrt();
    let mut value = rt.full([paths], START as f32);
    for t in 0..steps {
        let normal = rt.normal([paths], seed.nth(t as u64));
        value *= (normal * spread + drift).exp();
    }
    (value - STRIKE).maximum(0.0).mean(..) * (-DRIFT * steps as f64 * STEP).exp()
}

/// The closed form, and how far single paths deviate from it. The normal distribution function by its series, in f64.
fn black_scholes(steps: usize) -> (f64, f64) {
    let time = steps as f64 * STEP;
    let spread = VOLATILITY * time.sqrt();
    let d1 = ((START / STRIKE).ln() + (DRIFT + VOLATILITY * VOLATILITY / 2.0) * time) / spread;
    let normal = |x: f64| {
        let (mut term, mut sum, mut k) = (x, x, 1.0);
        while term.abs() > 1e-17 {
            k += 2.0;
            term *= x * x / k;
            sum += term;
        }
        0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
    };
    let strike = STRIKE * (-DRIFT * time).exp();
    let price = START * normal(d1) - strike * normal(d1 - spread);
    let square = START * START * (spread * spread).exp() * normal(d1 + spread)
        - 2.0 * strike * START * normal(d1)
        + strike * strike * normal(d1 - spread);
    (price, (square - price * price).sqrt())
}

fn main() -> std::process::ExitCode {
    start("monte_carlo", run)
}

fn run() -> Result<(), Error> {
    let flags = Flags::parse(&[("paths", 250_000), ("steps", 256)]);
    let (paths, steps) = (flags.get("paths"), flags.get("steps"));
    let rt = runtime()?;
    let (mut runs, mut sum) = (0, 0.0);
    let (_, times) = time(|| {
        runs += 1;
        let price = f64::from(price(&rt, paths, steps, Seed(runs)).item::<f32>()?);
        sum += price;
        Ok(price)
    })?;
    // Every run has paths of its own: all of them together say more than the first.
    let result = sum / runs as f64;
    let plan = rt.explain(&price(&rt, paths, steps, Seed(1)))?;
    if !flags.json {
        println!("{plan}");
    }
    let (reference, deviation) = black_scholes(steps);
    // Five standard errors of one run's mean, though the result is that of many.
    let within = 5.0 * deviation / (paths as f64).sqrt();
    let more = [("plan_nodes", plan.nodes as f64), ("stages", plan.stages.len() as f64)];
    report(&flags, "monte_carlo", result, reference, within, &times, &more);
    Ok(())
}
