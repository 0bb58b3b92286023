//! Convolutions.

use super::Array;
use super::elementwise::fits;
use super::error::ArrayError;
use super::node::{Arg, Node, NodeOp};
use super::promote::promote;
use smallvec::smallvec;
use steersman_core::{Dims, Op, Operand, Workload};

impl Array {
    /// Images (images × channels × height × width) convolved with filters (filters × channels × rows ×
    /// columns), `stride` apart, with `pad` elements of border on every side that add nothing. Filters are not
    /// turned round, as everywhere in machine learning.
    ///
    /// ```
    /// # let mut knobs = steersman::Knobs::default();
    /// # knobs.set("wisdom.enabled", "false")?;
    /// # knobs.set("calibrate.background", "false")?;
    /// # let rt = steersman::Runtime::with_knobs(knobs)?;
    /// let image = rt.arange(0.0f32, 16.0, 1.0).reshape([1, 1, 4, 4]);
    /// let across = rt.from_vec(vec![-1.0f32, 0.0, 1.0], [1, 1, 1, 3])?;
    /// assert_eq!(image.conv2d(&across, 1, 0).to_vec::<f32>()?, vec![2.0; 8]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn conv2d(&self, filters: &Array, stride: u16, pad: u16) -> Array {
        if filters.bad().is_some() && self.bad().is_none() {
            return filters.clone();
        }
        self.or_bad(|| {
            if !self.runtime().is(filters.runtime()) {
                return Err(ArrayError::MixedRuntimes { op: "conv2d" });
            }
            let dtype = promote(self.dtype(), filters.dtype());
            let operand = |a: &Array| Operand::new(dtype, a.shape());
            let w = Workload::new(Op::Conv2d { stride, pad }, [operand(self)?, operand(filters)?])
                .map_err(|why| ArrayError::of_two(why, self, filters))?;
            let dims = Dims::from_slice(&w.output().dims);
            fits("conv2d", dtype, &dims)?;
            let args = smallvec![Arg::Node(self.cast(dtype)), Arg::Node(filters.cast(dtype))];
            Ok(Node::make(self.runtime(), NodeOp::Conv2d { stride, pad }, dtype, dims, args))
        })
    }
}
