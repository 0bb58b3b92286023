//! `ln`, `log1p`, `log2`.
//!
//! One reduction serves all: `x = m 2^e` with `√½ ≤ m < √2`, and `ln(1 + f)` for `f = m - 1`.

use super::{ROUNDER_F64, horner};
use crate::isa::{Isa, fma32, fma64};

/// ln 2 cut to 15 bits (exact times any exponent), then the rest.
const LN2_F32: (f32, f32) = (0.693_145_75, 1.428_606_8e-6);
/// ln 2 cut to 40 bits (exact times any exponent), then the rest.
pub(super) const LN2_F64: (f64, f64) = (0.6931471805592082, 7.371002565167799e-13);

/// `(m, e)` for a positive finite `x`, subnormals included.
#[inline(always)]
fn split_f32(x: f32) -> (f32, f32) {
    const SQRT_HALF: u32 = 0x3f35_04f3;
    let subnormal = x < f32::MIN_POSITIVE;
    // A product on both sides: LLVM would otherwise do all that follows twice and select at the end.
    let bits = (x * if subnormal { 8_388_608.0 } else { 1.0 }).to_bits();
    let e = (bits.wrapping_sub(SQRT_HALF) as i32) >> 23;
    let m = f32::from_bits(bits.wrapping_sub((e as u32) << 23));
    (m, e as f32 - if subnormal { 23.0 } else { 0.0 })
}

/// `(m, e)` for a positive finite `x`, subnormals included.
#[inline(always)]
pub(super) fn split_f64(x: f64) -> (f64, f64) {
    let subnormal = x < f64::MIN_POSITIVE;
    let (m, n) = split_normal_f64(x * if subnormal { 4_503_599_627_370_496.0 } else { 1.0 });
    (m, n - if subnormal { 52.0 } else { 0.0 })
}

/// `(m, e)` for a positive normal `x`.
#[inline(always)]
pub(super) fn split_normal_f64(x: f64) -> (f64, f64) {
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    let bits = x.to_bits();
    // Biased, so that a logical shift does: SSE2 and AVX2 have no arithmetic one for 64 bits.
    let e = (bits.wrapping_add(ONE - SQRT_HALF) >> 52).wrapping_sub(1023);
    let m = f64::from_bits(bits.wrapping_sub(e << 52));
    // To a float without the conversion, which only AVX-512 has for 64 bits.
    (m, f64::from_bits(ROUNDER_F64.to_bits().wrapping_add(e)) - ROUNDER_F64)
}

/// `ln(1 + f) - f` for `√½ ≤ 1 + f ≤ √2`: degree 10 in all, relative error of `ln(1 + f)` 2^-27.3.
#[inline(always)]
fn ln_tail_f32<I: Isa>(f: f32) -> f32 {
    let p = horner!(fma32::<I>, f;
        0.333_333_3, -0.250_008_26, 0.200_011_67, -0.166_231_72, 0.142_036_68, -0.131_640_96, 0.127_478_84,
        -0.076_058_105);
    f * f * fma32::<I>(f, p, -0.5)
}

/// `ln(1 + f) - f` for `√½ ≤ 1 + f ≤ √2`, through `s = f / (2 + f)`, `ln(1 + f) = 2 artanh s`: degree 6 in
/// `s²`, relative error 2^-59.5.
#[inline(always)]
fn ln_tail_f64<I: Isa>(f: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let p = horner!(fma64::<I>, z;
        0.6666666666666735, 0.3999999999941062, 0.28571428743195365, 0.22222198496435303, 0.18183568113515255,
        0.15313956825790923, 0.14796869300018092);
    // 2 artanh s = 2s + s z p and 2s = f - s f; f²/2 is taken out because it is exact enough on its own.
    let h = 0.5 * f * f;
    s * fma64::<I>(z, p, h) - h
}

/// `y` where `x` has a finite logarithm; else what C says: for 0, negatives, infinity and NaN.
///
/// The one test on the bits keeps LLVM from classifying `x` in 15 instructions: 1.0 ns per element on AVX2
/// with three comparisons of floats, 0.7 with this.
#[inline(always)]
fn ln_edges_f32(x: f32, y: f32) -> f32 {
    let positive_finite = x.to_bits().wrapping_sub(1) < f32::INFINITY.to_bits() - 1;
    let other = if x < 0.0 { f32::NAN } else { x };
    let other = if x == 0.0 { f32::NEG_INFINITY } else { other };
    if positive_finite { y } else { other }
}

/// As [`ln_edges_f32`].
#[inline(always)]
fn ln_edges_f64(x: f64, y: f64) -> f64 {
    let positive_finite = x.to_bits().wrapping_sub(1) < f64::INFINITY.to_bits() - 1;
    let other = if x < 0.0 { f64::NAN } else { x };
    let other = if x == 0.0 { f64::NEG_INFINITY } else { other };
    if positive_finite { y } else { other }
}

/// Natural logarithm.
#[inline(always)]
pub fn ln_f32<I: Isa>(x: f32) -> f32 {
    let (m, n) = split_f32(x);
    let f = m - 1.0;
    let low = fma32::<I>(n, LN2_F32.1, ln_tail_f32::<I>(f));
    ln_edges_f32(x, fma32::<I>(n, LN2_F32.0, f + low))
}

/// Natural logarithm.
#[inline(always)]
pub fn ln_f64<I: Isa>(x: f64) -> f64 {
    let (m, n) = split_f64(x);
    let f = m - 1.0;
    let low = fma64::<I>(n, LN2_F64.1, ln_tail_f64::<I>(f));
    ln_edges_f64(x, fma64::<I>(n, LN2_F64.0, f + low))
}

/// Natural logarithm of a positive normal number; of any other, anything.
#[inline(always)]
pub(crate) fn ln_normal_f32<I: Isa>(x: f32) -> f32 {
    const SQRT_HALF: u32 = 0x3f35_04f3;
    let bits = x.to_bits();
    let e = (bits.wrapping_sub(SQRT_HALF) as i32) >> 23;
    let f = f32::from_bits(bits.wrapping_sub((e as u32) << 23)) - 1.0;
    let low = fma32::<I>(e as f32, LN2_F32.1, ln_tail_f32::<I>(f));
    fma32::<I>(e as f32, LN2_F32.0, f + low)
}

/// Natural logarithm of a positive normal number; of any other, anything.
#[inline(always)]
pub(crate) fn ln_normal_f64<I: Isa>(x: f64) -> f64 {
    let (m, n) = split_normal_f64(x);
    let f = m - 1.0;
    let low = fma64::<I>(n, LN2_F64.1, ln_tail_f64::<I>(f));
    fma64::<I>(n, LN2_F64.0, f + low)
}

/// Logarithm to base 2, exact for powers of two.
#[inline(always)]
pub fn log2_f32<I: Isa>(x: f32) -> f32 {
    let (m, n) = split_f32(x);
    let f = m - 1.0;
    let l = f + ln_tail_f32::<I>(f);
    ln_edges_f32(x, n + fma32::<I>(l, std::f32::consts::LOG2_E - 1.0, l))
}

/// Logarithm to base 2, exact for powers of two.
#[inline(always)]
pub fn log2_f64<I: Isa>(x: f64) -> f64 {
    let (m, n) = split_f64(x);
    let f = m - 1.0;
    let l = f + ln_tail_f64::<I>(f);
    ln_edges_f64(x, n + fma64::<I>(l, 0.4426950408889634, l))
}

/// `ln(1 + x)`, accurate near zero.
#[inline(always)]
pub fn log1p_f32<I: Isa>(x: f32) -> f32 {
    let u = 1.0 + x;
    let (m, n) = split_f32(u);
    // What rounding 1 + x lost, exact from whichever of the two is smaller, in the scale of m.
    let lost = if x < 1.0 { x - (u - 1.0) } else { 1.0 - (u - x) };
    let f = fma32::<I>(lost, m / u, m - 1.0);
    let low = fma32::<I>(n, LN2_F32.1, ln_tail_f32::<I>(f));
    let y = ln_edges_f32(u, fma32::<I>(n, LN2_F32.0, f + low));
    if x.abs() < 1e-8 { x } else { y }
}

/// `ln(1 + x)`, accurate near zero.
#[inline(always)]
pub fn log1p_f64<I: Isa>(x: f64) -> f64 {
    let u = 1.0 + x;
    let (m, n) = split_f64(u);
    // What rounding 1 + x lost, exact from whichever of the two is smaller, in the scale of m.
    let lost = if x < 1.0 { x - (u - 1.0) } else { 1.0 - (u - x) };
    let f = fma64::<I>(lost, m / u, m - 1.0);
    let low = fma64::<I>(n, LN2_F64.1, ln_tail_f64::<I>(f));
    let y = ln_edges_f64(u, fma64::<I>(n, LN2_F64.0, f + low));
    if x.abs() < 1e-17 { x } else { y }
}
