//! What a block from the pool costs: `cargo run --release -p steersman-cpu --example memory`.

use std::hint::black_box;
use std::time::Instant;

use steersman_cpu::memory::MemoryPool;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = MemoryPool::new(1 << 30);
    println!("bytes        pool take+drop   Vec take+drop   (ns, best of 9, nothing written)");
    for bytes in [64, 4 << 10, 64 << 10, 1 << 20, 16 << 20] {
        let (mut pooled, mut plain) = (f64::MAX, f64::MAX);
        for _ in 0..9 {
            let start = Instant::now();
            for _ in 0..1000 {
                black_box(pool.take(bytes)?);
            }
            pooled = pooled.min(start.elapsed().as_nanos() as f64 / 1000.0);
            let start = Instant::now();
            for _ in 0..1000 {
                black_box(Vec::<u8>::with_capacity(black_box(bytes)));
            }
            plain = plain.min(start.elapsed().as_nanos() as f64 / 1000.0);
        }
        println!("{bytes:<12} {pooled:14.1} {plain:15.1}");
    }
    let bytes = 256 << 20;
    for what in ["fresh", "reused"] {
        let mut block = pool.take(bytes)?;
        let start = Instant::now();
        block.as_uninit_mut().iter_mut().for_each(|byte| {
            byte.write(1);
        });
        black_box(block.as_ptr());
        println!("fill 256 MiB, {what}: {:.1} GB/s", bytes as f64 / start.elapsed().as_secs_f64() / 1e9);
    }
    Ok(())
}
