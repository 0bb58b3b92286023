//! `pow`, with the special cases of C99's annex F.
//!
//! `x^y = e^(y ln|x|)`, and the error of the exponent is multiplied by up to 745 on the way. For `f32` the
//! way goes through `f64`, which has bits to spare; for `f64` the logarithm and the product carry a second
//! float.

use super::exp::{exp_parts_low_f64, reduce_f64};
use super::log::{LN2_F64, split_f64, split_normal_f64};
use super::product::product_f64;
use super::{exp2_int_f64, horner};
use crate::isa::{Isa, fma64};

macro_rules! edges {
    ($t:ident, $finish:ident, $is_integer:ident, $integers_from:expr) => {
        /// Whether `y` is an integer (infinities count: they are even).
        #[inline(always)]
        fn $is_integer(y: $t) -> bool {
            let a = y.abs();
            (a >= $integers_from) | ((a + $integers_from) - $integers_from == a)
        }

        /// The result's sign, and the cases that have no logarithm to go by, given `|x|^y` for the others.
        #[inline(always)]
        fn $finish(x: $t, y: $t, magnitude: $t) -> $t {
            let a = x.abs();
            let vanishes = (a == 0.0) == (y > 0.0);
            let extreme = if vanishes { 0.0 } else { $t::INFINITY };
            let r = if (a == 0.0) | (a == $t::INFINITY) { extreme } else { magnitude };
            let integer = $is_integer(y);
            let odd = integer & !$is_integer(0.5 * y);
            let r = if x.is_sign_negative() & odd { -r } else { r };
            let rootless = (x < 0.0) & (a < $t::INFINITY) & !integer;
            let r = if rootless | x.is_nan() | y.is_nan() { $t::NAN } else { r };
            if (x == 1.0) | (y == 0.0) { 1.0 } else { r }
        }
    };
}
edges!(f32, finish_f32, is_integer_f32, 8_388_608.0);
edges!(f64, finish_f64, is_integer_f64, 4_503_599_627_370_496.0);

/// `x^y`.
#[inline(always)]
pub fn pow_f32<I: Isa>(x: f32, y: f32) -> f32 {
    let (m, n) = split_normal_f64(f64::from(x.abs()));
    // As in `ln_f64`, to the 2^-37.6 that are enough here: degree 3 in s².
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let p = horner!(fma64::<I>, z;
        0.6666666564523914, 0.4000033524798679, 0.28537302974284867, 0.2358230173937816);
    let l = fma64::<I>(n, std::f64::consts::LN_2, fma64::<I>(s * z, p, 2.0 * s));
    // (±1)^(±infinity) is 1, where 0 times infinity would say NaN.
    let e = if l == 0.0 { 0.0 } else { f64::from(y) * l };
    // Far beyond the range of f32, well within that of f64: one scaling does, and the narrowing rounds.
    let e = if e > 200.0 { 200.0 } else { e };
    let e = if e < -200.0 { -200.0 } else { e };
    let (k, r) = reduce_f64::<I>(e);
    // (e^r - 1 - r) / r² for |r| ≤ 0.3475: degree 5, relative error of e^r 2^-34.1.
    let q = horner!(fma64::<I>, r;
        0.5000000067928619, 0.1666666584226548, 0.04166629333946887, 0.008333501374259096,
        0.0013944810741780272, 0.0001978895152561526);
    let magnitude = fma64::<I>(r * r, q, 1.0 + r) * exp2_int_f64(k);
    finish_f32(x, y, magnitude as f32)
}

/// `ln x` as two floats, to about 2^-66 relative, for a positive finite `x`.
#[inline(always)]
fn ln_twofold<I: Isa>(x: f64) -> (f64, f64) {
    /// ⅔ as a float and what it lacks.
    const TWO_THIRDS: (f64, f64) = (0.6666666666666666, 3.700743415417188e-17);
    let (m, n) = split_f64(x);
    // s = f / (2 + f) in two floats; ln(1 + f) = 2 artanh s = 2s + s z (2/3 + z q(z)), z = s².
    let f = m - 1.0;
    let d = m + 1.0;
    let d_low = (1.0 - d) + m;
    let s = f / d;
    let (back, back_low) = product_f64::<I>(s, d);
    let s_low = (((f - back) - back_low) - s * d_low) / d;
    let (z, z_low) = product_f64::<I>(s, s);
    let z_low = fma64::<I>(2.0 * s, s_low, z_low);
    // (artanh(s) 2/s - 2 - 2z/3) / z² for |s| ≤ 0.1716: degree 7 in z, relative error of ln 2^-73.4.
    let q = horner!(fma64::<I>, z;
        0.3999999999999998, 0.28571428571443813, 0.22222222217802545, 0.1818181884185417,
        0.15384558602269308, 0.13336257074444707, 0.11675941420262954, 0.11980362917037528);
    let c = fma64::<I>(z, q, TWO_THIRDS.0);
    let c_low = fma64::<I>(z, q, TWO_THIRDS.0 - c) + TWO_THIRDS.1;
    let (p, p_low) = product_f64::<I>(z, c);
    let p_low = p_low + fma64::<I>(z, c_low, z_low * c);
    let (v, v_low) = product_f64::<I>(s, p);
    let v_low = v_low + fma64::<I>(s, p_low, s_low * p);
    // e ln 2 is exact in its high part; the terms shrink from left to right.
    let whole = n * LN2_F64.0;
    let a = whole + 2.0 * s;
    let a_low = (whole - a) + 2.0 * s;
    let b = a + v;
    let b_low = (a - b) + v;
    let low = b_low + (a_low + (v_low + fma64::<I>(n, LN2_F64.1, 2.0 * s_low)));
    let high = b + low;
    (high, (b - high) + low)
}

/// `x^y`.
#[inline(always)]
pub fn pow_f64<I: Isa>(x: f64, y: f64) -> f64 {
    let (l, l_low) = ln_twofold::<I>(x.abs());
    // |ln x| is at least 2^-53 unless it is 0: beyond 2^65 the result no longer depends on y's size.
    const ENOUGH: f64 = 36_893_488_147_419_103_232.0;
    let c = if y > ENOUGH { ENOUGH } else { y };
    let c = if c < -ENOUGH { -ENOUGH } else { c };
    let (e, e_low) = product_f64::<I>(c, l);
    // Where the result over- or underflows anyway, the low part of the exponent may be of any size.
    let e_low = if e.abs() < 800.0 { fma64::<I>(c, l_low, e_low) } else { 0.0 };
    let (r, s, t) = exp_parts_low_f64::<I>(e, e_low, 0);
    finish_f64(x, y, r * s * t)
}
