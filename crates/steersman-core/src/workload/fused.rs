//! Workloads of fused groups: an expression over operands broadcast to one shape, several results.

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
        for (o, &dtype) in inputs.iter_mut().zip(expr.inputs()) {
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
        let group = Group { expr: expr.clone(), dims, outputs };
        Ok(Workload {
            op: Op::Fused(expr.id()),
            inputs,
            // An expression has at least one output.
            output: group.outputs[0].clone(),
            numerics: NumericClass::Reassociated,
            group: Some(Arc::new(group)),
        })
    }
}
