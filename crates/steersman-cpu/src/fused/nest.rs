//! The loops of a group: its shape, and how each operand steps through it.
//!
//! The order of elements is that of the shape, since positions, random numbers and reductions go by it.
//! Neighbouring dimensions that every operand steps through as one are one.

use crate::map;
use smallvec::SmallVec;
use steersman_core::{MAX_RANK, Operand};

/// Strides in elements.
type Strides = [isize; MAX_RANK];

/// A loop nest.
#[derive(Clone, Debug)]
pub struct Nest {
    rank: usize,
    dims: [usize; MAX_RANK],
    strides: SmallVec<[Strides; 4]>,
}

impl Nest {
    /// The loops over `dims` of these operands, which all have that shape.
    pub fn new<'a>(dims: &[usize], operands: impl Iterator<Item = &'a Operand>) -> Nest {
        let given: SmallVec<[&[isize]; 4]> = operands.map(|o| &o.strides[..]).collect();
        let mut nest =
            Nest { rank: 0, dims: [1; MAX_RANK], strides: SmallVec::from_elem([0; MAX_RANK], given.len()) };
        for (d, &n) in dims.iter().enumerate().filter(|(_, n)| **n != 1) {
            let outer = nest.rank.wrapping_sub(1);
            let merges =
                nest.rank > 0 && given.iter().zip(&nest.strides).all(|(g, s)| s[outer] == g[d] * n as isize);
            let at = if merges { outer } else { nest.rank };
            nest.dims[at] *= n;
            for (s, g) in nest.strides.iter_mut().zip(&given) {
                s[at] = g[d];
            }
            nest.rank = at + 1;
        }
        nest.rank = nest.rank.max(1);
        nest
    }

    /// Elements of the innermost dimension.
    pub fn inner(&self) -> usize {
        self.dims[self.rank - 1]
    }

    /// The step of operand `k` along the innermost dimension.
    pub fn inner_stride(&self, k: usize) -> isize {
        self.strides[k][self.rank - 1]
    }

    /// The step of operand `k` from each element to the next through all dimensions, if it is one.
    pub fn step(&self, k: usize) -> Option<isize> {
        map::step(&self.dims[..self.rank], &self.strides[k])
    }

    /// After how many elements operand `k` starts over, again and again.
    pub fn period(&self, k: usize) -> usize {
        map::period(&self.dims[..self.rank], &self.strides[k])
    }

    /// Writes where each operand's `i`th element is, and returns how many are left in its row.
    pub fn at(&self, i: usize, offsets: &mut [isize]) -> usize {
        let mut rest = i;
        offsets.fill(0);
        let mut left = 0;
        for d in (0..self.rank).rev() {
            let n = self.dims[d];
            let (q, r) = if rest < n { (0, rest) } else { (rest / n, rest % n) };
            if d == self.rank - 1 {
                left = n - r;
            }
            for (offset, s) in offsets.iter_mut().zip(&self.strides) {
                *offset += r as isize * s[d];
            }
            rest = q;
        }
        left
    }

    /// Calls `run(offset, done, step, len)` for each stretch of operand `k` among the `n` elements from `i` on.
    pub fn runs(&self, k: usize, i: usize, n: usize, mut run: impl FnMut(isize, usize, isize, usize)) {
        let last = self.rank - 1;
        let mut index = [0usize; MAX_RANK];
        let mut rest = i;
        for d in (0..self.rank).rev() {
            index[d] = rest % self.dims[d];
            rest /= self.dims[d];
        }
        let s = &self.strides[k];
        let mut offset: isize = (0..self.rank).map(|d| index[d] as isize * s[d]).sum();
        let mut done = 0;
        while done < n {
            let len = (self.dims[last] - index[last]).min(n - done);
            run(offset, done, s[last], len);
            done += len;
            index[last] += len;
            offset += len as isize * s[last];
            let mut d = last;
            while index[d] == self.dims[d] && d > 0 {
                index[d] = 0;
                index[d - 1] += 1;
                offset += s[d - 1] - self.dims[d] as isize * s[d];
                d -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steersman_core::{DType, Strides};

    fn nest(dims: &[usize], strides: &[&[isize]]) -> Nest {
        let operand = |s: &&[isize]| Operand::strided(DType::F32, dims, Strides::from_slice(s)).unwrap();
        let operands: Vec<Operand> = strides.iter().map(operand).collect();
        Nest::new(dims, operands.iter())
    }

    #[test]
    fn contiguous_operands_make_one_loop() {
        let n = nest(&[4, 5, 6], &[&[30, 6, 1], &[30, 6, 1]]);
        assert_eq!((n.rank, n.inner(), n.step(0)), (1, 120, Some(1)));
        let n = nest(&[], &[&[]]);
        assert_eq!((n.rank, n.inner()), (1, 1));
    }

    #[test]
    fn an_operand_that_repeats_keeps_its_dimension_apart() {
        let n = nest(&[4, 5, 6], &[&[30, 6, 1], &[0, 0, 1], &[0, 1, 0]]);
        assert_eq!((n.rank, n.inner(), n.step(0), n.step(1)), (3, 6, Some(1), None));
        assert_eq!((n.period(0), n.period(1), n.period(2)), (120, 6, 30));
    }

    #[test]
    fn runs_reach_what_positions_say() {
        let n = nest(&[3, 4, 5], &[&[40, 5, 1], &[1, 3, 12]]);
        for k in 0..2 {
            for start in 0..60 {
                let mut seen = 0;
                n.runs(k, start, 60 - start, |offset, done, step, len| {
                    assert_eq!(done, seen);
                    for j in 0..len {
                        let mut at = [0; 2];
                        n.at(start + done + j, &mut at);
                        assert_eq!(at[k], offset + j as isize * step);
                    }
                    seen += len;
                });
                assert_eq!(seen, 60 - start);
            }
        }
    }
}
