//! Every kernel for moves, with every parameter it offers, writes what a plain loop writes.

use proptest::prelude::*;
use std::sync::Arc;
use steersman_core::{Address, DType, DeviceId, Io, Kernel, Op, Operand, Perm, Strides, Workload};
use steersman_cpu::{context::Context, host::Host, moves, threads::Team};

fn context() -> Context {
    Context { device: DeviceId(0), team: Arc::new(Team::new(3)), host: Arc::new(Host::detect()) }
}

/// Memory whose first byte is at a cache line, filled with a pattern.
struct Memory(Vec<u64>, usize);

impl Memory {
    fn new(bytes: usize, seed: u64) -> Memory {
        let words = bytes / 8 + 16;
        let data: Vec<u64> = (0..words as u64)
            .map(|i| (i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
            .collect();
        let skip = data.as_ptr().align_offset(64);
        Memory(data, skip)
    }
    fn at(&self, byte: usize) -> Address {
        Address(self.0.as_ptr() as u64 + self.1 as u64 * 8 + byte as u64)
    }
    fn bytes(&self, n: usize) -> &[u8] {
        // SAFETY: within the vector, which has 128 bytes to spare.
        unsafe { std::slice::from_raw_parts((self.0.as_ptr() as *const u8).add(self.1 * 8), n) }
    }
}

/// Element by element, from the definition.
fn expected(w: &Workload, x: &[u8], first: isize) -> Vec<u8> {
    let (input, output) = (&w.inputs()[0], w.output());
    let size = input.dtype.size();
    let mut out = Vec::new();
    let mut index = vec![0usize; output.rank()];
    for _ in 0..output.elements() {
        let offset: isize = (0..output.rank())
            .map(|i| {
                let axis = match w.op() {
                    Op::Transpose { perm } => perm.get(i),
                    _ => i,
                };
                index[i] as isize * input.strides[axis]
            })
            .sum();
        let at = (first + offset) as usize * size;
        out.extend_from_slice(&x[at..at + size]);
        for axis in (0..index.len()).rev() {
            index[axis] += 1;
            if index[axis] < output.dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

fn check(kernels: &[Arc<dyn Kernel>], w: &Workload) -> usize {
    let input = &w.inputs()[0];
    let (mut low, mut high) = (0isize, 0isize);
    for (&n, &s) in input.dims.iter().zip(&input.strides) {
        let reach = (n.max(1) as isize - 1) * s;
        low += reach.min(0);
        high += reach.max(0);
    }
    let size = input.dtype.size();
    let bytes = (high - low + 1) as usize * size;
    let x = Memory::new(bytes, 1);
    let want = expected(w, x.bytes(bytes), -low);
    let mut ran = 0;
    for k in kernels.iter().filter(|k| k.supports(w).is_ok()) {
        for p in k.params(w) {
            let y = Memory::new(w.output().bytes() + 64, 99);
            let guard = y.bytes(w.output().bytes() + 64)[w.output().bytes()..].to_vec();
            let inputs = [x.at((-low) as usize * size)];
            let io = Io::new(&inputs, y.at(0));
            // SAFETY: both are as large as the workload's strides reach.
            unsafe { k.run(w, p, io) }.unwrap();
            assert!(y.bytes(want.len()) == want, "{} {p} on {w}", k.name());
            assert!(
                y.bytes(want.len() + 64)[want.len()..] == guard,
                "{} {p} wrote past the end of {w}",
                k.name()
            );
            ran += 1;
        }
    }
    assert!(ran > 0, "no kernel takes {w}");
    ran
}

#[test]
fn shapes_of_every_kind_come_out_right() {
    let kernels = moves::kernels(&context());
    for text in [
        "copy f32 1",
        "copy u8 0x3",
        "copy f64 7x9",
        "copy f32 300x40:80,2",
        "transpose f32 0x5",
        "transpose f32 1x5",
        "transpose u8 65x130",
        "transpose bool 64x64",
        "transpose f16 33x100",
        "transpose bf16 128x96",
        "transpose f32 16x16",
        "transpose f32 129x257",
        "transpose i64 65x66",
        "transpose f32 4x5x6 perm=1,0,2",
        "transpose f32 3x70x50 perm=0,2,1",
        "transpose f32 3x20x30x7 perm=2,0,3,1",
        "transpose f64 2x3x2x3x2x3 perm=5,4,3,2,1,0",
    ] {
        check(&kernels, &text.parse().unwrap());
    }
}

#[test]
fn results_larger_than_the_caches_are_streamed_and_split() {
    let kernels = moves::kernels(&context());
    for text in [
        "transpose f32 1024x512",
        "transpose u8 2048x1024",
        "transpose f64 3x256x208 perm=0,2,1",
        "copy f32 700001",
    ] {
        let w = text.parse().unwrap();
        let streams =
            kernels.iter().filter(|k| k.name() == "cpu/move-stream" && k.supports(&w).is_ok()).count();
        assert_eq!(streams, cfg!(target_arch = "x86_64") as usize, "{text}");
        check(&kernels, &w);
    }
}

#[test]
fn rows_off_the_cache_lines_are_not_streamed() {
    let kernels = moves::kernels(&context());
    let w: Workload = "transpose f32 1023x1025".parse().unwrap();
    let refused =
        kernels.iter().filter_map(|k| k.supports(&w).err()).map(|r| r.to_string()).collect::<Vec<_>>();
    if cfg!(target_arch = "x86_64") {
        assert_eq!(refused, ["rows of the result do not begin at cache lines"]);
    }
    check(&kernels, &w);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_strides_and_any_order_of_axes(
        dims in prop::collection::vec(prop::sample::select(vec![0usize, 1, 2, 3, 5, 8, 17, 33]), 0..4),
        shuffle in any::<prop::sample::Index>(),
        steps in prop::collection::vec(prop::sample::select(vec![0isize, 1, -1, 2]), 4),
        dtype in prop::sample::select(DType::ALL.to_vec()),
        copies in any::<bool>(),
    ) {
        let rank = dims.len();
        let mut order: Vec<usize> = (0..rank).collect();
        if rank > 0 {
            order.rotate_left(shuffle.index(rank));
        }
        // Strides of a dense array laid out in that order, each then repeated, turned or spread.
        let mut strides: Strides = Strides::from_elem(0, rank);
        let mut step = 1;
        for &axis in order.iter().rev() {
            strides[axis] = step * steps[axis];
            step *= dims[axis].max(1) as isize * 2;
        }
        let x = Operand::strided(dtype, &dims, strides).unwrap();
        let op = if copies || rank == 0 {
            Op::Copy
        } else {
            Op::Transpose { perm: Perm::from_list(&order).unwrap() }
        };
        check(&moves::kernels(&context()), &Workload::new(op, [x]).unwrap());
    }
}
