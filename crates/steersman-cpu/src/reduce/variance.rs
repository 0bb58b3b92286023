//! How far elements are spread, in blocks: each block's mean, then its squared distances from that mean.
//!
//! Blocks are joined by the difference of their means, so memory is read once and a large common offset
//! costs no precision. Arithmetic is in f64 for every element type.

use super::columns::{Columns, Index, Room};
use super::element::Float;
use super::rows::Rows;
use super::turned::{SEARCHED, Turned, turned};
use crate::isa::{Isa, fma64};
use std::marker::PhantomData;

/// Σ(x − mean)²/n, or its root.
#[derive(Clone, Copy)]
pub(super) struct Variance<T> {
    pub root: bool,
    pub of: PhantomData<T>,
}

/// What is known of some elements.
#[derive(Clone, Copy, Default)]
pub(super) struct Spread {
    n: f64,
    mean: f64,
    /// Σ(x − mean)².
    squares: f64,
}

impl Spread {
    #[inline(always)]
    fn join(self, o: Spread) -> Spread {
        if self.n == 0.0 || o.n == 0.0 {
            return if self.n == 0.0 { o } else { self };
        }
        let n = self.n + o.n;
        let apart = o.mean - self.mean;
        Spread {
            n,
            mean: self.mean + apart * (o.n / n),
            squares: self.squares + o.squares + apart * apart * (self.n * o.n / n),
        }
    }

    #[inline(always)]
    fn finish(self, n: usize, root: bool) -> f64 {
        let variance = self.squares / n as f64;
        if root { variance.sqrt() } else { variance }
    }
}

/// Elements of one block; f64 of them fit the nearest cache.
const BLOCK: usize = 2048;
const LANES: usize = 32;

/// Σ of `f(x)` in lanes.
#[inline(always)]
fn lanes<T: Float>(block: &[T], step: impl Fn(f64, T) -> f64) -> f64 {
    let mut acc = [0.0; LANES];
    let mut chunks = block.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (a, &x) in acc.iter_mut().zip(chunk) {
            *a = step(*a, x);
        }
    }
    // Through memory, so that the loop above keeps its lanes in registers.
    let mut acc = std::hint::black_box(acc);
    for (a, &x) in acc.iter_mut().zip(chunks.remainder()) {
        *a = step(*a, x);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for j in 0..half {
            acc[j] += acc[j + half];
        }
        half /= 2;
    }
    acc[0]
}

impl<T: Float> Rows for Variance<T> {
    type In = T;
    type Part = Spread;
    type Out = T;

    #[inline(always)]
    fn start(self) -> Spread {
        Spread::default()
    }

    #[inline(always)]
    unsafe fn more<I: Isa>(self, mut part: Spread, x: *const T, n: usize, _at: usize) -> Spread {
        let mut from = 0;
        while from < n {
            let len = BLOCK.min(n - from);
            // SAFETY: the block lies below `n`, for which the caller vouches.
            let block = unsafe { std::slice::from_raw_parts(x.add(from), len) };
            let mean = lanes(block, |a, x| a + x.wide()) / len as f64;
            let squares = lanes(block, |a, x| {
                let d = x.wide() - mean;
                fma64::<I>(d, d, a)
            });
            part = part.join(Spread { n: len as f64, mean, squares });
            from += len;
        }
        part
    }

    #[inline(always)]
    fn join(self, a: Spread, b: Spread) -> Spread {
        a.join(b)
    }

    #[inline(always)]
    fn finish(self, part: Spread, n: usize) -> T {
        T::from_wide(part.finish(n, self.root))
    }

    #[inline(always)]
    unsafe fn short<I: Isa>(self, x: *const T, n: usize, rows: usize, out: *mut T) -> bool {
        // SAFETY: the caller's promise, passed on.
        unsafe { turned::<I, _, TOGETHER>(self, x, n, rows, out) }
    }
}

/// Rows turned over at once.
const TOGETHER: usize = 16;

impl<T: Float> Turned<TOGETHER> for Variance<T> {
    const LONGEST: usize = SEARCHED;
    const FEWEST: usize = 2;

    #[inline(always)]
    fn together<I: Isa>(self, columns: &[[T; TOGETHER]]) -> [T; TOGETHER] {
        let n = columns.len() as f64;
        let mut mean = [0.0; TOGETHER];
        for column in columns {
            for (m, x) in mean.iter_mut().zip(column) {
                *m += x.wide();
            }
        }
        mean = mean.map(|m| m / n);
        let mut squares = [0.0; TOGETHER];
        for column in columns {
            for ((s, m), x) in squares.iter_mut().zip(mean).zip(column) {
                let d = x.wide() - m;
                *s = fma64::<I>(d, d, *s);
            }
        }
        squares.map(|s| {
            let variance = s / n;
            T::from_wide(if self.root { variance.sqrt() } else { variance })
        })
    }
}

/// Rows of one block of columns.
const ROWS: usize = 64;

impl<T: Float> Columns for Variance<T> {
    type In = T;
    type Cell = Spread;
    type Out = T;
    // Whole vectors of f64, which spreads are made of, at every level.
    const TOGETHER: usize = 8;

    #[inline(always)]
    fn start(self) -> Spread {
        Spread::default()
    }

    #[inline(always)]
    unsafe fn more<I: Isa>(
        self,
        cells: &mut [Spread],
        x: *const T,
        rows: usize,
        stride: isize,
        _index: Index,
    ) {
        let columns = cells.len();
        let (mut means, mut sums) = (Room::new(), Room::new());
        let (mean, squares) = (means.of(columns, 0.0), sums.of(columns, 0.0));
        let mut row = 0;
        while row < rows {
            let count = (rows - row).min(ROWS);
            // SAFETY: rows below `rows`, columns below `cells.len()`.
            let line = |r: usize| unsafe {
                std::slice::from_raw_parts(x.offset((row + r) as isize * stride), columns)
            };
            mean.fill(0.0);
            squares.fill(0.0);
            for r in 0..count {
                for (m, x) in mean.iter_mut().zip(line(r)) {
                    *m += x.wide();
                }
            }
            for m in mean.iter_mut() {
                *m /= count as f64;
            }
            for r in 0..count {
                for ((s, &m), x) in squares.iter_mut().zip(&*mean).zip(line(r)) {
                    let d = x.wide() - m;
                    *s = fma64::<I>(d, d, *s);
                }
            }
            for ((cell, &mean), &squares) in cells.iter_mut().zip(&*mean).zip(&*squares) {
                *cell = cell.join(Spread { n: count as f64, mean, squares });
            }
            row += count;
        }
    }

    #[inline(always)]
    fn join(self, a: Spread, b: Spread) -> Spread {
        a.join(b)
    }

    #[inline(always)]
    fn finish(self, cell: Spread, n: usize) -> T {
        T::from_wide(cell.finish(n, self.root))
    }
}
