//! The loop nest of an element-wise workload, as short as its strides allow.

use steersman_core::{MAX_RANK, Operand, Workload};

/// Where the output stands among the operands of a plan.
pub const OUT: usize = 3;

/// Dimensions that all operands share, outermost first, with each operand's strides in elements.
///
/// Order and number differ from the workload's: dimensions of one element are gone, the others are
/// sorted so that the output is written in the order of its memory, and neighbours that every operand
/// steps through as one are merged.
#[derive(Clone, Debug)]
pub struct Plan {
    rank: usize,
    dims: [usize; MAX_RANK],
    strides: [[isize; MAX_RANK]; 4],
}

impl Plan {
    /// The loop nest of a workload that has elements.
    pub fn new(w: &Workload) -> Plan {
        let out = w.output();
        let mut plan = Plan { rank: 0, dims: [1; MAX_RANK], strides: [[1; MAX_RANK]; 4] };
        let mut order = [0usize; MAX_RANK];
        let mut kept = 0;
        for d in (0..out.rank()).filter(|&d| out.dims[d] != 1) {
            // Insertion keeps the given order among equals.
            let mut at = kept;
            while at > 0 && out.strides[order[at - 1]].unsigned_abs() < out.strides[d].unsigned_abs() {
                order[at] = order[at - 1];
                at -= 1;
            }
            order[at] = d;
            kept += 1;
        }
        for &d in &order[..kept] {
            plan.push(d, w.inputs(), out);
        }
        plan.rank = plan.rank.max(1);
        plan
    }

    fn push(&mut self, d: usize, inputs: &[Operand], out: &Operand) {
        let n = out.dims[d];
        let mut step = [1isize; 4];
        for (s, o) in step.iter_mut().zip(inputs) {
            *s = o.strides[d];
        }
        step[OUT] = out.strides[d];
        let operands = || (0..inputs.len()).chain([OUT]);
        if self.rank > 0 {
            let outer = self.rank - 1;
            if operands().all(|k| self.strides[k][outer] == step[k] * n as isize) {
                self.dims[outer] *= n;
                operands().for_each(|k| self.strides[k][outer] = step[k]);
                return;
            }
        }
        self.dims[self.rank] = n;
        operands().for_each(|k| self.strides[k][self.rank] = step[k]);
        self.rank += 1;
    }

    /// Elements of the innermost dimension.
    pub fn inner(&self) -> usize {
        self.dims[self.rank - 1]
    }

    /// The step of operand `k` along the innermost dimension.
    pub fn inner_stride(&self, k: usize) -> isize {
        self.strides[k][self.rank - 1]
    }

    /// The step of operand `k` from one row of the innermost dimension to the next, where there are several.
    pub fn row_stride(&self, k: usize) -> isize {
        if self.rank > 1 { self.strides[k][self.rank - 2] } else { 0 }
    }

    /// The step of operand `k` from each element to the next through all dimensions, if it is the same
    /// throughout.
    pub fn step(&self, k: usize) -> Option<isize> {
        step(&self.dims[..self.rank], &self.strides[k])
    }

    /// After how many elements operand `k` starts over, again and again.
    pub fn period(&self, k: usize) -> usize {
        period(&self.dims[..self.rank], &self.strides[k])
    }

    /// The position of the `i`th element.
    pub fn at(&self, i: usize) -> Cursor {
        let mut cursor = Cursor { index: [0; MAX_RANK], offsets: [0; 4] };
        let mut rest = i;
        for d in (0..self.rank).rev() {
            let (q, r) =
                if rest < self.dims[d] { (0, rest) } else { (rest / self.dims[d], rest % self.dims[d]) };
            cursor.index[d] = r;
            for k in 0..4 {
                cursor.offsets[k] += r as isize * self.strides[k][d];
            }
            rest = q;
        }
        cursor
    }
}

/// The step from each element to the next through all of these dimensions, if it is the same throughout.
pub fn step(dims: &[usize], strides: &[isize]) -> Option<isize> {
    let even = (1..dims.len()).all(|d| strides[d - 1] == strides[d] * dims[d] as isize);
    even.then_some(strides[dims.len() - 1])
}

/// After how many elements strides start over, again and again.
pub fn period(dims: &[usize], strides: &[isize]) -> usize {
    let changes = strides[..dims.len()].iter().take_while(|&&s| s == 0).count();
    dims[changes..].iter().product()
}

/// A position in a plan.
#[derive(Clone, Debug)]
pub struct Cursor {
    index: [usize; MAX_RANK],
    /// Elements from each operand's first one.
    pub offsets: [isize; 4],
}

impl Cursor {
    /// Elements left in the innermost dimension.
    pub fn left(&self, plan: &Plan) -> usize {
        plan.inner() - self.index[plan.rank - 1]
    }

    /// Rows left in the dimension around the innermost one, from the start of a row on.
    pub fn rows_left(&self, plan: &Plan) -> usize {
        if plan.rank > 1 { plan.dims[plan.rank - 2] - self.index[plan.rank - 2] } else { 0 }
    }

    /// Moves on by `n`, at most what is [`left`](Cursor::left).
    pub fn advance(&mut self, plan: &Plan, n: usize) {
        self.advance_in(plan, plan.rank - 1, n);
    }

    /// Moves on by whole rows, at most those that are [`rows_left`](Cursor::rows_left).
    pub fn advance_rows(&mut self, plan: &Plan, rows: usize) {
        if rows > 0 {
            self.advance_in(plan, plan.rank - 2, rows);
        }
    }

    fn advance_in(&mut self, plan: &Plan, mut d: usize, n: usize) {
        self.index[d] += n;
        for k in 0..4 {
            self.offsets[k] += n as isize * plan.strides[k][d];
        }
        while self.index[d] == plan.dims[d] && d > 0 {
            self.index[d] = 0;
            self.index[d - 1] += 1;
            for k in 0..4 {
                self.offsets[k] += plan.strides[k][d - 1] - plan.dims[d] as isize * plan.strides[k][d];
            }
            d -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        Plan::new(&text.parse().expect("a workload"))
    }

    #[test]
    fn contiguous_operands_make_one_loop() {
        let p = plan("add f32 4x5x6 4x5x6");
        assert_eq!((p.rank, p.inner(), p.step(0)), (1, 120, Some(1)));
        let p = plan("exp f32 1");
        assert_eq!((p.rank, p.inner(), p.step(OUT)), (1, 1, Some(1)));
    }

    #[test]
    fn only_dimensions_that_every_operand_steps_through_as_one_merge() {
        let p = plan("add f32 4x5x6 6");
        assert_eq!((p.rank, p.inner(), p.step(0), p.step(1)), (2, 6, Some(1), None));
        let p = plan("add f32 4x5x6 4x1x1");
        assert_eq!((p.rank, p.inner(), p.inner_stride(1)), (2, 30, 0));
    }

    #[test]
    fn an_operand_starts_over_where_only_outer_dimensions_change() {
        let p = plan("add f32 4x5x6 6");
        assert_eq!((p.period(0), p.period(1)), (120, 6));
        let p = plan("add f32 4x5x6 5x1");
        assert_eq!(p.period(1), 30);
    }

    #[test]
    fn walking_in_steps_and_jumping_reach_the_same_place() {
        let p = plan("add f32 3x4x5:40,5,1 3x4x5:1,3,12");
        let mut cursor = p.at(0);
        let mut i = 0;
        for n in [3, 2, 5, 1, 4, 5, 5] {
            assert_eq!(cursor.offsets, p.at(i).offsets, "at {i}");
            cursor.advance(&p, n);
            i += n;
        }
        let mut rows = p.at(20);
        assert_eq!(rows.rows_left(&p), 4);
        rows.advance_rows(&p, 3);
        assert_eq!((rows.offsets, rows.rows_left(&p)), (p.at(35).offsets, 1));
        rows.advance_rows(&p, 1);
        assert_eq!((rows.offsets, rows.rows_left(&p)), (p.at(40).offsets, 4));
    }
}
