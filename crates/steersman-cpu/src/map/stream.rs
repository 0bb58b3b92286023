//! Copies that bypass the cache on their way to memory.

/// Copies `bytes` from `from` (in cache) to `to`, past the cache where whole lines are written.
///
/// # Safety
/// Both must be good for `bytes` and not overlap. The writes are ordered before later ones only by
/// [`fence`].
#[inline]
pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: `head`, whole lines and the rest cover `bytes` exactly.
    unsafe {
        let head = to.align_offset(LINE).min(bytes);
        to.copy_from_nonoverlapping(from, head);
        let lines = (bytes - head) / LINE;
        for i in 0..lines {
            line(from.add(head + i * LINE), to.add(head + i * LINE));
        }
        let done = head + lines * LINE;
        to.add(done).copy_from_nonoverlapping(from.add(done), bytes - done);
    }
}

const LINE: usize = 64;

/// One line, in whatever register every x86-64 has: the line is what counts, not the width.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn line(from: *const u8, to: *mut u8) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    // SAFETY: 64 bytes each by the caller; `to` starts a line.
    unsafe {
        let (from, to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
        let x = [
            _mm_loadu_si128(from),
            _mm_loadu_si128(from.add(1)),
            _mm_loadu_si128(from.add(2)),
            _mm_loadu_si128(from.add(3)),
        ];
        for (i, x) in x.into_iter().enumerate() {
            _mm_stream_si128(to.add(i), x);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn line(from: *const u8, to: *mut u8) {
    // SAFETY: 64 bytes each by the caller.
    unsafe { to.copy_from_nonoverlapping(from, LINE) }
}

/// Makes what [`copy`] wrote visible before anything written later.
pub fn fence() {
    // SAFETY: every x86-64 has it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_sfence()
    };
}
