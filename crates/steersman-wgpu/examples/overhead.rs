//! Host time to enqueue small dispatches, alone and in batches, and what waiting for one costs.
//!
//! `cargo run --release -p steersman-wgpu --example overhead`

use std::sync::Arc;
use std::time::{Duration, Instant};
use steersman_core::units::si;
use steersman_core::{DeviceId, Io, Kernel, KernelError, Memory, Params, Workload};
use steersman_wgpu::{DeviceOptions, Gpu, adapters};

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let found = adapters();
    println!("listing adapters       {:>10.2?}", started.elapsed());
    let Some(found) = found.first() else {
        println!("no adapter");
        return Ok(());
    };
    let started = Instant::now();
    let gpu = Gpu::open(found, DeviceOptions::default())?;
    println!("opening {:<14} {:>10.2?}", found.identity.family, started.elapsed());
    let started = Instant::now();
    let kernels = gpu.kernels(DeviceId(1));
    println!("making {} kernels      {:>10.2?}", kernels.len(), started.elapsed());
    let w: Workload = "add f32 1024 1024".parse()?;
    let kernel: &Arc<dyn Kernel> = kernels.iter().find(|k| k.supports(&w).is_ok()).ok_or("no kernel adds")?;
    let blocks = [0; 3].map(|_| gpu.clone().take(4096));
    let [x, y, z] = blocks;
    let (x, y, z) = (x?, y?, z?);
    gpu.upload(&[0; 4096], x.address())?;
    gpu.upload(&[0; 4096], y.address())?;
    let inputs = [x.address(), y.address()];
    // SAFETY: the blocks have the workload's shapes.
    let enqueue = || unsafe { kernel.run(&w, Params::SERIAL, Io::new(&inputs, z.address())) };
    let started = Instant::now();
    enqueue()?;
    println!("first run, compiling   {:>10.2?}", started.elapsed());
    gpu.wait()?;

    let each = |timed: &dyn Fn() -> Result<(), KernelError>| -> Result<Vec<Duration>, KernelError> {
        let mut times = Vec::new();
        for _ in 0..2000 {
            let started = Instant::now();
            enqueue()?;
            timed()?;
            times.push(started.elapsed());
            gpu.wait()?;
        }
        Ok(times)
    };
    println!("enqueue one, p50       {:>10.2?}", median(each(&|| Ok(()))?));
    println!("and submit it, p50     {:>10.2?}", median(each(&|| gpu.submit())?));
    println!("enqueue and wait, p50  {:>10.2?}", median(each(&|| gpu.wait())?));

    let mut batches = Vec::new();
    for _ in 0..20 {
        let started = Instant::now();
        for _ in 0..1000 {
            enqueue()?;
        }
        batches.push(started.elapsed() / 1000);
        gpu.wait()?;
    }
    println!("one of 1000 batched    {:>10.2?}", median(batches));
    let before = gpu.counts().submissions;
    for _ in 0..1000 {
        enqueue()?;
    }
    gpu.wait()?;
    println!("submissions of 1000    {:>10}", gpu.counts().submissions - before);

    let probed = gpu.probe(Duration::from_secs(5))?;
    let rate = |r: Option<f64>, unit: &str| r.map_or("unknown".into(), |r| si(r, unit));
    let bandwidth = probed.machine.levels.first().and_then(|l| l.copy.first().copied());
    println!("launch and wait, best  {:>10}", rate(probed.machine.handoff.map(|s| s * 1e6), "µs"));
    println!("bandwidth              {:>10}", rate(bandwidth, "B/s"));
    println!(
        "peak                   {:>10}",
        rate(probed.machine.peak_f32.values().next().copied(), "flop/s")
    );
    for (name, samples) in [("upload", &probed.link.upload), ("download", &probed.link.download)] {
        for (bytes, seconds) in samples {
            println!("{name:<10} {bytes:>9} B  {seconds}");
        }
    }
    Ok(())
}
