//! The kernel for outputs whose elements lie below one another.

use super::choose::{Visit, choose};
use super::columns::{Columns, Index, TILE};
use super::rows::Rows;
use super::shape::{Inner, Loop, Shape};
use super::vector_kernel::{Call, Cost, VectorKernel, Way, share, share_lines};
use crate::isa::{Body, Isa, Level};
use crate::probe::halves_pay;
use crate::threads::Team;
use std::mem::MaybeUninit;
use std::ops::Range;
use steersman_core::cost::Terms;
use steersman_core::{Address, KernelError, ReduceOp, Workload};

/// Reduces columns, vectorised for one instruction set.
pub(super) type ColumnKernel = VectorKernel<ByColumns>;

/// A tile of columns at a time.
pub(super) struct ByColumns;

impl Way for ByColumns {
    const NAME: &'static str = "columns";
    const INNER: Inner = Inner::Column;
    const OTHERWISE: &'static str = "the innermost axis is reduced over: a reduction of rows";

    fn terms(prior: Terms, w: &Workload, cost: &Cost<'_>, threads: f64) -> Terms {
        let outputs = w.output().elements() as f64;
        let (tiles, lines, row) = match Shape::of(w) {
            Some(s) => {
                let tiles = s.kept.count() * s.last.n.div_ceil(TILE);
                (tiles as f64, (tiles * s.reduced.count()) as f64, s.last.n * w.dtype().size())
            }
            None => (0.0, 0.0, 0),
        };
        let split = w.inputs()[0].elements() as f64 * split(row, w.dtype().size(), cost.level.vector_bytes());
        let terms = prior.and((outputs * 1e-9 + tiles * 20e-9) / threads).and(lines * 3e-9 / threads);
        terms.and(split * SPLIT / threads)
    }

    unsafe fn run(w: &Workload, call: Call<'_>) -> Result<bool, KernelError> {
        let Some(shape) = Shape::of(w) else { return Err(KernelError::Failed("not a reduction".into())) };
        choose(shape.kind, w.dtype(), Job { call, shape: &shape })
    }
}

/// Seconds by which a vector takes longer that lies across the end of a cache line. (`sum` of 627×64 f32 takes 1.7 µs with
/// AVX-512, 2.7 of 627×65.)
const SPLIT: f64 = 0.3e-9;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Such vectors for each element, where rows are this long.
fn split(row: usize, element: usize, vector: usize) -> f64 {
    // Rows begin at every multiple of this within a line.
    let begin = 1 << row.trailing_zeros().min(LINE.trailing_zeros());
    let across = vector.saturating_sub(begin) as f64 / LINE as f64;
    across * element as f64 / vector as f64
}

struct Job<'a> {
    call: Call<'a>,
    shape: &'a Shape,
}

/// Whether vectors of half the width are no slower. (Sums of f32 on a Zen 4, where a whole vector takes as long as its halves, of
/// 12 shapes from 5×3 to 1000×64: up to 15% sooner, 3% later at most; of f64, and extremes, some are sooner by whole ones.)
fn is_narrow<J: Columns>(shape: &Shape) -> bool {
    size_of::<J::In>() == 4 && matches!(shape.kind, ReduceOp::Sum | ReduceOp::Mean) && halves_pay()
}

/// Bytes of rows that stay near a core.
const NEAR: usize = 512 << 10;

/// Threads that can share one tile's rows.
const SHARERS: usize = 8;

impl Visit for Job<'_> {
    #[inline]
    fn visit<J: Rows + Columns>(self, job: J) -> bool {
        let Job { call: Call { input, output, level, team, threads }, shape } = self;
        let (outer, n) = (shape.kept.count(), shape.last.n);
        let level = if is_narrow::<J>(shape) { level.min(Level::Avx2) } else { level };
        let all = Band {
            job,
            shape,
            input,
            output,
            outer: 0..outer,
            columns: 0..n,
            part: 0,
            parts: 1,
            slots: None,
        };
        if threads <= 1 {
            level.dispatch(all);
            return true;
        }
        if outer >= 2 * threads || outer >= threads && outer.is_multiple_of(threads) {
            let run = team.run(threads, &|part| {
                level.dispatch(Band { outer: share(outer, threads, part), ..all.clone() })
            });
            return run.is_parallel();
        }
        // Each thread's share of a row stays long enough for the prefetcher, which what is near can do without. (Otherwise
        // threads share the rows of every column, and one of them joins what they have: 172×384 f32 took 5.1 µs so on two
        // threads of a Xeon, 3.3 with columns shared out, 3.5 on one.)
        let row = n * size_of::<<J as Columns>::In>();
        let long = if row * shape.reduced.count() <= NEAR { 256 } else { 2048 };
        if row >= threads * long || threads > SHARERS || n > TILE {
            let run = team.run(threads, &|part| {
                level.dispatch(Band { columns: share_lines(n, threads, part), ..all.clone() })
            });
            return run.is_parallel();
        }
        joined(all, level, team, threads)
    }
}

/// Threads share the rows of every output, and one of them joins what they have. Apart from the rest: whoever calls it makes
/// room for the cells of all threads, which takes longer than a small reduction.
#[inline(never)]
fn joined<J: Columns>(all: Band<'_, J>, level: Level, team: &Team, threads: usize) -> bool {
    let Band { job, shape, output, .. } = all;
    let n = shape.last.n;
    let mut parallel = true;
    for at in 0..shape.kept.count() {
        let mut cells = [const { MaybeUninit::<J::Cell>::uninit() }; TILE * SHARERS];
        let slots = Slots(cells.as_mut_ptr());
        let run = team.run(threads, &|part| {
            let slots = slots.of(part);
            level.dispatch(Band { outer: at..at + 1, part, parts: threads, slots, ..all.clone() });
        });
        parallel &= run.is_parallel();
        let (_, to) = shape.kept.offset(at);
        for j in 0..n {
            let mut all = job.start();
            for part in 0..threads {
                // SAFETY: each part of the run, which has ended, filled its `n` slots.
                all = job.join(all, unsafe { cells[part * TILE + j].assume_init() });
            }
            // SAFETY: the output is writable over its strides.
            unsafe {
                let out = output.as_mut_ptr::<J::Out>();
                *out.offset(shape.to + to + j as isize * shape.last.to) = job.finish(all, shape.length);
            }
        }
    }
    parallel
}

/// Slots of which each part has a tile of its own.
struct Slots<C>(*mut MaybeUninit<C>);
// SAFETY: no slot is touched by two parts, nor read before all have ended.
unsafe impl<C: Send> Sync for Slots<C> {}

impl<C> Slots<C> {
    fn of(&self, part: usize) -> Option<Tile<C>> {
        // SAFETY: there are `SHARERS` tiles, and no more parts.
        Some(Tile(unsafe { self.0.add(part * TILE) }))
    }
}

/// One part's tile.
#[derive(Clone)]
struct Tile<C>(*mut MaybeUninit<C>);
// SAFETY: see `Slots`.
unsafe impl<C: Send> Sync for Tile<C> {}

/// Some outputs, tile by tile, from the part-th share of their rows; to slots if there are any. One body
/// for whole columns and pieces: each body is compiled for every reduction, type and instruction set.
#[derive(Clone)]
struct Band<'a, J: Columns> {
    job: J,
    shape: &'a Shape,
    input: Address,
    output: Address,
    outer: Range<usize>,
    columns: Range<usize>,
    part: usize,
    parts: usize,
    slots: Option<Tile<J::Cell>>,
}

impl<J: Columns> Body for Band<'_, J> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Band { job, shape, input, output, outer, columns, part, parts, slots } = self;
        for at in outer {
            let (from, to) = shape.kept.offset(at);
            let mut first = columns.start;
            while first < columns.end {
                let len = TILE.min(columns.end - first);
                let mut cells = [const { MaybeUninit::<J::Cell>::uninit() }; TILE];
                for cell in &mut cells[..len] {
                    cell.write(job.start());
                }
                // SAFETY: the shape's loops stay within the operands, whose addresses the kernel's caller
                // vouches for; `len` cells were just written; a part's tile has room for them.
                unsafe {
                    let cells = std::slice::from_raw_parts_mut(cells.as_mut_ptr() as *mut J::Cell, len);
                    let x = input.as_ptr::<J::In>().offset(shape.from + from).add(first);
                    lines::<I, J>(job, shape, x, cells, part, parts);
                    if let Some(Tile(slots)) = slots {
                        std::ptr::copy_nonoverlapping(cells.as_ptr(), slots as *mut J::Cell, len);
                    } else {
                        let out = output.as_mut_ptr::<J::Out>();
                        let out = out.offset(shape.to + to + first as isize * shape.last.to);
                        for (j, &cell) in cells.iter().enumerate() {
                            *out.offset(j as isize * shape.last.to) = job.finish(cell, shape.length);
                        }
                    }
                }
                first += len;
            }
        }
    }
}

/// Columns that several rows taken for one have at most.
const FOLDED: usize = 128;

/// How many of so many rows of `n` columns to take for one: as many as make whole vectors, or about [`FOLDED`] columns.
#[inline(always)]
fn rows_in_one(n: usize, rows: usize, vector: usize) -> usize {
    let whole = vector >> n.trailing_zeros().min(vector.trailing_zeros());
    let times = if whole * n <= FOLDED { whole * (FOLDED / 2 / (whole * n)).max(1) } else { FOLDED / n };
    if rows >= 2 * times { times } else { 1 }
}

/// The part-th share of all rows into `cells`.
///
/// Of narrow rows without gaps several are taken for one row, and the columns that are really one are joined at the end.
#[inline(always)]
unsafe fn lines<I: Isa, J: Columns>(
    job: J,
    shape: &Shape,
    x: *const J::In,
    cells: &mut [J::Cell],
    part: usize,
    parts: usize,
) {
    let loops = shape.reduced.as_slice();
    let (outer, rows) = match loops.last() {
        None => (1, Loop { n: 1, from: 0, to: 0, reduced: true }),
        Some(l) => (loops[..loops.len() - 1].iter().map(|l| l.n).product(), *l),
    };
    let (n, below) = (cells.len(), rows.from);
    let dense = rows.from == shape.last.n as isize && n == shape.last.n && n <= FOLDED / 2;
    let mine = share(rows.n, parts, part);
    let times = if dense { rows_in_one(n, mine.len(), J::TOGETHER) } else { 1 };
    let mut room = [const { MaybeUninit::<J::Cell>::uninit() }; FOLDED];
    let wide = if times > 1 { times * n } else { 0 };
    room[..wide].fill(MaybeUninit::new(job.start()));
    // SAFETY: so many were just written.
    let many = unsafe { std::slice::from_raw_parts_mut(room.as_mut_ptr().cast::<J::Cell>(), wide) };
    for run in 0..outer {
        let at = run * rows.n + mine.start;
        let (from, _) = shape.reduced.offset(at);
        let together = if times > 1 { mine.len() / times * times } else { 0 };
        let first = |first, step| Index { first, step };
        // One call for both: the code behind it is large, and there is much of it.
        for (skip, rows, step, index) in [
            (0, together / times, wide as isize, first(at, times)),
            (together, mine.len() - together, rows.from, first(at + together, 1)),
        ] {
            if rows > 0 {
                let into = if index.step > 1 { &mut *many } else { &mut *cells };
                // SAFETY: `together` rows of `n` are `together / times` of `times * n`; the rest follows them.
                unsafe {
                    job.more::<I>(into, x.offset(from).offset(skip as isize * below), rows, step, index)
                }
            }
        }
    }
    for (k, row) in many.chunks_exact(n.max(1)).enumerate() {
        for (cell, &more) in cells.iter_mut().zip(row) {
            *cell = job.join(*cell, job.later(more, k));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_lie_across_lines_unless_rows_are_whole_vectors() {
        assert_eq!(split(64 * 4, 4, 64), 0.0);
        assert_eq!(split(8 * 4, 4, 32), 0.0);
        // Of 16 beginnings within a line only one is right for a vector as long as a line.
        assert_eq!(split(65 * 4, 4, 64) * 16.0, 15.0 / 16.0);
        assert_eq!(split(65 * 4, 4, 32) * 8.0, 7.0 / 16.0);
    }
}
