//! Every kernel of an adapter with every parameter point on one workload: the device's own time of each, quickest
//! first, as a search would see them.
//!
//! `cargo run --release -p steersman-wgpu --example variants -- "matmul f32 4096x4096 4096x4096" [--checked]`

use std::sync::Arc;
use steersman_core::memory::Block;
use steersman_core::units::si;
use steersman_core::{DeviceId, Io, Kernel, Memory, Params, Ran, Workload};
use steersman_wgpu::{DeviceOptions, Gpu, adapters};

/// Timed runs of each, in turns.
const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let checked = words.iter().any(|w| w == "--checked");
    let text = words.iter().find(|w| !w.starts_with("--")).ok_or("a workload is wanted")?;
    let w: Workload = text.parse()?;
    let Some(found) = adapters().into_iter().next() else {
        println!("no adapter");
        return Ok(());
    };
    println!("{} ({})", found.identity.part, found.identity.driver);
    let gpu = Gpu::open(&found, DeviceOptions { checked, ..DeviceOptions::default() })?;
    let blocks = |list: &[steersman_core::Operand]| -> Result<Vec<Block>, Box<dyn std::error::Error>> {
        list.iter().map(|o| Ok(gpu.clone().take(o.span().0)?)).collect()
    };
    let (inputs, outputs) = (blocks(w.inputs())?, blocks(w.outputs())?);
    for block in &inputs {
        // Floats of about 0.1, so that nothing overflows or becomes subnormal.
        gpu.upload(&0.1f32.to_ne_bytes().repeat(block.bytes() / 4), block.address())?;
    }
    let at: Vec<_> = inputs.iter().map(Block::address).collect();
    let io = Io::new(&at, outputs[0].address());
    let mut points: Vec<(Arc<dyn Kernel>, Params, f64, f64)> = Vec::new();
    for kernel in gpu.kernels(DeviceId(1)) {
        if kernel.handles(w.op()) && kernel.supports(&w).is_ok() {
            points.extend(kernel.space(&w).into_iter().map(|p| (kernel.clone(), p, f64::INFINITY, 0.0)));
        }
    }
    for round in 0..=ROUNDS {
        for (kernel, p, best, cold) in &mut points {
            // Those far behind are not worth the time.
            if round > 2 && *best > 1.0 {
                continue;
            }
            // SAFETY: the blocks span the workload's operands, and the kernel takes it.
            let mut run = || unsafe { kernel.run(&w, *p, io) };
            match gpu.timed(&mut run) {
                Ok((Ran::Cold, took)) => *cold = took.0,
                Ok((_, took)) => *best = best.min(took.0),
                Err(why) => println!("{} {p}: {why}", kernel.name()),
            }
        }
    }
    points.sort_by(|a, b| a.2.total_cmp(&b.2));
    for (kernel, p, best, cold) in &points {
        println!(
            "{:<28} {:>4}  {:>10.3} ms  {:>14}  {:>12}  cold {:>7.1} ms",
            kernel.name(),
            p.variant,
            best * 1e3,
            si(w.flops() / best, "flop/s"),
            si(w.bytes() / best, "B/s"),
            cold * 1e3
        );
    }
    Ok(())
}
