//! One tile: a square of elements as wide as a cache line, turned round in registers.
//!
//! A tile is built in a buffer and then written line by line. Written directly, the lines of a matrix
//! whose rows are a power of two apart would push each other out of the cache before they are full.

use super::plan::Loop;
use super::scalar::walk;
use crate::isa::{Isa, Level};

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
    /// Elements along the side of what [`Element::small`] turns round.
    fn lanes<I: Isa>() -> usize;

    /// Turns round as many rows of as many elements. Strides are in elements.
    ///
    /// # Safety
    /// Both must be valid for them.
    unsafe fn small<I: Isa>(x: *const Self, from: isize, y: *mut Self, to: isize);

    /// Whether there is code for [`Element::lines`].
    const LINES: bool = false;

    /// Turns round two squares, one below the other, which make whole lines: what is read again soon in vectors of 64 bytes
    /// has to be written in such.
    ///
    /// # Safety
    /// Both must be valid for them, and AVX-512 present.
    #[inline(always)]
    unsafe fn lines(_x: *const Self, _from: isize, _y: *mut Self, _to: isize) {}
}

macro_rules! element {
    ($t:ty, $n:literal, $low:ident, $high:ident $(, $wide_n:literal, $wide:ident, $lines:ident)?) => {
        impl Element for $t {
            #[inline(always)]
            fn lanes<I: Isa>() -> usize {
                $(if cfg!(target_arch = "x86_64") && I::VECTOR_BYTES >= 32 {
                    return $wide_n;
                })?
                $n
            }

            #[inline(always)]
            unsafe fn small<I: Isa>(x: *const $t, from: isize, y: *mut $t, to: isize) {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: SSE2 is part of x86-64, AVX2 of levels this wide; the caller vouches for the
                // pointers.
                unsafe {
                    use std::arch::x86_64::*;
                    $(if I::VECTOR_BYTES >= 32 {
                        return avx2::$wide(x, from, y, to);
                    })?
                    // Interleaving the halves log2(n) times makes columns of rows.
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

            $(
                const LINES: bool = cfg!(target_arch = "x86_64");

                #[cfg(target_arch = "x86_64")]
                #[inline(always)]
                unsafe fn lines(x: *const $t, from: isize, y: *mut $t, to: isize) {
                    // SAFETY: the caller's promise, passed on.
                    unsafe { avx2::$lines(x, from, y, to) }
                }
            )?
        }
    };
}

element!(u8, 16, _mm_unpacklo_epi8, _mm_unpackhi_epi8);
element!(u16, 8, _mm_unpacklo_epi16, _mm_unpackhi_epi16);
element!(u32, 4, _mm_unpacklo_epi32, _mm_unpackhi_epi32, 8, eight, eight_lines);
element!(u64, 2, _mm_unpacklo_epi64, _mm_unpackhi_epi64, 4, four, four_lines);

/// Squares of 32-byte rows. Interleaving works within 16-byte halves, so halves are swapped last.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    /// The columns of eight rows of eight.
    #[inline(always)]
    pub unsafe fn of_eight(x: *const u32, from: isize) -> [__m256i; 8] {
        // SAFETY: the caller has AVX2 and vouches for the rows.
        unsafe {
            let r = |i: isize| _mm256_loadu_si256(x.offset(i * from) as *const __m256i);
            let r = [r(0), r(1), r(2), r(3), r(4), r(5), r(6), r(7)];
            let mut s = r;
            for i in 0..4 {
                s[2 * i] = _mm256_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
                s[2 * i + 1] = _mm256_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
            }
            let mut t = s;
            for h in [0, 4] {
                t[h] = _mm256_unpacklo_epi64(s[h], s[h + 2]);
                t[h + 1] = _mm256_unpackhi_epi64(s[h], s[h + 2]);
                t[h + 2] = _mm256_unpacklo_epi64(s[h + 1], s[h + 3]);
                t[h + 3] = _mm256_unpackhi_epi64(s[h + 1], s[h + 3]);
            }
            let mut out = t;
            for i in 0..4 {
                out[i] = _mm256_permute2x128_si256::<0x20>(t[i], t[i + 4]);
                out[i + 4] = _mm256_permute2x128_si256::<0x31>(t[i], t[i + 4]);
            }
            out
        }
    }

    /// The columns of four rows of four.
    #[inline(always)]
    pub unsafe fn of_four(x: *const u64, from: isize) -> [__m256i; 4] {
        // SAFETY: the caller has AVX2 and vouches for the rows.
        unsafe {
            let r = |i: isize| _mm256_loadu_si256(x.offset(i * from) as *const __m256i);
            let (a, b, c, d) = (r(0), r(1), r(2), r(3));
            let (p, q) = (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
            let (s, t) = (_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d));
            [
                _mm256_permute2x128_si256::<0x20>(p, s),
                _mm256_permute2x128_si256::<0x20>(q, t),
                _mm256_permute2x128_si256::<0x31>(p, s),
                _mm256_permute2x128_si256::<0x31>(q, t),
            ]
        }
    }

    macro_rules! turn {
        ($square:ident, $lines:ident, $columns:ident, $t:ty, $n:literal) => {
            /// Turns round a square.
            #[inline(always)]
            pub unsafe fn $square(x: *const $t, from: isize, y: *mut $t, to: isize) {
                // SAFETY: the caller has AVX2 and vouches for the square.
                unsafe {
                    for (i, column) in $columns(x, from).into_iter().enumerate() {
                        _mm256_storeu_si256(y.offset(i as isize * to) as *mut __m256i, column);
                    }
                }
            }

            /// Turns round two squares, one below the other, into whole lines.
            #[inline(always)]
            pub unsafe fn $lines(x: *const $t, from: isize, y: *mut $t, to: isize) {
                // SAFETY: the caller has AVX-512 and vouches for the squares.
                unsafe {
                    let (upper, lower) = ($columns(x, from), $columns(x.offset($n * from), from));
                    for i in 0..$n {
                        let line = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(upper[i]), lower[i]);
                        _mm512_storeu_si512(y.offset(i as isize * to) as *mut __m512i, line);
                    }
                }
            }
        };
    }
    turn!(eight, eight_lines, of_eight, u32, 8);
    turn!(four, four_lines, of_four, u64, 4);
}

/// Turns round one tile: `LINE` bytes of as many rows as a line has elements.
///
/// # Safety
/// Both must be valid for the tile; for streaming stores each output row must begin at a line.
#[inline(always)]
pub(super) unsafe fn whole<I: Isa, E: Element, const STREAM: bool>(
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
                E::small::<I>(
                    x.offset(i as isize * from).add(j),
                    from,
                    line.add(j * side + i),
                    side as isize,
                );
                j += E::lanes::<I>();
            }
            i += E::lanes::<I>();
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

/// Asks for the lines of a tile that comes soon: rows far apart are more than the hardware foresees.
#[inline(always)]
pub(super) fn soon<E: Element>(x: *const E, from: isize) {
    #[cfg(target_arch = "x86_64")]
    for row in 0..(LINE / size_of::<E>()) as isize {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(x.wrapping_offset(row * from) as *const i8) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (x, from);
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

/// Turns round a part smaller than a tile. Its last squares reach back beyond its beginning where it is no whole
/// number of them: what is there is written twice.
///
/// # Safety
/// Both must be valid for `down` × `across` elements, and for as many before them as make a square.
#[inline(always)]
pub(super) unsafe fn part<I: Isa, E: Element>(
    (down, across): (usize, usize),
    x: *const E,
    from: isize,
    y: *mut E,
    to: isize,
) {
    let lanes = E::lanes::<I>();
    for i in starts(down, lanes) {
        for j in starts(across, lanes) {
            // SAFETY: the caller's promise.
            unsafe { E::small::<I>(x.offset(i * from + j), from, y.offset(j * to + i), to) }
        }
    }
}

/// Where the squares along `n` elements begin.
#[inline(always)]
fn starts(n: usize, lanes: usize) -> impl Iterator<Item = isize> {
    (0..n.div_ceil(lanes)).map(move |k| (k * lanes) as isize - beyond(k, lanes, n))
}

/// How far the `k`-th square along `n` elements reaches beyond them.
#[inline(always)]
fn beyond(k: usize, lanes: usize, n: usize) -> isize {
    ((k + 1) * lanes).saturating_sub(n) as isize
}

/// Whether a matrix narrower than a square is moved in squares that reach into the rows behind, of which there are no gaps
/// between.
pub(super) fn reaches((down, across): (usize, usize), from: isize, to: isize, lanes: usize) -> bool {
    let wide = |n: usize| 2 * n > lanes;
    across < lanes && wide(across) && from == across as isize && down > lanes
        || down < lanes && wide(down) && to == down as isize && across > lanes
}

/// Room for one square, in lines that vectors begin at.
#[repr(align(64))]
struct Square(std::mem::MaybeUninit<[u8; 256]>);

/// Turns round what is narrower than a square.
///
/// # Safety
/// Both must be valid for `down` × `across` elements.
#[inline(always)]
pub(super) unsafe fn narrow<I: Isa, E: Element>(
    (down, across): (usize, usize),
    x: *const E,
    from: isize,
    y: *mut E,
    to: isize,
) {
    let lanes = E::lanes::<I>();
    if !reaches((down, across), from, to, lanes) {
        // SAFETY: the caller's promise.
        return unsafe { one_by_one((down, across), x, from, y, to) };
    }
    let mut square = Square(std::mem::MaybeUninit::zeroed());
    let square = square.0.as_mut_ptr() as *mut E;
    let mut done = 0;
    // SAFETY: a square holds `lanes` rows of as many elements. What squares reach into are rows of the matrix; those written
    // by the way are written again.
    unsafe {
        if across < lanes {
            while (done + lanes - 1) * across + lanes <= down * across {
                E::small::<I>(x.add(done * across), from, square, lanes as isize);
                for j in 0..across {
                    y.offset(j as isize * to)
                        .add(done)
                        .copy_from_nonoverlapping(square.add(j * lanes), lanes);
                }
                done += lanes;
            }
            one_by_one((down - done, across), x.add(done * across), from, y.add(done), to);
        } else {
            while (done + lanes - 1) * down + lanes <= across * down {
                for i in 0..down {
                    square
                        .add(i * lanes)
                        .copy_from_nonoverlapping(x.offset(i as isize * from).add(done), lanes);
                }
                E::small::<I>(square, lanes as isize, y.add(done * down), to);
                done += lanes;
            }
            one_by_one((down, across - done), x.add(done), from, y.add(done * down), to);
        }
    }
}

/// Turns round what is narrower than a square, element by element, by the plain kernel's own loops: where the compiler knows that
/// results lie side by side it makes code that takes 1.3 times as long.
///
/// # Safety
/// Both must be valid for `down` × `across` elements.
#[inline(always)]
unsafe fn one_by_one<E: Element>(
    (down, across): (usize, usize),
    x: *const E,
    from: isize,
    y: *mut E,
    to: isize,
) {
    let (rows, columns) = (Loop { n: down, from, to: 1 }, Loop { n: across, from: 1, to });
    // The longer loop inside.
    let loops = if down < across { [rows, columns] } else { [columns, rows] };
    // SAFETY: the caller's promise.
    unsafe { walk(&loops, x, y) }
}

/// Turns round `down` × `across` elements of any type. Strides are in elements.
///
/// # Safety
/// Both must be valid for them.
#[inline(always)]
pub(crate) unsafe fn turn<I: Isa, T: Copy>(
    (down, across): (usize, usize),
    x: *const T,
    from: usize,
    y: *mut T,
    to: usize,
) {
    let (from, to) = (from as isize, to as isize);
    // SAFETY: the caller's promise; bits are moved as they are.
    unsafe {
        match size_of::<T>() {
            1 => turn_as::<I, u8>((down, across), x.cast(), from, y.cast(), to),
            2 => turn_as::<I, u16>((down, across), x.cast(), from, y.cast(), to),
            4 => turn_as::<I, u32>((down, across), x.cast(), from, y.cast(), to),
            _ => turn_as::<I, u64>((down, across), x.cast(), from, y.cast(), to),
        }
    }
}

/// Elements along the side of a square that [`turn`] turns round at once.
#[inline(always)]
pub(crate) fn side<I: Isa, T>() -> usize {
    match size_of::<T>() {
        1 => u8::lanes::<I>(),
        2 => u16::lanes::<I>(),
        4 => u32::lanes::<I>(),
        _ => u64::lanes::<I>(),
    }
}

#[inline(always)]
unsafe fn turn_as<I: Isa, E: Element>(
    (down, across): (usize, usize),
    x: *const E,
    from: isize,
    y: *mut E,
    to: isize,
) {
    let lanes = E::lanes::<I>();
    // SAFETY: the caller's promise; a part as wide and high as a square needs nothing before it.
    unsafe {
        if down.min(across) < lanes {
            narrow::<I, E>((down, across), x, from, y, to);
        } else if I::LEVEL == Level::Avx512 && E::LINES && down.is_multiple_of(2 * lanes) {
            for i in (0..down).step_by(2 * lanes) {
                for j in starts(across, lanes) {
                    E::lines(x.offset(i as isize * from + j), from, y.offset(j * to).add(i), to);
                }
            }
        } else {
            part::<I, E>((down, across), x, from, y, to);
        }
    }
}

/// Elements of this size along the side of a square.
pub(super) fn lanes(level: Level, size: usize) -> usize {
    let vector = if size >= 4 && level.vector_bytes() >= 32 { 32 } else { 16 };
    vector / size.max(1)
}
