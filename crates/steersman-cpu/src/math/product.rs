//! Products to twice the precision: the rounded product and what rounding lost.

use crate::isa::Isa;

/// `a²` rounded, and the rest.
#[inline(always)]
pub(super) fn square_f32<I: Isa>(a: f32) -> (f32, f32) {
    let p = a * a;
    if I::FMA {
        return (p, a.mul_add(a, -p));
    }
    let high = f32::from_bits(a.to_bits() & 0xffff_f000);
    let low = a - high;
    (p, ((high * high - p) + 2.0 * high * low) + low * low)
}

/// `a²` rounded, and the rest.
#[inline(always)]
pub(super) fn square_f64<I: Isa>(a: f64) -> (f64, f64) {
    product_f64::<I>(a, a)
}

/// `a b` rounded, and the rest.
#[inline(always)]
pub(super) fn product_f64<I: Isa>(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    if I::FMA {
        return (p, a.mul_add(b, -p));
    }
    let (ah, bh) = (high_half(a), high_half(b));
    let (al, bl) = (a - ah, b - bh);
    (p, (((ah * bh - p) + ah * bl) + al * bh) + al * bl)
}

/// The leading 26 bits.
#[inline(always)]
fn high_half(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0xffff_ffff_f800_0000)
}
