//! What an adaptive call costs beyond the variant it runs: the same tiny closure called directly through
//! a box and through the engine, interleaved, the least of many rounds.
//!
//! `cargo run --release --example adaptive_overhead`

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use steersman::Adaptive;
use steersman_core::{Engine, Seconds};

type Boxed = Box<dyn Fn(&[u64]) -> u64 + Send + Sync>;

fn least(best: &mut f64, mut f: impl FnMut()) {
    const CALLS: usize = 2_000;
    let started = Instant::now();
    for _ in 0..CALLS {
        f();
    }
    *best = best.min(started.elapsed().as_secs_f64() / CALLS as f64);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sum = |v: &[u64]| v.iter().sum::<u64>();
    let direct: Boxed = black_box(Box::new(sum));
    let adaptive = Adaptive::reading("sum", &Arc::new(Engine::default()))
        .variant("forward", sum)
        .variant("backward", |v: &[u64]| v.iter().rev().sum::<u64>())
        .size(|v| v.len())
        .build()?;
    let data = [1u64; 16];
    let (mut plain, mut steered) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..400 {
        least(&mut plain, || {
            black_box(direct(black_box(&data)));
        });
        least(&mut steered, || {
            black_box(adaptive.call(black_box(&data)));
        });
    }
    println!("direct {}, adaptive {}: {} a call", Seconds(plain), Seconds(steered), Seconds(steered - plain));
    Ok(())
}
