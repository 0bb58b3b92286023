//! A move's loops, and what kind of move they make.

use steersman_core::{MAX_RANK, Op, Workload};

/// One loop: how often, and its steps in input and output, in elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Loop {
    pub n: usize,
    pub from: isize,
    pub to: isize,
}

/// Loops around the move proper, outermost first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loops {
    list: [Loop; MAX_RANK],
    len: usize,
}

impl Loops {
    pub fn as_slice(&self) -> &[Loop] {
        &self.list[..self.len]
    }

    fn push(&mut self, l: Loop) {
        self.list[self.len] = l;
        self.len += 1;
    }

    fn remove(&mut self, i: usize) -> Loop {
        let l = self.list[i];
        self.list.copy_within(i + 1..self.len, i);
        self.len -= 1;
        l
    }

    /// How many times the body runs.
    pub fn count(&self) -> usize {
        self.as_slice().iter().map(|l| l.n).product()
    }

    /// Where in input and output the body's `i`-th run is.
    #[inline]
    pub fn offset(&self, i: usize) -> (isize, isize) {
        let (mut rest, mut from, mut to) = (i, 0, 0);
        for l in self.as_slice().iter().rev() {
            let at = (rest % l.n) as isize;
            rest /= l.n;
            from += at * l.from;
            to += at * l.to;
        }
        (from, to)
    }
}

/// What the innermost loops do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Core {
    /// Copy a run of elements that lie side by side in both.
    Run(usize),
    /// Turn a matrix round.
    Matrix(Matrix),
    /// Neither: input or output has no elements side by side.
    Scattered,
}

/// Input rows of `across` elements, `from` apart, become output columns; output rows are `to` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Matrix {
    pub down: usize,
    pub across: usize,
    pub from: isize,
    pub to: isize,
}

/// A move as loops around a core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub around: Loops,
    pub core: Core,
    /// Where the loops begin, counted from the operand's first element.
    pub from: isize,
    pub to: isize,
}

/// The plain loops of a workload in the output's order; `None` if it is no move.
pub(super) fn loops(w: &Workload) -> Option<Loops> {
    let (input, output) = (w.inputs().first()?, w.output());
    let axis = |i: usize| match w.op() {
        Op::Transpose { perm } => perm.get(i),
        _ => i,
    };
    if !matches!(w.op(), Op::Transpose { .. } | Op::Copy) {
        return None;
    }
    let mut all = Loops::default();
    for (i, (&n, &to)) in output.dims.iter().zip(&output.strides).enumerate() {
        all.push(Loop { n, from: input.strides[axis(i)], to });
    }
    Some(all)
}

impl Plan {
    /// The plan of a workload; `None` if it is no move.
    pub fn of(w: &Workload) -> Option<Plan> {
        let x = w.inputs().first()?;
        let in_order = match w.op() {
            Op::Copy => true,
            Op::Transpose { .. } => x.dims.iter().filter(|n| **n != 1).count() <= 1,
            _ => return None,
        };
        if in_order && x.is_contiguous() && w.output().is_contiguous() {
            // A vector lying or standing: found at once, since the loops below take longer than it does.
            let core = Core::Run(x.elements());
            return Some(Plan { around: Loops::default(), core, from: 0, to: 0 });
        }
        if let (Op::Transpose { .. }, &[down, across]) = (w.op(), &w.inputs()[0].dims[..]) {
            // The usual case, and for tiny matrices the plan would cost more than the move.
            let turned = matches!(w.op(), Op::Transpose { perm } if perm.get(0) == 1);
            if turned && down > 1 && across > 1 && w.inputs()[0].is_contiguous() && w.output().is_contiguous()
            {
                let m = Matrix { down, across, from: across as isize, to: down as isize };
                return Some(Plan { around: Loops::default(), core: Core::Matrix(m), from: 0, to: 0 });
            }
        }
        let (mut from, mut to) = (0, 0);
        let mut all = Loops::default();
        for &l in loops(w)?.as_slice().iter().filter(|l| l.n != 1) {
            let mut l = l;
            // Any direction will do, so let both go forwards if they can.
            if l.n > 0 && (l.to < 0 || l.to == 0 && l.from < 0) {
                from += (l.n as isize - 1) * l.from;
                to += (l.n as isize - 1) * l.to;
                l = Loop { n: l.n, from: -l.from, to: -l.to };
            }
            all.push(l);
        }
        let len = all.len;
        all.list[..len].sort_by_key(|l| std::cmp::Reverse(l.to));
        let around = merged(all);
        Some(Plan::around(around, from, to))
    }

    fn around(mut around: Loops, from: isize, to: isize) -> Plan {
        let find = |loops: &Loops, f: &dyn Fn(&Loop) -> bool| loops.as_slice().iter().rposition(f);
        if around.as_slice().is_empty() {
            return Plan { around, core: Core::Run(1), from, to };
        }
        if let Some(i) = find(&around, &|l| l.from == 1 && l.to == 1) {
            let n = around.remove(i).n;
            return Plan { around, core: Core::Run(n), from, to };
        }
        let core = match (find(&around, &|l| l.from == 1), find(&around, &|l| l.to == 1)) {
            (Some(a), Some(b)) => {
                let (first, second) = (around.remove(a.max(b)), around.remove(a.min(b)));
                let (across, down) = if a > b { (first, second) } else { (second, first) };
                Core::Matrix(Matrix { down: down.n, across: across.n, from: down.from, to: across.to })
            }
            _ => Core::Scattered,
        };
        Plan { around, core, from, to }
    }
}

/// Neighbours that walk both operands as one loop would become one.
fn merged(all: Loops) -> Loops {
    let mut out = Loops::default();
    for &l in all.as_slice() {
        let n = l.n as isize;
        match out.list[..out.len].last_mut() {
            Some(outer) if outer.from == n * l.from && outer.to == n * l.to => {
                *outer = Loop { n: outer.n * l.n, ..l };
            }
            _ => out.push(l),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> (usize, Core) {
        let p = Plan::of(&text.parse().unwrap()).unwrap();
        (p.around.count(), p.core)
    }

    #[test]
    fn a_contiguous_copy_is_one_run() {
        assert_eq!(plan("copy f32 4x5x6"), (1, Core::Run(120)));
    }

    #[test]
    fn a_vector_turned_round_is_one_run() {
        for text in ["transpose f32 1x7", "transpose f32 7x1", "transpose f32 1x1", "transpose f32 1x7x1"] {
            assert_eq!(plan(text), (1, Core::Run(if text.contains('7') { 7 } else { 1 })), "{text}");
        }
    }

    #[test]
    fn a_kept_last_axis_is_copied_in_runs() {
        assert_eq!(plan("transpose f32 4x5x6 perm=1,0,2"), (20, Core::Run(6)));
    }

    #[test]
    fn axes_that_stay_together_make_one_matrix() {
        let m = Matrix { down: 4, across: 30, from: 30, to: 4 };
        assert_eq!(plan("transpose f32 4x5x6 perm=1,2,0"), (1, Core::Matrix(m)));
        let m = Matrix { down: 5, across: 6, from: 6, to: 5 };
        assert_eq!(plan("transpose f32 4x5x6 perm=0,2,1"), (4, Core::Matrix(m)));
    }

    #[test]
    fn gaps_everywhere_leave_no_core() {
        assert_eq!(plan("copy f32 4x5:20,2").1, Core::Scattered);
    }
}
