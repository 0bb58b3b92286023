//! Fused groups: an element-wise program over operands that share one shape, and what comes out of it.
//!
//! An [`Expr`] is structure only: which steps on which values, no shapes, no constants, no seeds. What was
//! learned about it therefore holds when only the numbers change. Values of scalars and keys of random
//! numbers come with each run ([`Io::scalars`](crate::Io)); shapes come with the workload.
//!
//! ```
//! use std::sync::Arc;
//! use steersman_core::expr::Expr;
//! use steersman_core::{Axes, BinaryOp, DType, Operand, ReduceOp, UnaryOp, Workload};
//!
//! // y = exp(x · s) with one scalar s, and the sum of all y.
//! let mut b = Expr::builder([DType::F32]);
//! let (x, s) = (b.input(0)?, b.scalar(0, DType::F32)?);
//! let scaled = b.binary(BinaryOp::Mul, x, s)?;
//! let y = b.unary(UnaryOp::Exp, scaled)?;
//! b.output(y)?;
//! b.reduce(ReduceOp::Sum, Axes::NONE, y)?;
//! let expr = Arc::new(b.finish()?);
//! assert_eq!(expr.to_string(), "(in0:f32 s0:f32 v2=mul(in0,s0) v3=exp(v2)) -> v3, sum(v3)");
//!
//! let w = Workload::fused(&expr, &[1000, 1000], [Operand::new(DType::F32, &[1000])?])?;
//! assert_eq!(w.outputs().len(), 2);
//! assert_eq!(w.outputs()[0].dims.as_slice(), [1000, 1000]);
//! assert!(w.outputs()[1].dims.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod notes;
mod show;
mod step;

pub use build::{Builder, ExprError, MAX_STEPS};
pub use notes::Notes;
pub(crate) use show::Brief;
pub use step::{Dist, ExprHash, Output, Step, Value};

use crate::dtype::DType;
use std::fmt;
use std::sync::Arc;

/// Who notes what is behind a product.
const BEHIND: u64 = u64::MAX;

/// An element-wise program: steps in order, each the value of its index, and outputs.
///
/// Equal if inputs, steps and outputs are equal; [`hash64`](Expr::hash64) is the same in every process.
pub struct Expr {
    inputs: Vec<DType>,
    steps: Vec<Step>,
    dtypes: Vec<DType>,
    outputs: Vec<Output>,
    scalars: Vec<Option<DType>>,
    hash: ExprHash,
    flops: f64,
    dtype: DType,
    product: Option<(u16, u16, Value)>,
    notes: Notes,
}

impl Expr {
    /// Starts an expression over operands of these element types.
    pub fn builder(inputs: impl IntoIterator<Item = DType>) -> Builder {
        Builder::new(inputs.into_iter().collect())
    }

    /// Element types of the operands.
    pub fn inputs(&self) -> &[DType] {
        &self.inputs
    }

    /// The steps; a step's index is its value.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What comes out, at least one.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The element type of each scalar a run must bring; `None` for a key of random numbers (any 64 bits).
    pub fn scalars(&self) -> &[Option<DType>] {
        &self.scalars
    }

    /// The element type of a value of this expression.
    pub fn dtype_of(&self, v: Value) -> DType {
        self.dtypes[v.index()]
    }

    /// The element type most of its arithmetic is in.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Nominal operations per element of the group's shape, reductions included.
    pub fn flops(&self) -> f64 {
        self.flops
    }

    /// Its hash, the same in every process.
    pub fn hash64(&self) -> u64 {
        self.hash.0
    }

    /// Its hash as the op that a fused workload has.
    pub fn id(&self) -> ExprHash {
        self.hash
    }

    /// Its matrix product, if it has one: the two operands and the value.
    pub fn product(&self) -> Option<(u16, u16, Value)> {
        self.product
    }

    /// What is left to do once its product is in memory: the same steps, with the product as first operand and the
    /// other operands after it.
    pub fn behind_product(&self) -> Option<Arc<Expr>> {
        let (a, b, value) = self.product?;
        Some(self.notes.get(BEHIND, || Arc::new(self.with_product_given(a, b, value))).clone())
    }

    fn with_product_given(&self, a: u16, b: u16, value: Value) -> Expr {
        let others = (0..self.inputs.len() as u16).filter(|&k| k != a && k != b);
        let inputs: Vec<DType> =
            std::iter::once(self.dtype_of(value)).chain(others.map(|k| self.inputs[k as usize])).collect();
        let place = |k: u16| 1 + k - u16::from(k > a) - u16::from(k > b);
        let given = |s: &Step| match *s {
            Step::Product(..) => Step::Input(0),
            Step::Input(k) => Step::Input(place(k)),
            other => other,
        };
        let steps: Vec<Step> = self.steps.iter().map(given).collect();
        Expr {
            hash: build::hash(&inputs, &steps, &self.outputs),
            inputs,
            steps,
            dtypes: self.dtypes.clone(),
            outputs: self.outputs.clone(),
            scalars: self.scalars.clone(),
            flops: self.flops,
            dtype: self.dtype,
            product: None,
            notes: Notes::default(),
        }
    }

    /// What kernels have worked out about it.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }
}

impl PartialEq for Expr {
    fn eq(&self, o: &Expr) -> bool {
        std::ptr::eq(self, o)
            || (self.hash == o.hash
                && self.inputs == o.inputs
                && self.outputs == o.outputs
                && self.steps == o.steps)
    }
}
impl Eq for Expr {}

impl std::hash::Hash for Expr {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash.0);
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr{self}")
    }
}

#[cfg(test)]
mod tests;
