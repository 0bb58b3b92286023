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

/// Bytes of result from which writing past the caches is worth a try.
const STREAM_FROM: usize = 1 << 20;
/// Tiles along each side of a block: the pages of one block's rows fit the first-level TLB.
const BLOCK: usize = 8;
/// Tiles to look ahead.
const AHEAD: usize = 2;

impl Kernel for TiledKernel {
    fn name(&self) -> &str {
        match self.stores {
            Stores::Cached => "cpu/move-tiled",
            Stores::Streaming => "cpu/move-stream",
        }
    }

    fn revision(&self) -> u32 {
        2
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
            if w.output().bytes() < STREAM_FROM {
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
        // What is left over at the edges is moved element by element: 94 by 17 are five tiles and a strip, and take
        // half as long as twelve tiles.
        let (tiles, edges, runs) = match Plan::of(w) {
            Some(Plan { around, core: Core::Matrix(m), .. }) => {
                let side = LINE / w.dtype().size();
                let whole = (m.down / side) * (m.across / side);
                let rest = m.down * m.across - whole * side * side;
                (around.count() * whole, around.count() * rest, 0)
            }
            Some(plan) => (0, 0, plan.around.count()),
            None => (0, 0, 0),
        };
        let share = 1.0 / threads as f64;
        terms
            .and(tiles as f64 * 20e-9 * share)
            .and(runs as f64 * 4e-9 * share)
            .and(edges as f64 * 0.3e-9 * share)
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
        let work = Work { plan, input, output, by_columns: threads > 1 && columns::<E>(plan) >= threads };
        let units = work.units::<E>();
        let some = |units: Range<usize>| {
            self.level.dispatch(Share::<E, STREAM> { work, units, of: PhantomData });
            if STREAM {
                tile::fence();
            }
        };
        if threads == 1 {
            some(0..units);
            return true;
        }
        let at = |k: usize| (units as u128 * k as u128 / threads as u128) as usize;
        self.ctx.team.run(threads, &|part| some(at(part)..at(part + 1))).is_parallel()
    }
}

/// Some of the work, compiled for each instruction set.
struct Share<'a, E, const STREAM: bool> {
    work: Work<'a>,
    units: Range<usize>,
    of: PhantomData<E>,
}

impl<E: Element, const STREAM: bool> Body for Share<'_, E, STREAM> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        // SAFETY: the units are the plan's own.
        unsafe { self.work.some::<I, E, STREAM>(self.units) }
    }
}

/// A plan with its operands.
#[derive(Clone, Copy)]
struct Work<'a> {
    plan: &'a Plan,
    input: Address,
    output: Address,
    /// Blocks are counted along rows of the result, so that threads write to rows of their own. Where two
    /// share them, every row has a cache line that both write: 75 µs for 197x799 f64, 39 on one thread.
    by_columns: bool,
}

impl Work<'_> {
    /// How many pieces the work can be cut into: blocks of tiles, runs, or lines of the only run.
    fn units<E: Element>(&self) -> usize {
        let around = self.plan.around.count();
        match self.plan.core {
            Core::Run(n) if around == 1 => (n * size_of::<E>()).div_ceil(LINE),
            Core::Run(_) => around,
            Core::Matrix(m) => {
                let (down, across) = blocks::<E>(m);
                around * down * across
            }
            Core::Scattered => 0,
        }
    }

    /// Does a range of the pieces.
    #[inline(always)]
    unsafe fn some<I: Isa, E: Element, const STREAM: bool>(&self, units: Range<usize>) {
        let Plan { around, core, from, to } = self.plan;
        // SAFETY: pieces lie within the plan's loops, for which the kernel's caller vouches.
        unsafe {
            let x = self.input.as_ptr::<E>().offset(*from);
            let y = self.output.as_mut_ptr::<E>().offset(*to);
            match *core {
                Core::Run(n) if around.count() == 1 => {
                    let bytes = n * size_of::<E>();
                    let (first, end) = (units.start * LINE, (units.end * LINE).min(bytes));
                    runs::copy::<STREAM>((x as *const u8).add(first), (y as *mut u8).add(first), end - first);
                }
                Core::Run(n) => runs::each::<E, STREAM>(x, y, n, units, |i| around.offset(i)),
                Core::Matrix(m) => {
                    let mut buffer = Buffer(std::mem::MaybeUninit::uninit());
                    let (down, across) = blocks::<E>(m);
                    for unit in units {
                        let (from, to) = around.offset(unit / (down * across));
                        let unit = unit % (down * across);
                        let (i, j) = match self.by_columns {
                            true => (unit % down, unit / down),
                            false => (unit / across, unit % across),
                        };
                        block::<I, E, STREAM>(&mut buffer, m, (i, j), x.offset(from), y.offset(to));
                    }
                }
                Core::Scattered => {}
            }
        }
    }
}

/// Elements along a block's side.
fn side<E: Element>() -> usize {
    BLOCK * LINE / size_of::<E>()
}

/// Blocks along the columns of a plan's matrix; 0 if it has none, or more around it to share out.
fn columns<E: Element>(plan: &Plan) -> usize {
    match plan.core {
        Core::Matrix(m) if plan.around.count() == 1 => blocks::<E>(m).1,
        _ => 0,
    }
}

fn blocks<E: Element>(m: Matrix) -> (usize, usize) {
    (m.down.div_ceil(side::<E>()), m.across.div_ceil(side::<E>()))
}

/// The block in row `i` and column `j` of blocks.
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
            // SAFETY: within the matrix.
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
