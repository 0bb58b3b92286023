//! Runs of bytes that lie side by side in both operands.

use super::tile::{LINE, put};

/// Copies `bytes` bytes.
///
/// # Safety
/// Both must be valid for `bytes`, and must not overlap.
#[inline]
pub(super) unsafe fn copy<const STREAM: bool>(x: *const u8, y: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise; the head brings `y` to a line's beginning.
    unsafe {
        let head = y.align_offset(LINE).min(bytes);
        if STREAM && bytes - head >= LINE {
            std::ptr::copy_nonoverlapping(x, y, head);
            let mut at = head;
            while bytes - at >= LINE {
                put::<true>(x.add(at), y.add(at));
                at += LINE;
            }
            std::ptr::copy_nonoverlapping(x.add(at), y.add(at), bytes - at);
        } else {
            std::ptr::copy_nonoverlapping(x, y, bytes);
        }
    }
}

/// Copies `count` runs of `n` elements each, `at` saying where the i-th is in input and output. Short
/// runs of known length need no call each.
///
/// # Safety
/// All runs must be valid.
#[inline]
pub(super) unsafe fn each<E: Copy, const STREAM: bool>(
    x: *const E,
    y: *mut E,
    n: usize,
    runs: std::ops::Range<usize>,
    at: impl Fn(usize) -> (isize, isize),
) {
    for run in runs {
        let (from, to) = at(run);
        // SAFETY: the caller's promise.
        unsafe {
            let (x, y) = (x.offset(from), y.offset(to));
            if n <= 8 {
                for i in 0..n {
                    *y.add(i) = *x.add(i);
                }
            } else {
                copy::<STREAM>(x as *const u8, y as *mut u8, n * size_of::<E>());
            }
        }
    }
}
