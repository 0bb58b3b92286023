//! `exp`, `expm1` and what is made of them: `sigmoid`, `silu`.
//!
//! One reduction serves all: `x = k ln 2 + r` with `|r| ≤ ln 2 / 2`, and `e^r - 1 = r + r² q(r)`.

use super::{ROUNDER_F32, ROUNDER_F64, exp2_int_f32, exp2_int_f64, horner};
use crate::isa::{Isa, fma32, fma64};

/// ln 2 cut to 15 bits, so that its product with an 8-bit integer is exact without FMA; then the rest.
const LN2_F32: (f32, f32) = (0.693_145_75, 1.428_606_8e-6);
/// ln 2 cut to 40 bits, so that its product with an 11-bit integer is exact without FMA; then the rest.
const LN2_F64: (f64, f64) = (0.6931471805592082, 7.371002565167799e-13);

/// Adding -0 changes nothing and compiles to nothing; adding +0 would be an instruction (6% of `exp_f32`).
const NOTHING: f32 = -0.0;

/// Splits `x` into `(k, r)` with `x = k ln 2 + r`, for `|x| < 2^22`.
#[inline(always)]
pub(super) fn reduce_f32<I: Isa>(x: f32) -> (i32, f32) {
    let t = fma32::<I>(x, std::f32::consts::LOG2_E, ROUNDER_F32);
    let k = t.to_bits().wrapping_sub(ROUNDER_F32.to_bits()) as i32;
    let n = t - ROUNDER_F32;
    (k, fma32::<I>(n, -LN2_F32.1, fma32::<I>(n, -LN2_F32.0, x)))
}

/// Splits `x` into `(k, r)` with `x = k ln 2 + r`, for `|x| < 2^11`.
#[inline(always)]
pub(super) fn reduce_f64<I: Isa>(x: f64) -> (i64, f64) {
    let t = fma64::<I>(x, std::f64::consts::LOG2_E, ROUNDER_F64);
    let k = t.to_bits().wrapping_sub(ROUNDER_F64.to_bits()) as i64;
    let n = t - ROUNDER_F64;
    (k, fma64::<I>(n, -LN2_F64.1, fma64::<I>(n, -LN2_F64.0, x)))
}

/// `(e^r - 1 - r) / r²` for `|r| ≤ 0.3475`: degree 4, relative error of `e^r - 1` 2^-26.1.
#[inline(always)]
fn tail_f32<I: Isa>(r: f32) -> f32 {
    horner!(fma32::<I>, r; 0.499_999_97, 0.166_665_43, 0.041_667_487, 0.008_366_585, 0.001_386_613)
}

/// `(e^r - 1 - r) / r²` for `|r| ≤ 0.3475`: degree 9, relative error of `e^r - 1` 2^-55.5.
#[inline(always)]
fn tail_f64<I: Isa>(r: f64) -> f64 {
    horner!(fma64::<I>, r;
        0.5000000000000006, 0.16666666666666605, 0.04166666666657334, 0.008333333333377603,
        0.0013888888932518798, 0.0001984126974858004, 2.4801504230124236e-5, 2.7557378454709674e-6,
        2.7626430235255666e-7, 2.5063678315519484e-8)
}

/// `e^r - 1` for a reduced `r`.
#[inline(always)]
pub(super) fn expm1_reduced_f32<I: Isa>(r: f32) -> f32 {
    fma32::<I>(r * r, tail_f32::<I>(r), r)
}

/// `e^r - 1` for a reduced `r`.
#[inline(always)]
pub(super) fn expm1_reduced_f64<I: Isa>(r: f64) -> f64 {
    fma64::<I>(r * r, tail_f64::<I>(r), r)
}

/// `e^x 2^shift` as three factors whose product may over- or underflow while none of them does, so that a
/// caller can multiply something in between. `x` beyond what matters is clamped; NaN stays in the first
/// factor.
#[inline(always)]
pub(super) fn exp_parts_f32<I: Isa>(x: f32, shift: i32) -> (f32, f32, f32) {
    exp_parts_low_f32::<I>(x, NOTHING, shift)
}

/// [`exp_parts_f32`] of `x + low`, for a `low` far below `x`.
#[inline(always)]
pub(super) fn exp_parts_low_f32<I: Isa>(x: f32, low: f32, shift: i32) -> (f32, f32, f32) {
    let x = if x > 90.0 { 90.0 } else { x };
    let x = if x < -110.0 { -110.0 } else { x };
    let (k, r) = reduce_f32::<I>(x);
    let r = r + low;
    let k = k.wrapping_add(shift);
    let half = k >> 1;
    (1.0 + expm1_reduced_f32::<I>(r), exp2_int_f32(half), exp2_int_f32(k.wrapping_sub(half)))
}

/// As [`exp_parts_f32`].
#[inline(always)]
pub(super) fn exp_parts_f64<I: Isa>(x: f64, shift: i64) -> (f64, f64, f64) {
    exp_parts_low_f64::<I>(x, NOTHING.into(), shift)
}

/// [`exp_parts_f64`] of `x + low`, for a `low` far below `x`.
#[inline(always)]
pub(super) fn exp_parts_low_f64<I: Isa>(x: f64, low: f64, shift: i64) -> (f64, f64, f64) {
    let x = if x > 711.0 { 711.0 } else { x };
    let x = if x < -760.0 { -760.0 } else { x };
    let (k, r) = reduce_f64::<I>(x);
    let r = r + low;
    let k = k.wrapping_add(shift);
    // Neither SSE2 nor AVX2 shifts 64-bit integers right arithmetically: bias, then shift logically.
    let half = ((k.wrapping_add(4096) as u64) >> 1) as i64 - 2048;
    (1.0 + expm1_reduced_f64::<I>(r), exp2_int_f64(half), exp2_int_f64(k.wrapping_sub(half)))
}

/// `e^x`: infinity from 88.73 up, gradual underflow to zero below -103.98.
#[inline(always)]
pub fn exp_f32<I: Isa>(x: f32) -> f32 {
    let (y, s, t) = exp_parts_f32::<I>(x, 0);
    y * s * t
}

/// `e^x`: infinity from 709.79 up, gradual underflow to zero below -745.13.
#[inline(always)]
pub fn exp_f64<I: Isa>(x: f64) -> f64 {
    let (y, s, t) = exp_parts_f64::<I>(x, 0);
    y * s * t
}

/// `e^x - 1`, accurate near zero.
#[inline(always)]
pub fn expm1_f32<I: Isa>(x: f32) -> f32 {
    let c = if x > 89.0 { 89.0 } else { x };
    let c = if c < -20.0 { -20.0 } else { c };
    let (k, r) = reduce_f32::<I>(c);
    // Half of 2^k, which would overflow one octave before the result does; k ends at 128.
    let s = exp2_int_f32(k.wrapping_sub(1));
    let y = 2.0 * fma32::<I>(s, expm1_reduced_f32::<I>(r), s - 0.5);
    // Keeps -0 and the subnormals, which halving would round.
    if x.abs() < 1e-8 { x } else { y }
}

/// `e^x - 1`, accurate near zero.
#[inline(always)]
pub fn expm1_f64<I: Isa>(x: f64) -> f64 {
    let c = if x > 710.0 { 710.0 } else { x };
    let c = if c < -40.0 { -40.0 } else { c };
    let (k, r) = reduce_f64::<I>(c);
    let s = exp2_int_f64(k.wrapping_sub(1));
    let y = 2.0 * fma64::<I>(s, expm1_reduced_f64::<I>(r), s - 0.5);
    if x.abs() < 1e-17 { x } else { y }
}

/// `1 / (1 + e^-x)`, with full relative accuracy in the lower tail too.
#[inline(always)]
pub fn sigmoid_f32<I: Isa>(x: f32) -> f32 {
    let e = exp_f32::<I>(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// `1 / (1 + e^-x)`, with full relative accuracy in the lower tail too.
#[inline(always)]
pub fn sigmoid_f64<I: Isa>(x: f64) -> f64 {
    let e = exp_f64::<I>(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// `x sigmoid(x)`; its limit -0 at minus infinity.
#[inline(always)]
pub fn silu_f32<I: Isa>(x: f32) -> f32 {
    let (y, s, t) = exp_parts_f32::<I>(-x.abs(), 0);
    let below = x < 0.0;
    // The tail is normal long after e^x is not: scale after multiplying by x.
    let c = if x < -200.0 { -200.0 } else { x };
    let numerator = if below { c * y * s } else { c };
    numerator / (1.0 + y * s * t) * if below { t } else { 1.0 }
}

/// `x sigmoid(x)`; its limit -0 at minus infinity.
#[inline(always)]
pub fn silu_f64<I: Isa>(x: f64) -> f64 {
    let (y, s, t) = exp_parts_f64::<I>(-x.abs(), 0);
    let below = x < 0.0;
    let c = if x < -1000.0 { -1000.0 } else { x };
    let numerator = if below { c * y * s } else { c };
    numerator / (1.0 + y * s * t) * if below { t } else { 1.0 }
}
