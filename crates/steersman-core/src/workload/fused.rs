//! Workloads of fused groups: an expression over operands broadcast to one shape, several results.

use super::derived::Derived;
use super::infer::{broadcast, reduced, stretch};
use super::operand::{Dims, Operand};
use super::{Workload, WorkloadError};
use crate::expr::{Expr, Output};
use crate::kernel::NumericClass;
use crate::op::{FUSED, Op};
use smallvec::SmallVec;
use std::sync::Arc;

/// What a fused workload has beyond op, operands and first result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Group {
    pub expr: Arc<Expr>,
    pub dims: Dims,
    pub outputs: SmallVec<[Operand; 1]>,
    pub product: Option<Product>,
}

/// A group with a matrix product, in two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Product {
    pub workload: Workload,
    /// What comes after it.
    pub rest: Workload,
}

impl Workload {
    /// The workload of an expression over the shape `dims`: operands must broadcast to exactly that, and have
    /// the element types the expression was started with. Results are new arrays in host memory;
    /// [`with_nth_output`](Workload::with_nth_output) puts one elsewhere.
    pub fn fused(
        expr: &Arc<Expr>,
        dims: &[usize],
        inputs: impl IntoIterator<Item = Operand>,
    ) -> Result<Workload, WorkloadError> {
        let mut inputs: SmallVec<[Operand; 3]> = inputs.into_iter().collect();
        let dims = Dims::from_slice(dims);
        if inputs.len() != expr.inputs().len() {
            let (expected, got) = (expr.inputs().len(), inputs.len());
            return Err(WorkloadError::Arity { op: FUSED, expected, got });
        }
        let product = match expr.product() {
            Some((a, b, _)) => Some(multiplied(expr, a, b, &dims, &mut inputs)?),
            None => None,
        };
        let multiplies =
            |k: usize| expr.product().is_some_and(|(a, b, _)| a as usize == k || b as usize == k);
        for (k, (o, &dtype)) in inputs.iter_mut().zip(expr.inputs()).enumerate() {
            if multiplies(k) {
                continue;
            }
            if o.dtype != dtype {
                return Err(WorkloadError::MixedDTypes { op: "fused operand", a: o.dtype, b: dtype });
            }
            if o.dims != dims {
                if broadcast(FUSED, &o.dims, &dims)? != dims {
                    return Err(WorkloadError::Broadcast { op: FUSED, a: o.dims.clone(), b: dims });
                }
                stretch(o, &dims);
            }
        }
        // Even if only reductions come out, positions and sizes inside must stay addressable.
        let array = |dtype| Operand::new(dtype, &dims);
        array(crate::DType::F64)?;
        let outputs: SmallVec<[Operand; 1]> = expr
            .outputs()
            .iter()
            .map(|output| match *output {
                Output::Array(v) => array(expr.dtype_of(v)),
                Output::Reduce { kind, axes, value } => {
                    reduced(kind, axes, expr.dtype_of(value), &dims).map(|(_, o)| o)
                }
            })
            .collect::<Result<_, _>>()?;
        let group = Group { expr: expr.clone(), dims, outputs, product };
        Ok(Workload {
            op: Op::Fused(expr.id()),
            inputs,
            // An expression has at least one output.
            output: group.outputs[0].clone(),
            numerics: NumericClass::Reassociated,
            group: Some(Arc::new(group)),
            bytes: Derived::default(),
        })
    }

    /// The matrix product that a fused group starts with, if it does: a workload of its own, whose result is
    /// contiguous.
    pub fn product(&self) -> Option<&Workload> {
        self.group.as_ref()?.product.as_ref().map(|p| &p.workload)
    }

    /// What a fused group does with its product: the same results, with the product as first operand and the
    /// group's other operands after it.
    pub fn behind_product(&self) -> Option<&Workload> {
        self.group.as_ref()?.product.as_ref().map(|p| &p.rest)
    }
}

/// The product of operands `a` and `b`, which then are as kernels see them, and the rest of the group.
fn multiplied(
    expr: &Expr,
    a: u16,
    b: u16,
    dims: &Dims,
    inputs: &mut [Operand],
) -> Result<Product, WorkloadError> {
    let (a, b) = (a as usize, b as usize);
    let workload = Workload::new(Op::MatMul, [inputs[a].clone(), inputs[b].clone()])?;
    if workload.output.dims != *dims {
        let (of, dims) = (workload.output.dims.clone(), dims.clone());
        return Err(WorkloadError::Broadcast { op: "the product of a group", a: of, b: dims });
    }
    inputs[a] = workload.inputs[0].clone();
    inputs[b] = workload.inputs[1].clone();
    let others = inputs.iter().enumerate().filter(|(k, _)| *k != a && *k != b).map(|(_, o)| o.clone());
    let rest = expr.behind_product().ok_or(WorkloadError::NoExpr)?;
    let rest = Workload::fused(&rest, dims, std::iter::once(workload.output.clone()).chain(others))?;
    Ok(Product { workload, rest })
}
