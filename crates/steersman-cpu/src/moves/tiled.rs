//! The kernel that goes through memory in tiles.

use super::plan::{Core, Matrix, Plan};
use super::runs;
use super::tile::{self, Buffer, Element, LINE, Stores};
use crate::context::Context;
use crate::isa::{Body, Isa, Level};
use std::marker::PhantomData;
use std::ops::Range;
use steersman_core::Op;
use steersman_core::cost::{Machine, Terms, Traffic};
use steersman_core::{Address, DeviceId, Io, Kernel, KernelError, ParamList, Params, Ran, Refusal, Workload};

/// Moves in tiles, or in runs where elements stay side by side.
pub(super) struct TiledKernel {
    ctx: Context,
    stores: Stores,
    level: Level,
}

impl TiledKernel {
    pub fn new(ctx: &Context, stores: Stores) -> TiledKernel {
        TiledKernel { ctx: ctx.clone(), stores, level: Level::best() }
    }
}

/// Tiles along each side of a block: the pages of one block's rows fit the first-level TLB.
const BLOCK: usize = 8;
/// Tiles to look ahead.
const AHEAD: usize = 2;

/// Bytes of which rows of results are a multiple where squares take two thirds of the time. (On a Xeon f64 squares of
/// 32×185 took 1.6 µs and of 144×204 4.4 on two threads; by what 37×101 and 101×101 take, 2.3 and 7.2.)
const ALIGNED: usize = 32;

/// Seconds that a square takes longer where its rows push each other out of the nearest cache. (On a Zen 5 133×1024 f32 take 0.145
/// ns an element, 133×601 0.066.)
const CROWDED: f64 = 5e-9;

/// Lines of one operand in a set of the nearest cache that find room beside what else is there, and that all push each other out.
/// (Of 133×1537 f32 eight meet in a set: 0.117 ns an element.)
const WAYS: (f64, f64) = (4.0, 12.0);
/// Lines after which what was fetched ahead of the first is gone, some of it and all. (Of 1024 f32 19 rows take 0.078 ns an element,
/// 33 take 0.092, 64 and more 0.115 to 0.15; of 601 all take 0.06 to 0.075.)
const FOLLOWING: (f64, f64) = (16.0, 64.0);
/// Bytes after which lines fall into the same sets again: sets that an address within a page tells apart.
const SETS: usize = 4096;

/// How far so many lines, this many bytes apart, push each other out of the nearest cache: 0, not at all, to 1.
fn crowding(apart: usize, lines: usize) -> f64 {
    let crowd = |every: usize| {
        // How far the line after so many lies from the sets of the first.
        let off = (every * apart) % SETS;
        let drift = off.min(SETS - off);
        // Those that are `every` apart fall into as many sets as they drift across.
        let in_row = (lines / every) as f64;
        in_row / (in_row * drift as f64 / LINE as f64).max(1.0)
    };
    let most = [1, 2, 4, 8].map(crowd).into_iter().fold(0.0, f64::max);
    let share = |n: f64, (none, all): (f64, f64)| ((n - none) / (all - none)).clamp(0.0, 1.0);
    share(most, WAYS) * share(lines as f64, FOLLOWING)
}

/// Elements up to which a matrix of few columns, which become rows, is moved one element at a time as quickly, unless squares reach
/// into the rows behind. (Of 40 such on a Zen 5 all, by 1 to 80%, and which of the two ran was left to which had been lucky in a
/// calibration; of larger ones both take the same. Of a few rows it is the other way round: 2×41 f32 takes 0.05 µs in tiles and 0.11 one
/// by one.)
pub(super) const FEW: usize = 4096;

/// Whether this turns a matrix of so few columns round that a square is twice as wide.
pub(super) fn is_slim(w: &Workload, level: Level) -> bool {
    match (w.op(), &w.output().dims[..]) {
        (Op::Transpose { .. }, &[rows, _]) => 2 * rows <= tile::lanes(level, w.dtype().size()),
        _ => false,
    }
}

impl Kernel for TiledKernel {
    fn name(&self) -> &str {
        match self.stores {
            Stores::Cached => "cpu/move-tiled",
            Stores::Streaming => "cpu/move-stream",
        }
    }

    fn revision(&self) -> u32 {
        6
    }

    fn device(&self) -> DeviceId {
        self.ctx.device
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Transpose { .. } | Op::Copy)
    }

    fn legality_is_fixed(&self) -> bool {
        true
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        let Some(plan) = Plan::of(w) else { return Err(Refusal::new("neither a transpose nor a copy")) };
        if plan.core == Core::Scattered {
            return Err(Refusal::new("input or output has no elements side by side"));
        }
        if self.stores == Stores::Streaming {
            if w.output().bytes() < self.ctx.host.stream_from() {
                return Err(Refusal::new("the result is small enough to stay in the caches"));
            }
            if !streamable(w, &plan) {
                return Err(Refusal::new("rows of the result do not begin at cache lines"));
            }
        }
        Ok(())
    }

    fn outdone(&self, w: &Workload) -> Option<&'static str> {
        let few = is_slim(w, self.level) && w.output().elements() <= FEW;
        few.then_some("a few elements of a few columns are moved one at a time as quickly")
    }

    fn params(&self, w: &Workload) -> ParamList {
        self.ctx.thread_params(w)
    }

    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        let threads = p.threads.max(1) as usize;
        let bytes = w.bytes();
        let traffic = if self.stores == Stores::Streaming { Traffic::Stream } else { Traffic::Copy };
        let mut terms = Terms::launch(15e-9 + machine.handoff(threads));
        for (share, bandwidth) in machine.streams(bytes, traffic, threads) {
            terms = terms.and(bytes * share / bandwidth);
        }
        // Squares at the edges overlap their neighbours; what is far narrower than a square goes element by element.
        let size = w.dtype().size();
        let (squares, crowded, others, way) = match Plan::of(w) {
            Some(Plan { around, core: Core::Matrix(m), .. }) => {
                let lanes = tile::lanes(self.level, size);
                let squares = (around.count() * m.down.div_ceil(lanes) * m.across.div_ceil(lanes)) as f64;
                let side = BLOCK * LINE / size.max(1);
                let crowded = crowding(m.from.unsigned_abs() * size, m.down.min(side))
                    .max(crowding(m.to.unsigned_abs() * size, m.across.min(side)));
                let shape = (m.down, m.across);
                match m.down.min(m.across) < lanes && !tile::reaches(shape, m.from, m.to, lanes) {
                    true => (0.0, 0.0, (around.count() * m.down * m.across) as f64 * 0.15e-9, 1),
                    false => (squares, squares * crowded, 0.0, 0),
                }
            }
            Some(plan) => (0.0, 0.0, plan.around.count() as f64 * 4e-9, 2),
            None => (0.0, 0.0, 0.0, 2),
        };
        let share = 1.0 / threads as f64;
        // Rows of results that begin anywhere are written across the ends of lines.
        let row = w.output().dims.last().map_or(0, |n| n * size);
        let square = if row.is_multiple_of(ALIGNED) { 3.25e-9 } else { 5e-9 };
        terms.and(squares * square * share).and(others * share).and(crowded * CROWDED * share).by(way)
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let Some(plan) = Plan::of(w) else {
            return Err(KernelError::Failed("neither a transpose nor a copy".into()));
        };
        let threads = (p.threads as usize).max(1);
        // SAFETY: the caller's promise, passed on; elements are moved by their size alone.
        let clean = unsafe {
            match w.dtype().size() {
                1 => self.go::<u8>(&plan, threads, io),
                2 => self.go::<u16>(&plan, threads, io),
                4 => self.go::<u32>(&plan, threads, io),
                _ => self.go::<u64>(&plan, threads, io),
            }
        };
        Ok(if clean { Ran::Clean } else { Ran::Disturbed })
    }
}

/// Whether tiles of the result are whole lines.
fn streamable(w: &Workload, plan: &Plan) -> bool {
    let Core::Matrix(m) = plan.core else { return true };
    let whole = |step: isize| (step * w.dtype().size() as isize) % LINE as isize == 0;
    w.output().align_log2 >= 6
        && whole(plan.to)
        && whole(m.to)
        && plan.around.as_slice().iter().all(|l| whole(l.to))
}

impl TiledKernel {
    unsafe fn go<E: Element>(&self, plan: &Plan, threads: usize, io: Io<'_>) -> bool {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            match self.stores {
                Stores::Cached => self.split::<E, false>(plan, threads, io.inputs[0], io.output),
                Stores::Streaming => self.split::<E, true>(plan, threads, io.inputs[0], io.output),
            }
        }
    }

    /// Hands each thread its share. Whether they all ran side by side.
    unsafe fn split<E: Element, const STREAM: bool>(
        &self,
        plan: &Plan,
        threads: usize,
        input: Address,
        output: Address,
    ) -> bool {
        let some = |part: usize| {
            self.level.dispatch(Share::<E, STREAM> {
                work: Work { plan, input, output, part, parts: threads },
                of: PhantomData,
            });
            if STREAM {
                tile::fence();
            }
        };
        if threads == 1 {
            some(0);
            return true;
        }
        self.ctx.team.run(threads, &some).is_parallel()
    }
}

/// Some of the work, compiled for each instruction set.
struct Share<'a, E, const STREAM: bool> {
    work: Work<'a>,
    of: PhantomData<E>,
}

impl<E: Element, const STREAM: bool> Body for Share<'_, E, STREAM> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        // SAFETY: the kernel's caller vouches for the operands over the plan's loops.
        unsafe { self.work.go::<I, E, STREAM>() }
    }
}

/// One thread's part of a plan, with its operands.
#[derive(Clone, Copy)]
struct Work<'a> {
    plan: &'a Plan,
    input: Address,
    output: Address,
    part: usize,
    parts: usize,
}

impl Work<'_> {
    /// This part of `n` pieces.
    fn share(&self, n: usize) -> Range<usize> {
        let at = |k: usize| (n as u128 * k as u128 / self.parts as u128) as usize;
        at(self.part)..at(self.part + 1)
    }

    #[inline(always)]
    unsafe fn go<I: Isa, E: Element, const STREAM: bool>(&self) {
        let Plan { around, core, from, to } = self.plan;
        // SAFETY: pieces lie within the plan's loops, for which the kernel's caller vouches.
        unsafe {
            let x = self.input.as_ptr::<E>().offset(*from);
            let y = self.output.as_mut_ptr::<E>().offset(*to);
            match *core {
                Core::Run(n) if around.count() == 1 => {
                    let bytes = n * size_of::<E>();
                    let lines = self.share(bytes.div_ceil(LINE));
                    let (first, end) = (lines.start * LINE, (lines.end * LINE).min(bytes));
                    runs::copy::<STREAM>((x as *const u8).add(first), (y as *mut u8).add(first), end - first);
                }
                Core::Run(n) => {
                    runs::each::<E, STREAM>(x, y, n, self.share(around.count()), |i| around.offset(i))
                }
                Core::Matrix(m) => {
                    let mut buffer = Buffer(std::mem::MaybeUninit::uninit());
                    let all = around.count();
                    let (matrices, rows, columns, way) = if all >= self.parts {
                        (self.share(all), 0..m.down, 0..m.across, Way::Forwards)
                    } else if m.across < self.parts * LINE / size_of::<E>() && m.down > m.across {
                        (0..all, self.lines::<E>(m.down), 0..m.across, Way::Forwards)
                    } else {
                        (0..all, 0..m.down, self.lines::<E>(m.across), Way::of(self.part, self.parts))
                    };
                    let mine = Matrix { down: rows.len(), across: columns.len(), ..m };
                    for i in matrices {
                        let (from, to) = around.offset(i);
                        let x = x.offset(from + rows.start as isize * m.from).add(columns.start);
                        let y = y.offset(to + columns.start as isize * m.to).add(rows.start);
                        matrix::<I, E, STREAM>(&mut buffer, mine, way, x, y);
                    }
                }
                Core::Scattered => {}
            }
        }
    }

    /// This part's of so many columns, which are rows of the result: threads write to rows of their own. Where two share them,
    /// every row has a cache line that both write (75 µs for 197x799 f64, 39 on one thread). Of few columns it is this part's of
    /// so many rows.
    fn lines<E: Element>(&self, n: usize) -> Range<usize> {
        let tile = LINE / size_of::<E>();
        let tiles = self.share(n.div_ceil(tile));
        tiles.start * tile..(tiles.end * tile).min(n)
    }
}

/// Which way a part goes through its columns, from block to block and within one. What is fetched ahead at the end of a row of tiles is
/// what would come next, were there more columns: at the end of the first part that is what the second one is writing. So the first
/// part goes the other way. (Two threads on a Zen 5, both forwards, then so: 873×58 f64 16.1 and 3.7 µs, where each part takes 3.7
/// alone; 300×300 11.0 and 5.9; 3860×75 44 to 78 and 25.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Forwards,
    Backwards,
}

impl Way {
    fn of(part: usize, parts: usize) -> Way {
        if part == 0 && parts > 1 { Way::Backwards } else { Way::Forwards }
    }

    /// The `i`-th of `n` this way.
    #[inline(always)]
    fn at(self, i: usize, n: usize) -> usize {
        match self {
            Way::Forwards => i,
            Way::Backwards => n - 1 - i,
        }
    }
}

/// Elements along a block's side.
fn side<E: Element>() -> usize {
    BLOCK * LINE / size_of::<E>()
}

/// All of a matrix, block by block.
#[inline(always)]
unsafe fn matrix<I: Isa, E: Element, const STREAM: bool>(
    buffer: &mut Buffer,
    m: Matrix,
    way: Way,
    x: *const E,
    y: *mut E,
) {
    // SAFETY: blocks lie within the matrix, for which the caller vouches.
    unsafe {
        if m.down.min(m.across) < E::lanes::<I>() {
            return tile::narrow::<I, E>((m.down, m.across), x, m.from, y, m.to);
        }
        let across = m.across.div_ceil(side::<E>());
        for i in 0..m.down.div_ceil(side::<E>()) {
            for j in 0..across {
                block::<I, E, STREAM>(buffer, m, way, (i, way.at(j, across)), x, y);
            }
        }
    }
}

/// The block in row `i` and column `j` of blocks. The matrix has room for a square at least.
#[inline(always)]
unsafe fn block<I: Isa, E: Element, const STREAM: bool>(
    buffer: &mut Buffer,
    m: Matrix,
    way: Way,
    (i, j): (usize, usize),
    x: *const E,
    y: *mut E,
) {
    let tile = LINE / size_of::<E>();
    let rows = i * side::<E>()..((i + 1) * side::<E>()).min(m.down);
    let columns = j * side::<E>()..((j + 1) * side::<E>()).min(m.across);
    let strips = columns.len().div_ceil(tile);
    for k in 0..strips {
        let c = columns.start + way.at(k, strips) * tile;
        for r in rows.clone().step_by(tile) {
            let (down, across) = ((rows.end - r).min(tile), (columns.end - c).min(tile));
            // SAFETY: within the matrix. What ends it may begin less than a square before its end, but not less than
            // one after its beginning.
            unsafe {
                let x = x.offset(r as isize * m.from).add(c);
                let y = y.offset(c as isize * m.to).add(r);
                if STREAM {
                    tile::soon(x.wrapping_offset(AHEAD as isize * tile as isize * m.from), m.from);
                }
                if (down, across) == (tile, tile) {
                    tile::whole::<I, E, STREAM>(buffer, x, m.from, y, m.to);
                } else {
                    tile::part::<I, E>((down, across), x, m.from, y, m.to);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_a_page_apart_crowd_the_same_sets_and_others_do_not() {
        assert_eq!(crowding(1024 * 4, 128), 1.0);
        assert_eq!(crowding(1024 * 4 + 4, 128), 1.0, "nearly so");
        assert_eq!(crowding(2048, 128), 1.0, "every second");
        for apart in [601 * 4, 2500 * 4, 133 * 4, 1700 * 8, 3700 * 8, 740 * 8] {
            assert_eq!(crowding(apart, 128), 0.0, "{apart}");
        }
        assert_eq!(crowding(1024 * 4, 16), 0.0, "few are soon gone through");
        assert_eq!(crowding(1537 * 4, 128), 0.5);
        assert_eq!([crowding(0, 0), crowding(0, 1)], [0.0; 2]);
    }
}
