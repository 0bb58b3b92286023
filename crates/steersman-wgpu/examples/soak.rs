//! 100,000 operations of random sizes under a limit of 256 MiB: memory must stay flat and nothing may fail.
//!
//! `cargo run --release -p steersman-wgpu --example soak -- [operations]`

use std::sync::Arc;
use std::time::Instant;
use steersman_core::memory::Block;
use steersman_core::{Address, DeviceId, Io, Kernel, Memory, Params, Workload};
use steersman_wgpu::{DeviceOptions, Gpu, adapters};

/// Resident bytes of this process, where the system tells.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let operations = std::env::args().nth(1).map_or(Ok(100_000), |a| a.parse())?;
    let Some(found) = adapters().into_iter().next() else {
        println!("no adapter");
        return Ok(());
    };
    let gpu = Gpu::open(&found, DeviceOptions { memory_limit: Some(256 << 20), ..DeviceOptions::default() })?;
    let kernels = gpu.kernels(DeviceId(1));
    let mut random = Numbers(0x9E37_79B9_7F4A_7C15);
    let mut kept: Vec<Block> = Vec::new();
    let started = Instant::now();
    for i in 0..operations {
        // Mostly small, now and then megabytes.
        let octave = 4 + random.below(if i % 50 == 0 { 17 } else { 10 });
        let n = 1 + random.below(1 << octave);
        let side = 1 + random.below(64);
        let text = match random.below(6) {
            0 => format!("add f32 {n} {n}"),
            1 => format!("tanh f32 {n}"),
            2 => format!("sum f32 {n}"),
            3 => format!("transpose f32 {side}x{}", 1 + n / 64),
            4 => format!("matmul f32 {side}x{side} {side}x{side}"),
            _ => format!("gt f32 {n} 1"),
        };
        let w: Workload = text.parse()?;
        run(&gpu, &kernels, &w, &mut random, &mut kept)?;
        if kept.len() > 64 {
            let gone = random.below(kept.len());
            kept.swap_remove(gone);
        }
        if i % 97 == 0 {
            let mut bytes = [0; 4];
            gpu.download(kept[kept.len() - 1].address(), &mut bytes)?;
        }
        if (i + 1) % (operations / 10).max(1) == 0 {
            let counts = gpu.counts();
            println!(
                "{:>7} ops {:>6.1} s  in use {:>6.1} MiB  held {:>6.1} MiB  process {:>6.1} MiB  {} pipelines",
                i + 1,
                started.elapsed().as_secs_f64(),
                gpu.in_use() as f64 / (1 << 20) as f64,
                counts.held as f64 / (1 << 20) as f64,
                resident().unwrap_or(0) as f64 / (1 << 20) as f64,
                counts.compiled
            );
        }
    }
    drop(kept);
    gpu.wait()?;
    println!("after: in use {} B, no error", gpu.in_use());
    Ok(())
}

/// Runs `w` by one of the kernels that take it, on blocks of its own; the result is kept.
fn run(
    gpu: &Arc<Gpu>,
    kernels: &[Arc<dyn Kernel>],
    w: &Workload,
    random: &mut Numbers,
    kept: &mut Vec<Block>,
) -> Result<(), Box<dyn std::error::Error>> {
    let legal: Vec<_> = kernels.iter().filter(|k| k.handles(w.op()) && k.supports(w).is_ok()).collect();
    let kernel = legal[random.below(legal.len())];
    let inputs = w.inputs().iter().map(|o| gpu.clone().take(o.bytes())).collect::<Result<Vec<_>, _>>()?;
    if random.below(10) == 0 {
        gpu.upload(&vec![0x3e; w.inputs()[0].distinct_bytes()], inputs[0].address())?;
    }
    let output = gpu.clone().take(w.output().bytes())?;
    let at: Vec<Address> = inputs.iter().map(Block::address).collect();
    // SAFETY: the blocks have the workload's sizes.
    unsafe { kernel.run(w, Params::SERIAL, Io::new(&at, output.address())) }?;
    kept.push(output);
    Ok(())
}
