//! Brings operands of any layout and of half precision to the row functions, a piece at a time.
//!
//! A piece is a run of elements in the plan's order. An operand that lies one after another there is
//! read and written where it is; others go by way of buffers on the stack that stay in the nearest
//! cache. Rows of [`LONG_ROW`] elements and more are walked one by one, since operands that are
//! contiguous only within a row can then be used in place; shorter ones are gathered many at a time.

use super::copy::{Narrow, Widen, fill, gather_run, scatter_run, start_over};
use super::narrow::Half;
use super::plan::{Cursor, OUT, Plan};
use super::row::{RowFn, Rows};
use super::stream;
use crate::isa::Level;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Elements in a piece. All buffers of an `f32` op then take at most 12 KiB.
const PIECE: usize = 512;
/// Rows from this length on are walked singly.
const LONG_ROW: usize = 64;

/// One element-wise run with all that its pieces need.
pub struct Task {
    /// The loop nest.
    pub plan: Plan,
    /// Its loops.
    pub rows: Rows,
    /// Instruction set, for conversions.
    pub level: Level,
    /// How many inputs there are.
    pub inputs: usize,
    /// First elements of the inputs and, at [`OUT`], of the output.
    pub base: [*mut u8; 4],
    /// Bytes of an element of each operand.
    pub size: [usize; 4],
    /// The format of the inputs, if the arithmetic is in `f32` instead.
    pub widen: Option<Half>,
    /// The format of the output, if the arithmetic is in `f32` instead.
    pub narrow: Option<Half>,
    /// Whether results go past the cache.
    pub stream: bool,
}

// SAFETY: the pointers are only followed within the part of the output that a thread was given.
unsafe impl Sync for Task {}

/// Room for `PIECE` elements of any type.
#[repr(align(64))]
struct Buffer {
    _room: [u64; PIECE],
}

/// The buffers of one input and what they hold.
struct Inlet {
    gathered: *mut u8,
    wide: *mut u8,
    /// The element that `wide` is full of, by its offset, and how many times.
    filled: Option<(isize, usize)>,
    /// Elements that stay in the buffers for the next piece too.
    kept: usize,
}

impl Inlet {
    /// Where the elements of the last piece are.
    fn elements(&self, widen: Option<Half>) -> *const u8 {
        if widen.is_some() { self.wide } else { self.gathered }
    }
}

/// An input of one piece: consecutive elements, or one that stays the same.
enum Source {
    Each(*const u8),
    Same,
}

impl Task {
    /// Computes the elements `range` of the plan's order.
    ///
    /// # Safety
    /// `base` must be good for the plan's reach, and no one else may write to those output elements.
    pub unsafe fn run(&self, range: Range<usize>) {
        let plan = &self.plan;
        let by_row = plan.inner() >= LONG_ROW;
        // Never moved: to copy 32 KiB would take longer than all the work on a few elements.
        let mut buffers = MaybeUninit::<[Buffer; 8]>::uninit();
        let first = buffers.as_mut_ptr().cast::<Buffer>();
        let buffer = |i: usize| first.wrapping_add(i).cast::<u8>();
        let mut inlets: [Inlet; 3] = std::array::from_fn(|k| Inlet {
            gathered: buffer(k),
            wide: buffer(3 + k),
            filled: None,
            kept: 0,
        });
        let (result, narrowed) = (buffer(6), buffer(7));
        let steps: [Option<isize>; 4] =
            std::array::from_fn(|k| if by_row { Some(plan.inner_stride(k)) } else { plan.step(k) });
        // Rows must not write where they read: what is replaced in place is read from a copy.
        let replaced = |k: usize| k != OUT && self.base[k] == self.base[OUT] && self.widen.is_none();
        let direct = |k: usize| steps[k] == Some(1) && !replaced(k);
        // Nothing passes through a buffer: no need to stop before the row ends.
        let unbuffered = by_row
            && self.widen.is_none()
            && !self.stream
            && direct(OUT)
            && (0..self.inputs).all(|k| direct(k) || steps[k] == Some(0))
            && self.form(std::array::from_fn(|k| steps[k] == Some(0) && k < self.inputs)).is_some();
        // An input that starts over within a piece, such as three weights for each of many pixels, is
        // gathered once if each piece starts where the last one did in it. Periods divide each other.
        let starts_over = |k: usize| !by_row && steps[k].is_none() && plan.period(k) <= PIECE;
        let period = (0..self.inputs).filter(|&k| starts_over(k)).map(|k| plan.period(k)).max().unwrap_or(1);
        let piece = PIECE / period * period;
        let mut cursor = plan.at(range.start);
        let mut i = range.start;
        while i < range.end {
            let mut n = range.end - i;
            if by_row {
                n = n.min(cursor.left(plan));
            }
            if !unbuffered {
                n = n.min(piece);
            }
            // SAFETY: `n` elements from the cursor on belong to the range; buffers hold `PIECE`.
            unsafe {
                let sources: [Source; 3] = std::array::from_fn(|k| {
                    if k >= self.inputs {
                        return Source::Each(std::ptr::null());
                    }
                    let at = self.base[k].offset(cursor.offsets[k] * self.size[k] as isize);
                    match steps[k] {
                        Some(0) => Source::Same,
                        _ if direct(k) => Source::Each(self.widened(at, n, &inlets[k])),
                        _ if inlets[k].kept >= n => Source::Each(inlets[k].elements(self.widen)),
                        _ if starts_over(k) => {
                            // Runs of a few elements are gathered once and laid end to end: 512 elements in runs of two took
                            // 1.2 µs to gather.
                            let (once, size) = (plan.period(k).min(n), self.size[k]);
                            self.gather(k, &cursor, once, inlets[k].gathered);
                            start_over(inlets[k].gathered, once * size, n * size);
                            inlets[k].kept = n;
                            Source::Each(self.widened(inlets[k].gathered, n, &inlets[k]))
                        }
                        _ => {
                            self.gather(k, &cursor, n, inlets[k].gathered);
                            Source::Each(self.widened(inlets[k].gathered, n, &inlets[k]))
                        }
                    }
                });
                let (row, at) = self.arguments(&sources, &cursor, n, &mut inlets);
                let to = self.base[OUT].offset(cursor.offsets[OUT] * self.size[OUT] as isize);
                if direct(OUT) && self.narrow.is_none() && !self.stream {
                    row(at[0], at[1], at[2], to, n);
                } else {
                    let mut from = result;
                    row(at[0], at[1], at[2], from, n);
                    if let Some(half) = self.narrow {
                        // Straight to the output where that is one write anyway.
                        let there = if direct(OUT) && !self.stream { to } else { narrowed };
                        self.level.dispatch_unchecked(Narrow {
                            from: from.cast(),
                            to: there.cast(),
                            n,
                            half,
                        });
                        from = there;
                    }
                    if self.stream {
                        stream::copy(from, to, n * self.size[OUT]);
                    } else if from != to {
                        self.scatter(&cursor, n, from);
                    }
                }
            }
            i += n;
            if by_row {
                cursor.advance(plan, n);
            } else if i < range.end {
                cursor = plan.at(i);
            }
        }
        if self.stream {
            stream::fence();
        }
    }

    /// The loop for this pattern of arguments that stay the same, if there is one.
    fn form(&self, same: [bool; 3]) -> Option<RowFn> {
        match same {
            [false, false, false] => Some(self.rows.each),
            [false, true, false] => self.rows.second_same,
            [true, false, false] => self.rows.first_same,
            _ => None,
        }
    }

    /// The loop to call and its arguments: those that stay the same are repeated in a buffer if there is
    /// no loop for them.
    unsafe fn arguments(
        &self,
        sources: &[Source; 3],
        cursor: &Cursor,
        n: usize,
        inlets: &mut [Inlet; 3],
    ) -> (RowFn, [*const u8; 3]) {
        let mut same: [bool; 3] = std::array::from_fn(|k| matches!(sources[k], Source::Same));
        if self.form(same).is_none() {
            // A loop with the second the same still serves when the first had to be repeated too.
            same[0] = false;
            if self.form(same).is_none() {
                same = [false; 3];
            }
        }
        let at = std::array::from_fn(|k| match sources[k] {
            Source::Each(at) => at,
            // SAFETY: the cursor is within the plan, and `n` at most `PIECE` when a buffer is filled.
            Source::Same => unsafe {
                self.repeat(k, cursor.offsets[k], if same[k] { 1 } else { n }, &mut inlets[k])
            },
        });
        (self.form(same).unwrap_or(self.rows.each), at)
    }

    /// The element at `offset` of input `k`, widened, `n` times.
    unsafe fn repeat(&self, k: usize, offset: isize, n: usize, inlet: &mut Inlet) -> *const u8 {
        let to = inlet.wide;
        if inlet.filled.is_some_and(|(at, times)| at == offset && times >= n) {
            return to;
        }
        inlet.filled = Some((offset, n));
        // SAFETY: the element is the operand's; the buffer holds `n` of 8 bytes.
        unsafe {
            let at = self.base[k].offset(offset * self.size[k] as isize);
            match (self.widen, self.size[k]) {
                (Some(half), _) => {
                    self.level.dispatch_unchecked(Widen { from: at.cast(), to: to.cast(), n: 1, half });
                    fill::<u32>(to, to, n);
                }
                (None, 1) => fill::<u8>(at, to, n),
                (None, 2) => fill::<u16>(at, to, n),
                (None, 4) => fill::<u32>(at, to, n),
                (None, _) => fill::<u64>(at, to, n),
            }
        }
        to
    }

    /// `n` consecutive elements at `at`, or their `f32` values if they are of half precision.
    unsafe fn widened(&self, at: *const u8, n: usize, inlet: &Inlet) -> *const u8 {
        let Some(half) = self.widen else { return at };
        let to = inlet.wide;
        // SAFETY: the caller vouches for `n` elements, the buffer holds `PIECE`.
        unsafe { self.level.dispatch_unchecked(Widen { from: at.cast(), to: to.cast(), n, half }) };
        to
    }

    unsafe fn gather(&self, k: usize, cursor: &Cursor, n: usize, to: *mut u8) {
        // SAFETY: passed on.
        unsafe {
            match self.size[k] {
                1 => self.each_run::<u8>(k, cursor, n, |from, i, step, len| {
                    gather_run(from, step, to.cast::<u8>().add(i), len)
                }),
                2 => self.each_run::<u16>(k, cursor, n, |from, i, step, len| {
                    gather_run(from, step, to.cast::<u16>().add(i), len)
                }),
                4 => self.each_run::<u32>(k, cursor, n, |from, i, step, len| {
                    gather_run(from, step, to.cast::<u32>().add(i), len)
                }),
                _ => self.each_run::<u64>(k, cursor, n, |from, i, step, len| {
                    gather_run(from, step, to.cast::<u64>().add(i), len)
                }),
            }
        }
    }

    unsafe fn scatter(&self, cursor: &Cursor, n: usize, from: *const u8) {
        // SAFETY: passed on.
        unsafe {
            match self.size[OUT] {
                1 => self.each_run::<u8>(OUT, cursor, n, |to, i, step, len| {
                    scatter_run(from.cast::<u8>().add(i), to, step, len)
                }),
                2 => self.each_run::<u16>(OUT, cursor, n, |to, i, step, len| {
                    scatter_run(from.cast::<u16>().add(i), to, step, len)
                }),
                4 => self.each_run::<u32>(OUT, cursor, n, |to, i, step, len| {
                    scatter_run(from.cast::<u32>().add(i), to, step, len)
                }),
                _ => self.each_run::<u64>(OUT, cursor, n, |to, i, step, len| {
                    scatter_run(from.cast::<u64>().add(i), to, step, len)
                }),
            }
        }
    }

    /// Calls `run(first, done, step, len)` for each stretch of operand `k` with one step, `n` elements in all.
    #[inline(always)]
    unsafe fn each_run<T>(
        &self,
        k: usize,
        cursor: &Cursor,
        n: usize,
        run: impl Fn(*mut T, usize, isize, usize),
    ) {
        let (mut cursor, plan) = (cursor.clone(), &self.plan);
        let (step, inner) = (plan.inner_stride(k), plan.inner());
        // SAFETY: the cursor is within the plan.
        let at = |cursor: &Cursor| unsafe { self.base[k].cast::<T>().offset(cursor.offsets[k]) };
        let mut done = 0;
        while done < n {
            let len = cursor.left(plan).min(n - done);
            run(at(&cursor), done, step, len);
            done += len;
            if done == n {
                break;
            }
            cursor.advance(plan, len);
            // Whole rows lie evenly apart: to move the cursor takes longer than a short one. (Of 1000×5 f32 by 1000×1 `mul`
            // took 8.5 µs.)
            let rows = cursor.rows_left(plan).min((n - done) / inner);
            let (mut from, apart) = (at(&cursor), plan.row_stride(k));
            for _ in 0..rows {
                run(from, done, step, inner);
                from = from.wrapping_offset(apart);
                done += inner;
            }
            cursor.advance_rows(plan, rows);
        }
    }
}
