//! Thousands of operations of random sizes on an adapter with little memory: nothing fails, nothing piles up.
//! On its own, since it looks at the whole process.

#![cfg(feature = "webgpu")]

use std::sync::Arc;
use steersman::core::Memory;
use steersman::core::{Device, DeviceId, Place};
use steersman::webgpu::{DeviceOptions, Gpu, adapters};
use steersman::{Axis, Knobs, Runtime, Seed};

/// Bytes the device may hold.
const LIMIT: usize = 32 << 20;
const OPERATIONS: usize = 3000;
/// Operations after which everything there is to compile and to keep is there.
const WARM: usize = 1500;
/// Bytes that the process may grow by after that.
const GROWTH: usize = 48 << 20;

/// Resident bytes of this process, where the system tells.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}

fn adapter() -> Option<Arc<Gpu>> {
    let found = adapters().into_iter().min_by_key(|f| !f.software);
    let required = std::env::var_os("STEERSMAN_REQUIRE_ADAPTER").is_some_and(|v| v != "0");
    assert!(found.is_some() || !required, "STEERSMAN_REQUIRE_ADAPTER is set and there is no adapter");
    let options = DeviceOptions { memory_limit: Some(LIMIT), ..DeviceOptions::default() };
    let gpu = Gpu::open(&found?, options).expect("an adapter that was listed opens");
    Some(gpu)
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

#[test]
fn memory_stays_within_its_limit_and_the_process_as_large_as_it_is() {
    let Some(gpu) = adapter() else { return println!("skipped: no WebGPU adapter") };
    let mut knobs = Knobs::default();
    let own = [
        ("wisdom.enabled", "false"),
        ("calibrate.background", "false"),
        ("webgpu.enabled", "false"),
        // All that an adapter can do is done there.
        (
            "disable",
            "cpu/map*,cpu/reduce*,cpu/fused*,cpu/mat*,cpu/gem*,cpu/move*,cpu/amx*,cpu/*blas*,cpu/mkl*,cpu/blis*",
        ),
    ];
    for (name, value) in own {
        knobs.set(name, value).expect("a knob");
    }
    let rt = Runtime::with_knobs(knobs).expect("a runtime");
    let device = Device { identity: gpu.identity().clone(), place: Place::Host, machine: Default::default() };
    rt.add_accelerator(device, gpu.clone(), |id: DeviceId| gpu.kernels_as(id, "gpu"));
    let mut random = Numbers(0x9E37_79B9_7F4A_7C15);
    let mut kept = Vec::new();
    let mut warm = None;
    for i in 0..OPERATIONS {
        // Mostly small, now and then a megabyte.
        let octave = 4 + random.below(if i % 50 == 0 { 15 } else { 9 });
        let n = 1 + random.below(1 << octave);
        let side = 1 + random.below(48);
        let x = rt.uniform([n], Seed(i as u64));
        let y = match random.below(5) {
            0 => &x + &x,
            1 => (&x * 2.0).tanh(),
            2 => x.sum(..),
            3 => rt.uniform([side, 1 + n / 64], Seed(7)).sum(Axis(0)),
            _ => {
                let a = rt.uniform([side, side], Seed(3));
                a.matmul(&a)
            }
        };
        y.eval().unwrap_or_else(|e| panic!("operation {i} on {n}: {e}"));
        kept.push(y);
        if kept.len() > 32 {
            kept.swap_remove(random.below(kept.len()));
        }
        if i % 97 == 0 {
            let last = kept.last().expect("one was kept").to_vec::<f32>();
            last.unwrap_or_else(|e| panic!("operation {i} on {n}: {e}"));
        }
        let held = gpu.counts().held;
        assert!(held <= LIMIT as u64, "{held} bytes are held after operation {i}");
        if i == WARM {
            warm = resident();
        }
    }
    assert!(gpu.counts().dispatches > OPERATIONS as u64 / 2, "it ran elsewhere");
    if let (Some(warm), Some(now)) = (warm, resident()) {
        assert!(now < warm + GROWTH, "{} MiB more than after {WARM} operations", (now - warm) >> 20);
    }
    drop(kept);
    rt.explain(&rt.zeros::<f32>([1])).expect("the runtime goes on");
    drop(rt);
    assert_eq!(gpu.in_use(), 0, "something was not given back");
}
