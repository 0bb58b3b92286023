//! Blocks and short rows of floats in registers, where the compiler does not find them by itself.
//!
//! It sees that sixteen lanes are one register in most folds, but not in an extreme that NaN wins inside
//! a larger body (argmax of 4096 f32 took 1.6 µs instead of 0.2), and not where a row ends
//! inside a block (20 ns for a row of 73 f32, most of it one element at a time).

use super::element::{Brain, Half};
use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::isa::Level;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

macro_rules! extreme {
    ($name:ident, $t:ident, $w:literal, $register:ident, $unordered:ident, $max:ident, $min:ident) => {
        /// Each lane or its element, whichever is further out; NaN is furthest.
        #[inline(always)]
        #[allow(clippy::eq_op)]
        pub(super) fn $name<I: Isa, const MAX: bool>(lanes: &mut [$t; $w], x: [$t; $w]) {
            #[cfg(target_arch = "x86_64")]
            if I::LEVEL == Level::Avx512 {
                // SAFETY: bodies for AVX-512 run only where it is; register and array are equal in size.
                unsafe {
                    let a = std::mem::transmute::<[$t; $w], $register>(*lanes);
                    let x = std::mem::transmute::<[$t; $w], $register>(x);
                    // The second operand is the result if either is NaN; lanes that are NaN stay.
                    let live = !$unordered::<_CMP_UNORD_Q>(a, a);
                    let a = if MAX { $max(a, live, a, x) } else { $min(a, live, a, x) };
                    *lanes = std::mem::transmute::<$register, [$t; $w]>(a);
                }
                return;
            }
            for (a, x) in lanes.iter_mut().zip(x) {
                let better = if MAX { x > *a } else { x < *a };
                *a = if better | (x != x) { x } else { *a };
            }
        }
    };
}

extreme!(extreme32, f32, 16, __m512, _mm512_cmp_ps_mask, _mm512_mask_max_ps, _mm512_mask_min_ps);
extreme!(extreme64, f64, 8, __m512d, _mm512_cmp_pd_mask, _mm512_mask_max_pd, _mm512_mask_min_pd);

/// Bytes of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Vectors of a row from which it is worth while to begin at a cache line.
#[cfg(target_arch = "x86_64")]
const LONG: usize = 8;

/// What a short row's elements are combined to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Σx.
    Sum,
    /// Σx².
    Squares,
    /// The largest; NaN wins.
    Max,
    /// The smallest; NaN wins.
    Min,
}

/// A float of which registers are made.
pub(super) trait Wide: Copy {
    /// What it is computed in.
    type Lane;
    /// The elements at `x` combined in a few registers; `None` if this instruction set has none.
    ///
    /// # Safety
    /// `x` must be readable for `n` elements, and the CPU have the instruction set.
    unsafe fn tail<I: Isa>(what: Tail, x: *const Self, n: usize) -> Option<Self::Lane>;

    /// Adds the squares of eight rows of a block, `stride` elements apart, to its lanes; whether this instruction set has
    /// code for it. (Lane by lane the compiler turns rows of f64 over instead: down 1115 rows of 773 on a Zen 4 with AVX2 296 µs,
    /// with AVX-512 444, so 104 and 99; 100 of 77 2.1, 3.3 and 0.9, 1.0.)
    ///
    /// # Safety
    /// Each row must be readable for 64 bytes, `lanes` be writable for as much, and the CPU have the instruction set.
    #[inline(always)]
    unsafe fn squares<I: Isa>(_lanes: *mut Self::Lane, _x: *const Self, _stride: isize) -> bool {
        false
    }
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! wide {
    ($($t:ident)+) => {$(
        impl Wide for $t {
            type Lane = $t;
            #[inline(always)]
            unsafe fn tail<I: Isa>(_what: Tail, _x: *const $t, _n: usize) -> Option<$t> {
                None
            }
        }
    )+};
}
#[cfg(not(target_arch = "x86_64"))]
wide!(f32 f64);

/// Whole registers of `$n` elements at `$x`, in four of them: a step waits for the one before it, four at a time do not.
/// (300 rows of 127 f32 with AVX2 took 3.3 µs in one register, 2.4 in four.)
#[cfg(target_arch = "x86_64")]
macro_rules! by_four {
    ($what:ident, $x:ident, $n:ident, $at:ident, $lanes:literal, [$a:ident $b:ident $c:ident $d:ident],
     $step:ident, $load:ident) => {
        while $n - $at >= 4 * $lanes {
            $a = $step($what, $a, $load($x.add($at)));
            $b = $step($what, $b, $load($x.add($at + $lanes)));
            $c = $step($what, $c, $load($x.add($at + 2 * $lanes)));
            $d = $step($what, $d, $load($x.add($at + 3 * $lanes)));
            $at += 4 * $lanes;
        }
        // What is left goes to those that the end of the row, which goes to the first, does not wait for.
        for register in [&mut $b, &mut $c, &mut $d] {
            if $n - $at >= $lanes {
                *register = $step($what, *register, $load($x.add($at)));
                $at += $lanes;
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
macro_rules! wide {
    ($t:ident, $n512:literal, $n256:literal, $m512:ident, $m256:ident, $m128:ident, $mask:ident, $int:ident,
     ($set5:ident $load5:ident $store5:ident $mload5:ident $add5:ident $fma5:ident $max5:ident $min5:ident $cmp5:ident
      $sum5:ident $hmax5:ident $hmin5:ident),
     ($set2:ident $load2:ident $store2:ident $mload2:ident $add2:ident $fma2:ident $max2:ident $min2:ident $cmp2:ident
      $blend2:ident $bits2:ident $movemask2:ident),
     ($low1:ident $high1:ident $add1:ident $max1:ident $min1:ident $turn1:ident $swap1:ident
      $first1:ident)) => {
        impl Wide for $t {
            type Lane = $t;
            #[inline(always)]
            unsafe fn tail<I: Isa>(what: Tail, x: *const $t, n: usize) -> Option<$t> {
                // Functions, not closures: those are compiled without the instruction set, and called.
                #[target_feature(enable = "avx512f")]
                #[inline]
                fn step5(what: Tail, a: $m512, x: $m512) -> $m512 {
                    match what {
                        Tail::Sum => $add5(a, x),
                        Tail::Squares => $fma5(x, x, a),
                        Tail::Max => $max5(a, !$cmp5::<_CMP_UNORD_Q>(a, a), a, x),
                        Tail::Min => $min5(a, !$cmp5::<_CMP_UNORD_Q>(a, a), a, x),
                    }
                }
                #[target_feature(enable = "avx2,fma")]
                #[inline]
                fn step2(what: Tail, a: $m256, x: $m256) -> $m256 {
                    let nan = $cmp2::<_CMP_UNORD_Q>(a, a);
                    match what {
                        Tail::Sum => $add2(a, x),
                        Tail::Squares => $fma2(x, x, a),
                        Tail::Max => $blend2($max2(a, x), a, nan),
                        Tail::Min => $blend2($min2(a, x), a, nan),
                    }
                }
                #[target_feature(enable = "avx2")]
                #[inline]
                fn pair(what: Tail, a: $m128, b: $m128) -> $m128 {
                    match what {
                        Tail::Sum | Tail::Squares => $add1(a, b),
                        Tail::Max => $max1(a, b),
                        Tail::Min => $min1(a, b),
                    }
                }
                // What two registers hold, in one.
                #[target_feature(enable = "avx512f")]
                #[inline]
                fn join5(what: Tail, a: $m512, b: $m512) -> $m512 {
                    if what == Tail::Squares { $add5(a, b) } else { step5(what, a, b) }
                }
                #[target_feature(enable = "avx2,fma")]
                #[inline]
                fn join2(what: Tail, a: $m256, b: $m256) -> $m256 {
                    if what == Tail::Squares { $add2(a, b) } else { step2(what, a, b) }
                }
                let none = match what {
                    Tail::Sum | Tail::Squares => 0.0,
                    Tail::Max => $t::NEG_INFINITY,
                    Tail::Min => $t::INFINITY,
                };
                let mut at = 0;
                // SAFETY: the caller vouches for the instruction set and for `n` elements; a masked load
                // reads none beyond its mask.
                unsafe {
                    if I::LEVEL == Level::Avx512 {
                        let mut a = $set5(none);
                        let (mut b, mut c, mut d) = (a, a, a);
                        // A long row that begins within a cache line has all its vectors across two: with the first of
                        // them cut short they are not.
                        let first = x.align_offset(LINE);
                        if (1..$n512).contains(&first) && n >= LONG * $n512 {
                            let live = ((1u32 << first) - 1) as $mask;
                            d = step5(what, d, $mload5($set5(none), live, x));
                            at = first;
                        }
                        by_four!(what, x, n, at, $n512, [a b c d], step5, $load5);
                        if at < n {
                            let live = ((1u32 << (n - at)) - 1) as $mask;
                            a = step5(what, a, $mload5($set5(none), live, x.add(at)));
                        }
                        a = match n / $n512 {
                            0 => a,
                            1 => join5(what, a, b),
                            _ => join5(what, join5(what, a, b), join5(what, c, d)),
                        };
                        let nan = $cmp5::<_CMP_UNORD_Q>(a, a) != 0;
                        return Some(match what {
                            Tail::Sum | Tail::Squares => $sum5(a),
                            Tail::Max => {
                                if nan {
                                    $t::NAN
                                } else {
                                    $hmax5(a)
                                }
                            }
                            Tail::Min => {
                                if nan {
                                    $t::NAN
                                } else {
                                    $hmin5(a)
                                }
                            }
                        });
                    }
                    if I::LEVEL == Level::Avx2 {
                        let mut a = $set2(none);
                        let (mut b, mut c, mut d) = (a, a, a);
                        by_four!(what, x, n, at, $n256, [a b c d], step2, $load2);
                        if at < n {
                            const LIVE: [$int; 2 * $n256] = {
                                let mut live = [0; 2 * $n256];
                                let mut j = 0;
                                while j < $n256 {
                                    live[j] = -1;
                                    j += 1;
                                }
                                live
                            };
                            let live = LIVE.as_ptr().add($n256 - (n - at)) as *const __m256i;
                            let live = _mm256_loadu_si256(live);
                            let last = $mload2(x.add(at), live);
                            a = step2(what, a, $blend2($set2(none), last, $bits2(live)));
                        }
                        a = match n / $n256 {
                            0 => a,
                            1 => join2(what, a, b),
                            _ => join2(what, join2(what, a, b), join2(what, c, d)),
                        };
                        let extreme = matches!(what, Tail::Max | Tail::Min);
                        if extreme && $movemask2($cmp2::<_CMP_UNORD_Q>(a, a)) != 0 {
                            return Some($t::NAN);
                        }
                        let mut a = pair(what, $low1(a), $high1::<1>(a));
                        if $n256 == 8 {
                            a = pair(what, a, $turn1(a));
                        }
                        return Some($first1(pair(what, a, $swap1(a))));
                    }
                }
                None
            }

            #[inline(always)]
            unsafe fn squares<I: Isa>(lanes: *mut $t, x: *const $t, stride: isize) -> bool {
                #[target_feature(enable = "avx512f")]
                #[inline]
                unsafe fn pair5(x: *const $t, stride: isize) -> $m512 {
                    // SAFETY: the caller vouches for two rows.
                    let (one, two) = unsafe { ($load5(x), $load5(x.offset(stride))) };
                    $fma5(two, two, $fma5(one, one, $set5(0.0)))
                }
                #[target_feature(enable = "avx2,fma")]
                #[inline]
                unsafe fn pair2(x: *const $t, stride: isize) -> $m256 {
                    // SAFETY: the caller vouches for two rows.
                    let (one, two) = unsafe { ($load2(x), $load2(x.offset(stride))) };
                    $fma2(two, two, $fma2(one, one, $set2(0.0)))
                }
                // SAFETY: the caller vouches for the instruction set and for eight rows.
                unsafe {
                    if I::LEVEL == Level::Avx512 {
                        let two = |k: isize| pair5(x.offset(k * stride), stride);
                        let sum = $add5($add5(two(0), two(2)), $add5(two(4), two(6)));
                        $store5(lanes, $add5($load5(lanes), sum));
                        return true;
                    }
                    if I::LEVEL == Level::Avx2 {
                        for at in [0, $n256] {
                            let two = |k: isize| pair2(x.offset(k * stride).add(at), stride);
                            let sum = $add2($add2(two(0), two(2)), $add2(two(4), two(6)));
                            $store2(lanes.add(at), $add2($load2(lanes.add(at)), sum));
                        }
                        return true;
                    }
                }
                false
            }
        }
    };
}

macro_rules! narrow {
    ($($t:ident)+) => {$(
        impl Wide for $t {
            type Lane = f32;
            #[inline(always)]
            unsafe fn tail<I: Isa>(_what: Tail, _x: *const $t, _n: usize) -> Option<f32> {
                None
            }
        }
    )+};
}
narrow!(Half Brain);

/// The upper half below the lower one.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
fn halves(a: __m128) -> __m128 {
    _mm_permute_ps::<0b0100_1110>(a)
}

/// The upper one below the lower one.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
fn ends(a: __m128d) -> __m128d {
    _mm_permute_pd::<0b01>(a)
}

#[cfg(target_arch = "x86_64")]
wide!(
    f32, 16, 8, __m512, __m256, __m128, __mmask16, i32,
    (_mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_mask_loadu_ps _mm512_add_ps _mm512_fmadd_ps _mm512_mask_max_ps
     _mm512_mask_min_ps _mm512_cmp_ps_mask _mm512_reduce_add_ps _mm512_reduce_max_ps _mm512_reduce_min_ps),
    (_mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_maskload_ps _mm256_add_ps _mm256_fmadd_ps _mm256_max_ps
     _mm256_min_ps _mm256_cmp_ps _mm256_blendv_ps _mm256_castsi256_ps _mm256_movemask_ps),
    (_mm256_castps256_ps128 _mm256_extractf128_ps _mm_add_ps _mm_max_ps _mm_min_ps halves
     _mm_movehdup_ps _mm_cvtss_f32)
);
#[cfg(target_arch = "x86_64")]
wide!(
    f64, 8, 4, __m512d, __m256d, __m128d, __mmask8, i64,
    (_mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_mask_loadu_pd _mm512_add_pd _mm512_fmadd_pd _mm512_mask_max_pd
     _mm512_mask_min_pd _mm512_cmp_pd_mask _mm512_reduce_add_pd _mm512_reduce_max_pd _mm512_reduce_min_pd),
    (_mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_maskload_pd _mm256_add_pd _mm256_fmadd_pd _mm256_max_pd
     _mm256_min_pd _mm256_cmp_pd _mm256_blendv_pd _mm256_castsi256_pd _mm256_movemask_pd),
    (_mm256_castpd256_pd128 _mm256_extractf128_pd _mm_add_pd _mm_max_pd _mm_min_pd ends ends _mm_cvtsd_f64)
);
