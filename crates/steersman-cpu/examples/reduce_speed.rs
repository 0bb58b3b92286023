//! Nanoseconds per element of every reduction kernel that takes a workload, at each thread count, all
//! interleaved in one run; the fastest of many rounds.
//!
//! `cargo run --release -p steersman-cpu --example reduce_speed ["sum f32 4096x4096 axis=0" ...]`

use std::sync::Arc;
use std::time::Instant;
use steersman_core::{Address, DeviceId, Io, Workload};
use steersman_cpu::{context::Context, host::Host, memory::MemoryPool, moves, reduce, threads::Team};

const USUAL: &[&str] = &[
    "sum f32 16",
    "sum f32 4096",
    "max f32 4096",
    "norm f32 4096",
    "argmax f32 4096",
    "var f32 4096",
    "sum f64 4096",
    "sum u8 4096",
    "max u8 4096",
    "any f32 4096",
    "sum f16 4096",
    "sum f32 4096x4096",
    "max f32 4096x4096",
    "var f32 4096x4096",
    "sum f32 4096x4096 axis=1",
    "sum f32 4096x4096 axis=0",
    "max f32 4096x4096 axis=0",
    "argmax f32 4096x4096 axis=0",
    "var f32 4096x4096 axis=0",
    "max f32 1607x4 axis=1",
    "sum f32 100000x3 axis=1",
    "sum f32 100000x16 axis=1",
    "sum f32 100000x3 axis=0",
    "sum f32 64x64x64 axis=1",
    "transpose f32 16x16",
    "transpose f32 256x256",
    "transpose f32 4096x4096",
    "transpose f64 2048x2048",
    "transpose u8 4096x4096",
    "transpose f32 64x128x256 perm=1,0,2",
    "transpose f32 64x128x256 perm=0,2,1",
    "copy f32 4096x4096",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let texts: Vec<&str> =
        if asked.is_empty() { USUAL.to_vec() } else { asked.iter().map(String::as_str).collect() };
    let host = Arc::new(Host::detect());
    let ctx = Context { device: DeviceId(0), team: Arc::new(Team::new(host.cores)), host };
    let mut kernels = reduce::kernels(&ctx);
    kernels.extend(moves::kernels(&ctx));
    let pool = MemoryPool::new(1 << 30);
    for text in texts {
        let w: Workload = text.parse()?;
        let n = w.inputs()[0].elements();
        let input = pool.take(w.inputs()[0].bytes().max(64))?;
        let output = pool.take(w.output().bytes().max(64))?;
        let start = input.as_ptr();
        for i in 0..w.inputs()[0].bytes() / 4 {
            // SAFETY: within the block just taken.
            unsafe { *(start as *mut f32).add(i) = (i * 7919 % 1000) as f32 * 1e-3 + 0.5 };
        }
        let inputs = [Address::host(start)];
        let io = Io::new(&inputs, Address::host(output.as_ptr()));
        let mut rows = Vec::new();
        for k in kernels.iter().filter(|k| k.supports(&w).is_ok()) {
            for p in k.params(&w) {
                rows.push((k, p, f64::INFINITY));
            }
        }
        let (rounds, repeats) = (if n > 1 << 20 { 12 } else { 60 }, (100_000 / n.max(1)).clamp(1, 1000));
        for _ in 0..rounds {
            for (kernel, p, best) in &mut rows {
                let from = Instant::now();
                for _ in 0..repeats {
                    // SAFETY: both blocks are as large as the workload says.
                    unsafe { kernel.run(&w, *p, io)? };
                }
                *best = best.min(from.elapsed().as_secs_f64() * 1e9 / repeats as f64);
            }
        }
        println!("{text}");
        for (kernel, p, ns) in rows {
            let rate = w.bytes() / ns;
            println!(
                "  {:<26} {p:<4} {:>12.1} ns {:>8.4} ns/element {rate:>7.1} GB/s",
                kernel.name(),
                ns,
                ns / n.max(1) as f64
            );
        }
    }
    Ok(())
}
