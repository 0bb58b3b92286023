//! Whether transfers go on beside other work: each alone, one after the other, and at once from two threads, in turns.
//! A ratio of 1 is what waiting for each other takes; the last column is what going on freely would.
//!
//! `cargo run --release -p steersman-wgpu --example overlap`

use std::sync::Arc;
use std::time::{Duration, Instant};
use steersman_core::memory::Block;
use steersman_core::{DeviceId, Io, Kernel, KernelError, Memory, Workload};
use steersman_wgpu::{DeviceOptions, Gpu, adapters};

const ROUNDS: usize = 11;
const BYTES: usize = 64 << 20;

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// Arithmetic of one thread that stays in registers.
fn calculate(turns: usize) {
    for _ in 0..turns {
        let mut x = [1.0f32; 16];
        for _ in 0..2_000 {
            x.iter_mut().for_each(|x| *x = *x * 0.999 + 0.001);
        }
        std::hint::black_box(x);
    }
}

/// Products of matrices on the device, one after the other.
struct Products {
    gpu: Arc<Gpu>,
    kernel: Arc<dyn Kernel>,
    workload: Workload,
    blocks: [Block; 2],
}

impl Products {
    fn new(gpu: &Arc<Gpu>) -> Result<Products, Box<dyn std::error::Error>> {
        let n = if gpu.software() { 256 } else { 2048 };
        let workload: Workload = format!("matmul f32 {n}x{n} {n}x{n}").parse()?;
        let all = gpu.kernels(DeviceId(1));
        let named = all.iter().find(|k| k.name().ends_with("matmul-vec4") && k.supports(&workload).is_ok());
        let kernel = named.ok_or("no kernel multiplies")?.clone();
        let blocks = [gpu.clone().take(4 * n * n)?, gpu.clone().take(4 * n * n)?];
        gpu.upload(&vec![0; 4 * n * n], blocks[0].address())?;
        Ok(Products { gpu: gpu.clone(), kernel, workload, blocks })
    }

    fn run(&self, times: usize) -> Result<(), KernelError> {
        let params = self.kernel.params(&self.workload)[0];
        let inputs = [self.blocks[0].address(); 2];
        for _ in 0..times {
            // SAFETY: the blocks have the workload's shapes.
            unsafe { self.kernel.run(&self.workload, params, Io::new(&inputs, self.blocks[1].address())) }?;
        }
        self.gpu.wait()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(found) = adapters().into_iter().next() else {
        println!("no adapter");
        return Ok(());
    };
    for staged in [false, true] {
        let gpu = Gpu::open(&found, DeviceOptions { staged, ..DeviceOptions::default() })?;
        if staged && !gpu.can().shared_buffers {
            break;
        }
        let way = if gpu.can().shared_buffers && !staged { "mapped" } else { "staged" };
        println!("{} ({way}), {} MiB", found.identity.part, BYTES >> 20);
        let products = Products::new(&gpu)?;
        products.run(1)?;
        let block = gpu.clone().take(BYTES)?;
        let up = vec![1u8; BYTES];
        let upload = || gpu.upload(&up, block.address()).and_then(|()| gpu.wait()).expect("an upload");
        let down = std::sync::Mutex::new(vec![1u8; BYTES]);
        let fetch = || {
            let mut to = down.lock().unwrap_or_else(|e| e.into_inner());
            gpu.download(block.address(), &mut to).expect("a download");
        };
        let send: &(dyn Fn() + Sync) = &upload;
        let fetch: &(dyn Fn() + Sync) = &fetch;
        let one = timed(|| calculate(1000)).as_secs_f64() / 1000.0;
        let product = timed(|| products.run(8).expect("products")).as_secs_f64() / 8.0;
        println!(
            "{:<9} {:<12} {:>9} {:>9} {:>9} {:>7} {:>7}",
            "transfer", "beside", "alone", "work", "at once", "ratio", "free"
        );
        for (name, transfer) in [("upload", send), ("download", fetch)] {
            transfer();
            let takes = timed(transfer).as_secs_f64();
            let turns = ((takes / one) as usize).max(1);
            let times = ((takes / product) as usize).max(1);
            let host = || calculate(turns);
            let device = || products.run(times).expect("products");
            let works: [(&str, &dyn Fn()); 2] = [("the host", &host), ("the device", &device)];
            for (beside, work) in works {
                let mut times: [Vec<Duration>; 3] = Default::default();
                for _ in 0..ROUNDS {
                    times[0].push(timed(transfer));
                    times[1].push(timed(work));
                    times[2].push(timed(|| {
                        std::thread::scope(|s| {
                            s.spawn(transfer);
                            work();
                        })
                    }));
                }
                let [a, b, both] = times.map(median);
                println!(
                    "{name:<9} {beside:<12} {:>7.2}ms {:>7.2}ms {:>7.2}ms {:>7.2} {:>7.2}",
                    a * 1e3,
                    b * 1e3,
                    both * 1e3,
                    both / (a + b),
                    a.max(b) / (a + b)
                );
            }
        }
    }
    Ok(())
}
