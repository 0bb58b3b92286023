//! `asin`, `acos`, `atan`, `atan2`.

use super::{flip_sign_f32, flip_sign_f64, horner};
use crate::isa::{Isa, fma32, fma64};

/// π as a float and what it lacks.
const PI_F32: (f32, f32) = (std::f32::consts::PI, -8.742_278e-8);
/// π as a float and what it lacks.
const PI_F64: (f64, f64) = (std::f64::consts::PI, 1.2246467991473532e-16);
/// tan(π/8)
const TAN_EIGHTH_F32: f32 = 0.414_213_57;
/// tan(π/8)
const TAN_EIGHTH_F64: f64 = 0.41421356237309503;

/// `atan(a / b)` as two terms, for `0 ≤ a ≤ b` and `b > 0`. Above tan(π/8) it turns by π/4 first, so that the
/// polynomial sees at most tan(π/8) and there is one division.
#[inline(always)]
fn atan_ratio_f32<I: Isa>(a: f32, b: f32) -> (f32, f32) {
    let turn = a > b * TAN_EIGHTH_F32;
    let q = if turn { a - b } else { a } / if turn { a + b } else { b };
    let z = q * q;
    // (atan q - q) / q³ for |q| ≤ tan(π/8): degree 4 in q², relative error of atan q 2^-30.4.
    let p = horner!(fma32::<I>, z; -0.333_333_16, 0.199_985_3, -0.142_444_3, 0.105_994_78, -0.060_908_59);
    let y = fma32::<I>(z * q, p, q);
    (if turn { PI_F32.0 / 4.0 } else { 0.0 }, if turn { PI_F32.1 / 4.0 + y } else { y })
}

/// Arc tangent.
#[inline(always)]
pub fn atan_f32<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let steep = a > 1.0;
    let (high, low) = atan_ratio_f32::<I>(if steep { 1.0 } else { a }, if steep { a } else { 1.0 });
    let complement = (PI_F32.0 / 2.0 - high) + (PI_F32.1 / 2.0 - low);
    flip_sign_f32(if steep { complement } else { high + low }, x)
}

/// The angle of the point `(x, y)`, in -π..=π.
#[inline(always)]
pub fn atan2_f32<I: Isa>(y: f32, x: f32) -> f32 {
    let (ax, ay) = (x.abs(), y.abs());
    let steep = ay > ax;
    let (a, b) = (if steep { ax } else { ay }, if steep { ay } else { ax });
    // Keeps a + b finite.
    let scale = if b > 1e38 { 0.25 } else { 1.0 };
    let (a, b) = (a * scale, b * scale);
    let both_infinite = a == f32::INFINITY;
    let (a, b) = (if both_infinite { 1.0 } else { a }, if both_infinite | (b == 0.0) { 1.0 } else { b });
    let (high, low) = atan_ratio_f32::<I>(a, b);
    let (high, low) = if steep { (PI_F32.0 / 2.0 - high, PI_F32.1 / 2.0 - low) } else { (high, low) };
    let left = x.is_sign_negative();
    let angle = if left { (PI_F32.0 - high) + (PI_F32.1 - low) } else { high + low };
    if x.is_nan() | y.is_nan() { f32::NAN } else { flip_sign_f32(angle, y) }
}

/// `asin s` where `s` is `a` up to ½ and `√((1 - a) / 2)` above, for `a ≥ 0`; NaN above 1.
#[inline(always)]
fn asin_folded_f32<I: Isa>(a: f32) -> f32 {
    let folded = a > 0.5;
    let z = if folded { (1.0 - a) * 0.5 } else { a * a };
    let s = if folded { z.sqrt() } else { a };
    // (asin s - s) / s³ for s ≤ ½: degree 5 in s², relative error of asin s 2^-31.7.
    let p = horner!(fma32::<I>, z;
        0.166_666_6, 0.075_005_17, 0.044_514_872, 0.031_822_4, 0.014_390_752, 0.037_575_323);
    fma32::<I>(s * z, p, s)
}

/// Arc sine; NaN beyond ±1.
#[inline(always)]
pub fn asin_f32<I: Isa>(x: f32) -> f32 {
    let y = asin_folded_f32::<I>(x.abs());
    let folded = PI_F32.0 / 2.0 - (2.0 * y - PI_F32.1 / 2.0);
    flip_sign_f32(if x.abs() > 0.5 { folded } else { y }, x)
}

/// Arc cosine; NaN beyond ±1.
#[inline(always)]
pub fn acos_f32<I: Isa>(x: f32) -> f32 {
    let y = asin_folded_f32::<I>(x.abs());
    let middle = PI_F32.0 / 2.0 - (flip_sign_f32(y, x) - PI_F32.1 / 2.0);
    let outer = if x < 0.0 { PI_F32.0 - (2.0 * y - PI_F32.1) } else { 2.0 * y };
    if x.abs() > 0.5 { outer } else { middle }
}

/// `atan(a / b)` as two terms, for `0 ≤ a ≤ b` and `b > 0`. Above tan(π/8) it turns by π/4 first, so that the
/// polynomial sees at most tan(π/8) and there is one division.
#[inline(always)]
fn atan_ratio_f64<I: Isa>(a: f64, b: f64) -> (f64, f64) {
    let turn = a > b * TAN_EIGHTH_F64;
    let q = if turn { a - b } else { a } / if turn { a + b } else { b };
    let z = q * q;
    // (atan q - q) / q³ for |q| ≤ tan(π/8): degree 10 in q², relative error of atan q 2^-59.4.
    let p = horner!(fma64::<I>, z;
        -0.3333333333333319, 0.19999999999952203, -0.14285714280060763, 0.11111110776980554,
        -0.09090897581965902, 0.0769205728088309, -0.0666307278978457, 0.058476759271499354,
        -0.05038401088929602, 0.038042937796622836, -0.017884859998553763);
    let y = fma64::<I>(z * q, p, q);
    (if turn { PI_F64.0 / 4.0 } else { 0.0 }, if turn { PI_F64.1 / 4.0 + y } else { y })
}

/// Arc tangent.
#[inline(always)]
pub fn atan_f64<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let steep = a > 1.0;
    let (high, low) = atan_ratio_f64::<I>(if steep { 1.0 } else { a }, if steep { a } else { 1.0 });
    let complement = (PI_F64.0 / 2.0 - high) + (PI_F64.1 / 2.0 - low);
    flip_sign_f64(if steep { complement } else { high + low }, x)
}

/// The angle of the point `(x, y)`, in -π..=π.
#[inline(always)]
pub fn atan2_f64<I: Isa>(y: f64, x: f64) -> f64 {
    let (ax, ay) = (x.abs(), y.abs());
    let steep = ay > ax;
    let (a, b) = (if steep { ax } else { ay }, if steep { ay } else { ax });
    // Keeps a + b finite.
    let scale = if b > 1e307 { 0.25 } else { 1.0 };
    let (a, b) = (a * scale, b * scale);
    let both_infinite = a == f64::INFINITY;
    let (a, b) = (if both_infinite { 1.0 } else { a }, if both_infinite | (b == 0.0) { 1.0 } else { b });
    let (high, low) = atan_ratio_f64::<I>(a, b);
    let (high, low) = if steep { (PI_F64.0 / 2.0 - high, PI_F64.1 / 2.0 - low) } else { (high, low) };
    let left = x.is_sign_negative();
    let angle = if left { (PI_F64.0 - high) + (PI_F64.1 - low) } else { high + low };
    if x.is_nan() | y.is_nan() { f64::NAN } else { flip_sign_f64(angle, y) }
}

/// `asin s` where `s` is `a` up to ½ and `√((1 - a) / 2)` above, for `a ≥ 0`; NaN above 1.
#[inline(always)]
fn asin_folded_f64<I: Isa>(a: f64) -> f64 {
    let folded = a > 0.5;
    let z = if folded { (1.0 - a) * 0.5 } else { a * a };
    let s = if folded { z.sqrt() } else { a };
    // (asin s - s) / s³ for s ≤ ½: degree 12 in s², relative error of asin s 2^-59.8.
    let p = horner!(fma64::<I>, z;
        0.1666666666666676, 0.074999999999709, 0.04464285717450064, 0.030381942714145474,
        0.022372214776199755, 0.0173516164083627, 0.013980760795910537, 0.011399456876207048,
        0.010776903147340035, 0.003720116981729916, 0.02167168840103561, -0.020945283047730696,
        0.032593143728235366);
    fma64::<I>(s * z, p, s)
}

/// Arc sine; NaN beyond ±1.
#[inline(always)]
pub fn asin_f64<I: Isa>(x: f64) -> f64 {
    let y = asin_folded_f64::<I>(x.abs());
    let folded = PI_F64.0 / 2.0 - (2.0 * y - PI_F64.1 / 2.0);
    flip_sign_f64(if x.abs() > 0.5 { folded } else { y }, x)
}

/// Arc cosine; NaN beyond ±1.
#[inline(always)]
pub fn acos_f64<I: Isa>(x: f64) -> f64 {
    let y = asin_folded_f64::<I>(x.abs());
    let middle = PI_F64.0 / 2.0 - (flip_sign_f64(y, x) - PI_F64.1 / 2.0);
    let outer = if x < 0.0 { PI_F64.0 - (2.0 * y - PI_F64.1) } else { 2.0 * y };
    if x.abs() > 0.5 { outer } else { middle }
}
