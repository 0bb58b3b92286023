//! `sinh`, `cosh`, `tanh`: a polynomial near zero, where exponentials would cancel, and `exp` elsewhere.

use super::exp::{
    exp_parts_f32, exp_parts_f64, expm1_reduced_f32, expm1_reduced_f64, reduce_f32, reduce_f64,
};
use super::{exp2_int_f32, exp2_int_f64, flip_sign_f32, flip_sign_f64, horner};
use crate::isa::{Isa, fma32, fma64};

/// Hyperbolic tangent. From 0.55 up it is `1 - 2 / (e^2x + 1)`, where the quotient's error counts less than
/// half; `(e^2x - 1) / (e^2x + 1)` throughout would be a little quicker but reaches 2.8 ULP.
#[inline(always)]
pub fn tanh_f32<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 10.0 { 10.0 } else { a };
    let (k, r) = reduce_f32::<I>(a + a);
    let s = exp2_int_f32(k);
    let far = 1.0 - 2.0 / fma32::<I>(s, expm1_reduced_f32::<I>(r), s + 1.0);
    let z = a * a;
    // (tanh a - a) / a³ for a ≤ 0.552: degree 4 in a², relative error of tanh a 2^-29.7.
    let p = horner!(fma32::<I>, z; -0.333_333_16, 0.133_325_49, -0.053_848_39, 0.021_055_458, -0.006_251_092);
    flip_sign_f32(if a > 0.55 { far } else { fma32::<I>(a * z, p, a) }, x)
}

/// Hyperbolic tangent, as [`tanh_f32`].
#[inline(always)]
pub fn tanh_f64<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 20.0 { 20.0 } else { a };
    let (k, r) = reduce_f64::<I>(a + a);
    let s = exp2_int_f64(k);
    let far = 1.0 - 2.0 / fma64::<I>(s, expm1_reduced_f64::<I>(r), s + 1.0);
    let z = a * a;
    // (tanh a - a) / a³ for a ≤ 0.552: degree 10 in a², relative error of tanh a 2^-60.2.
    let p = horner!(fma64::<I>, z;
        -0.333333333333333, 0.13333333333326436, -0.053968253963604045, 0.021869488380445237,
        -0.008863232501766774, 0.0035920909365841705, -0.0014555353374557229, 0.0005884119355065999,
        -0.00023329496282471418, 8.318735962434997e-5, -1.941214882176676e-5);
    flip_sign_f64(if a > 0.55 { far } else { fma64::<I>(a * z, p, a) }, x)
}

/// `(e^a / 2, e^-a / 2)` for `a ≥ 0`; halved before it can overflow.
#[inline(always)]
fn half_exps_f32<I: Isa>(a: f32) -> (f32, f32) {
    let (y, s, t) = exp_parts_f32::<I>(a, -1);
    let up = y * s * t;
    (up, 0.25 / up)
}

/// As [`half_exps_f32`].
#[inline(always)]
fn half_exps_f64<I: Isa>(a: f64) -> (f64, f64) {
    let (y, s, t) = exp_parts_f64::<I>(a, -1);
    let up = y * s * t;
    (up, 0.25 / up)
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh_f32<I: Isa>(x: f32) -> f32 {
    let (up, down) = half_exps_f32::<I>(x.abs());
    up + down
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh_f64<I: Isa>(x: f64) -> f64 {
    let (up, down) = half_exps_f64::<I>(x.abs());
    up + down
}

/// Hyperbolic sine.
#[inline(always)]
pub fn sinh_f32<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let (up, down) = half_exps_f32::<I>(a);
    let z = a * a;
    // (sinh a - a) / a³ for a ≤ 1: degree 3 in a², relative error of sinh a 2^-31.6.
    let p = horner!(fma32::<I>, z; 0.166_666_67, 0.008_333_310_5, 0.000_198_428_94, 2.782_225e-6);
    flip_sign_f32(if a > 1.0 { up - down } else { fma32::<I>(a * z, p, a) }, x)
}

/// Hyperbolic sine.
#[inline(always)]
pub fn sinh_f64<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let (up, down) = half_exps_f64::<I>(a);
    let z = a * a;
    // (sinh a - a) / a³ for a ≤ 1: degree 6 in a², relative error of sinh a 2^-61.8.
    let p = horner!(fma64::<I>, z;
        0.16666666666666669, 0.008333333333332912, 0.00019841269841593316, 2.7557319106789076e-6,
        2.505213099841461e-8, 1.6056658455536504e-10, 7.77665273872103e-13);
    flip_sign_f64(if a > 1.0 { up - down } else { fma64::<I>(a * z, p, a) }, x)
}
