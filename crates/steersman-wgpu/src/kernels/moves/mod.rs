//! `copy`, `copy-vec4`: elements into another order, any layout. `transpose-tiled`: two axes exchanged through
//! workgroup memory.

mod tiled;

use super::elementwise::{Cells, Cuts, addressable, cut, in_fours};
use super::method::{Method, on};
use super::{cost, map, single};
use crate::device::Gpu;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::expr::Expr;
use steersman_core::tune::Winners;
use steersman_core::{
    DType, DeviceId, Io, Kernel, KernelError, Op, Operand, ParamList, Params, Ran, Refusal, Strides, Workload,
};

struct Moves {
    gpu: Arc<Gpu>,
    wide: bool,
    /// The identity on elements of 1, 2, 4 and 8 bytes.
    identities: Arc<[Arc<Expr>; 4]>,
    cuts: Cuts,
}

/// A type of the same size whose bits survive being moved.
fn bits(d: DType) -> DType {
    match d.size() {
        1 => DType::U8,
        2 => DType::BF16,
        4 => DType::I32,
        _ => DType::I64,
    }
}

/// Every kernel for moves.
pub(super) fn kernels(gpu: &Arc<Gpu>, device: DeviceId, prefix: &str) -> Vec<Arc<dyn Kernel>> {
    let identity = |d: DType| single::of_op(Op::Copy, d).ok();
    let made = [DType::U8, DType::BF16, DType::I32, DType::I64].map(identity);
    let [Some(a), Some(b), Some(c), Some(d)] = made else { return Vec::new() };
    let identities = Arc::new([a, b, c, d]);
    let copy = |name: &str, wide: bool| -> Arc<dyn Kernel> {
        let identities = Arc::clone(&identities);
        on(device, prefix, name, Moves { gpu: gpu.clone(), wide, identities, cuts: Cuts::default() })
    };
    let tiled = on(device, prefix, "transpose-tiled", tiled::Tiled::new(gpu));
    vec![copy("copy", false), copy("copy-vec4", true), tiled]
}

/// The operand as the output sees it: its axes in the output's order.
fn seen(w: &Workload) -> Strides {
    let input = &w.inputs()[0];
    match w.op() {
        Op::Transpose { perm } => perm.iter().map(|a| input.strides[a]).collect(),
        _ => input.strides.clone(),
    }
}

fn moves(op: Op) -> bool {
    matches!(op, Op::Copy | Op::Transpose { .. })
}

/// Whether it is a move that a shader can address.
fn movable(gpu: &Gpu, w: &Workload) -> Result<(), Refusal> {
    if moves(w.op()) { addressable(gpu, w) } else { Err(Refusal::new("it only moves")) }
}

impl Moves {
    fn cells(&self, w: &Workload) -> Cells {
        Cells::of(w.output().elements(), self.wide, 1)
    }

    /// The move as a copy of bits.
    fn plain(&self, w: &Workload) -> Result<Workload, KernelError> {
        let d = bits(w.dtype());
        let failed = |e: steersman_core::WorkloadError| KernelError::Failed(e.to_string());
        let out = w.output();
        let input = Operand::strided(d, &out.dims, seen(w)).map_err(failed)?;
        let output = Operand { dtype: d, ..out.clone() };
        Workload::new(Op::Copy, [input]).and_then(|w| w.with_output(output)).map_err(failed)
    }
}

impl Method for Moves {
    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn handles(&self, op: Op) -> bool {
        moves(op)
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        movable(&self.gpu, w)?;
        self.cells(w).within(&self.gpu)?;
        if !self.wide {
            return Ok(());
        }
        match w.op() {
            Op::Copy => in_fours(w),
            _ => Err(Refusal::new("it copies four neighbours at a time")),
        }
    }

    fn params(&self, w: &Workload) -> ParamList {
        self.cuts.params(&self.gpu, w, self.cells(w))
    }

    fn space(&self, w: &Workload) -> Vec<Params> {
        self.cuts.space(&self.gpu, self.cells(w))
    }

    fn winners(&self) -> &Winners {
        self.cuts.winners()
    }

    fn terms(&self, w: &Workload, _: Params, machine: &Machine) -> Terms {
        let scattered = if w.op() == Op::Copy { 1.0 } else { 2.0 };
        cost::terms(&self.gpu, w, machine, 1.0, scattered, if self.wide { 1.0 } else { 1.5 })
    }

    fn enqueue(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let plain = self.plain(w)?;
        let identity = &self.identities[w.dtype().size().trailing_zeros() as usize];
        map::run(&self.gpu, &plain, identity, io, self.wide, cut(p))
    }
}
