//! Several arrays become one.

use super::Array;
use super::axis::Axis;
use super::elementwise::fits;
use super::error::ArrayError;
use super::node::{Arg, Args, Node, NodeOp};
use super::promote::promote;
use crate::runtime::Runtime;
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::sync::Arc;
use steersman_core::Dims;

impl Runtime {
    /// The arrays one after another along an axis they all have.
    pub fn concat<A: Borrow<Array>>(&self, arrays: &[A], axis: impl Into<Axis>) -> Array {
        self.joined("concat", arrays, |arrays| {
            let first = arrays[0];
            let axis = axis.into().resolve("concat", first)?;
            let mut dims = Dims::from_slice(first.shape());
            for a in &arrays[1..] {
                let same = |i: usize| i == axis || a.shape().get(i) == first.shape().get(i);
                if a.rank() != first.rank() || !(0..a.rank()).all(same) {
                    return Err(ArrayError::Join { op: "concat", axis, a: first.into(), b: (*a).into() });
                }
                dims[axis] = dims[axis].saturating_add(a.shape()[axis]);
            }
            let dtype = arrays.iter().map(|a| a.dtype()).fold(first.dtype(), promote);
            fits("concat", dtype, &dims)?;
            let args: Args = arrays.iter().map(|a| Arg::Node(a.cast(dtype))).collect();
            Ok(Node::make(self, NodeOp::Concat(axis), dtype, dims, args))
        })
    }

    /// The arrays one after another along a new axis.
    pub fn stack<A: Borrow<Array>>(&self, arrays: &[A], axis: impl Into<Axis>) -> Array {
        self.joined("stack", arrays, |arrays| {
            let first = arrays[0];
            let axis = axis.into().within("stack", first, first.rank() + 1)?;
            if let Some(other) = arrays.iter().find(|a| a.shape() != first.shape()) {
                return Err(ArrayError::Join { op: "stack", axis, a: first.into(), b: (*other).into() });
            }
            let expanded: Vec<Array> = arrays.iter().map(|a| a.expand(axis)).collect();
            Ok(self.concat(&expanded, axis))
        })
    }

    fn joined<A: Borrow<Array>>(
        &self,
        op: &'static str,
        arrays: &[A],
        make: impl FnOnce(&[&Array]) -> Result<Array, ArrayError>,
    ) -> Array {
        let arrays: SmallVec<[&Array; 8]> = arrays.iter().map(Borrow::borrow).collect();
        if let Some(bad) = arrays.iter().find(|a| a.bad().is_some()) {
            return (*bad).clone();
        }
        let made = match &arrays[..] {
            [] => Err(ArrayError::NothingToJoin { op }),
            all if all.iter().any(|a| !self.is(a.runtime())) => Err(ArrayError::MixedRuntimes { op }),
            all => make(all),
        };
        made.unwrap_or_else(|why| Node::bad(self, Arc::new(why)))
    }
}
