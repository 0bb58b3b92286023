//! What people expect of arrays beside the engine's own ops, made of those.

use super::Array;
use super::axis::{Axis, Over};
use super::elementwise::fits;
use super::error::ArrayError;
use super::slice::Slice;
use smallvec::{SmallVec, smallvec};
use steersman_core::Dims;

impl Array {
    /// eˣ over its sum along an axis, with the largest taken off first so that nothing overflows.
    ///
    /// ```
    /// # let mut knobs = steersman::Knobs::default();
    /// # knobs.set("wisdom.enabled", "false")?;
    /// # knobs.set("calibrate.background", "false")?;
    /// # let rt = steersman::Runtime::with_knobs(knobs)?;
    /// let x = rt.from_vec(vec![1000.0f32, 1000.0], 2)?;
    /// assert_eq!(x.softmax(0).to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<(), steersman::Error>(())
    /// ```
    pub fn softmax(&self, axis: impl Into<Axis>) -> Array {
        self.or_bad(|| {
            let axis = axis.into();
            axis.resolve("softmax", self)?;
            self.floats("softmax")?;
            let powers = self.sub(self.max(axis.keep())).exp();
            let total = powers.sum(axis.keep());
            Ok(powers.div(total))
        })
    }

    /// ln Σeˣ along axes, with the largest taken off first so that nothing overflows.
    pub fn logsumexp(&self, over: impl Into<Over>) -> Array {
        let over = over.into();
        self.or_bad(|| {
            over.resolve("logsumexp", self)?;
            self.floats("logsumexp")?;
            let top = self.max(over.clone().keep());
            let sum = self.sub(&top).exp().sum(over).ln();
            let top = top.reshaped(Dims::from_slice(sum.shape()));
            Ok(sum.add(top))
        })
    }

    pub(super) fn floats(&self, op: &'static str) -> Result<(), ArrayError> {
        if self.dtype().is_float() { Ok(()) } else { Err(ArrayError::DType { op, of: self.into() }) }
    }

    /// x².
    pub fn square(&self) -> Array {
        self.mul(self)
    }

    /// The whole so many times along each axis, the last ones first, as NumPy's `tile`; axes are added in front if
    /// more are named than there are.
    pub fn tile(&self, times: &[usize]) -> Array {
        self.or_bad(|| {
            let rank = self.rank().max(times.len());
            let own = |i: usize| (i + self.rank()).checked_sub(rank).map_or(1, |j| self.shape()[j]);
            let by = |i: usize| (i + times.len()).checked_sub(rank).map_or(1, |j| times[j]);
            let whole: Vec<usize> = (0..rank).map(|i| own(i).saturating_mul(by(i))).collect();
            fits("tile", self.dtype(), &whole)?;
            // Axis by axis with three of them at a time, so that as many axes can be tiled as there can be.
            let mut tiled = self.reshape((0..rank).map(own).collect::<Vec<_>>());
            for axis in (0..rank).rev().filter(|&i| by(i) != 1) {
                let after = tiled.shape()[axis..].iter().product();
                let before = tiled.shape()[..axis].iter().product();
                let mut dims = tiled.shape().to_vec();
                dims[axis] = whole[axis];
                tiled =
                    tiled.reshape([before, 1, after]).broadcast_to([before, by(axis), after]).reshape(dims);
            }
            Ok(tiled)
        })
    }

    /// Each element so many times along an axis, one after another.
    pub fn repeat(&self, times: usize, axis: impl Into<Axis>) -> Array {
        self.or_bad(|| {
            let axis = axis.into().resolve("repeat", self)?;
            let mut whole = self.shape().to_vec();
            whole[axis] = whole[axis].saturating_mul(times);
            fits("repeat", self.dtype(), &whole)?;
            let before: usize = self.shape()[..=axis].iter().product();
            let after = self.shape()[axis + 1..].iter().product();
            Ok(self.reshape([before, 1, after]).broadcast_to([before, times, after]).reshape(whole))
        })
    }

    /// Parts of so many elements along an axis, the last one perhaps shorter.
    pub fn chunks(&self, size: usize, axis: impl Into<Axis>) -> Result<Vec<Array>, ArrayError> {
        self.check()?;
        let axis = axis.into().resolve("chunks", self)?;
        if size == 0 {
            let text = "into chunks of 0".into();
            return Err(ArrayError::Slice { text, of: self.into(), why: "a part has at least one element" });
        }
        let part = |start: usize| {
            let mut slices: SmallVec<[Slice; 8]> = smallvec![Slice::ALL; self.rank()];
            slices[axis] = Slice::from(start..start.saturating_add(size));
            self.slice(&slices[..])
        };
        Ok((0..self.shape()[axis]).step_by(size).map(part).collect())
    }

    /// Its parts along the first axis, one after another: rows of a matrix, numbers of a vector. A scalar has none.
    pub fn rows(&self) -> impl Iterator<Item = Array> + '_ {
        let n = self.shape().first().copied().unwrap_or(0);
        (0..n as isize).map(|i| self.index(0, i))
    }

    /// All of them added up; nothing if there are none.
    pub fn total<'a>(arrays: impl IntoIterator<Item = &'a Array>) -> Option<Array> {
        let mut arrays = arrays.into_iter();
        let first = arrays.next()?.clone();
        Some(arrays.fold(first, |sum, a| sum.add(a)))
    }
}
