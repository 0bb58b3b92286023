//! `map` and `map-vec4`: element-wise ops.

use super::map::{CUTS, Cut, run};
use super::method::{Method, on};
use super::nest::MOST;
use super::space::{space, weighed};
use super::{cost, single};
use crate::device::Gpu;
use crate::wgsl::{computable, turns};
use std::collections::HashMap;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::expr::Expr;
use steersman_core::tune::Winners;
use steersman_core::{
    BinaryOp, Bytes, DType, DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran,
    Refusal, TernaryOp, UnaryOp, Workload,
};

/// An op on a type: its expression, its class and the turns that an element takes, or why not.
type Known = Result<(Arc<Expr>, NumericClass, usize), Refusal>;

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
            Some((
                (op, d),
                computable(&expr, gpu.can().f64).map(|()| {
                    let turns = turns(&expr);
                    (expr, class, turns)
                }),
            ))
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

/// Whether every operand fits into one binding, and every element of it has a number of 32 bits.
pub(super) fn bindable(gpu: &Gpu, w: &Workload) -> Result<(), Refusal> {
    let most = gpu.largest_block();
    let spans = || w.inputs().iter().chain(w.outputs()).map(|o| (o.span().0, o.dtype));
    match spans().map(|(bytes, _)| bytes).find(|bytes| *bytes > most) {
        None => spans().try_for_each(|(bytes, d)| numbered(bytes, d)),
        Some(bytes) => Err(Refusal::new(format!(
            "an operand of {} is more than one binding of this adapter takes ({})",
            Bytes(bytes as u64),
            Bytes(most as u64)
        ))),
    }
}

/// Whether elements and words of so many bytes have numbers of 32 bits: beyond that a shader starts over at the first.
fn numbered(bytes: usize, d: DType) -> Result<(), Refusal> {
    match (bytes / d.size().min(4)) as u64 {
        ..=0xffff_ffff => Ok(()),
        _ => Err(Refusal::new(format!(
            "an operand that spans {} has more elements than a shader counts in 32 bits",
            Bytes(bytes as u64)
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

/// Elements to go through, each on its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    pub elements: usize,
    /// Whether an invocation takes four neighbours at a time.
    pub wide: bool,
    /// Turns of loops that one of them takes.
    pub turns: usize,
}

impl Cells {
    /// As `wide` or not, with an expression's turns.
    pub fn of(elements: usize, wide: bool, turns: usize) -> Cells {
        Cells { elements, wide, turns }
    }

    /// Turns that one invocation takes with a cut, of at most so many workgroups.
    fn turns(&self, cut: &Cut, groups: usize) -> usize {
        let lanes = if self.wide { 4 } else { 1 };
        let items = self.elements.div_ceil(lanes);
        let each = (cut.each as usize).max(items.div_ceil(groups * cut.workgroup as usize)).min(items);
        each * (1 + lanes * self.turns)
    }

    fn fit(&self, gpu: &Gpu, cut: &Cut) -> bool {
        self.turns(cut, gpu.limits().max_compute_workgroups_per_dimension as usize) <= gpu.most_turns()
    }

    /// Whether there are few enough for the plainest cut.
    pub fn within(&self, gpu: &Gpu) -> Result<(), Refusal> {
        match self.fit(gpu, &CUTS[0]) {
            true => Ok(()),
            false => Err(Refusal::new("so many elements are more turns than one invocation may take")),
        }
    }
}

/// Which cuts a device takes for so many elements, and which of them won.
#[derive(Default)]
pub(super) struct Cuts(Winners);

impl Cuts {
    /// Below a few workgroups there is nothing to cut.
    fn fits(gpu: &Gpu, variant: usize, cells: &Cells) -> bool {
        let limits = gpu.limits();
        let most = limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x);
        CUTS.get(variant).is_some_and(|c| {
            let worth = cells.elements >= (c.workgroup * c.each * 8) as usize;
            variant == 0 || c.workgroup <= most && worth && cells.fit(gpu, c)
        })
    }

    pub fn params(&self, gpu: &Gpu, w: &Workload, cells: Cells) -> ParamList {
        let usual = || {
            let wanted = match (gpu.software(), cells.elements) {
                (true, 100_000..) => 3,
                (false, 1_000_000..) => 11,
                _ => 1,
            };
            if Self::fits(gpu, wanted, &cells) { wanted } else { 0 }
        };
        weighed(&self.0, w, |v| Self::fits(gpu, v, &cells), usual)
    }

    pub fn space(&self, gpu: &Gpu, cells: Cells) -> Vec<Params> {
        space(0..CUTS.len(), |v| Self::fits(gpu, v, &cells))
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
    fn known(&self, w: &Workload) -> Result<&(Arc<Expr>, NumericClass, usize), Refusal> {
        match self.known.get(&(w.op(), w.dtype())) {
            Some(Ok(known)) => Ok(known),
            Some(Err(why)) => Err(why.clone()),
            None => Err(Refusal::new("it only does element-wise operations")),
        }
    }

    fn cells(&self, w: &Workload) -> Cells {
        Cells::of(w.output().elements(), self.wide, self.known(w).map_or(1, |k| k.2))
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
        self.cells(w).within(&self.gpu)?;
        if self.wide { in_fours(w) } else { Ok(()) }
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
        cost::terms(&self.gpu, w, machine, 1.0, 1.0, if self.wide { 1.0 } else { 1.5 })
    }

    fn enqueue(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let (expr, ..) = self.known(w).map_err(|e| KernelError::Failed(e.to_string()))?;
        run(&self.gpu, w, expr, io, self.wide, cut(p))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_32_bits_do_not_count_is_refused() {
        assert!(numbered((1 << 32) - 1, DType::U8).is_ok() && numbered((1 << 34) - 4, DType::F32).is_ok());
        // Words count where elements are larger than one.
        for (bytes, d) in
            [(1usize << 32, DType::U8), (1 << 33, DType::F16), (1 << 34, DType::F32), (1 << 34, DType::F64)]
        {
            let why = numbered(bytes, d).expect_err("more than 32 bits count").to_string();
            assert!(why.contains("32 bits"), "{why}");
        }
    }

    #[test]
    fn turns_grow_with_what_an_invocation_does_and_never_beyond_what_there_is() {
        let cells = |elements, wide, turns| Cells { elements, wide, turns };
        let (plain, long) = (CUTS[0], CUTS[15]);
        assert_eq!(cells(1 << 20, false, 1).turns(&plain, 65_535), 2);
        assert_eq!(cells(1 << 20, true, 281).turns(&long, 65_535), 64 * (1 + 4 * 281));
        assert_eq!(cells(7, false, 281).turns(&long, 65_535), 7 * 282);
        // Few workgroups: each goes round and round.
        assert_eq!(cells(1 << 20, false, 281).turns(&plain, 16), 1024 * 282);
    }
}
