//! One tile: a square of elements as wide as a cache line, turned round in registers.
//!
//! A tile is built in a buffer and then written line by line. Written directly, the lines of a matrix
//! whose rows are a power of two apart would push each other out of the cache before they are full.

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stores {
    /// Through the caches.
    Cached,
    /// Past them, in whole lines.
    Streaming,
}

impl Stores {
    /// Whether this CPU has them.
    pub fn available(self) -> bool {
        self == Stores::Cached || cfg!(target_arch = "x86_64")
    }
}

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// The buffer of one tile: at most 64 lines, for elements of one byte.
#[repr(align(64))]
pub(super) struct Buffer(pub std::mem::MaybeUninit<[u8; LINE * LINE]>);

/// Elements by their size.
pub(super) trait Element: Copy + Send + Sync + 'static {
    /// Elements in 16 bytes.
    const LANES: usize;

    /// Turns round `LANES` × `LANES` elements. Strides are in elements.
    ///
    /// # Safety
    /// Both must be valid for as many rows of as many elements.
    unsafe fn small(x: *const Self, from: isize, y: *mut Self, to: isize);
}

/// Interleaves the halves of rows until rows are columns: log2(`n`) rounds.
macro_rules! element {
    ($t:ty, $n:literal, $low:ident, $high:ident) => {
        impl Element for $t {
            const LANES: usize = $n;

            #[inline(always)]
            unsafe fn small(x: *const $t, from: isize, y: *mut $t, to: isize) {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: SSE2 is part of x86-64; the caller vouches for the pointers.
                unsafe {
                    use std::arch::x86_64::*;
                    let mut rows = [_mm_setzero_si128(); $n];
                    for (i, row) in rows.iter_mut().enumerate() {
                        *row = _mm_loadu_si128(x.offset(i as isize * from) as *const __m128i);
                    }
                    let mut round = 1;
                    while round < $n {
                        let old = rows;
                        for i in 0..$n / 2 {
                            rows[2 * i] = $low(old[i], old[i + $n / 2]);
                            rows[2 * i + 1] = $high(old[i], old[i + $n / 2]);
                        }
                        round *= 2;
                    }
                    for (i, row) in rows.iter().enumerate() {
                        _mm_storeu_si128(y.offset(i as isize * to) as *mut __m128i, *row);
                    }
                }
                #[cfg(not(target_arch = "x86_64"))]
                // SAFETY: the caller vouches for the pointers.
                unsafe {
                    let mut rows = [[0; $n]; $n];
                    for (i, row) in rows.iter_mut().enumerate() {
                        *row = *(x.offset(i as isize * from) as *const [$t; $n]);
                    }
                    for i in 0..$n {
                        let mut column = [0; $n];
                        for j in 0..$n {
                            column[j] = rows[j][i];
                        }
                        *(y.offset(i as isize * to) as *mut [$t; $n]) = column;
                    }
                }
            }
        }
    };
}

element!(u8, 16, _mm_unpacklo_epi8, _mm_unpackhi_epi8);
element!(u16, 8, _mm_unpacklo_epi16, _mm_unpackhi_epi16);
element!(u32, 4, _mm_unpacklo_epi32, _mm_unpackhi_epi32);
element!(u64, 2, _mm_unpacklo_epi64, _mm_unpackhi_epi64);

/// Turns round one tile: `LINE` bytes of as many rows as a line has elements.
///
/// # Safety
/// Both must be valid for the tile; for streaming stores each output row must begin at a line.
#[inline(always)]
pub(super) unsafe fn whole<E: Element, const STREAM: bool>(
    buffer: &mut Buffer,
    x: *const E,
    from: isize,
    y: *mut E,
    to: isize,
) {
    let side = LINE / size_of::<E>();
    let line = buffer.0.as_mut_ptr() as *mut E;
    // SAFETY: the buffer holds `side` lines; the rest is the caller's promise.
    unsafe {
        let mut i = 0;
        while i < side {
            let mut j = 0;
            while j < side {
                E::small(x.offset(i as isize * from).add(j), from, line.add(j * side + i), side as isize);
                j += E::LANES;
            }
            i += E::LANES;
        }
        for row in 0..side {
            put::<STREAM>(line.add(row * side) as *const u8, y.offset(row as isize * to) as *mut u8);
        }
    }
}

/// Copies one line.
///
/// # Safety
/// Both must be valid for a line, and `y` aligned to one if streamed.
#[inline(always)]
pub(super) unsafe fn put<const STREAM: bool>(x: *const u8, y: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if STREAM {
            use std::arch::x86_64::*;
            for k in 0..4 {
                let part = _mm_loadu_si128((x as *const __m128i).add(k));
                _mm_stream_si128((y as *mut __m128i).add(k), part);
            }
            return;
        }
        std::ptr::copy_nonoverlapping(x, y, LINE);
    }
}

/// Makes streamed lines visible to other threads.
#[inline]
pub(super) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: part of SSE, which x86-64 always has.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}

/// Turns round a part smaller than a tile.
///
/// # Safety
/// Both must be valid for `down` × `across` elements.
#[inline(always)]
pub(super) unsafe fn part<E: Element>(
    (down, across): (usize, usize),
    x: *const E,
    from: isize,
    y: *mut E,
    to: isize,
) {
    let (fit_down, fit_across) = (down / E::LANES * E::LANES, across / E::LANES * E::LANES);
    // SAFETY: the caller's promise.
    unsafe {
        for i in (0..fit_down).step_by(E::LANES) {
            for j in (0..fit_across).step_by(E::LANES) {
                let out = y.offset(j as isize * to).add(i);
                E::small(x.offset(i as isize * from).add(j), from, out, to);
            }
        }
        for j in 0..across {
            let rest = if j < fit_across { fit_down } else { 0 };
            for i in rest..down {
                *y.offset(j as isize * to).add(i) = *x.offset(i as isize * from).add(j);
            }
        }
    }
}
