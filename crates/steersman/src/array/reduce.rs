//! Reductions and matrix products.

use super::Array;
use super::axis::Over;
use super::elementwise::fits;
use super::error::{ArrayError, Spec};
use super::node::{Arg, Node, NodeOp};
use super::promote::promote;
use smallvec::smallvec;
use steersman_core::{Axes, DType, Dims, Op, Operand, ReduceOp, Workload, WorkloadError};

macro_rules! reductions {
    ($($(#[$doc:meta])* $method:ident = $op:ident;)*) => {
        impl Array { $(
            $(#[$doc])*
            pub fn $method(&self, over: impl Into<Over>) -> Array { self.reduce(ReduceOp::$op, over) }
        )* }
    };
}

reductions! {
    /// Σx, pairwise or better. Integers and bools sum to `i64`
    sum = Sum;
    /// Σx/n, of floats
    mean = Mean;
    /// Πx. Integers and bools multiply to `i64`
    prod = Prod;
    /// The smallest; NaN wins
    min = Min;
    /// The largest; NaN wins
    max = Max;
    /// Position of the first smallest; the first NaN wins
    argmin = ArgMin;
    /// Position of the first largest; the first NaN wins
    argmax = ArgMax;
    /// Whether any element is not zero
    any = Any;
    /// Whether every element is not zero
    all = All;
    /// √Σx², of floats
    norm = Norm;
    /// Σ(x − mean)²/n, of floats
    var = Var;
    /// √var, of floats
    std = Std;
}

impl Array {
    /// A reduction by its name in the engine, over one axis, several, or `..` for all of them.
    pub fn reduce(&self, kind: ReduceOp, over: impl Into<Over>) -> Array {
        let over = over.into();
        if self.dtype() == DType::Bool && matches!(kind, ReduceOp::Sum | ReduceOp::Prod) {
            return self.cast(DType::I64).reduce(kind, over);
        }
        self.or_bad(|| {
            let axes = over.resolve(kind.name(), self)?;
            let Some(axes) = axes.filter(|a| !a.is_empty()) else {
                // Nothing is reduced: the same as over an extra axis of one element.
                return self
                    .expand(self.rank())
                    .reduced(kind, Axes::from_list(&[self.rank()]).unwrap_or_default());
            };
            let result = self.reduced(kind, axes)?;
            if !over.kept() {
                return Ok(result);
            }
            let keep = self.shape().iter().enumerate().map(|(i, &d)| if axes.contains(i) { 1 } else { d });
            Ok(result.reshaped(keep.collect()))
        })
    }

    fn reduced(&self, kind: ReduceOp, axes: Axes) -> Result<Array, ArrayError> {
        let dims = self.shape();
        if !kind.takes(self.dtype()) {
            return Err(ArrayError::DType { op: kind.name(), of: self.into() });
        }
        let kept: Dims = (0..dims.len()).filter(|&a| !axes.contains(a)).map(|a| dims[a]).collect();
        if axes.iter().any(|a| dims[a] == 0) && !kind.has_identity() && !kept.contains(&0) {
            return Err(ArrayError::Empty { op: kind.name(), of: self.into() });
        }
        let args = smallvec![Arg::Node(self.clone())];
        Ok(Node::make(self.runtime(), NodeOp::Reduce { kind, axes }, kind.result(self.dtype()), kept, args))
    }

    /// Matrix product; leading axes are stacks of matrices and broadcast. A vector on the left is a row, on the
    /// right a column, and that axis is gone in the result.
    pub fn matmul(&self, other: &Array) -> Array {
        if other.bad().is_some() && self.bad().is_none() {
            return other.clone();
        }
        self.or_bad(|| {
            if !self.runtime().is(other.runtime()) {
                return Err(ArrayError::MixedRuntimes { op: "matmul" });
            }
            let dtype = promote(self.dtype(), other.dtype());
            let operand = |a: &Array| Operand::new(dtype, a.shape());
            let w = Workload::new(Op::MatMul, [operand(self)?, operand(other)?])
                .map_err(|why| product_error(why, self, other))?;
            let full = Dims::from_slice(&w.output().dims);
            fits("matmul", dtype, &full)?;
            let args = smallvec![Arg::Node(self.cast(dtype)), Arg::Node(other.cast(dtype))];
            let product = Node::make(self.runtime(), NodeOp::MatMul, dtype, full.clone(), args);
            let mut dims = full;
            let rank = dims.len();
            if other.rank() == 1 {
                dims.remove(rank - 1);
            }
            if self.rank() == 1 {
                dims.remove(rank - 2);
            }
            Ok(product.reshaped(dims))
        })
    }
}

/// What is wrong with a product; one too large is told apart, since the engine does not name the op.
fn product_error(why: WorkloadError, a: &Array, b: &Array) -> ArrayError {
    match why {
        WorkloadError::TooLarge { dims, dtype } => {
            ArrayError::TooLarge { op: "matmul", of: Spec { dtype, dims } }
        }
        other => ArrayError::of_two(other, a, b),
    }
}
