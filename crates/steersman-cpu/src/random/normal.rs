//! Words to pairs of normal numbers: a radius √(−2 ln u) and an angle.
//!
//! The angle is used as the integer it comes as: taking it modulo half a turn is a shift, and the sine of what
//! is left one odd polynomial; the cosine is the sine a quarter turn on.

use crate::isa::{Isa, fma32, fma64};
use crate::math::{ln_normal_f32, ln_normal_f64, sin_half_turn_f32, sin_half_turn_f64};

/// `r cos θ` and `r sin θ`.
#[inline(always)]
pub(super) fn pair_f32<I: Isa>(radius: u32, angle: u32) -> (f32, f32) {
    // In (0, 1]; of 31 bits, which convert in one instruction everywhere.
    let u = fma32::<I>((radius >> 1) as i32 as f32, 1.0 / 2_147_483_648.0, 1.0 / 4_294_967_296.0);
    let r = (-2.0 * ln_normal_f32::<I>(u)).sqrt();
    (r * sine_f32::<I>(angle.wrapping_add(1 << 30)), r * sine_f32::<I>(angle))
}

/// The sine of `turn` / 2³² turns.
#[inline(always)]
fn sine_f32<I: Isa>(turn: u32) -> f32 {
    const UNIT: f32 = std::f32::consts::TAU / 4_294_967_296.0;
    // What is left modulo half a turn, signed; the top bit tells whether a half turn was taken off.
    let left = ((turn << 1) as i32) >> 1;
    let y = sin_half_turn_f32::<I>(left as f32 * UNIT);
    f32::from_bits(y.to_bits() ^ ((turn ^ left as u32) & (1 << 31)))
}

/// `r cos θ` and `r sin θ`.
#[inline(always)]
pub(super) fn pair_f64<I: Isa>(radius: u64, angle: u64) -> (f64, f64) {
    // 52 bits behind the one of 1.x, less 1 but for half a unit: in (0, 1), exact.
    let one_to_two = f64::from_bits(radius >> 12 | 0x3ff0_0000_0000_0000);
    let u = one_to_two - (1.0 - f64::EPSILON / 2.0);
    let r = (-2.0 * ln_normal_f64::<I>(u)).sqrt();
    (r * sine_f64::<I>(angle.wrapping_add(1 << 62)), r * sine_f64::<I>(angle))
}

/// The sine of `turn` / 2⁶⁴ turns.
#[inline(always)]
fn sine_f64<I: Isa>(turn: u64) -> f64 {
    // The 52 bits below the top one as a fraction of half a turn, in [1, 2): no conversion of 64 bits needed,
    // which most instruction sets lack. 1.5 in the middle is where what is left changes its sign.
    let fraction = f64::from_bits((turn << 1) >> 12 | 0x3ff0_0000_0000_0000);
    let high = fraction >= 1.5;
    let left = fma64::<I>(fraction - if high { 2.0 } else { 1.0 }, std::f64::consts::PI, 0.0);
    let y = sin_half_turn_f64::<I>(left);
    let flip = (turn >> 63) ^ u64::from(high);
    f64::from_bits(y.to_bits() ^ (flip << 63))
}
