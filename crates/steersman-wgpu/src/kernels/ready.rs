//! Whether what a workload needs is compiled: pipelines depend on its structure, not on its sizes.

use crate::device::Gpu;
use smallvec::SmallVec;
use steersman_core::{KernelError, Op, Operand, Params, Ran, Workload};

/// Whether a kernel has run a workload of this structure with these parameters.
pub(super) fn ready(gpu: &Gpu, kernel: &str, w: &Workload, p: Params) -> bool {
    gpu.is_ready(structure(kernel, w, p))
}

/// Passes on how a run went, and notes that the next will find its pipelines.
pub(super) fn noted(
    gpu: &Gpu,
    kernel: &str,
    w: &Workload,
    p: Params,
    ran: Result<Ran, KernelError>,
) -> Result<Ran, KernelError> {
    if ran.is_ok() {
        gpu.note_ready(structure(kernel, w, p));
    }
    ran
}

struct Hash(u64);

impl Hash {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// A number that workloads share which need the same pipelines of a kernel.
fn structure(kernel: &str, w: &Workload, p: Params) -> u64 {
    let mut hash = Hash(u64::from(p.variant));
    kernel.bytes().for_each(|b| hash.add(b.into()));
    match w.expr() {
        Some(expr) => hash.add(expr.hash64()),
        None => w.op().name().bytes().for_each(|b| hash.add(b.into())),
    }
    let all = || w.inputs().iter().chain(w.outputs());
    all().for_each(|o| hash.add(o.dtype as u64));
    let dims = w.dims();
    let one_by_one = w.expr().is_some() || w.op().is_elementwise() || w.op() == Op::Copy;
    if one_by_one && all().all(|o| o.dims == *dims) {
        // Loops that every operand goes through evenly are one loop.
        let joins = |o: &Operand, i: usize| {
            let outer = (0..i).rev().find(|j| dims[*j] != 1);
            outer.is_some_and(|j| o.strides[j] == o.strides[i] * dims[i] as isize)
        };
        let mut ends: SmallVec<[usize; 8]> = SmallVec::new();
        for i in (0..dims.len()).filter(|i| dims[*i] != 1) {
            match ends.last_mut() {
                Some(end) if all().all(|o| joins(o, i)) => *end = i,
                _ => ends.push(i),
            }
        }
        for i in ends {
            hash.add(1);
            all().for_each(|o| hash.add(u64::from(o.strides[i] == 0) << 1 | u64::from(o.strides[i] == 1)));
        }
    } else {
        for o in all() {
            hash.add(2);
            for (d, s) in o.dims.iter().zip(&o.strides) {
                let fours = u64::from(s % 4 == 0) << 2 | u64::from(d.is_multiple_of(4)) << 3;
                hash.add(u64::from(*s == 0) | u64::from(*s == 1) << 1 | fours | u64::from(*d == 1) << 4);
            }
        }
    }
    hash.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_do_not_matter_and_layouts_kernels_and_parameters_do() {
        let of = |text: &str| structure("map", &text.parse().expect("a workload"), Params::SERIAL);
        assert_eq!(of("add f32 100 100"), of("add f32 7x9 7x9"), "one loop either way");
        assert_ne!(of("add f32 7x9 7x9"), of("add f32 7x9 9"));
        assert_ne!(of("add f32 100 100"), of("sub f32 100 100"));
        assert_ne!(of("add f32 100 100"), of("add i32 100 100"));
        assert_eq!(of("matmul f32 8x8 8x8"), of("matmul f32 64x32 32x16"));
        assert_ne!(of("matmul f32 8x8 8x8"), of("matmul f32 8x7 7x8"));
        let w: Workload = "add f32 100 100".parse().expect("a workload");
        let other = Params { threads: 1, variant: 2 };
        assert_ne!(structure("map", &w, Params::SERIAL), structure("map", &w, other));
        assert_ne!(structure("map", &w, Params::SERIAL), structure("copy", &w, Params::SERIAL));
    }
}
