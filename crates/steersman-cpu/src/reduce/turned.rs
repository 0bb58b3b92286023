//! Short rows, several at once: turned over, so that each of them is a lane.
//!
//! A row of a dozen elements fills no register and ends in one number, which takes longer than its elements do.

use super::rows::Rows;
use crate::isa::Isa;
use crate::moves::{side, turn};
use std::mem::MaybeUninit;

/// Rows up to this length are turned over if they are gone through twice or searched. (500 rows of 12 f32 on a Xeon with
/// AVX2: their variances 27 ns a row before and 3.6 so, the places of their minima 11.8 and 4.3; of 46, 29 and 11, 43 and
/// 18; of 64, 24 and 16, 50 and 22, but with AVX-512 24 and 18, 15 and 18.)
pub(super) const SEARCHED: usize = 48;

/// Rows up to this length, of elements of this size, are turned over if they are added up or the like. (Means of 500 rows of 12
/// f32 on a Xeon, 3.9 ns a row before and 2.1 so, of 24, 4.3 and 3.0, of 46, 5.6 and 6.1. Sums of 331 rows on a Zen 4: of 25 f32,
/// 5.1 and 3.2, of 40, 4.5 and 4.3, of 48, 4.6 and 5.1; of 28 f64, 5.6 and 5.2, of 32, 5.5 and 5.9.)
pub(super) const fn folded(size: usize) -> usize {
    if size >= 8 { 28 } else { 40 }
}

/// Elements of a row that are turned over at most.
const MOST: usize = SEARCHED;

/// Room for the columns of `R` rows, which begin at a cache line: vectors as long as a line would cross from one to another.
#[repr(align(64))]
struct Room<T, const R: usize>([MaybeUninit<[T; R]>; MOST]);

/// A reduction of `R` rows at once.
pub(super) trait Turned<const R: usize>: Rows {
    /// Rows that are quicker together than one by one: how long at most, and how many at least.
    const LONGEST: usize;
    const FEWEST: usize;

    /// Of rows whose elements with the same index are side by side.
    fn together<I: Isa>(self, columns: &[[Self::In; R]]) -> [Self::Out; R];
}

/// Reduces `rows` rows of `n` elements; answers whether it did, as it does if they are many and short.
///
/// # Safety
/// `x` must be readable for `rows * n` elements and `out` writable for `rows`.
#[inline(always)]
pub(super) unsafe fn turned<I: Isa, J: Turned<R>, const R: usize>(
    job: J,
    x: *const J::In,
    n: usize,
    rows: usize,
    out: *mut J::Out,
) -> bool {
    const { assert!(J::LONGEST <= MOST && J::FEWEST > 0) };
    if !(1..=J::LONGEST).contains(&n) || rows < J::FEWEST {
        return false;
    }
    let mut room = Room([const { MaybeUninit::<[J::In; R]>::uninit() }; MOST]);
    let there = rows.min(R);
    let mut at = 0;
    // SAFETY: as many rows are there, and as many columns, all of which are written before they are read.
    unsafe {
        if there < R {
            // What stands for rows that there are not is any row there is.
            for (j, column) in room.0[..n].iter_mut().enumerate() {
                column.write([*x.add(j); R]);
            }
        }
        while at < rows {
            // The last ones together with some of those before them, which are done twice.
            let first = at.min(rows - there);
            let columns = if n == 1 && there == R {
                x.add(first).cast::<[J::In; R]>()
            } else {
                // Narrower than a square they are turned over with what follows them, as long as something does.
                let side = side::<I, J::In>();
                let follows = (first + there - 1) * n + side <= rows * n;
                let wide = if n < side && follows { side } else { n };
                turn::<I, J::In>((there, wide), x.add(first * n), n, room.0.as_mut_ptr().cast(), R);
                room.0.as_ptr().cast()
            };
            let columns = std::slice::from_raw_parts(columns, n);
            let found = job.together::<I>(columns);
            std::ptr::copy_nonoverlapping(found.as_ptr(), out.add(first), there);
            at = first + R;
        }
    }
    true
}
