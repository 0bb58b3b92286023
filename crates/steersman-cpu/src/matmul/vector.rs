//! Vector registers as types, so that a tile is written once for every instruction set.
//!
//! Methods are `#[inline(always)]` without target features of their own: they become single
//! instructions once inlined into a function that has the features.

use super::Element;

/// One vector register of `T`.
///
/// # Safety
/// Implementations touch exactly the lanes they are asked for; callers run them only where the
/// instruction set is present.
pub(super) unsafe trait Vector: Copy {
    /// One lane.
    type T: Element;
    /// Which lanes take part in a masked load or store.
    type Mask: Copy;
    /// Lanes in the register.
    const LANES: usize;
    /// All lanes zero.
    unsafe fn zero() -> Self;
    /// All lanes `x`.
    unsafe fn splat(x: Self::T) -> Self;
    /// Lanes from `p`, any alignment.
    unsafe fn load(p: *const Self::T) -> Self;
    /// The masked lanes from `p`, zeros elsewhere; memory outside the mask is not touched.
    unsafe fn load_masked(p: *const Self::T, mask: Self::Mask) -> Self;
    /// Lanes to `p`, any alignment.
    unsafe fn store(self, p: *mut Self::T);
    /// The masked lanes to `p`.
    unsafe fn store_masked(self, p: *mut Self::T, mask: Self::Mask);
    /// Lanes to `p`, aligned to the register's size, past the caches.
    unsafe fn stream(self, p: *mut Self::T);
    /// `self · b + acc`.
    unsafe fn fma(self, b: Self, acc: Self) -> Self;
    /// Lane by lane sum.
    unsafe fn add(self, other: Self) -> Self;
    /// Sum of the lanes.
    unsafe fn sum(self) -> Self::T;
    /// The first `lanes` lanes.
    unsafe fn mask(lanes: usize) -> Self::Mask;
    /// Side of the square that [`Vector::transpose`] moves.
    const SQUARE: usize;
    /// Writes `from[i * line + p]` to `to[p * stride + i]` for all `i` and `p` below [`Vector::SQUARE`].
    unsafe fn transpose(from: *const Self::T, line: isize, to: *mut Self::T, stride: usize);
}

/// `N` lanes as an array: what the compiler makes of it is SSE2 or NEON, or plain scalars elsewhere.
#[derive(Clone, Copy)]
pub(super) struct Lanes<T, const N: usize>([T; N]);

macro_rules! portable {
    ($t:ty, $n:expr) => {
        // SAFETY: loads and stores touch N lanes, masked ones the first `mask` lanes.
        unsafe impl Vector for Lanes<$t, $n> {
            type T = $t;
            type Mask = usize;
            const LANES: usize = $n;
            #[inline(always)]
            unsafe fn zero() -> Self {
                Self([0.0; $n])
            }
            #[inline(always)]
            unsafe fn splat(x: $t) -> Self {
                Self([x; $n])
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: the caller has N lanes at p.
                Self(unsafe { p.cast::<[$t; $n]>().read_unaligned() })
            }
            #[inline(always)]
            unsafe fn load_masked(p: *const $t, mask: usize) -> Self {
                let mut v = [0.0; $n];
                for (i, x) in v.iter_mut().enumerate() {
                    if i < mask {
                        // SAFETY: the caller has `mask` lanes at p.
                        *x = unsafe { *p.add(i) };
                    }
                }
                Self(v)
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: the caller has N lanes at p.
                unsafe { p.cast::<[$t; $n]>().write_unaligned(self.0) }
            }
            #[inline(always)]
            unsafe fn store_masked(self, p: *mut $t, mask: usize) {
                for (i, x) in self.0.into_iter().enumerate() {
                    if i < mask {
                        // SAFETY: the caller has `mask` lanes at p.
                        unsafe { *p.add(i) = x };
                    }
                }
            }
            #[inline(always)]
            unsafe fn stream(self, p: *mut $t) {
                // SAFETY: as for `store`.
                unsafe { self.store(p) }
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, acc: Self) -> Self {
                let mut v = acc.0;
                for i in 0..$n {
                    v[i] = if cfg!(target_arch = "aarch64") {
                        self.0[i].mul_add(b.0[i], v[i])
                    } else {
                        v[i] + self.0[i] * b.0[i]
                    };
                }
                Self(v)
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                let mut v = self.0;
                for i in 0..$n {
                    v[i] += other.0[i];
                }
                Self(v)
            }
            #[inline(always)]
            unsafe fn sum(self) -> $t {
                self.0.into_iter().sum()
            }
            #[inline(always)]
            unsafe fn mask(lanes: usize) -> usize {
                lanes
            }
            const SQUARE: usize = 4;
            #[inline(always)]
            unsafe fn transpose(from: *const $t, line: isize, to: *mut $t, stride: usize) {
                // SAFETY: the caller has the square at both ends.
                unsafe {
                    let lines: [[$t; 4]; 4] = std::array::from_fn(|i| {
                        from.offset(i as isize * line).cast::<[$t; 4]>().read_unaligned()
                    });
                    for p in 0..4 {
                        let step = [lines[0][p], lines[1][p], lines[2][p], lines[3][p]];
                        to.add(p * stride).cast::<[$t; 4]>().write_unaligned(step);
                    }
                }
            }
        }
    };
}
portable!(f32, 4);
portable!(f64, 2);

#[cfg(target_arch = "x86_64")]
mod x86 {
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

    macro_rules! avx2 {
        ($v:ty, $t:ty, $n:expr, $zero:ident, $set1:ident, $load:ident, $mload:ident, $store:ident,
         $mstore:ident, $stream:ident, $fma:ident, $add:ident, $words:expr, $square:ident) => {
            // SAFETY: one instruction each; masked ones do not touch memory outside the mask.
            unsafe impl Vector for $v {
                type T = $t;
                type Mask = __m256i;
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
                unsafe fn load_masked(p: *const $t, mask: __m256i) -> Self {
                    // SAFETY: masked lanes are not touched.
                    unsafe { $mload(p, mask) }
                }
                #[inline(always)]
                unsafe fn store(self, p: *mut $t) {
                    // SAFETY: the caller has a register's worth at p.
                    unsafe { $store(p, self) }
                }
                #[inline(always)]
                unsafe fn store_masked(self, p: *mut $t, mask: __m256i) {
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
                    let mut lanes = [0.0; $n];
                    // SAFETY: the array has room for the register.
                    unsafe { self.store(lanes.as_mut_ptr()) };
                    lanes.into_iter().sum()
                }
                #[inline(always)]
                unsafe fn mask(lanes: usize) -> __m256i {
                    // SAFETY: as above, and the window starts inside the table.
                    unsafe { _mm256_loadu_si256(ONES_THEN_ZEROS.as_ptr().add(8 - $words * lanes).cast()) }
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
        _mm256_maskstore_ps,
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
        _mm256_maskstore_pd,
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
            let pair = |i: isize, p: usize| {
                _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(at(i, p)), at(i + 4, p))
            };
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
            let pair = |i: isize, p: usize| {
                _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(at(i, p)), at(i + 2, p))
            };
            for p in [0, 2] {
                let (r0, r1) = (pair(0, p), pair(1, p));
                _mm256_storeu_pd(to.add(p * stride), _mm256_unpacklo_pd(r0, r1));
                _mm256_storeu_pd(to.add((p + 1) * stride), _mm256_unpackhi_pd(r0, r1));
            }
        }
    }

    /// A window of eight 32-bit words into this is the mask of the first lanes.
    static ONES_THEN_ZEROS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
}
