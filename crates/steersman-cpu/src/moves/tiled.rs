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

impl Kernel for TiledKernel {
    fn name(&self) -> &str {
        match self.stores {
            Stores::Cached => "cpu/move-tiled",
            Stores::Streaming => "cpu/move-stream",
        }
    }

    fn revision(&self) -> u32 {
        4
    }

    fn device(&self) -> DeviceId {
        self.ctx.device
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Transpose { .. } | Op::Copy)
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
        // Squares at the edges overlap their neighbours; what is narrower than a square goes element by element.
        let (squares, single, runs) = match Plan::of(w) {
            Some(Plan { around, core: Core::Matrix(m), .. }) => {
                let lanes = tile::lanes(self.level, w.dtype().size());
                let narrow = m.down.min(m.across) < lanes;
                let squares = m.down.div_ceil(lanes) * m.across.div_ceil(lanes);
                let single = m.down * m.across;
                let n = around.count();
                if narrow { (0, n * single, 0) } else { (n * squares, 0, 0) }
            }
            Some(plan) => (0, 0, plan.around.count()),
            None => (0, 0, 0),
        };
        let share = 1.0 / threads as f64;
        // Rows of results that begin anywhere are written across the ends of lines.
        let row = w.output().dims.last().map_or(0, |n| n * w.dtype().size());
        let square = if row.is_multiple_of(ALIGNED) { 3.25e-9 } else { 5e-9 };
        terms
            .and(squares as f64 * square * share)
            .and(runs as f64 * 4e-9 * share)
            .and(single as f64 * 0.3e-9 * share)
            .by(u8::from(single > 0))
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
                    let (matrices, columns) = if all >= self.parts {
                        (self.share(all), 0..m.across)
                    } else {
                        (0..all, self.columns::<E>(m))
                    };
                    let mine = Matrix { across: columns.len(), ..m };
                    for i in matrices {
                        let (from, to) = around.offset(i);
                        let x = x.offset(from).add(columns.start);
                        let y = y.offset(to + columns.start as isize * m.to);
                        matrix::<I, E, STREAM>(&mut buffer, mine, x, y);
                    }
                }
                Core::Scattered => {}
            }
        }
    }

    /// This part's columns, which are rows of the result: threads write to rows of their own. Where two share them,
    /// every row has a cache line that both write (75 µs for 197x799 f64, 39 on one thread).
    fn columns<E: Element>(&self, m: Matrix) -> Range<usize> {
        let tile = LINE / size_of::<E>();
        let tiles = self.share(m.across.div_ceil(tile));
        tiles.start * tile..(tiles.end * tile).min(m.across)
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
    x: *const E,
    y: *mut E,
) {
    // SAFETY: blocks lie within the matrix, for which the caller vouches.
    unsafe {
        if m.down.min(m.across) < E::lanes::<I>() {
            return tile::narrow((m.down, m.across), x, m.from, y, m.to);
        }
        for i in 0..m.down.div_ceil(side::<E>()) {
            for j in 0..m.across.div_ceil(side::<E>()) {
                block::<I, E, STREAM>(buffer, m, (i, j), x, y);
            }
        }
    }
}

/// The block in row `i` and column `j` of blocks. The matrix has room for a square at least.
#[inline(always)]
unsafe fn block<I: Isa, E: Element, const STREAM: bool>(
    buffer: &mut Buffer,
    m: Matrix,
    (i, j): (usize, usize),
    x: *const E,
    y: *mut E,
) {
    let tile = LINE / size_of::<E>();
    let rows = i * side::<E>()..((i + 1) * side::<E>()).min(m.down);
    let columns = j * side::<E>()..((j + 1) * side::<E>()).min(m.across);
    for c in columns.clone().step_by(tile) {
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
