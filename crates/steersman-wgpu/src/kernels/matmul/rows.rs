//! Products as sums: the elements of a row times those of a column, reduced by a workgroup.

use super::product;
use crate::device::Gpu;
use crate::kernels::method::Method;
use crate::kernels::nest::MOST;
use crate::kernels::reduce::{self, Cuts, Form};
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::expr::{Expr, ExprError};
use steersman_core::tune::Winners;
use steersman_core::{
    Axes, BinaryOp, DType, Io, KernelError, NumericClass, Op, Operand, ParamList, Params, Ran, ReduceOp,
    Refusal, Strides, Workload,
};

/// A workgroup each result.
pub(super) struct Rows {
    gpu: Arc<Gpu>,
    cuts: Cuts,
}

impl Rows {
    pub fn new(gpu: &Arc<Gpu>) -> Rows {
        Rows { gpu: gpu.clone(), cuts: Cuts::new(Form::Tree) }
    }

    /// The product as a fused group over `[.., m, n, k]`, summed over the last axis.
    fn group(w: &Workload) -> Result<Workload, String> {
        let Some((_, m, k, n)) = w.matmul_dims() else { return Err("it only multiplies matrices".into()) };
        let rank = w.output().rank();
        let expr = sum_of_products(w.dtype(), rank).map_err(|e| e.to_string())?;
        let mut dims: Vec<usize> = w.output().dims[..rank - 2].to_vec();
        dims.extend([m, n, k]);
        let spread = |o: &Operand, last: [isize; 3]| {
            let mut strides: Strides = o.strides[..rank - 2].iter().copied().collect();
            strides.extend(last);
            Operand::strided(o.dtype, &dims, strides).map_err(|e| e.to_string())
        };
        let (a, b) = (&w.inputs()[0], &w.inputs()[1]);
        let (ars, acs) = super::last_two(a);
        let (brs, bcs) = super::last_two(b);
        let operands = [spread(a, [ars, 0, acs])?, spread(b, [0, bcs, brs])?];
        let group = Workload::fused(&expr, &dims, operands).map_err(|e| e.to_string())?;
        group.with_nth_output(0, w.output().clone()).map_err(|e| e.to_string())
    }
}

fn sum_of_products(d: DType, rank: usize) -> Result<Arc<Expr>, ExprError> {
    let mut b = Expr::builder([d, d]);
    let (x, y) = (b.input(0)?, b.input(1)?);
    let xy = b.binary(BinaryOp::Mul, x, y)?;
    b.reduce(ReduceOp::Sum, Axes::from_list(&[rank]).unwrap_or(Axes::NONE), xy)?;
    Ok(Arc::new(b.finish()?))
}

impl Method for Rows {
    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn handles(&self, op: Op) -> bool {
        op == Op::MatMul
    }

    fn numerics(&self, _: &Workload) -> NumericClass {
        NumericClass::Reassociated
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        let (batch, m, k, n) = product(&self.gpu, w)?;
        if !matches!(w.dtype(), DType::F32 | DType::F64) {
            return Err(Refusal::new("it adds up in the type itself: f32 and f64 only"));
        }
        if w.output().rank() >= steersman_core::MAX_RANK {
            return Err(Refusal::new("it needs one axis more than there may be"));
        }
        let all = [batch, m, k, n].into_iter().try_fold(1usize, usize::checked_mul);
        if all.is_none_or(|all| all >= MOST) {
            return Err(Refusal::new("positions in a shader have 31 bits"));
        }
        reduce::fits(&self.gpu, Form::Tree, w.dtype(), (batch * m * n, k), w.dtype().size(), 1)
    }

    fn params(&self, w: &Workload) -> ParamList {
        self.cuts.params(&self.gpu, w, (w.matmul_k(), w.dtype().size()))
    }

    fn space(&self, w: &Workload) -> Vec<Params> {
        self.cuts.space(&self.gpu, (w.matmul_k(), w.dtype().size()))
    }

    fn winners(&self) -> &Winners {
        self.cuts.winners()
    }

    fn terms(&self, w: &Workload, _: Params, machine: &Machine) -> Terms {
        let (_, m, _, n) = w.matmul_dims().unwrap_or((1, 1, 1, 1));
        // Nothing is shared: operands are read once a result.
        let traffic = m.min(n).max(1) as f64;
        super::cost::terms(&self.gpu, w, machine, 1.0, traffic, 3.0)
    }

    fn enqueue(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let group = Self::group(w).map_err(KernelError::Failed)?;
        let Some(expr) = group.expr() else { return Err(KernelError::Failed("not a group".into())) };
        reduce::run(&self.gpu, &group, expr, 0, io, Form::Tree, reduce::cut(p))
    }
}
