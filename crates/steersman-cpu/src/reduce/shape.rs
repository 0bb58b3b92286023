//! A reduction's loops in the order in which memory likes them.

use steersman_core::{MAX_RANK, Op, ReduceOp, Workload};

/// One loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Loop {
    pub n: usize,
    /// Step in the input, in elements.
    pub from: isize,
    /// Step in the output, in elements; 0 if the loop is reduced over.
    pub to: isize,
    /// Whether it is reduced over.
    pub reduced: bool,
}

/// A short list of loops, outermost first, that needs no allocation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loops {
    list: [Loop; MAX_RANK],
    len: usize,
}

impl Loops {
    /// No loops: a body that runs once.
    pub const NONE: &Loops =
        &Loops { list: [Loop { n: 0, from: 0, to: 0, reduced: false }; MAX_RANK], len: 0 };

    #[inline]
    pub fn as_slice(&self) -> &[Loop] {
        &self.list[..self.len]
    }

    pub fn push(&mut self, l: Loop) {
        self.list[self.len] = l;
        self.len += 1;
    }

    /// How many times the body of all loops runs.
    #[inline]
    pub fn count(&self) -> usize {
        self.as_slice().iter().map(|l| l.n).product()
    }

    /// Where in input and output the body's `i`-th run is.
    #[inline]
    pub fn offset(&self, i: usize) -> (isize, isize) {
        match self.as_slice() {
            [] => (0, 0),
            [l] => (i as isize * l.from, i as isize * l.to),
            many => {
                let (mut rest, mut from, mut to) = (i, 0, 0);
                for l in many.iter().rev() {
                    let at = (rest % l.n) as isize;
                    rest /= l.n;
                    from += at * l.from;
                    to += at * l.to;
                }
                (from, to)
            }
        }
    }

    /// Largest step outermost. Reduced loops keep their order among themselves if `ordered`.
    fn sort(&mut self, ordered: bool) {
        let loops = &mut self.list[..self.len];
        for i in 1..loops.len() {
            let mut j = i;
            while j > 0 && loops[j - 1].from.abs() < loops[j].from.abs() {
                if ordered && loops[j - 1].reduced && loops[j].reduced {
                    break;
                }
                loops.swap(j - 1, j);
                j -= 1;
            }
        }
    }

    /// Neighbours that walk memory as one loop would become one.
    fn merge(&mut self) {
        let mut len = 0;
        for i in 0..self.len {
            let l = self.list[i];
            let outer = if len > 0 { Some(&mut self.list[len - 1]) } else { None };
            match outer {
                Some(outer)
                    if outer.reduced == l.reduced
                        && outer.from == l.n as isize * l.from
                        && outer.to == l.n as isize * l.to =>
                {
                    *outer = Loop { n: outer.n * l.n, ..l };
                }
                _ => {
                    self.list[len] = l;
                    len += 1;
                }
            }
        }
        self.len = len;
    }

    fn split(&self, kind: ReduceOp, length: usize, from: isize, to: isize) -> Shape {
        let (mut kept, mut reduced) = (Loops::default(), Loops::default());
        let all = self.as_slice();
        for l in &all[..all.len().saturating_sub(1)] {
            if l.reduced { reduced.push(*l) } else { kept.push(*l) }
        }
        let (inner, last) = match all.last() {
            None => (Inner::Row, Loop { n: 1, from: 1, to: 0, reduced: true }),
            Some(l) if l.from != 1 => (Inner::Scattered, *l),
            Some(l) if l.reduced => (Inner::Row, *l),
            Some(l) => (Inner::Column, *l),
        };
        Shape { kind, kept, reduced, inner, last, length, from, to }
    }
}

/// What the innermost loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inner {
    /// It is reduced over, and its elements lie side by side.
    Row,
    /// It is kept, and its elements lie side by side.
    Column,
    /// Its elements do not lie side by side.
    Scattered,
}

/// A reduction as nested loops: those kept, those reduced over, and the innermost one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub kind: ReduceOp,
    /// Loops over outputs, without the innermost one.
    pub kept: Loops,
    /// Loops over elements of one output, without the innermost one.
    pub reduced: Loops,
    pub inner: Inner,
    /// The innermost loop.
    pub last: Loop,
    /// Elements that make one output.
    pub length: usize,
    /// Where the loops begin, counted from the operand's first element (loops never run backwards).
    pub from: isize,
    pub to: isize,
}

impl Shape {
    /// The loops over an array without gaps. Most reductions are such, and tiny ones would spend more time
    /// on sorting loops than on elements.
    #[inline]
    fn dense(kind: ReduceOp, (outer, length, inner): (usize, usize, usize)) -> Shape {
        let (mut kept, mut reduced) = (Loops::default(), Loops::default());
        let (step, wide) = ((length * inner) as isize, inner as isize);
        if outer != 1 {
            kept.push(Loop { n: outer, from: step, to: wide, reduced: false });
        }
        let (at, last) = if inner == 1 {
            (Inner::Row, Loop { n: length, from: 1, to: 0, reduced: true })
        } else {
            if length != 1 {
                reduced.push(Loop { n: length, from: wide, to: 0, reduced: true });
            }
            (Inner::Column, Loop { n: inner, from: 1, to: 1, reduced: false })
        };
        Shape { kind, kept, reduced, inner: at, last, length, from: 0, to: 0 }
    }

    /// The loops of a workload; `None` if it is no reduction.
    pub fn of(w: &Workload) -> Option<Shape> {
        let Op::Reduce { kind, axes } = w.op() else { return None };
        let (input, output) = (&w.inputs()[0], w.output());
        if let Some(dims) = w.reduce_dims().filter(|_| input.is_contiguous() && output.is_contiguous()) {
            return Some(Shape::dense(kind, dims));
        }
        let ordered = matches!(kind, ReduceOp::ArgMin | ReduceOp::ArgMax);
        let mut loops = Loops::default();
        let (mut length, mut from, mut to, mut next_kept) = (1, 0, 0, 0);
        for (axis, (&n, &step)) in input.dims.iter().zip(&input.strides).enumerate() {
            let mut l = Loop { n, from: step, to: 0, reduced: axes.contains(axis) };
            if l.reduced {
                length *= n;
            } else {
                l.to = output.strides[next_kept];
                next_kept += 1;
            }
            if n == 1 {
                continue;
            }
            // An index counts forwards, so its loops cannot be turned round.
            if l.from < 0 && n > 0 && !(ordered && l.reduced) {
                from += (n as isize - 1) * l.from;
                to += (n as isize - 1) * l.to;
                l = Loop { from: -l.from, to: -l.to, ..l };
            }
            loops.push(l);
        }
        loops.sort(ordered);
        loops.merge();
        Some(loops.split(kind, length, from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Shape {
        Shape::of(&text.parse().unwrap()).unwrap()
    }

    #[test]
    fn the_last_axes_make_rows_and_the_first_make_columns() {
        let s = shape("sum f32 4x5x6 axis=1,2");
        assert_eq!((s.inner, s.last.n, s.kept.count(), s.reduced.count()), (Inner::Row, 30, 4, 1));
        let s = shape("sum f32 4x5x6 axis=0");
        assert_eq!((s.inner, s.last.n, s.kept.count(), s.reduced.count()), (Inner::Column, 30, 1, 4));
    }

    #[test]
    fn scattered_axes_stay_loops_of_their_own() {
        let s = shape("sum f32 4x5x6 axis=0,2");
        assert_eq!((s.inner, s.last.n, s.kept.count(), s.reduced.count()), (Inner::Row, 6, 5, 4));
    }

    #[test]
    fn a_transposed_operand_turns_rows_into_columns() {
        let s = shape("sum f32 8x3:1,8 axis=1");
        assert_eq!((s.inner, s.last.n, s.reduced.count()), (Inner::Column, 8, 3));
    }

    #[test]
    fn a_backward_loop_is_turned_round_unless_it_counts_an_index() {
        let s = shape("sum f32 8:-1");
        assert_eq!((s.inner, s.from), (Inner::Row, -7));
        assert_eq!(shape("argmax f32 8:-1").inner, Inner::Scattered);
    }

    #[test]
    fn loops_of_one_step_disappear() {
        let s = shape("max f32 1x7x1 axis=0,2");
        assert_eq!((s.inner, s.last.n, s.length), (Inner::Column, 7, 1));
    }
}
