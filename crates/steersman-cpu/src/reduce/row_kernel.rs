//! The kernel for outputs whose elements lie side by side.

use super::choose::{Visit, choose};
use super::rows::{Rows, SHORTEST, blocks_from};
use super::shape::{Inner, Loop, Loops, Shape};
use super::turned::{SEARCHED, folded};
use super::vector_kernel::{Call, Cost, VectorKernel, Way, share, share_lines};
use crate::isa::{Body, Isa, Level};
use crate::probe::halves_pay;
use std::mem::MaybeUninit;
use std::ops::Range;
use steersman_core::cost::Terms;
use steersman_core::{Address, Axes, KernelError, Op, ReduceOp, Workload};

/// Reduces rows, vectorised for one instruction set.
pub(super) type RowKernel = VectorKernel<ByRows>;

/// Names of what was measured of an op: seconds of a row, of one of the shortest and of an element of such, and of an element
/// of a row that is turned over with others.
pub(crate) const ROW: &str = "|row";
pub(crate) const SHORT_CALL: &str = "|shortrow";
pub(crate) const SHORT: &str = "|short";
pub(crate) const TURNED: &str = "|turned";

/// Row after row.
pub(super) struct ByRows;

/// How long rows are: what a row of one says nothing to those of another.
enum Length {
    /// Several at once, by code of their own: a row of 7 takes 1.1 ns.
    Shortest,
    /// Several at once, turned over: a row of 12 takes 2 ns.
    Short,
    Long,
}

impl Length {
    fn of(w: &Workload, n: usize, rows: f64) -> Length {
        use ReduceOp::{ArgMax, ArgMin, Std, Var};
        let searched = matches!(w.op(), Op::Reduce { kind: Var | Std | ArgMin | ArgMax, .. });
        let longest = if searched { SEARCHED } else { folded(w.inputs()[0].dtype.size()) };
        let many = if searched { 2.0 } else { 16.0 };
        match n {
            _ if n <= SHORTEST => Length::Shortest,
            _ if n <= longest && rows >= many => Length::Short,
            _ => Length::Long,
        }
    }
}

impl Way for ByRows {
    const NAME: &'static str = "rows";
    const INNER: Inner = Inner::Row;
    const OTHERWISE: &'static str = "the innermost axis is kept: a reduction of columns";

    fn terms(prior: Terms, w: &Workload, cost: &Cost<'_>, threads: f64) -> Terms {
        let rows = w.output().elements();
        let n = w.inputs()[0].elements() / rows.max(1);
        // Rows from this length on are folded from several blocks, which have to be joined.
        let dtype = w.inputs()[0].dtype;
        let blocked = n >= blocks_from(cost.level, dtype.size());
        let part = |name, otherwise| cost.machine.part(cost.kernel, w.op(), dtype, name).unwrap_or(otherwise);
        let rows = rows as f64 / threads;
        let (row, short, way) = match Length::of(w, n, rows) {
            Length::Long => (part(ROW, 2e-9), 0.0, 0),
            Length::Short => (0.0, n as f64 * part(TURNED, 0.2e-9), 1),
            Length::Shortest => (0.0, part(SHORT_CALL, 0.0) + n as f64 * part(SHORT, 0.15e-9), 2),
        };
        prior.and(rows * row).and(if blocked { rows * 12e-9 } else { 0.0 }).and(rows * short).by(way)
    }

    unsafe fn run(w: &Workload, call: Call<'_>) -> Result<bool, KernelError> {
        let Op::Reduce { kind, axes } = w.op() else {
            return Err(KernelError::Failed("not a reduction".into()));
        };
        match dense(w, axes) {
            // Most reductions are such; half a kibibyte of loops takes longer to set up than a short row.
            Some((rows, n)) => choose(kind, w.dtype(), Job { call, kind, places: Places::dense(rows, n) }),
            None => match Shape::of(w) {
                Some(shape) => choose(kind, w.dtype(), Job { call, kind, places: Places::of(&shape) }),
                None => Err(KernelError::Failed("not a reduction".into())),
            },
        }
    }
}

/// How many rows of how many elements, if they follow one another without gaps and outputs too.
fn dense(w: &Workload, axes: Axes) -> Option<(usize, usize)> {
    let (mut rows, mut n, mut all) = (1, 1, 1);
    let input = &w.inputs()[0];
    for (axis, (&dim, &step)) in input.dims.iter().zip(&input.strides).enumerate().rev() {
        if dim > 1 && step != all as isize {
            return None;
        }
        all *= dim;
        if !axes.contains(axis) {
            rows *= dim;
        } else if rows == 1 {
            n *= dim;
        } else if dim != 1 {
            return None;
        }
    }
    w.output().is_contiguous().then_some((rows, n))
}

/// Where each output's elements are.
#[derive(Clone, Copy)]
struct Places<'a> {
    rows: usize,
    /// Elements side by side.
    n: usize,
    /// Elements of one output: `n` for each run of the loops over them.
    length: usize,
    kept: &'a Loops,
    reduced: &'a Loops,
    from: isize,
    to: isize,
    /// Whether rows follow one another without gaps, and outputs too; `kept` is then not asked.
    dense: bool,
}

impl<'a> Places<'a> {
    fn dense(rows: usize, n: usize) -> Places<'static> {
        let (kept, reduced) = (Loops::NONE, Loops::NONE);
        Places { rows, n, length: n, kept, reduced, from: 0, to: 0, dense: true }
    }

    fn of(shape: &'a Shape) -> Places<'a> {
        let Shape { kept, reduced, last: Loop { n, .. }, length, from, to, .. } = shape;
        let dense = match kept.as_slice() {
            [l] => l.from == *n as isize && l.to == 1 && length == n,
            _ => false,
        };
        Places { rows: kept.count(), n: *n, length: *length, kept, reduced, from: *from, to: *to, dense }
    }

    /// Where a row begins in input and output.
    #[inline(always)]
    fn row(&self, row: usize) -> (isize, isize) {
        let (from, to) =
            if self.dense { ((row * self.n) as isize, row as isize) } else { self.kept.offset(row) };
        (self.from + from, self.to + to)
    }
}

struct Job<'a> {
    call: Call<'a>,
    kind: ReduceOp,
    places: Places<'a>,
}

/// Bytes of a row up to which vectors of half the width take it no later: its last vector is joined sooner. (331 rows on a
/// Zen 4, AVX2 and AVX-512: the largest of 18 f32 772 and 1013 ns, of 100, 2.5 and 3.2 µs, of 200, 3.6 and 4.4; sums of 35 f64
/// 2.0 and 2.7, of 130, 3.6 and 4.4; of 300 f32 4.1 and 4.4.) Longer ones where a whole vector takes as long as its halves, and
/// sums everywhere, as long as AVX2 has them in four registers. (331 rows on a Zen 5: sums of 300 f32 2.6 and 3.0 µs, of 500,
/// 3.9 and 4.9; the largest of 500, 7.0 and 5.8.)
const NARROW: usize = 1024;
const NARROW_SUMS: usize = 2047;

/// Partial results that fit the stack.
const PARTS: usize = 256;

impl Visit for Job<'_> {
    #[inline]
    fn visit<J: Rows>(self, job: J) -> bool {
        let Job { call: Call { input, output, level, team, threads }, kind, places } = self;
        let (rows, n) = (places.rows, places.n);
        let sums = matches!(kind, ReduceOp::Sum | ReduceOp::Mean | ReduceOp::Norm);
        let narrow = if sums || halves_pay() { NARROW_SUMS } else { NARROW };
        let level = if n * size_of::<J::In>() <= narrow { level.min(Level::Avx2) } else { level };
        let some = Band { job, places, input, output, rows: 0..rows, columns: 0..n, sink: Sink::Results };
        // SAFETY: there are kernels only for levels that are present.
        let run = |band: Band<'_, J>| unsafe { level.dispatch_unchecked(band) };
        if threads <= 1 {
            run(some);
            return true;
        }
        if rows >= 4 * threads || rows * threads > PARTS {
            let outcome =
                team.run(threads, &|part| run(Band { rows: share(rows, threads, part), ..some.clone() }));
            return outcome.is_parallel();
        }
        let mut parts = [const { MaybeUninit::<J::Part>::uninit() }; PARTS];
        let slots = Slots(parts.as_mut_ptr());
        let outcome = team.run(threads, &|part| {
            let sink = Sink::Parts { slots: slots.first(), part, parts: threads };
            run(Band { columns: share_lines(n, threads, part), sink, ..some.clone() });
        });
        for row in 0..rows {
            let mut all = job.start();
            for slot in &parts[row * threads..(row + 1) * threads] {
                // SAFETY: each part of the run, which has ended, filled its slots.
                all = job.join(all, unsafe { slot.assume_init() });
            }
            let (_, to) = places.row(row);
            // SAFETY: the output is writable over its strides.
            unsafe { *output.as_mut_ptr::<J::Out>().offset(to) = job.finish(all, places.length) };
        }
        outcome.is_parallel()
    }
}

/// Slots of which each part writes its own.
struct Slots<P>(*mut MaybeUninit<P>);
// SAFETY: no slot is written by two parts, nor read before all have ended.
unsafe impl<P: Send> Sync for Slots<P> {}

impl<P> Slots<P> {
    fn first(&self) -> *mut MaybeUninit<P> {
        self.0
    }
}

/// Where what is known of a row goes.
#[derive(Clone)]
enum Sink<P> {
    /// Finished, to the output.
    Results,
    /// To one of `parts` slots of that row.
    Parts { slots: *mut MaybeUninit<P>, part: usize, parts: usize },
}

// SAFETY: see `Slots`.
unsafe impl<P: Send> Sync for Sink<P> {}

/// Some rows, and of each run of their elements those in `columns`. One body for whole rows and pieces:
/// each body is compiled for every reduction, type and instruction set.
#[derive(Clone)]
struct Band<'a, J: Rows> {
    job: J,
    places: Places<'a>,
    input: Address,
    output: Address,
    rows: Range<usize>,
    columns: Range<usize>,
    sink: Sink<J::Part>,
}

impl<J: Rows> Body for Band<'_, J> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Band { job, places, input, output, rows, columns, sink } = self;
        let n = places.n;
        // SAFETY: the places lie within the operands, whose addresses the kernel's caller vouches for; there
        // is a slot for each row and part.
        unsafe {
            let (x, out) = (input.as_ptr::<J::In>(), output.as_mut_ptr::<J::Out>());
            if places.dense && matches!(sink, Sink::Results) {
                let (from, to) = places.row(rows.start);
                if job.short::<I>(x.offset(from), n, rows.len(), out.offset(to)) {
                    return;
                }
            }
            let runs = places.reduced.count();
            for row in rows {
                let (from, to) = places.row(row);
                let mut found = job.start();
                for run in 0..runs {
                    let (step, _) = places.reduced.offset(run);
                    let x = x.offset(from + step).add(columns.start);
                    found = job.more::<I>(found, x, columns.len(), run * n + columns.start);
                }
                match sink {
                    Sink::Results => *out.offset(to) = job.finish(found, places.length),
                    Sink::Parts { slots, part, parts } => {
                        (*slots.add(row * parts + part)).write(found);
                    }
                }
            }
        }
    }
}
