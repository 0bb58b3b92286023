//! Nanoseconds per element and bytes per second of the element-wise kernels, by size and thread count; all
//! kernels of a line take turns in one run.
//!
//! `cargo run --release -p steersman-cpu --example map_speed [op-part] [dtype-part] [kernel-part]`

use std::sync::Arc;
use std::time::Instant;
use steersman_core::{Address, DType, DeviceId, Io, Kernel, Params, Workload};
use steersman_cpu::context::Context;
use steersman_cpu::host::Host;
use steersman_cpu::map;
use steersman_cpu::threads::Team;

const SIZES: [usize; 7] = [16, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
const ROUNDS: usize = 7;
/// Layouts and types that take another way than one loop over all.
const OTHERS: [&str; 12] = [
    "add f32 1000x1000 1000",
    "add f32 1000x1000 1000x1",
    "add f32 1000000 1",
    "add f32 1000x1000:1,1000 1000x1000",
    "add f32 1000x1000:1,1000 1000x1000:1,1000",
    "add f32 300000x3 3",
    "pow f32 1000000 1",
    "clamp f32 1000000 1 1",
    "where f32 1000000 1000000 1000000",
    "lt f32 1000000 1000000",
    "add f16 1000000 1000000",
    "exp bf16 1000000",
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |i: usize, name: &str| wanted.get(i).is_none_or(|part| name.contains(part.as_str()));
    let host = Arc::new(Host::detect());
    let ctx = Context { device: DeviceId(0), team: Arc::new(Team::new(host.cores)), host };
    let kernels = map::kernels(&ctx);
    if wanted(0, "layouts") {
        for text in OTHERS {
            let w: Workload = text.parse().expect("a workload");
            line(&kernels, &w, w.output().elements(), &|k| wanted(2, k));
        }
    }
    for op in ["add", "exp", "tanh", "sin"].into_iter().filter(|op| wanted(0, op)) {
        for dtype in [DType::F32, DType::F64].into_iter().filter(|d| wanted(1, d.name())) {
            for n in SIZES {
                let second = if op == "add" { format!(" {n}") } else { String::new() };
                let w: Workload = format!("{op} {dtype} {n}{second}").parse().expect("a workload");
                line(&kernels, &w, n, &|k| wanted(2, k));
            }
        }
    }
}

fn line(kernels: &[Arc<dyn Kernel>], w: &Workload, n: usize, wanted: &dyn Fn(&str) -> bool) {
    let mut a = vec![0u64; n + 8];
    fill(&mut a, w.dtype(), n);
    let (b, out) = (a.clone(), vec![0u64; n + 8]);
    let at = |v: &Vec<u64>| Address::host(v.as_ptr().wrapping_byte_add(v.as_ptr().align_offset(64) * 8));
    let inputs = [at(&a), at(&b), at(&a)];
    let io = Io::new(&inputs[..w.inputs().len()], at(&out));
    let candidates: Vec<(&Arc<dyn Kernel>, Params)> = kernels
        .iter()
        .filter(|k| wanted(k.name()) && k.supports(w).is_ok())
        .flat_map(|k| k.params(w).into_iter().map(move |p| (k, p)))
        .collect();
    let repeats = (200_000 / n).max(1);
    let mut best = vec![f64::INFINITY; candidates.len()];
    for _ in 0..ROUNDS {
        for ((k, p), best) in candidates.iter().zip(&mut best) {
            let start = Instant::now();
            for _ in 0..repeats {
                // SAFETY: each vector holds `n` elements of 8 bytes and one line to align in.
                unsafe { k.run(w, *p, io) }.expect("a supported workload runs");
            }
            *best = best.min(start.elapsed().as_secs_f64() / repeats as f64);
        }
    }
    println!("{w}");
    for ((k, p), seconds) in candidates.iter().zip(best) {
        let (ns, gb) = (seconds * 1e9, w.bytes() / seconds / 1e9);
        println!(
            "  {:<22} {p}   call {ns:>12.1} ns   {:>7.3} ns/element   {gb:>7.1} GB/s",
            k.name(),
            ns / n as f64
        );
    }
}

/// Values between -4 and 4.
fn fill(v: &mut [u64], dtype: DType, n: usize) {
    let at = v.as_ptr().align_offset(64);
    let to = &mut v[at..];
    for i in 0..n {
        let x = (i * 2477 % 8191) as f64 / 1024.0 - 4.0;
        // SAFETY: `n` elements of at most 8 bytes.
        unsafe {
            match dtype {
                DType::F32 => to.as_mut_ptr().cast::<f32>().add(i).write(x as f32),
                _ => to.as_mut_ptr().cast::<f64>().add(i).write(x),
            }
        }
    }
}
