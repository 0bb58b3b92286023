//! Fewer elements than a block has, by way of a whole one on the stack.

use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::isa::Level;

/// A block on the stack. Across cache lines it is written and read again in 8 ns more.
#[repr(align(64))]
pub(super) struct Pad<T, const L: usize>(pub [T; L]);

/// Fewer elements than a block has, into a block of which the rest is nothing. What is read as one vector is written as one, where
/// there are masks for it: otherwise it has to wait for the pieces. (`exp` of 13 f32 takes 34 ns on a Zen 5 in pieces, 17 so.)
///
/// # Safety
/// `from` must be good for `n` elements.
#[inline(always)]
pub(super) unsafe fn fetch<I: Isa, T, const L: usize>(from: *const T, to: &mut [T; L], n: usize) {
    #[cfg(target_arch = "x86_64")]
    if I::LEVEL == Level::Avx512 && size_of::<[T; L]>() == 64 {
        use std::arch::x86_64::*;
        // SAFETY: this is compiled for the level and runs nowhere else; `n` elements by the caller, the block is as large as a
        // register.
        unsafe {
            let to = to.as_mut_ptr();
            match size_of::<T>() {
                4 => {
                    return _mm512_storeu_epi32(
                        to.cast(),
                        _mm512_maskz_loadu_epi32(live(n) as u16, from.cast()),
                    );
                }
                8 => {
                    return _mm512_storeu_epi64(
                        to.cast(),
                        _mm512_maskz_loadu_epi64(live(n) as u8, from.cast()),
                    );
                }
                _ => {}
            }
        }
    }
    // SAFETY: the caller's promise; a block holds more.
    unsafe { copy(from, to.as_mut_ptr(), n) }
}

/// The first `n` elements of a block.
///
/// # Safety
/// `to` must be good for `n` elements.
#[inline(always)]
pub(super) unsafe fn put<I: Isa, T, const L: usize>(from: &[T; L], to: *mut T, n: usize) {
    #[cfg(target_arch = "x86_64")]
    if I::LEVEL == Level::Avx512 && size_of::<[T; L]>() == 64 {
        use std::arch::x86_64::*;
        // SAFETY: as in `fetch`.
        unsafe {
            let from = from.as_ptr();
            match size_of::<T>() {
                4 => {
                    return _mm512_mask_storeu_epi32(
                        to.cast(),
                        live(n) as u16,
                        _mm512_loadu_epi32(from.cast()),
                    );
                }
                8 => {
                    return _mm512_mask_storeu_epi64(
                        to.cast(),
                        live(n) as u8,
                        _mm512_loadu_epi64(from.cast()),
                    );
                }
                _ => {}
            }
        }
    }
    // SAFETY: the caller's promise; a block has more.
    unsafe { copy(from.as_ptr(), to, n) }
}

/// A mask of so many elements, fewer than 32.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn live(n: usize) -> u32 {
    (1 << n) - 1
}

/// Copies fewer bytes than a block has, without a call: two pieces that overlap.
#[inline(always)]
unsafe fn copy<T>(from: *const T, to: *mut T, n: usize) {
    let bytes = n * size_of::<T>();
    let (from, to) = (from.cast::<u8>(), to.cast::<u8>());
    macro_rules! pieces {
        ($($size:literal)+) => {
            $(if bytes >= $size {
                // SAFETY: `n` elements on both sides, by the caller.
                unsafe {
                    let head = from.cast::<[u8; $size]>().read_unaligned();
                    let tail = from.add(bytes - $size).cast::<[u8; $size]>().read_unaligned();
                    to.cast::<[u8; $size]>().write_unaligned(head);
                    to.add(bytes - $size).cast::<[u8; $size]>().write_unaligned(tail);
                }
                return;
            })+
        };
    }
    pieces!(32 16 8 4 2 1);
}
