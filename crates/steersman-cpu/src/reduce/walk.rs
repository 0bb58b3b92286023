//! Every place of some axes, one after another in logical order.

use steersman_core::{MAX_RANK, Op, Workload};

/// Offsets in input and output, counted up like an odometer.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    dims: [usize; MAX_RANK],
    from: [isize; MAX_RANK],
    to: [isize; MAX_RANK],
    at: [usize; MAX_RANK],
    rank: usize,
    left: usize,
    offset: (isize, isize),
}

impl Walk {
    /// The walks over a reduction's outputs and over the elements of one of them.
    pub fn of(w: &Workload) -> (Walk, Walk) {
        let Op::Reduce { axes, .. } = w.op() else { return (Walk::new(), Walk::new()) };
        let (mut kept, mut reduced) = (Walk::new(), Walk::new());
        let mut outputs = w.output().strides.iter();
        for (axis, (&n, &from)) in w.inputs()[0].dims.iter().zip(&w.inputs()[0].strides).enumerate() {
            if axes.contains(axis) {
                reduced.push(n, from, 0);
            } else {
                kept.push(n, from, outputs.next().copied().unwrap_or(0));
            }
        }
        (kept, reduced)
    }

    fn new() -> Walk {
        let zero = [0; MAX_RANK];
        Walk {
            dims: [0; MAX_RANK],
            from: zero,
            to: zero,
            at: [0; MAX_RANK],
            rank: 0,
            left: 1,
            offset: (0, 0),
        }
    }

    fn push(&mut self, n: usize, from: isize, to: isize) {
        self.dims[self.rank] = n;
        self.from[self.rank] = from;
        self.to[self.rank] = to;
        self.rank += 1;
        self.left *= n;
    }
}

impl Iterator for Walk {
    type Item = (isize, isize);

    #[inline]
    fn next(&mut self) -> Option<(isize, isize)> {
        self.left = self.left.checked_sub(1)?;
        let here = self.offset;
        for axis in (0..self.rank).rev() {
            self.offset.0 += self.from[axis];
            self.offset.1 += self.to[axis];
            self.at[axis] += 1;
            if self.at[axis] < self.dims[axis] {
                break;
            }
            self.at[axis] = 0;
            self.offset.0 -= self.from[axis] * self.dims[axis] as isize;
            self.offset.1 -= self.to[axis] * self.dims[axis] as isize;
        }
        Some(here)
    }
}
