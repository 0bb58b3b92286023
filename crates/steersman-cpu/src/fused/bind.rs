//! A program bound to the operands of one run: what all its threads share.

use super::chain::{Micro, Other};
use super::lower::Out;
use super::nest::Nest;
use super::program::{Call, Instr, Program, choose};
use super::shape::{Over, Shape};
use crate::isa::Level;
use crate::reduce::Reducer;
use smallvec::SmallVec;
use std::borrow::Cow;
use steersman_core::{Io, Workload};

/// Rows from this length on are walked one by one, so that operands contiguous only within rows can be used
/// in place.
const LONG_ROW: usize = 64;
/// Elements of a tile at least: below, calls show.
const TILE_LEAST: usize = 256;
/// Elements of a tile at most.
const TILE_MOST: usize = 2048;
/// Assumed where the nearest cache's size is unknown.
const NEAREST: usize = 32 << 10;

/// How an operand comes to its tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Where it lies.
    Direct,
    /// One element throughout each tile; `fill` if a loop needs it as a tile all the same.
    Same { fill: bool },
    /// By way of a buffer; `kept` if every tile has the same elements.
    Gather { kept: bool },
}

/// An operand.
pub struct Inlet {
    pub base: *const u8,
    pub size: usize,
    pub way: Way,
}

/// How results leave their tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Made where they belong.
    Direct,
    /// From a buffer to where they belong.
    Scatter,
    /// From a buffer past the cache.
    Stream,
    /// Made where they belong, past the cache.
    Past,
    /// Into a reduction.
    Reduce(Over),
}

/// An output.
pub struct OutletAt {
    pub base: *mut u8,
    pub exit: Exit,
    /// Which operand of the nest it is, for arrays.
    pub operand: usize,
    /// How it reduces, for reductions.
    pub reducer: Option<Reducer>,
    /// Bytes of an element of the result.
    pub size: usize,
}

/// A program with its operands.
pub struct Bound<'a> {
    pub program: &'a Program,
    pub instrs: Cow<'a, [Instr]>,
    pub micros: Cow<'a, [Micro]>,
    pub nest: Nest,
    pub inlets: SmallVec<[Inlet; 4]>,
    pub outlets: SmallVec<[OutletAt; 2]>,
    pub scalars: &'a [u64],
    pub shape: &'a Shape,
    /// Elements of a tile at most.
    pub tile: usize,
    /// Bytes of the widest element that any buffer has.
    pub width: usize,
    /// Whether tiles end where rows do.
    pub by_row: bool,
    /// Elements after which all that repeats within tiles has started over; tiles start at multiples.
    pub period: usize,
}

// SAFETY: the pointers are only followed within the part of the outputs that a thread was given.
unsafe impl Sync for Bound<'_> {}

impl<'a> Bound<'a> {
    /// Binds a program to a workload's operands.
    pub fn new(
        program: &'a Program,
        shape: &'a Shape,
        w: &Workload,
        io: Io<'a>,
        level: Level,
        nearest: Option<usize>,
        stream: bool,
    ) -> Bound<'a> {
        let array = |i: &usize| shape.over[*i].is_none();
        let arrays = (0..w.outputs().len()).filter(array).map(|i| &w.outputs()[i]);
        let nest = Nest::new(w.dims(), w.inputs().iter().chain(arrays));
        let by_row = nest.inner() >= LONG_ROW;
        let in_place = io.in_place();
        let mut bound = Bound {
            program,
            instrs: Cow::Borrowed(&program.instrs),
            micros: Cow::Borrowed(&program.micros),
            inlets: SmallVec::new(),
            outlets: SmallVec::new(),
            scalars: io.scalars,
            shape,
            tile: TILE_MOST,
            width: w
                .inputs()
                .iter()
                .chain(w.outputs())
                .map(|o| o.dtype.size())
                .fold(program.width, usize::max),
            by_row,
            period: 1,
            nest,
        };
        let step = |k: usize| if by_row { Some(bound.nest.inner_stride(k)) } else { bound.nest.step(k) };
        for (k, (o, at)) in w.inputs().iter().zip(io.inputs).enumerate() {
            let replaced = in_place && io.outputs().any(|out| out == *at);
            // Reduced as it is, after the chain has written.
            let read_later = program.outlets.iter().any(|o| o.place == program.input(k));
            let way = match step(k) {
                Some(0) => Way::Same { fill: false },
                // Loops must not write where they read: what is replaced is read from a copy, but for one chain,
                // which has read all of a block before it writes any.
                Some(1) if !replaced || program.is_one_chain() && !read_later => Way::Direct,
                None if bound.nest.period(k) <= TILE_MOST / 2 => Way::Gather { kept: true },
                _ => Way::Gather { kept: false },
            };
            bound.inlets.push(Inlet { base: at.as_ptr(), size: o.dtype.size(), way });
        }
        let mut operand = w.inputs().len();
        for (i, ((o, at), outlet)) in w.outputs().iter().zip(io.outputs()).zip(&program.outlets).enumerate() {
            let base = at.as_mut_ptr();
            let size = o.dtype.size();
            if let (Some(over), Out::Reduce { kind, dtype, .. }) = (shape.over[i], outlet.out) {
                let reducer = Some(Reducer { kind, dtype, level });
                bound.outlets.push(OutletAt { base, exit: Exit::Reduce(over), operand: 0, reducer, size });
                continue;
            }
            let exit = match step(operand) {
                Some(1) if stream && o.is_contiguous() && !in_place => Exit::Stream,
                Some(1) => Exit::Direct,
                _ => Exit::Scatter,
            };
            bound.outlets.push(OutletAt { base, exit, operand, reducer: None, size });
            operand += 1;
        }
        bound.rebind();
        bound.straight_past();
        bound.size_tiles(nearest.unwrap_or(NEAREST));
        bound
    }

    /// Chooses loops anew for operands that stay the same.
    fn rebind(&mut self) {
        let program = self.program;
        let same = |inlets: &[Inlet], p: u32| {
            inlets.get(p as usize).is_some_and(|i| matches!(i.way, Way::Same { .. }))
        };
        if !self.inlets.iter().any(|i| matches!(i.way, Way::Same { .. })) {
            return;
        }
        let uniforms = program.uniform(0)..program.uniform(program.uniforms.len());
        for instr in self.instrs.to_mut() {
            // A copy has one argument, which it needs as a tile.
            let arity = instr.rows.map_or(1, |(_, n)| n as usize);
            if !matches!(instr.call, Call::Row(_)) {
                continue;
            }
            let args = &mut instr.args[..arity];
            if !args.iter().any(|&p| same(&self.inlets, p)) {
                continue;
            }
            let pattern: [bool; 3] = std::array::from_fn(|i| {
                args.get(i).is_some_and(|p| same(&self.inlets, *p) || uniforms.contains(p))
            });
            match instr.rows.and_then(|(rows, _)| choose(rows, pattern)) {
                Some(f) => {
                    instr.call = Call::Row(f);
                    for p in args.iter_mut().filter(|p| same(&self.inlets, **p)) {
                        *p = program.same(*p as usize);
                    }
                }
                None => {
                    for p in args.iter() {
                        if let Some(Inlet { way: Way::Same { fill }, .. }) = self.inlets.get_mut(*p as usize)
                        {
                            *fill = true;
                        }
                    }
                }
            }
        }
        if !program.micros.is_empty() {
            for other in self.micros.to_mut().iter_mut().flat_map(|m| [&mut m.y, &mut m.z]) {
                if same(&self.inlets, other.place) {
                    *other = Other { place: program.same(other.place as usize), same: true };
                }
            }
        }
        for outlet in &program.outlets {
            if let Some(Inlet { way: Way::Same { fill }, .. }) = self.inlets.get_mut(outlet.place as usize) {
                *fill = true;
            }
        }
    }

    /// Has chains write past the cache by themselves where nobody reads the result again.
    fn straight_past(&mut self) {
        let program = self.program;
        for (o, outlet) in self.outlets.iter_mut().enumerate().filter(|(_, o)| o.exit == Exit::Stream) {
            let place = program.output(o);
            let reads = |i: &Instr| !matches!(i.call, Call::Chain(..)) && i.args.contains(&place);
            let read = self.micros.iter().any(|m| m.y.place == place || m.z.place == place)
                || self.instrs.iter().any(reads);
            if !read && self.micros.iter().any(|m| m.store == place) {
                outlet.exit = Exit::Past;
                self.micros.to_mut().iter_mut().filter(|m| m.store == place).for_each(|m| m.past = true);
            }
        }
    }

    /// As many elements as the nearest cache has room for in all that a tile touches.
    fn size_tiles(&mut self, nearest: usize) {
        let tiles = self.program.slots + self.program.splats.len() + self.inlets.len() + self.outlets.len();
        let fits = nearest / 4 * 3 / (tiles * self.width).max(1);
        self.tile = (fits / 64 * 64).clamp(TILE_LEAST, TILE_MOST);
        // Of what starts over, the longest period is a multiple of the others.
        let kept = |k: &usize| self.inlets[*k].way == Way::Gather { kept: true };
        self.period = (0..self.inlets.len()).filter(kept).map(|k| self.nest.period(k)).max().unwrap_or(1);
        if self.period > 1 {
            self.tile = self.tile.max(self.period) / self.period * self.period;
        }
    }
}
