//! Shape operations. They move no elements where strides allow, which is everywhere but in reshapes of arrays
//! whose elements do not lie in order.

use super::Array;
use super::axis::{Axis, IntoShape, Over, list, shape};
use super::elementwise::fits;
use super::error::ArrayError;
use super::node::{Arg, Node, NodeOp};
use super::slice::{IntoSlices, Slice, cut};
use smallvec::{SmallVec, smallvec};
use steersman_core::{Dims, Perm};

impl Array {
    fn viewed(&self, op: NodeOp, dims: Dims) -> Array {
        Node::make(self.runtime(), op, self.dtype(), dims, smallvec![Arg::Node(self.clone())])
    }

    pub(super) fn reshaped(&self, dims: Dims) -> Array {
        if dims[..] == *self.shape() {
            return self.clone();
        }
        self.viewed(NodeOp::Reshape, dims)
    }

    /// The same elements in row-major order in another shape; one dimension may be -1, whatever is left.
    pub fn reshape(&self, to: impl IntoShape) -> Array {
        let to = to.into_shape();
        self.or_bad(|| {
            let fail = || ArrayError::Reshape { op: "reshape", of: self.into(), to: list(&to) };
            let open: SmallVec<[usize; 2]> = (0..to.len()).filter(|&i| to[i] == -1).collect();
            let mut given = to.clone();
            if let &[axis] = &open[..] {
                let known = to
                    .iter()
                    .filter(|&&d| d != -1)
                    .try_fold(1usize, |n, &d| n.checked_mul(d.max(0) as usize));
                let known = known.filter(|&n| n > 0 && self.len().is_multiple_of(n)).ok_or_else(fail)?;
                given[axis] = (self.len() / known) as isize;
            }
            let dims = shape("reshape", &given)?;
            let elements = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
            if elements != Some(self.len()) {
                return Err(fail());
            }
            fits("reshape", self.dtype(), &dims)?;
            Ok(self.reshaped(dims))
        })
    }

    /// All elements along one axis.
    pub fn flatten(&self) -> Array {
        self.reshape([-1])
    }

    /// Axes in another order: axis `i` of the result is axis `axes[i]` of this.
    pub fn permute<A: Into<Axis> + Copy>(&self, axes: impl AsRef<[A]>) -> Array {
        self.or_bad(|| {
            let mut order: SmallVec<[usize; 8]> = SmallVec::new();
            for &a in axes.as_ref() {
                order.push(a.into().resolve("permute", self)?);
            }
            let perm = Perm::from_list(&order).filter(|p| p.rank() == self.rank()).ok_or_else(|| {
                let axes = order.iter().map(|a| a.to_string()).collect::<Vec<_>>().join(", ");
                ArrayError::Permute { axes, of: self.into() }
            })?;
            let dims = perm.iter().map(|a| self.shape()[a]).collect();
            Ok(self.viewed(NodeOp::Permute(perm), dims))
        })
    }

    /// All axes in reverse order: a matrix's transpose.
    pub fn t(&self) -> Array {
        let order: SmallVec<[usize; 8]> = (0..self.rank()).rev().collect();
        self.permute(order)
    }

    /// The last two axes exchanged: the transpose of each matrix in a stack.
    pub fn matrix_transpose(&self) -> Array {
        self.or_bad(|| {
            let rank = self.rank();
            if rank < 2 {
                return Err(ArrayError::FewAxes { op: "matrix_transpose", of: self.into(), need: 2 });
            }
            let mut order: SmallVec<[usize; 8]> = (0..rank).collect();
            order.swap(rank - 2, rank - 1);
            Ok(self.permute(order))
        })
    }

    /// Some elements along each axis: `a.slice((1..3, .., Slice::ALL.step(-1)))`. Axes not named are taken whole.
    pub fn slice(&self, slices: impl IntoSlices) -> Array {
        let slices = slices.into_slices();
        self.or_bad(|| {
            let (steps, dims) = cut(&slices, self)?;
            Ok(self.viewed(NodeOp::Slice(steps), dims))
        })
    }

    /// The part at `index` along an axis, which disappears; a negative index counts from the end.
    pub fn index(&self, axis: impl Into<Axis>, index: isize) -> Array {
        self.or_bad(|| {
            let axis = axis.into().resolve("index", self)?;
            let n = self.shape()[axis] as isize;
            let at = if index < 0 { index + n } else { index };
            if !(0..n).contains(&at) {
                return Err(ArrayError::Index { index, axis, of: self.into() });
            }
            let mut slices: SmallVec<[Slice; 8]> = smallvec![Slice::ALL; self.rank()];
            slices[axis] = Slice::from(at..at + 1);
            Ok(self.slice(&slices[..]).squeeze(axis))
        })
    }

    /// Elements along an axis, several, or `..` for all of them in reverse order.
    pub fn flip(&self, over: impl Into<Over>) -> Array {
        self.or_bad(|| {
            let axes = over.into().resolve("flip", self)?.unwrap_or_default();
            let slices: SmallVec<[Slice; 8]> =
                (0..self.rank()).map(|a| Slice::ALL.step(if axes.contains(a) { -1 } else { 1 })).collect();
            Ok(self.slice(&slices[..]))
        })
    }

    /// Stretched to a larger shape, repeating along axes of one element and new ones in front.
    pub fn broadcast_to(&self, to: impl IntoShape) -> Array {
        let to = to.into_shape();
        self.or_bad(|| {
            let dims = shape("broadcast_to", &to)?;
            let lead = dims.len().checked_sub(self.rank());
            let stretches =
                |lead: usize| self.shape().iter().zip(&dims[lead..]).all(|(&d, &t)| d == t || d == 1);
            if !lead.is_some_and(stretches) {
                return Err(ArrayError::Stretch { of: self.into(), to: dims });
            }
            fits("broadcast_to", self.dtype(), &dims)?;
            if dims[..] == *self.shape() {
                return Ok(self.clone());
            }
            Ok(self.viewed(NodeOp::Broadcast, dims))
        })
    }

    /// Without an axis of one element, without several, or with `..` without all that there are.
    pub fn squeeze(&self, over: impl Into<Over>) -> Array {
        let over = over.into();
        self.or_bad(|| {
            let axes = over.resolve("squeeze", self)?.unwrap_or_default();
            let dims = Dims::from_slice(self.shape());
            let long = axes.iter().find(|&a| dims[a] != 1);
            if let Some(axis) = long.filter(|_| !over.is_all()) {
                return Err(ArrayError::Squeeze { axis, of: self.into() });
            }
            let left = (0..dims.len()).filter(|&a| !axes.contains(a) || dims[a] != 1);
            Ok(self.reshaped(left.map(|a| dims[a]).collect()))
        })
    }

    /// With a new axis of one element at this position.
    pub fn expand(&self, axis: impl Into<Axis>) -> Array {
        self.or_bad(|| {
            let axis = axis.into().within("expand", self, self.rank() + 1)?;
            let mut dims = Dims::from_slice(self.shape());
            dims.insert(axis, 1);
            fits("expand", self.dtype(), &dims)?;
            Ok(self.reshaped(dims))
        })
    }

    /// The same elements one after another in row-major order; itself if they lie so already.
    pub fn contiguous(&self) -> Array {
        self.or_bad(|| Ok(self.viewed(NodeOp::Contiguous, Dims::from_slice(self.shape()))))
    }
}
