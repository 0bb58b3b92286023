//! How the clock of a device comes and goes: ticks after it had nothing to do, before and after it was roused.
//!
//! `cargo run --release -p steersman-wgpu --example clock`

use std::time::{Duration, Instant};
use steersman_core::Memory;
use steersman_wgpu::{DeviceOptions, Gpu, adapters};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(found) = adapters().into_iter().next() else {
        println!("no adapter");
        return Ok(());
    };
    let gpu = Gpu::open(&found, DeviceOptions::default())?;
    println!("{}", found.identity.part);
    let Some(first) = gpu.tick()? else {
        println!("it has no clock of its own");
        return Ok(());
    };
    println!("first tick {:.1} µs", first * 1e6);
    println!("{:>10}  {:>12}  {:>10}  {:>12}", "idle", "tick", "roused in", "tick then");
    for idle in [0, 1, 10, 100, 300, 1000, 3000, 5000].map(Duration::from_millis) {
        std::thread::sleep(idle);
        let before = gpu.tick()?.unwrap_or(f64::NAN);
        let began = Instant::now();
        gpu.clone().rouse();
        let roused = began.elapsed();
        let after = gpu.tick()?.unwrap_or(f64::NAN);
        println!("{idle:>10.0?}  {:>9.1} µs  {roused:>10.1?}  {:>9.1} µs", before * 1e6, after * 1e6);
    }
    println!("ticks alone, from full speed on");
    let began = Instant::now();
    let mut next = 0.0;
    while began.elapsed() < Duration::from_secs(4) {
        let tick = gpu.tick()?.unwrap_or(f64::NAN);
        let at = began.elapsed().as_secs_f64();
        if at >= next {
            println!("{at:>8.3} s  {:>9.1} µs", tick * 1e6);
            next = (at * 1.3).max(0.02);
        }
    }
    Ok(())
}
