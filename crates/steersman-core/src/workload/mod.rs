//! What is asked: an op plus its operands. Flops, bytes and intensity are derived, never supplied.
//!
//! ```
//! use steersman_core::Workload;
//! let w: Workload = "matmul f32 1024x512 512x256".parse()?;
//! assert_eq!(w.flops(), 2.0 * 1024.0 * 512.0 * 256.0);
//! assert_eq!(w.output().dims.as_slice(), [1024, 256]);
//! assert_eq!(w.to_string(), "matmul f32 1024x512 512x256");
//! # Ok::<(), steersman_core::WorkloadError>(())
//! ```

mod derived;
mod error;
mod fused;
mod infer;
mod key;
mod operand;
mod text;

pub use error::WorkloadError;
pub use key::Key;
pub use operand::{Dims, MAX_BYTES, Operand, Strides};
pub use text::parse_file;

use crate::device::Place;
use crate::dtype::DType;
use crate::expr::Expr;
use crate::kernel::NumericClass;
use crate::op::{Op, OpClass};
use derived::Derived;
use smallvec::SmallVec;
use std::sync::Arc;

/// An op with its operands' facts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Workload {
    op: Op,
    inputs: SmallVec<[Operand; 3]>,
    output: Operand,
    numerics: NumericClass,
    /// What a fused group has beyond that.
    group: Option<Arc<fused::Group>>,
    /// Bytes that must move. Nothing that can be changed about a workload changes them.
    bytes: Derived,
}

/// How an operand list lies in memory; part of a model's key because it changes the rate, not the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Layout {
    /// Every operand contiguous and of the output's shape.
    Contiguous,
    /// Some operand repeats from row to row.
    Broadcast,
    /// Some operand repeats along rows: one value serves a whole one, or all of them.
    PerRow,
    /// Some operand has gaps or another order.
    Strided,
}

impl Workload {
    /// Checks the operands against the op and derives the result.
    pub fn new(op: Op, inputs: impl IntoIterator<Item = Operand>) -> Result<Workload, WorkloadError> {
        let inputs: SmallVec<[Operand; 3]> = inputs.into_iter().collect();
        let (op, inputs, output) = infer::infer(op, inputs)?;
        Ok(Workload {
            op,
            inputs,
            output,
            numerics: NumericClass::Reassociated,
            group: None,
            bytes: Derived::default(),
        })
    }

    /// An element-wise workload whose operands and output already have one shape and need no checking beyond
    /// that: the quick way for calls on small arrays. `None` if anything is out of the ordinary, in which case
    /// [`Workload::new`] says what.
    #[inline]
    pub fn plain(
        op: Op,
        inputs: impl IntoIterator<Item = Operand>,
        output: Operand,
        numerics: NumericClass,
    ) -> Option<Workload> {
        let takes = match op {
            Op::Unary(u) => u.takes(output.dtype),
            Op::Binary(b) => !b.compares() && b.takes(output.dtype),
            _ => false,
        };
        if !takes {
            return None;
        }
        let mut same = true;
        let inputs: SmallVec<[Operand; 3]> = inputs
            .into_iter()
            .inspect(|o| same &= o.dtype == output.dtype && o.dims[..] == output.dims[..])
            .collect();
        let bytes = Derived::default();
        (same && inputs.len() == op.arity()).then_some(Workload {
            op,
            inputs,
            output,
            numerics,
            group: None,
            bytes,
        })
    }

    /// A user function's workload: `sizes` are what its time depends on.
    pub fn custom(name: &'static str, sizes: &[usize]) -> Result<Workload, WorkloadError> {
        Workload::new(Op::Custom(name), [Operand::new(DType::U8, sizes)?])
    }

    /// The same workload with looser or stricter numerics allowed.
    pub fn with_numerics(mut self, numerics: NumericClass) -> Workload {
        self.numerics = numerics;
        if let Some(product) = self.product_mut() {
            product.workload.numerics = numerics;
            product.rest.numerics = numerics;
        }
        self
    }

    fn product_mut(&mut self) -> Option<&mut fused::Product> {
        // Groups are shared: only what has a product is copied.
        self.group.as_ref()?.product.as_ref()?;
        Arc::make_mut(self.group.as_mut()?).product.as_mut()
    }

    /// The same workload with its result wanted elsewhere.
    pub fn with_output_at(mut self, place: Place) -> Workload {
        self.output.place = place;
        if let Some(group) = &mut self.group {
            let group = Arc::make_mut(group);
            group.outputs.iter_mut().for_each(|o| o.place = place);
            if let Some(product) = &mut group.product {
                product.rest = product.rest.clone().with_output_at(place);
            }
        }
        self
    }

    /// The same workload with its `n`th operand living elsewhere.
    pub fn with_input_at(mut self, n: usize, place: Place) -> Workload {
        if let Some(o) = self.inputs.get_mut(n) {
            o.place = place;
        }
        self
    }

    /// The same workload writing to memory with these strides and alignment.
    pub fn with_output(self, output: Operand) -> Result<Workload, WorkloadError> {
        self.with_nth_output(0, output)
    }

    /// The same workload writing its `n`th result to memory with these strides and alignment.
    pub fn with_nth_output(mut self, n: usize, output: Operand) -> Result<Workload, WorkloadError> {
        let expected = self.outputs().get(n).ok_or(WorkloadError::OutputCount {
            op: self.op.name(),
            has: self.outputs().len(),
            named: n,
        })?;
        if output.dims != expected.dims || output.dtype != expected.dtype {
            return Err(WorkloadError::Output {
                op: self.op.name(),
                expected: expected.dims.clone(),
                expected_dtype: expected.dtype,
                got: output.dims,
                got_dtype: output.dtype,
            });
        }
        if let Some(group) = &mut self.group {
            let group = Arc::make_mut(group);
            group.outputs[n] = output.clone();
            if let Some(product) = &mut group.product {
                product.rest = product.rest.clone().with_nth_output(n, output.clone())?;
            }
        }
        if n == 0 {
            self.output = output;
        }
        Ok(self)
    }

    /// What to compute.
    #[inline]
    pub fn op(&self) -> Op {
        self.op
    }

    /// Its operands. Element-wise operands are already broadcast: stride 0 where they repeat.
    #[inline]
    pub fn inputs(&self) -> &[Operand] {
        &self.inputs
    }

    /// Its result; of a fused group, the first.
    #[inline]
    pub fn output(&self) -> &Operand {
        &self.output
    }

    /// Its results: one, but for fused groups.
    pub fn outputs(&self) -> &[Operand] {
        match &self.group {
            None => std::slice::from_ref(&self.output),
            Some(group) => &group.outputs,
        }
    }

    /// The expression of a fused group.
    pub fn expr(&self) -> Option<&Arc<Expr>> {
        self.group.as_ref().map(|g| &g.expr)
    }

    /// The shape that a fused group's operands are broadcast to; of other workloads, the result's.
    pub fn dims(&self) -> &Dims {
        self.group.as_ref().map_or(&self.output.dims, |g| &g.dims)
    }

    /// The loosest numeric class the caller allows.
    #[inline]
    pub fn numerics(&self) -> NumericClass {
        self.numerics
    }

    /// The element type the arithmetic is about: that of the last operand (`where`'s first is bool), or the
    /// one that most steps of a fused group are in.
    #[inline]
    pub fn dtype(&self) -> DType {
        if let Some(group) = &self.group {
            return group.expr.dtype();
        }
        self.inputs.last().map_or(self.output.dtype, |o| o.dtype)
    }

    /// Floating-point (or integer) operations a straightforward implementation makes.
    #[inline]
    pub fn flops(&self) -> f64 {
        let out = self.output.elements() as f64;
        match self.op {
            Op::Unary(u) => out * u.flops(),
            Op::Binary(b) => out * b.flops(),
            Op::Ternary(t) => out * t.flops(),
            Op::Reduce { kind, .. } => self.inputs[0].elements() as f64 * kind.flops(),
            Op::MatMul => 2.0 * out * self.matmul_k() as f64,
            Op::Conv2d { .. } => 2.0 * out * self.inputs[1].dims[1..].iter().product::<usize>() as f64,
            Op::Transpose { .. } | Op::Copy => 0.0,
            Op::Custom(_) => self.inputs[0].elements() as f64,
            Op::Fused(_) => {
                let elements = self.dims().iter().product::<usize>() as f64;
                let product = self.product().map_or(0.0, |p| p.flops());
                self.expr().map_or(0.0, |e| e.flops() * elements + product)
            }
        }
    }

    /// Bytes that must move at least: each distinct input byte once, each output byte once.
    #[inline]
    pub fn bytes(&self) -> f64 {
        self.bytes.get(|| {
            let read: usize = self.inputs.iter().map(|o| o.distinct_bytes()).sum();
            let written: usize = self.outputs().iter().map(|o| o.bytes()).sum();
            (read + written) as f64
        })
    }

    /// Flops per byte.
    pub fn intensity(&self) -> f64 {
        let bytes = self.bytes();
        if bytes > 0.0 { self.flops() / bytes } else { 0.0 }
    }

    /// Whether there is nothing to compute or store.
    pub fn is_empty(&self) -> bool {
        self.outputs().iter().all(|o| o.elements() == 0)
    }

    /// How the operands lie in memory.
    #[inline]
    pub fn layout(&self) -> Layout {
        if matches!(self.op, Op::MatMul) {
            let plain = self.inputs.iter().all(|o| o.is_contiguous());
            return if plain { Layout::Contiguous } else { Layout::Strided };
        }
        let mut layout = Layout::Contiguous;
        for o in self.inputs.iter().chain(self.outputs()) {
            if !o.is_contiguous() {
                let mut repeats =
                    o.dims.iter().zip(&o.strides).rev().filter(|(d, _)| **d > 1).map(|(_, s)| *s == 0);
                layout = layout.max(match (repeats.next(), repeats.any(|r| r)) {
                    (Some(true), _) => Layout::PerRow,
                    (_, true) => Layout::Broadcast,
                    _ => Layout::Strided,
                });
            }
        }
        layout
    }

    /// Inner dimension of a matrix product (0 for other ops).
    #[inline]
    pub fn matmul_k(&self) -> usize {
        match self.op {
            Op::MatMul => self.inputs[0].dims.last().copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// `(batch, m, k, n)` of a matrix product.
    #[inline]
    pub fn matmul_dims(&self) -> Option<(usize, usize, usize, usize)> {
        if self.op != Op::MatMul {
            return None;
        }
        let d = &self.output.dims;
        let r = d.len();
        Some((d[..r - 2].iter().product(), d[r - 2], self.matmul_k(), d[r - 1]))
    }

    /// `(outer, reduced, inner)`: the reduction as three nested loops, when its axes are adjacent.
    /// `None` for other ops and for scattered axes.
    pub fn reduce_dims(&self) -> Option<(usize, usize, usize)> {
        let Op::Reduce { axes, .. } = self.op else { return None };
        let dims = &self.inputs[0].dims;
        let first = axes.iter().next().unwrap_or(0);
        let last = axes.iter().last().map_or(0, |a| a + 1);
        if last - first.min(last) != axes.len() {
            return None;
        }
        let product = |r: std::ops::Range<usize>| dims[r].iter().product();
        Some((product(0..first.min(last)), product(first.min(last)..last), product(last..dims.len())))
    }

    /// The class whose cost structure it shares.
    pub fn class(&self) -> OpClass {
        self.op.class()
    }
}
