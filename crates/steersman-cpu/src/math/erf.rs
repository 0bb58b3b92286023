//! `erf` and the exact `gelu`, both on the complement `erfc(a) = e^(-a²) P(t) / (1 + 2a)` with
//! `t = (a - c) / (a + c)`.
//!
//! `a²` is carried to twice the precision: at the end of the tail one rounding of it alone would cost 50 ULP.

use super::exp::{exp_parts_low_f32, exp_parts_low_f64};
use super::product::{square_f32, square_f64};
use super::{flip_sign_f32, flip_sign_f64, horner};
use crate::isa::{Isa, fma32, fma64};

/// `e^(a²) erfc(a)` for `0 ≤ a ≤ 10.2`: degree 9 in `(a - 2.0) / (a + 2.0)`, relative error 2^-25.6.
#[inline(always)]
fn erfc_scaled_f32<I: Isa>(a: f32) -> f32 {
    let t = (a - 2.0) / (a + 2.0);
    let p = horner!(fma32::<I>, t;
        1.276_978_4, -0.092_763_92, -0.166_030_99, 0.164_054_69, -0.054_207_12, -0.008_058_295,
        0.008_638_839, 0.001_313_983_6, -0.001_236_252_1, -0.000_403_589_2);
    p / fma32::<I>(2.0, a, 1.0)
}

/// The error function.
#[inline(always)]
pub fn erf_f32<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 5.0 { 5.0 } else { a };
    let (square, rest) = square_f32::<I>(a);
    let (y, s, t) = exp_parts_low_f32::<I>(-square, -rest, 0);
    let far = 1.0 - y * s * t * erfc_scaled_f32::<I>(a);
    // erf(a)/a - 1 for a ≤ 1: degree 6 in a², relative error of erf 2^-27.7.
    let p = horner!(fma32::<I>, square;
        0.128_379_17, -0.376_126_26, 0.112_835_81, -0.026_853_56, 0.005_187_763, -0.000_800_481_53,
        7.835_262e-5);
    flip_sign_f32(if a > 1.0 { far } else { fma32::<I>(a, p, a) }, x)
}

/// `x Φ(x)` with the normal distribution's `Φ(x) = (1 + erf(x/√2)) / 2`, accurate in the lower tail too; its
/// limit -0 at minus infinity.
#[inline(always)]
pub fn gelu_f32<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 15.0 { 15.0 } else { a };
    let (square, rest) = square_f32::<I>(a);
    let (y, s, t) = exp_parts_low_f32::<I>(-0.5 * square, -0.5 * rest, -1);
    let upper = a * y * erfc_scaled_f32::<I>(a * std::f32::consts::FRAC_1_SQRT_2) * s * t;
    if x < 0.0 { -upper } else { x - upper }
}

/// `e^(a²) erfc(a)` for `0 ≤ a ≤ 27.4`: degree 22 in `(a - 4.0) / (a + 4.0)`, relative error 2^-54.6.
#[inline(always)]
fn erfc_scaled_f64<I: Isa>(a: f64) -> f64 {
    let t = (a - 4.0) / (a + 4.0);
    let p = horner!(fma64::<I>, t;
        1.2329951186255526, -0.1396211168405625, 0.015379652102611179, 0.06809705425469223,
        -0.101039066035995, 0.09373283499813416, -0.06633036581700794, 0.03716751554430292,
        -0.016197734015818428, 0.005031969893188248, -0.0007577735336940135, -0.00019925613690811907,
        0.00015062272483550655, -2.4401352643986934e-5, -1.122537487579925e-5, 5.7145867573367486e-6,
        3.0136607916078223e-7, -8.315332918022019e-7, 6.353405370038583e-8, 1.1317638008368154e-7,
        -8.58017461996779e-9, -1.3140527383351736e-8, -1.546045093267846e-9);
    p / fma64::<I>(2.0, a, 1.0)
}

/// The error function.
#[inline(always)]
pub fn erf_f64<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 7.0 { 7.0 } else { a };
    let (square, rest) = square_f64::<I>(a);
    let (y, s, t) = exp_parts_low_f64::<I>(-square, -rest, 0);
    let far = 1.0 - y * s * t * erfc_scaled_f64::<I>(a);
    // erf(a)/a - 1 for a ≤ 1: degree 11 in a², relative error of erf 2^-56.
    let p = horner!(fma64::<I>, square;
        0.12837916709551256, -0.3761263890318339, 0.11283791670939887, -0.02686617064253564,
        0.005223977602021076, -0.0008548325755160248, 0.00012055288883948581, -1.4924630068128052e-5,
        1.6446197037574263e-6, -1.6199669594159853e-7, 1.3684125296471107e-8, -7.732365683989565e-10);
    flip_sign_f64(if a > 1.0 { far } else { fma64::<I>(a, p, a) }, x)
}

/// `x Φ(x)` with the normal distribution's `Φ(x) = (1 + erf(x/√2)) / 2`, accurate in the lower tail too; its
/// limit -0 at minus infinity.
#[inline(always)]
pub fn gelu_f64<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 40.0 { 40.0 } else { a };
    let (square, rest) = square_f64::<I>(a);
    let (y, s, t) = exp_parts_low_f64::<I>(-0.5 * square, -0.5 * rest, -1);
    let upper = a * y * erfc_scaled_f64::<I>(a * std::f64::consts::FRAC_1_SQRT_2) * s * t;
    if x < 0.0 { -upper } else { x - upper }
}
