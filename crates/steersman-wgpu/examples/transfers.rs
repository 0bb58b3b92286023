//! Uploads and downloads, straight to buffers that host and device share and through staging, in turns.
//!
//! `cargo run --release -p steersman-wgpu --example transfers`

use std::sync::Arc;
use std::time::{Duration, Instant};
use steersman_core::{KernelError, Memory};
use steersman_wgpu::{DeviceOptions, Gpu, adapters};

const ROUNDS: usize = 15;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(found) = adapters().into_iter().next() else {
        println!("no adapter");
        return Ok(());
    };
    let open = |staged| Gpu::open(&found, DeviceOptions { staged, ..DeviceOptions::default() });
    let ways: [Arc<Gpu>; 2] = [open(false)?, open(true)?];
    println!("{}: shared buffers {}", found.identity.part, ways[0].can().shared_buffers);
    println!(
        "{:>10}  {:>12} {:>12} {:>6}  {:>12} {:>12} {:>6}",
        "bytes", "up", "staged", "ratio", "down", "staged", "ratio"
    );
    for bytes in [64usize, 4 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20, 256 << 20] {
        let mut host = vec![0x3fu8; bytes];
        let taken = ways.each_ref().map(|gpu| gpu.clone().take(bytes));
        // Not every adapter binds so much at once.
        let [Ok(shared), Ok(staged)] = taken else { break };
        let blocks = [shared, staged];
        let mut times: [[Vec<Duration>; 2]; 2] = Default::default();
        for round in 0..=ROUNDS {
            for (i, (gpu, block)) in ways.iter().zip(&blocks).enumerate() {
                let time =
                    |work: &mut dyn FnMut() -> Result<(), KernelError>| -> Result<Duration, KernelError> {
                        let started = Instant::now();
                        work()?;
                        Ok(started.elapsed())
                    };
                let up = time(&mut || gpu.upload(&host, block.address()).and_then(|()| gpu.wait()))?;
                let down = time(&mut || gpu.download(block.address(), &mut host))?;
                if round > 0 {
                    times[0][i].push(up);
                    times[1][i].push(down);
                }
            }
        }
        let [up, down] = times.map(|[a, b]| (median(a), median(b)));
        let ratio = |(a, b): (Duration, Duration)| a.as_secs_f64() / b.as_secs_f64();
        println!(
            "{bytes:>10}  {:>12.2?} {:>12.2?} {:>6.2}  {:>12.2?} {:>12.2?} {:>6.2}",
            up.0,
            up.1,
            ratio(up),
            down.0,
            down.1,
            ratio(down)
        );
    }
    Ok(())
}
