//! Rows of kept elements, one below another, combined column by column.

use super::fold::Fold;
use super::rows::Folded;
use crate::isa::{Isa, Level};
use std::mem::MaybeUninit;

/// Columns done at a time: cells of all of them stay in the nearest cache.
pub(super) const TILE: usize = 512;

/// A reduction of rows into one row of cells.
pub(super) trait Columns: Copy + Send + Sync {
    type In: Copy;
    /// What is known of some of a column's elements.
    type Cell: Copy + Send;
    type Out: Copy;

    /// Of no elements.
    fn start(self) -> Self::Cell;

    /// With `rows` more rows, `stride` elements apart.
    ///
    /// # Safety
    /// Each row must be readable for as many elements as there are cells, at most [`TILE`].
    unsafe fn more<I: Isa>(
        self,
        cells: &mut [Self::Cell],
        x: *const Self::In,
        rows: usize,
        stride: isize,
        index: Index,
    );

    /// Of the elements of both, `b`'s being the later ones.
    fn join(self, a: Self::Cell, b: Self::Cell) -> Self::Cell;

    /// The result of `n` elements.
    fn finish(self, cell: Self::Cell, n: usize) -> Self::Out;

    /// Of rows that come `by` later each.
    #[inline(always)]
    fn later(self, cell: Self::Cell, _by: usize) -> Self::Cell {
        cell
    }

    /// Columns that are best done together, if several narrow rows are taken for one.
    const TOGETHER: usize;
}

/// The indices of rows.
#[derive(Clone, Copy)]
pub(super) struct Index {
    pub first: usize,
    /// From one to the next.
    pub step: usize,
}

/// Room for a tile's columns, of which only those there are are filled: a whole tile takes longer than a small reduction.
pub(super) struct Room<T>([MaybeUninit<T>; TILE]);

impl<T: Copy> Room<T> {
    #[inline(always)]
    pub fn new() -> Room<T> {
        Room([const { MaybeUninit::uninit() }; TILE])
    }

    /// The first `n`, each of which is `with`.
    #[inline(always)]
    pub fn of(&mut self, n: usize, with: T) -> &mut [T] {
        let some = &mut self.0[..n];
        some.fill(MaybeUninit::new(with));
        // SAFETY: all of them were just written.
        unsafe { std::slice::from_raw_parts_mut(some.as_mut_ptr().cast(), n) }
    }
}

/// Rows added up before they meet the lanes.
const GROUP: usize = 8;
/// Groups that go into a lane before it goes into its total.
const GROUPS: usize = 16;

impl<F: Fold<W>, const W: usize> Columns for Folded<F, W> {
    type In = F::In;
    type Cell = F::Total;
    type Out = F::Out;
    const TOGETHER: usize = W;

    #[inline(always)]
    fn start(self) -> F::Total {
        self.0.total()
    }

    #[inline(always)]
    unsafe fn more<I: Isa>(
        self,
        cells: &mut [F::Total],
        x: *const F::In,
        rows: usize,
        stride: isize,
        _index: Index,
    ) {
        // SAFETY: the caller's promise, passed on.
        unsafe { fold::<I, F, W>(self.0, cells, x, rows, stride) }
    }

    #[inline(always)]
    fn join(self, a: F::Total, b: F::Total) -> F::Total {
        self.0.join(a, b)
    }

    #[inline(always)]
    fn finish(self, cell: F::Total, n: usize) -> F::Out {
        self.0.finish(cell, n)
    }
}

#[inline(always)]
unsafe fn fold<I: Isa, F: Fold<W>, const W: usize>(
    f: F,
    cells: &mut [F::Total],
    x: *const F::In,
    rows: usize,
    stride: isize,
) {
    let columns = cells.len();
    let whole = columns / W * W;
    // The last block with columns that are done already, whose lanes stay as they are. (The largest down 155 rows of 36 f32 take
    // 0.44 µs on a Zen 5 with AVX2 and the last columns one by one, 0.34 so; but sums down 300 rows of 100, 1.01 and 1.23 with
    // AVX-512.)
    let together = whole > 0 && (F::IN_REGISTERS || columns - whole > W / 4);
    let mut room = Room::new();
    let lanes = room.of(columns, f.lane());
    let mut row = 0;
    while row < rows {
        let groups = ((rows - row) / GROUP).min(GROUPS);
        let singles = if groups == 0 { rows - row } else { 0 };
        lanes.fill(f.lane());
        // SAFETY: rows below `rows`, columns below `cells.len()`.
        unsafe {
            for _ in 0..groups {
                let p = x.offset(row as isize * stride);
                for at in (0..whole).step_by(W) {
                    let lane = lanes.as_mut_ptr().add(at) as *mut [F::Lane; W];
                    *lane = group::<I, F, W>(f, *lane, p.add(at), stride);
                }
                if !together {
                    for (at, lane) in lanes.iter_mut().enumerate().skip(whole) {
                        *lane = group1(f, *lane, p.add(at), stride);
                    }
                } else if whole < columns {
                    let at = columns - W;
                    let lane = *(lanes.as_ptr().add(at) as *const [F::Lane; W]);
                    let last = group::<I, F, W>(f, lane, p.add(at), stride);
                    lanes[whole..].copy_from_slice(&last[whole - at..]);
                }
                row += GROUP;
            }
            if whole > 0 && F::IN_REGISTERS && I::LEVEL == Level::Avx512 {
                let p = x.offset(row as isize * stride);
                // What fills no block together with some before it, which no extreme minds.
                for at in (0..whole).step_by(W).chain((whole < columns).then_some(columns - W)) {
                    let mut lane = *(lanes.as_ptr().add(at) as *const [F::Lane; W]);
                    for k in 0..singles as isize {
                        f.block::<I>(&mut lane, *(p.offset(k * stride).add(at) as *const [F::In; W]));
                    }
                    *(lanes.as_mut_ptr().add(at) as *mut [F::Lane; W]) = lane;
                }
            } else {
                for k in 0..singles as isize {
                    let p = x.offset((row as isize + k) * stride);
                    for (at, lane) in lanes.iter_mut().enumerate() {
                        *lane = f.step::<I>(*lane, *p.add(at));
                    }
                }
            }
            row += singles;
        }
        for (cell, &lane) in cells.iter_mut().zip(lanes.iter()) {
            *cell = f.widen(*cell, lane);
        }
    }
}

/// A block of lanes with the elements of eight rows, added up in pairs.
#[inline(always)]
unsafe fn group<I: Isa, F: Fold<W>, const W: usize>(
    f: F,
    lanes: [F::Lane; W],
    p: *const F::In,
    stride: isize,
) -> [F::Lane; W] {
    // SAFETY: the caller vouches for eight rows of `W`.
    unsafe {
        let mut sums = lanes;
        if f.eight::<I>(&mut sums, p, stride) {
            return sums;
        }
        // Lane by lane the compiler makes vectors of all but extremes with AVX-512 (the largest down 1364 rows of 136 f32:
        // 10.7 µs so on a Zen 5, 6.3 block by block; sums block by block take up to eight times as long).
        if F::IN_REGISTERS && I::LEVEL == Level::Avx512 {
            return in_registers::<I, F, W>(f, lanes, p, stride);
        }
        let row = |k: isize| *(p.offset(k * stride) as *const [F::In; W]);
        let x = [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)];
        let mut out = lanes;
        for j in 0..W {
            let pair = |k: usize| f.merge(f.lift(x[k][j]), f.lift(x[k + 1][j]));
            let sum = f.merge(f.merge(pair(0), pair(2)), f.merge(pair(4), pair(6)));
            out[j] = f.merge(lanes[j], sum);
        }
        out
    }
}

/// The same, block by block.
#[inline(always)]
unsafe fn in_registers<I: Isa, F: Fold<W>, const W: usize>(
    f: F,
    mut lanes: [F::Lane; W],
    p: *const F::In,
    stride: isize,
) -> [F::Lane; W] {
    // SAFETY: the caller vouches for eight rows of `W`.
    unsafe {
        let mut left = pair::<I, F, W>(f, p, stride);
        f.merge_blocks::<I>(&mut left, pair::<I, F, W>(f, p.offset(2 * stride), stride));
        let mut right = pair::<I, F, W>(f, p.offset(4 * stride), stride);
        f.merge_blocks::<I>(&mut right, pair::<I, F, W>(f, p.offset(6 * stride), stride));
        f.merge_blocks::<I>(&mut left, right);
        f.merge_blocks::<I>(&mut lanes, left);
    }
    lanes
}

/// Two rows in one block of lanes. (A function, not a closure, which would be compiled without the instruction set.)
#[inline(always)]
unsafe fn pair<I: Isa, F: Fold<W>, const W: usize>(f: F, p: *const F::In, stride: isize) -> [F::Lane; W] {
    // SAFETY: the caller vouches for two rows of `W`.
    let (one, two) = unsafe { (*(p as *const [F::In; W]), *(p.offset(stride) as *const [F::In; W])) };
    let mut lanes = one.map(|x| f.lift(x));
    f.merge_blocks::<I>(&mut lanes, two.map(|x| f.lift(x)));
    lanes
}

#[inline(always)]
unsafe fn group1<F: Fold<W>, const W: usize>(f: F, lane: F::Lane, p: *const F::In, stride: isize) -> F::Lane {
    // SAFETY: the caller vouches for eight rows.
    let x = |k: isize| f.lift(unsafe { *p.offset(k * stride) });
    let left = f.merge(f.merge(x(0), x(1)), f.merge(x(2), x(3)));
    let right = f.merge(f.merge(x(4), x(5)), f.merge(x(6), x(7)));
    f.merge(lane, f.merge(left, right))
}
