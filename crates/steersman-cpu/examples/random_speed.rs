//! Nanoseconds per random number, by distribution, type and instruction set.
//!
//! `cargo run --release -p steersman-cpu --example random_speed`

use std::time::Instant;
use steersman_cpu::isa::Level;
use steersman_cpu::random;

const N: usize = 1024;
const REPEATS: usize = 2_000;

fn main() {
    let (mut a, mut b) = (vec![0f32; N], vec![0f64; N]);
    for level in Level::present() {
        let mut best = [f64::INFINITY; 4];
        for round in 0..20u64 {
            let mut time = |i: usize, f: &mut dyn FnMut(u64)| {
                let start = Instant::now();
                (0..REPEATS).for_each(|k| f(round + k as u64));
                best[i] = best[i].min(start.elapsed().as_secs_f64() / (REPEATS * N) as f64);
            };
            time(0, &mut |k| random::uniform_f32(level, k, 0, &mut a));
            time(1, &mut |k| random::normal_f32(level, k, 0, &mut a));
            time(2, &mut |k| random::uniform_f64(level, k, 0, &mut b));
            time(3, &mut |k| random::normal_f64(level, k, 0, &mut b));
        }
        let [u, n, v, m] = best.map(|s| s * 1e9);
        let name = level.name();
        println!("{name:<8} uniform f32 {u:.2} ns  normal f32 {n:.2}  uniform f64 {v:.2}  normal f64 {m:.2}");
    }
}
