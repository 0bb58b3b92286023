//! Element types as reductions see them.

use half::{bf16, f16};
use steersman_core::rounded_to_odd;

/// A float as it is stored, and the float it is computed in.
pub(super) trait Float: Copy + Send + Sync + 'static {
    /// Its value in f64, exactly.
    fn wide(self) -> f64;
    /// The nearest value to `x`.
    fn from_wide(x: f64) -> Self;
}

impl Float for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self as f64
    }
    #[inline(always)]
    fn from_wide(x: f64) -> f32 {
        x as f32
    }
}

impl Float for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    #[inline(always)]
    fn from_wide(x: f64) -> f64 {
        x
    }
}

/// An IEEE half float; its conversion vectorises, which the `half` crate's does not.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Half(u16);

impl Half {
    /// Its value in f32, exactly.
    #[inline(always)]
    pub fn get(self) -> f32 {
        let magnitude = ((self.0 & 0x7fff) as u32) << 13;
        // Shifted into place the exponent is short by 112; multiplying makes good for it and brings
        // subnormals along. Infinity and NaN need all exponent bits set.
        let scaled = (f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23)).to_bits();
        let special = if self.0 & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
        f32::from_bits(scaled | special | ((self.0 & 0x8000) as u32) << 16)
    }
}

impl Float for Half {
    #[inline(always)]
    fn wide(self) -> f64 {
        self.get() as f64
    }
    #[inline(always)]
    fn from_wide(x: f64) -> Half {
        Half(f16::from_f32(rounded_to_odd(x)).to_bits())
    }
}

/// A bfloat16.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Brain(u16);

impl Brain {
    /// Its value in f32, exactly.
    #[inline(always)]
    pub fn get(self) -> f32 {
        f32::from_bits((self.0 as u32) << 16)
    }
}

impl Float for Brain {
    #[inline(always)]
    fn wide(self) -> f64 {
        self.get() as f64
    }
    #[inline(always)]
    fn from_wide(x: f64) -> Brain {
        Brain(bf16::from_f32(rounded_to_odd(x)).to_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_float_converts_as_the_half_crate_does() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (Half(bits).get(), f16::from_bits(bits).to_f32());
            assert!(ours == theirs || ours.is_nan() && theirs.is_nan(), "{bits:#x}: {ours} {theirs}");
            assert_eq!(ours.is_sign_negative(), theirs.is_sign_negative(), "{bits:#x}");
        }
    }
}
