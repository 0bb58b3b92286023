//! AVX2 and AVX-512 registers.

use super::Vector;
use std::arch::x86_64::*;

macro_rules! avx512 {
    ($v:ty, $t:ty, $n:expr, $mask:ty, $zero:ident, $set1:ident, $load:ident, $maskz:ident, $store:ident,
     $mstore:ident, $stream:ident, $fma:ident, $add:ident, $sum:ident, $square:ident) => {
        // SAFETY: one instruction each; masked ones do not touch memory outside the mask.
        unsafe impl Vector for $v {
            type T = $t;
            type Mask = $mask;
            const LANES: usize = $n;
            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the caller runs only where AVX-512 is present, here and below.
                unsafe { $zero() }
            }
            #[inline(always)]
            unsafe fn splat(x: $t) -> Self {
                // SAFETY: as above.
                unsafe { $set1(x) }
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: the caller has a register's worth at p.
                unsafe { $load(p) }
            }
            #[inline(always)]
            unsafe fn load_masked(p: *const $t, mask: $mask) -> Self {
                // SAFETY: masked lanes are not touched.
                unsafe { $maskz(mask, p) }
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: the caller has a register's worth at p.
                unsafe { $store(p, self) }
            }
            #[inline(always)]
            unsafe fn store_masked(self, p: *mut $t, mask: $mask) {
                // SAFETY: masked lanes are not touched.
                unsafe { $mstore(p, mask, self) }
            }
            #[inline(always)]
            unsafe fn stream(self, p: *mut $t) {
                // SAFETY: the caller aligned p.
                unsafe { $stream(p, self) }
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, acc: Self) -> Self {
                // SAFETY: as above.
                unsafe { $fma(self, b, acc) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            unsafe fn sum(self) -> $t {
                // SAFETY: as above.
                unsafe { $sum(self) }
            }
            #[inline(always)]
            unsafe fn mask(lanes: usize) -> $mask {
                ((1u32 << lanes) - 1) as $mask
            }
            const SQUARE: usize = $n / 2;
            #[inline(always)]
            unsafe fn transpose(from: *const $t, line: isize, to: *mut $t, stride: usize) {
                // SAFETY: AVX2 comes with AVX-512; the caller has the square at both ends.
                unsafe { $square(from, line, to, stride) }
            }
        }
    };
}
avx512!(
    __m512,
    f32,
    16,
    __mmask16,
    _mm512_setzero_ps,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_maskz_loadu_ps,
    _mm512_storeu_ps,
    _mm512_mask_storeu_ps,
    _mm512_stream_ps,
    _mm512_fmadd_ps,
    _mm512_add_ps,
    _mm512_reduce_add_ps,
    square_of_8
);
avx512!(
    __m512d,
    f64,
    8,
    __mmask8,
    _mm512_setzero_pd,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_maskz_loadu_pd,
    _mm512_storeu_pd,
    _mm512_mask_storeu_pd,
    _mm512_stream_pd,
    _mm512_fmadd_pd,
    _mm512_add_pd,
    _mm512_reduce_add_pd,
    square_of_4
);

/// The first lanes of a register of AVX2: for loads, and how many they are for stores.
#[derive(Clone, Copy)]
pub(in super::super) struct First {
    mask: __m256i,
    lanes: usize,
}

/// Stores the first lanes in pieces of 4, 2 and 1: masked stores of AVX2 are one instruction that takes a Zen 4 a dozen cycles.
/// (200×4×7 f32 took 885 ns with them and 441 so, 59×2×2 f64 171 and 130.)
#[inline(always)]
unsafe fn store_first_ps(p: *mut f32, first: First, x: __m256) {
    // SAFETY: the caller has AVX2, and so many lanes at p.
    unsafe {
        let (mut p, mut part) = (p, _mm256_castps256_ps128(x));
        if first.lanes >= 8 {
            return _mm256_storeu_ps(p, x);
        }
        if first.lanes & 4 != 0 {
            _mm_storeu_ps(p, part);
            (p, part) = (p.add(4), _mm256_extractf128_ps::<1>(x));
        }
        if first.lanes & 2 != 0 {
            _mm_storel_pd(p.cast(), _mm_castps_pd(part));
            (p, part) = (p.add(2), _mm_movehl_ps(part, part));
        }
        if first.lanes & 1 != 0 {
            _mm_store_ss(p, part);
        }
    }
}

/// The same of f64.
#[inline(always)]
unsafe fn store_first_pd(p: *mut f64, first: First, x: __m256d) {
    // SAFETY: the caller has AVX2, and so many lanes at p.
    unsafe {
        let (mut p, mut part) = (p, _mm256_castpd256_pd128(x));
        if first.lanes >= 4 {
            return _mm256_storeu_pd(p, x);
        }
        if first.lanes & 2 != 0 {
            _mm_storeu_pd(p, part);
            (p, part) = (p.add(2), _mm256_extractf128_pd::<1>(x));
        }
        if first.lanes & 1 != 0 {
            _mm_store_sd(p, part);
        }
    }
}

macro_rules! avx2 {
    ($v:ty, $t:ty, $n:expr, $zero:ident, $set1:ident, $load:ident, $mload:ident, $store:ident,
     $mstore:ident, $stream:ident, $fma:ident, $add:ident, $words:expr, $square:ident) => {
        // SAFETY: one instruction each; masked ones do not touch memory outside the mask.
        unsafe impl Vector for $v {
            type T = $t;
            type Mask = First;
            const LANES: usize = $n;
            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the caller runs only where AVX2 and FMA are present, here and below.
                unsafe { $zero() }
            }
            #[inline(always)]
            unsafe fn splat(x: $t) -> Self {
                // SAFETY: as above.
                unsafe { $set1(x) }
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: the caller has a register's worth at p.
                unsafe { $load(p) }
            }
            #[inline(always)]
            unsafe fn load_masked(p: *const $t, first: First) -> Self {
                // SAFETY: masked lanes are not touched.
                unsafe { $mload(p, first.mask) }
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: the caller has a register's worth at p.
                unsafe { $store(p, self) }
            }
            #[inline(always)]
            unsafe fn store_masked(self, p: *mut $t, first: First) {
                // SAFETY: masked lanes are not touched.
                unsafe { $mstore(p, first, self) }
            }
            #[inline(always)]
            unsafe fn stream(self, p: *mut $t) {
                // SAFETY: the caller aligned p.
                unsafe { $stream(p, self) }
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, acc: Self) -> Self {
                // SAFETY: as above.
                unsafe { $fma(self, b, acc) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            unsafe fn sum(self) -> $t {
                let mut lanes = [0.0; $n];
                // SAFETY: the array has room for the register.
                unsafe { self.store(lanes.as_mut_ptr()) };
                lanes.into_iter().sum()
            }
            #[inline(always)]
            unsafe fn mask(lanes: usize) -> First {
                // SAFETY: as above, and the window starts inside the table.
                let mask =
                    unsafe { _mm256_loadu_si256(ONES_THEN_ZEROS.as_ptr().add(8 - $words * lanes).cast()) };
                First { mask, lanes }
            }
            const SQUARE: usize = $n;
            #[inline(always)]
            unsafe fn transpose(from: *const $t, line: isize, to: *mut $t, stride: usize) {
                // SAFETY: as above; the caller has the square at both ends.
                unsafe { $square(from, line, to, stride) }
            }
        }
    };
}
avx2!(
    __m256,
    f32,
    8,
    _mm256_setzero_ps,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_maskload_ps,
    _mm256_storeu_ps,
    store_first_ps,
    _mm256_stream_ps,
    _mm256_fmadd_ps,
    _mm256_add_ps,
    1,
    square_of_8
);
avx2!(
    __m256d,
    f64,
    4,
    _mm256_setzero_pd,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_maskload_pd,
    _mm256_storeu_pd,
    store_first_pd,
    _mm256_stream_pd,
    _mm256_fmadd_pd,
    _mm256_add_pd,
    2,
    square_of_4
);

/// Transposes 8×8 f32.
#[inline(always)]
unsafe fn square_of_8(from: *const f32, line: isize, to: *mut f32, stride: usize) {
    // SAFETY: the caller has AVX2 and the square at both ends.
    unsafe {
        let at = |i: isize, p: usize| _mm_loadu_ps(from.offset(i * line).add(p));
        // Lines i and i + 4 share a register, so that only 128-bit shuffles remain.
        let pair =
            |i: isize, p: usize| _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(at(i, p)), at(i + 4, p));
        for p in [0, 4] {
            let (r0, r1, r2, r3) = (pair(0, p), pair(1, p), pair(2, p), pair(3, p));
            let (low0, high0) = (_mm256_unpacklo_ps(r0, r1), _mm256_unpackhi_ps(r0, r1));
            let (low1, high1) = (_mm256_unpacklo_ps(r2, r3), _mm256_unpackhi_ps(r2, r3));
            _mm256_storeu_ps(to.add(p * stride), _mm256_shuffle_ps::<0x44>(low0, low1));
            _mm256_storeu_ps(to.add((p + 1) * stride), _mm256_shuffle_ps::<0xEE>(low0, low1));
            _mm256_storeu_ps(to.add((p + 2) * stride), _mm256_shuffle_ps::<0x44>(high0, high1));
            _mm256_storeu_ps(to.add((p + 3) * stride), _mm256_shuffle_ps::<0xEE>(high0, high1));
        }
    }
}

/// Transposes 4×4 f64.
#[inline(always)]
unsafe fn square_of_4(from: *const f64, line: isize, to: *mut f64, stride: usize) {
    // SAFETY: the caller has AVX2 and the square at both ends.
    unsafe {
        let at = |i: isize, p: usize| _mm_loadu_pd(from.offset(i * line).add(p));
        let pair =
            |i: isize, p: usize| _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(at(i, p)), at(i + 2, p));
        for p in [0, 2] {
            let (r0, r1) = (pair(0, p), pair(1, p));
            _mm256_storeu_pd(to.add(p * stride), _mm256_unpacklo_pd(r0, r1));
            _mm256_storeu_pd(to.add((p + 1) * stride), _mm256_unpackhi_pd(r0, r1));
        }
    }
}

/// A window of eight 32-bit words into this is the mask of the first lanes.
static ONES_THEN_ZEROS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
