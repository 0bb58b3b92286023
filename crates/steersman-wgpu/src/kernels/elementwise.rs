//! `map` and `map-vec4`: element-wise ops.

use super::map::{CUTS, Cut, run};
use super::method::{Method, on};
use super::nest::MOST;
use super::space::{space, weighed};
use super::{cost, single};
use crate::device::Gpu;
use crate::wgsl::computable;
use std::collections::HashMap;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::expr::Expr;
use steersman_core::tune::Winners;
use steersman_core::{
    BinaryOp, Bytes, DType, DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran,
    Refusal, TernaryOp, UnaryOp, Workload,
};

/// An op on a type: its expression and class, or why not.
type Known = Result<(Arc<Expr>, NumericClass), Refusal>;

/// Element-wise ops, one element at a time or four.
struct Elementwise {
    gpu: Arc<Gpu>,
    wide: bool,
    known: Arc<HashMap<(Op, DType), Known>>,
    cuts: Arc<Cuts>,
}

/// Both kernels.
pub(super) fn kernels(
    gpu: &Arc<Gpu>,
    device: DeviceId,
    prefix: &str,
    cuts: &[Arc<Cuts>; 2],
) -> Vec<Arc<dyn Kernel>> {
    let ops = UnaryOp::ALL.iter().map(|&u| Op::Unary(u));
    let ops = ops.chain(BinaryOp::ALL.iter().map(|&b| Op::Binary(b)));
    let ops = ops.chain(TernaryOp::ALL.iter().map(|&t| Op::Ternary(t)));
    let known = ops
        .flat_map(|op| DType::ALL.map(|d| (op, d)))
        .filter_map(|(op, d)| {
            let expr = single::of_op(op, d).ok()?;
            let class = single::class(&expr);
            Some(((op, d), computable(&expr, gpu.can().f64).map(|()| (expr, class))))
        })
        .collect();
    let known = Arc::new(known);
    let kernel = |name: &str, wide: bool| -> Arc<dyn Kernel> {
        let cuts = cuts[usize::from(wide)].clone();
        on(device, prefix, name, Elementwise { gpu: gpu.clone(), wide, known: Arc::clone(&known), cuts })
    };
    vec![kernel("map", false), kernel("map-vec4", true)]
}

/// What no kernel for arrays takes: outputs that overlap themselves, positions beyond 32 bits, and operands beyond
/// what a shader sees of one buffer.
pub(super) fn addressable(gpu: &Gpu, w: &Workload) -> Result<(), Refusal> {
    bindable(gpu, w)?;
    let overlaps =
        |o: &steersman_core::Operand| o.dims.iter().zip(&o.strides).any(|(&d, &s)| d > 1 && s == 0);
    if w.outputs().iter().any(overlaps) {
        return Err(Refusal::new("the output's elements share memory"));
    }
    if w.dims().iter().product::<usize>() >= MOST {
        return Err(Refusal::new("positions in a shader have 31 bits"));
    }
    Ok(())
}

/// Whether every operand fits into one binding.
pub(super) fn bindable(gpu: &Gpu, w: &Workload) -> Result<(), Refusal> {
    let most = gpu.largest_block();
    match w.inputs().iter().chain(w.outputs()).map(|o| o.span().0).find(|bytes| *bytes > most) {
        None => Ok(()),
        Some(bytes) => Err(Refusal::new(format!(
            "an operand of {} is more than one binding of this adapter takes ({})",
            Bytes(bytes as u64),
            Bytes(most as u64)
        ))),
    }
}

/// Whether four neighbours of every operand lie together.
pub(super) fn in_fours(w: &Workload) -> Result<(), Refusal> {
    for (o, output) in w.inputs().iter().map(|o| (o, false)).chain(w.outputs().iter().map(|o| (o, true))) {
        let one = !output && o.strides.iter().zip(&o.dims).all(|(&s, &d)| s == 0 || d == 1);
        if o.dtype.size() > 4 {
            return Err(Refusal::new("elements of 8 bytes go one by one"));
        }
        if !one && !o.is_contiguous() {
            return Err(Refusal::new("it takes four neighbours at a time: operands must be contiguous"));
        }
        // Four elements of any type are a whole number of words; four words start at 16 bytes.
        if !one && (1usize << o.align_log2.min(4)) < 4 * o.dtype.size() {
            return Err(Refusal::new("operands must start at a multiple of four elements"));
        }
    }
    Ok(())
}

/// Which cuts a device takes for so many elements, and which of them won.
#[derive(Default)]
pub(super) struct Cuts(Winners);

impl Cuts {
    /// Below a few workgroups there is nothing to cut.
    fn fits(gpu: &Gpu, variant: usize, elements: usize) -> bool {
        let limits = gpu.limits();
        let most = limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x);
        CUTS.get(variant).is_some_and(|c| {
            variant == 0 || c.workgroup <= most && elements >= (c.workgroup * c.each * 8) as usize
        })
    }

    pub fn params(&self, gpu: &Gpu, w: &Workload, elements: usize) -> ParamList {
        let usual = || {
            let wanted = match (gpu.software(), elements) {
                (true, 100_000..) => 3,
                (false, 1_000_000..) => 11,
                _ => 1,
            };
            if Self::fits(gpu, wanted, elements) { wanted } else { 0 }
        };
        weighed(&self.0, w, |v| Self::fits(gpu, v, elements), usual)
    }

    pub fn space(&self, gpu: &Gpu, elements: usize) -> Vec<Params> {
        space(0..CUTS.len(), |v| Self::fits(gpu, v, elements))
    }

    pub fn winners(&self) -> &Winners {
        &self.0
    }
}

/// The cut of a variant.
pub(super) fn cut(p: Params) -> Cut {
    CUTS[usize::from(p.variant).min(CUTS.len() - 1)]
}

impl Elementwise {
    fn known(&self, w: &Workload) -> Result<&(Arc<Expr>, NumericClass), Refusal> {
        match self.known.get(&(w.op(), w.dtype())) {
            Some(Ok(known)) => Ok(known),
            Some(Err(why)) => Err(why.clone()),
            None => Err(Refusal::new("it only does element-wise operations")),
        }
    }
}

impl Method for Elementwise {
    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn handles(&self, op: Op) -> bool {
        op.is_elementwise()
    }

    fn numerics(&self, w: &Workload) -> NumericClass {
        self.known(w).map_or(NumericClass::Reassociated, |k| k.1)
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        self.known(w)?;
        addressable(&self.gpu, w)?;
        if self.wide { in_fours(w) } else { Ok(()) }
    }

    fn params(&self, w: &Workload) -> ParamList {
        self.cuts.params(&self.gpu, w, w.output().elements())
    }

    fn space(&self, w: &Workload) -> Vec<Params> {
        self.cuts.space(&self.gpu, w.output().elements())
    }

    fn winners(&self) -> &Winners {
        self.cuts.winners()
    }

    fn terms(&self, w: &Workload, _: Params, machine: &Machine) -> Terms {
        cost::terms(&self.gpu, w, machine, 1.0, 1.0, if self.wide { 1.0 } else { 1.5 })
    }

    fn enqueue(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let (expr, _) = self.known(w).map_err(|e| KernelError::Failed(e.to_string()))?;
        run(&self.gpu, w, expr, io, self.wide, cut(p))
    }
}
