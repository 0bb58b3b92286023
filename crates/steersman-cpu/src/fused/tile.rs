//! Runs a program on one tile after another, on one thread.

use super::bind::{Bound, Exit, Way};
use super::program::{Call, Instr, NO_KEY};
use crate::map::{fill, gather_run, scatter_run, stream};
use crate::matmul::Scratch;
use smallvec::SmallVec;

/// Buffers start this many bytes further on than whole pages, so that equal positions in two buffers do not
/// look alike to the cache.
const SKEW: usize = 64;
const LINE: usize = 64;

/// One thread's tiles.
pub struct Tiles<'a> {
    bound: &'a Bound<'a>,
    /// Pointers of all places.
    at: *mut *mut u8,
    /// Buffers of operands and outputs that have one, by their number.
    buffers: *mut u8,
    buffer: usize,
    /// Where each operand's first element of the tile is.
    offsets: SmallVec<[isize; 8]>,
    /// Of operands that stay the same or start over: the offset their buffer has, and how many elements.
    held: SmallVec<[Option<(isize, usize)>; 4]>,
    start: usize,
}

impl<'a> Tiles<'a> {
    /// Lays tiles out in `scratch` and computes what is the same throughout. `most` elements are the most a
    /// tile will have.
    pub fn new(bound: &'a Bound<'a>, scratch: &'a mut Scratch, most: usize) -> Tiles<'a> {
        let p = bound.program;
        let most = most.min(bound.tile);
        let buffer = (most * bound.width).next_multiple_of(LINE) + SKEW;
        let buffers = bound.inlets.len() + bound.outlets.len() + p.slots + p.splats.len();
        let (table, memory) = scratch.pair::<u64>(p.places() + p.uniforms.len(), buffers * buffer / 8);
        let (at, memory) = (table.cast::<*mut u8>(), memory.cast::<u8>());
        let cells = table.wrapping_add(p.places());
        let own = |i: usize| memory.wrapping_add((bound.inlets.len() + bound.outlets.len() + i) * buffer);
        // SAFETY: the table has `places` words, then one for each uniform.
        unsafe {
            (0..p.places()).for_each(|i| at.add(i).write(std::ptr::null_mut()));
            (0..p.slots).for_each(|s| at.add(p.slot(s) as usize).write(own(s)));
            for (u, uniform) in p.uniforms.iter().enumerate() {
                let cell = cells.add(u);
                at.add(p.uniform(u) as usize).write(cell.cast());
                match &uniform.from {
                    Ok(k) => cell.write(bound.scalars.get(*k as usize).copied().unwrap_or(0)),
                    Err(instr) => run(at, instr, bound, 0, 1),
                }
            }
            for (s, &(u, size)) in p.splats.iter().enumerate() {
                let to = own(p.slots + s);
                at.add(p.splat(s) as usize).write(to);
                repeat(cells.add(u).cast(), to, size, most);
            }
        }
        let operands = bound.inlets.len() + bound.outlets.len();
        Tiles {
            bound,
            at,
            buffers: memory,
            buffer,
            offsets: SmallVec::from_elem(0, operands),
            held: SmallVec::from_elem(None, bound.inlets.len()),
            start: 0,
        }
    }

    /// Goes to the element `start`; returns how many a tile may have from there on.
    pub fn seek(&mut self, start: usize) -> usize {
        self.start = start;
        let left = self.bound.nest.at(start, &mut self.offsets);
        if self.bound.by_row { left.min(self.bound.tile) } else { self.bound.tile }
    }

    /// Where the elements of output `o` are.
    pub fn result(&self, o: usize) -> *const u8 {
        // SAFETY: outlets have places.
        unsafe { *self.at.add(self.bound.program.outlets[o].place as usize) }
    }

    /// Computes a tile of `n` elements, at most what [`seek`](Tiles::seek) said.
    ///
    /// # Safety
    /// The elements must be within the group, and nobody else write to those of the outputs.
    pub unsafe fn compute(&mut self, n: usize) {
        // SAFETY: operands are valid by the caller's word; the table has all places.
        unsafe {
            for k in 0..self.bound.inlets.len() {
                self.bring(k, n);
            }
            for (o, outlet) in self.bound.outlets.iter().enumerate() {
                let to = match outlet.exit {
                    Exit::Direct | Exit::Past => {
                        outlet.base.offset(self.offsets[outlet.operand] * outlet.size as isize)
                    }
                    Exit::Scatter | Exit::Stream => self.out_buffer(o),
                    Exit::Reduce(_) => continue,
                };
                self.at.add(self.bound.program.output(o) as usize).write(to);
            }
            for instr in &*self.bound.instrs {
                run(self.at, instr, self.bound, self.start, n);
            }
            for o in 0..self.bound.outlets.len() {
                self.take(o, n);
            }
        }
    }

    /// Makes the tile's elements of operand `k` available.
    unsafe fn bring(&mut self, k: usize, n: usize) {
        let (inlet, p) = (&self.bound.inlets[k], self.bound.program);
        let offset = self.offsets[k];
        let from = inlet.base.wrapping_offset(offset * inlet.size as isize);
        let buffer = self.buffers.wrapping_add(k * self.buffer);
        // SAFETY: by the caller's word; buffers hold a tile.
        unsafe {
            let place = self.at.add(p.input(k) as usize);
            match inlet.way {
                Way::Direct => place.write(from.cast_mut()),
                Way::Same { fill } => {
                    self.at.add(p.same(k) as usize).write(from.cast_mut());
                    if fill && self.held[k].is_none_or(|(at, times)| at != offset || times < n) {
                        repeat(from, buffer, inlet.size, n);
                        self.held[k] = Some((offset, n));
                    }
                    place.write(buffer);
                }
                Way::Gather { kept } => {
                    // What starts over is the same in tiles that start at the same point of it.
                    let phase = (self.start % self.bound.period) as isize;
                    if !kept || self.held[k].is_none_or(|(at, times)| at != phase || times < n) {
                        self.gather(k, n, buffer);
                        self.held[k] = Some((phase, n));
                    }
                    place.write(buffer);
                }
            }
        }
    }

    unsafe fn gather(&self, k: usize, n: usize, to: *mut u8) {
        let inlet = &self.bound.inlets[k];
        macro_rules! of {
            ($t:ty) => {
                self.bound.nest.runs(k, self.start, n, |offset, done, step, len| {
                    let from = inlet.base.cast::<$t>().cast_mut();
                    // SAFETY: runs are within the operand; the buffer holds a tile.
                    unsafe {
                        let (from, to) = (from.offset(offset), to.cast::<$t>().add(done));
                        match step {
                            1 => to.copy_from_nonoverlapping(from, len),
                            _ => gather_run(from, step, to, len),
                        }
                    }
                })
            };
        }
        match inlet.size {
            1 => of!(u8),
            2 => of!(u16),
            4 => of!(u32),
            _ => of!(u64),
        }
    }

    fn out_buffer(&self, o: usize) -> *mut u8 {
        self.buffers.wrapping_add((self.bound.inlets.len() + o) * self.buffer)
    }

    /// Brings the tile's elements of output `o` to where they belong.
    unsafe fn take(&self, o: usize, n: usize) {
        let outlet = &self.bound.outlets[o];
        let from = self.out_buffer(o);
        macro_rules! of {
            ($t:ty) => {
                self.bound.nest.runs(outlet.operand, self.start, n, |offset, done, step, len| {
                    let to = outlet.base.cast::<$t>();
                    // SAFETY: runs are within the output; the buffer holds a tile.
                    unsafe {
                        let (from, to) = (from.cast::<$t>().add(done), to.offset(offset));
                        match step {
                            1 => to.copy_from_nonoverlapping(from, len),
                            _ => scatter_run(from, to, step, len),
                        }
                    }
                })
            };
        }
        match outlet.exit {
            Exit::Direct | Exit::Past | Exit::Reduce(_) => {}
            Exit::Stream => {
                let offset = self.offsets[outlet.operand] * outlet.size as isize;
                // SAFETY: `n` elements of a contiguous output.
                unsafe { stream::copy(from, outlet.base.offset(offset), n * outlet.size) }
            }
            Exit::Scatter => match outlet.size {
                1 => of!(u8),
                2 => of!(u16),
                4 => of!(u32),
                _ => of!(u64),
            },
        }
    }
}

impl Drop for Tiles<'_> {
    fn drop(&mut self) {
        if self.bound.outlets.iter().any(|o| matches!(o.exit, Exit::Stream | Exit::Past)) {
            stream::fence();
        }
    }
}

/// Runs one call.
///
/// # Safety
/// The table must have pointers at the call's places that are good for `n` elements.
#[inline(always)]
unsafe fn run(at: *const *mut u8, instr: &Instr, bound: &Bound<'_>, start: usize, n: usize) {
    // SAFETY: by contract.
    unsafe {
        let out = *at.add(instr.out as usize);
        match instr.call {
            Call::Row(f) => {
                let arg = |i: usize| (*at.add(instr.args[i] as usize)).cast_const();
                f(arg(0), arg(1), arg(2), out, n);
            }
            Call::At(f, key) => {
                let key =
                    if key == NO_KEY { 0 } else { bound.scalars.get(key as usize).copied().unwrap_or(0) };
                f(key, start as u64, out, n);
            }
            Call::Chain(f, from, to) => f(at, &bound.micros[from as usize..to as usize], n),
        }
    }
}

/// Writes an element of `size` bytes `n` times.
unsafe fn repeat(from: *const u8, to: *mut u8, size: usize, n: usize) {
    // SAFETY: by the caller's word.
    unsafe {
        match size {
            1 => fill::<u8>(from, to, n),
            2 => fill::<u16>(from, to, n),
            4 => fill::<u32>(from, to, n),
            _ => fill::<u64>(from, to, n),
        }
    }
}
