//! `sin`, `cos`, `tan`: fast and branch-free up to a limit, NaN beyond it, with a repair pass for the rest.
//!
//! The limit is [`FAST_LIMIT_F32`] or [`FAST_LIMIT_F64`]. Reducing an argument of any size needs hundreds of
//! bits of π, which would double the cost of every element for the sake of inputs that hardly occur; a call
//! to a library function for those alone would stop the loop from vectorising. So a finite argument beyond
//! the limit gives NaN, which no argument within it does, and whoever writes a chunk of results calls the
//! repair of the function afterwards: one vectorised look at the chunk, and the exact scalar function where
//! it is needed.
//!
//! ```
//! use steersman_cpu::isa::{Body, Isa, Level};
//! use steersman_cpu::math::{sin_f32, trig};
//!
//! struct Sin<'a>(&'a [f32], &'a mut [f32]);
//! impl Body for Sin<'_> {
//!     type Out = ();
//!     #[inline(always)]
//!     fn run<I: Isa>(self) {
//!         for (x, y) in self.0.iter().zip(self.1.iter_mut()) {
//!             *y = sin_f32::<I>(*x);
//!         }
//!         trig::repair_f32(self.0, self.1, trig::sin_anywhere_f32);
//!     }
//! }
//! let mut y = [0.0; 2];
//! Level::best().dispatch(Sin(&[0.5, 1e30], &mut y));
//! assert_eq!(y[1], 1e30f32.sin());
//! ```
//!
//! In place, look first: [`needs_slow_path_f32`] tells from the arguments.
//!
//! The reduction is to `|r| ≤ π/2` by multiples of π, so that one odd polynomial serves both functions
//! (`cos x = sin(x + π/2)` moves the multiple by a half, not the argument). For `f32` the reduction runs in `f64`,
//! the polynomial in `f32`: two exact-enough steps instead of the five that `f32` would take without FMA.

use super::{ROUNDER_F64, SIGN_F32, SIGN_F64, horner};
use crate::isa::{Isa, fma32, fma64};
use std::f64::consts::FRAC_1_PI;

/// `sin_f32`, `cos_f32`, `tan_f32` give NaN where `|x|` is above this.
pub const FAST_LIMIT_F32: f32 = 33_554_432.0;
/// `sin_f64`, `cos_f64`, `tan_f64` give NaN where `|x|` is above this.
pub const FAST_LIMIT_F64: f64 = 2_097_152.0;

/// π cut to 28 bits, so that its product with a 25-bit multiple is exact; then the rest.
const PI_SPLIT: (f64, f64) = (3.141592651605606, 1.984187159361081e-9);
/// π in three parts of full precision, for FMA.
const PI_FULL: (f64, f64, f64) = (std::f64::consts::PI, 1.2246467991473532e-16, -2.9947698097183397e-33);
/// π cut to 32 bits, 32 more, and the rest: products with a 21-bit multiple are exact without FMA.
const PI_SHORT: (f64, f64, f64) = (3.1415926534682512, 1.2154201012607932e-10, 4.044532497591901e-21);

/// The nearest multiple of π to `x + shift π`, as the factor of π to subtract from `x` and the parity in the
/// lowest bit of the second value.
#[inline(always)]
fn nearest_multiple<I: Isa>(x: f64, shift: f64) -> (f64, u64) {
    let t = fma64::<I>(x, FRAC_1_PI, shift) + ROUNDER_F64;
    (t - ROUNDER_F64 - shift, t.to_bits())
}

/// Sine for `|r| ≤ π/2`.
#[inline(always)]
pub(crate) fn sin_half_turn_f32<I: Isa>(r: f32) -> f32 {
    let z = r * r;
    // (sin r - r) / r³: degree 3 in r², relative error of sin r 2^-27.3.
    let p = horner!(fma32::<I>, z; -0.166_666_6, 0.008_333_069, -0.000_198_097_78, 2.606_102_7e-6);
    fma32::<I>(z * r, p, r)
}

/// `(sin r - r) / r³` as a function of `z = r²`, for `|r| ≤ π/2`: degree 8, relative error of sin r 2^-61.8.
#[inline(always)]
fn sin_tail_f64<I: Isa>(z: f64) -> f64 {
    horner!(fma64::<I>, z;
        -0.16666666666666666, 0.008333333333333217, -0.00019841269841219467, 2.7557319213381624e-6,
        -2.505210714491655e-8, 1.6058958924653803e-10, -7.643778267000616e-13, 2.738476976203032e-15,
        -1.5808161524744587e-18)
}

/// Sine for `|r| ≤ π/2`.
#[inline(always)]
pub(crate) fn sin_half_turn_f64<I: Isa>(r: f64) -> f64 {
    let z = r * r;
    fma64::<I>(z * r, sin_tail_f64::<I>(z), r)
}

/// `sin(x + shift π)` for `shift` 0 or ½ and `0 ≤ x ≤ FAST_LIMIT_F32`.
#[inline(always)]
fn sin_shifted_f32<I: Isa>(x: f32, shift: f64) -> f32 {
    let x = f64::from(x);
    let (n, parity) = nearest_multiple::<I>(x, shift);
    let r = fma64::<I>(-n, PI_SPLIT.1, fma64::<I>(-n, PI_SPLIT.0, x)) as f32;
    let y = sin_half_turn_f32::<I>(r);
    f32::from_bits(y.to_bits() ^ ((parity as u32) << 31))
}

/// `sin(x + shift π)` for `shift` 0 or ½ and `0 ≤ x ≤ FAST_LIMIT_F64`.
#[inline(always)]
fn sin_shifted_f64<I: Isa>(x: f64, shift: f64) -> f64 {
    let (n, parity) = nearest_multiple::<I>(x, shift);
    // r + low = x - nπ to about 100 bits: an x near a multiple of π cancels all the leading ones.
    let (r, low) = if I::FMA {
        let first = fma64::<I>(-n, PI_FULL.0, x);
        let r = fma64::<I>(-n, PI_FULL.1, first);
        (r, fma64::<I>(-n, PI_FULL.2, fma64::<I>(-n, PI_FULL.1, first - r)))
    } else {
        let first = x - n * PI_SHORT.0;
        let second = n * PI_SHORT.1;
        let r = first - second;
        let low = (first - r) - second - n * PI_SHORT.2;
        let sum = r + low;
        (sum, low - (sum - r))
    };
    let z = r * r;
    let p = sin_tail_f64::<I>(z);
    // sin(r + low) = sin r + low cos r, and cos r ≈ 1 - r²/2 is enough for the last bit.
    let y = r + fma64::<I>(z * r, p, fma64::<I>(low * z, -0.5, low));
    f64::from_bits(y.to_bits() ^ (parity << 63))
}

/// Sine. NaN where `|x| > FAST_LIMIT_F32`.
#[inline(always)]
pub fn sin_f32<I: Isa>(x: f32) -> f32 {
    let y = sin_shifted_f32::<I>(x.abs(), 0.0);
    let y = f32::from_bits(y.to_bits() ^ (x.to_bits() & SIGN_F32));
    if x.abs() <= FAST_LIMIT_F32 { y } else { f32::NAN }
}

/// Cosine. NaN where `|x| > FAST_LIMIT_F32`.
#[inline(always)]
pub fn cos_f32<I: Isa>(x: f32) -> f32 {
    let y = sin_shifted_f32::<I>(x.abs(), 0.5);
    if x.abs() <= FAST_LIMIT_F32 { y } else { f32::NAN }
}

/// Tangent. NaN where `|x| > FAST_LIMIT_F32`.
#[inline(always)]
pub fn tan_f32<I: Isa>(x: f32) -> f32 {
    sin_f32::<I>(x) / cos_f32::<I>(x)
}

/// Sine. NaN where `|x| > FAST_LIMIT_F64`.
#[inline(always)]
pub fn sin_f64<I: Isa>(x: f64) -> f64 {
    let y = sin_shifted_f64::<I>(x.abs(), 0.0);
    let y = f64::from_bits(y.to_bits() ^ (x.to_bits() & SIGN_F64));
    if x.abs() <= FAST_LIMIT_F64 { y } else { f64::NAN }
}

/// Cosine. NaN where `|x| > FAST_LIMIT_F64`.
#[inline(always)]
pub fn cos_f64<I: Isa>(x: f64) -> f64 {
    let y = sin_shifted_f64::<I>(x.abs(), 0.5);
    if x.abs() <= FAST_LIMIT_F64 { y } else { f64::NAN }
}

/// Tangent. NaN where `|x| > FAST_LIMIT_F64`.
#[inline(always)]
pub fn tan_f64<I: Isa>(x: f64) -> f64 {
    sin_f64::<I>(x) / cos_f64::<I>(x)
}

macro_rules! anywhere {
    ($($name32:ident $name64:ident $f:ident),+) => {$(
        #[doc = concat!("`", stringify!($f), "` of any argument, by the scalar library function.")]
        pub fn $name32(x: f32) -> f32 {
            f64::from(x).$f() as f32
        }
        #[doc = concat!("`", stringify!($f), "` of any argument, by the scalar library function.")]
        pub fn $name64(x: f64) -> f64 {
            x.$f()
        }
    )+};
}
anywhere!(
    sin_anywhere_f32 sin_anywhere_f64 sin,
    cos_anywhere_f32 cos_anywhere_f64 cos,
    tan_anywhere_f32 tan_anywhere_f64 tan
);

/// Whether `x` is finite and beyond the fast range.
#[inline(always)]
pub fn needs_slow_path_f32(x: f32) -> bool {
    x.abs() > FAST_LIMIT_F32 && x.abs() < f32::INFINITY
}

/// Whether `x` is finite and beyond the fast range.
#[inline(always)]
pub fn needs_slow_path_f64(x: f64) -> bool {
    x.abs() > FAST_LIMIT_F64 && x.abs() < f64::INFINITY
}

/// Replaces `ys[i]` by `anywhere(xs[i])` where `xs[i]` is finite and beyond the fast range.
#[inline(always)]
pub fn repair_f32(xs: &[f32], ys: &mut [f32], anywhere: fn(f32) -> f32) {
    if xs.iter().fold(false, |any, &x| any | needs_slow_path_f32(x)) {
        for (&x, y) in xs.iter().zip(ys) {
            if needs_slow_path_f32(x) {
                *y = anywhere(x);
            }
        }
    }
}

/// Replaces `ys[i]` by `anywhere(xs[i])` where `xs[i]` is finite and beyond the fast range.
#[inline(always)]
pub fn repair_f64(xs: &[f64], ys: &mut [f64], anywhere: fn(f64) -> f64) {
    if xs.iter().fold(false, |any, &x| any | needs_slow_path_f64(x)) {
        for (&x, y) in xs.iter().zip(ys) {
            if needs_slow_path_f64(x) {
                *y = anywhere(x);
            }
        }
    }
}
