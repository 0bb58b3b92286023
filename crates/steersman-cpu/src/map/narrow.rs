//! `f16` and `bf16` to `f32` and back, in integer arithmetic without branches, so that loops over them
//! become vector code. Rounds to nearest, ties to even; NaN stays NaN (quiet), overflow gives infinity.

/// The two half-precision formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// IEEE 754 binary16.
    F16,
    /// The upper half of an `f32`.
    BF16,
}

/// 2^112: the distance between the exponent biases of `f32` and `f16`, as a factor.
const REBIAS: f32 = f32::from_bits((127 + 112) << 23);

/// The `f32` equal to the `f16` with these bits.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    let h = bits as u32;
    // Exponent and fraction in place; the product mends the bias, of subnormals too.
    let scaled = f32::from_bits((h & 0x7fff) << 13) * REBIAS;
    let special = if h & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled.to_bits() | special | (h & 0x8000) << 16)
}

/// The bits of the `f16` nearest to `x`.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let a = bits & 0x7fff_ffff;
    // Half a unit less one, plus one where the last kept bit is odd: carries exactly when it must.
    let odd = (a >> 13) & 1;
    let normal = a.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    // Adding ½ lines the last bit of a subnormal up with the last bit of the sum, which rounds it.
    let subnormal = (f32::from_bits(a) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let nan = 0x7e00 | ((a >> 13) & 0x3ff);
    let y = if a < 0x3880_0000 { subnormal } else { normal };
    let y = if a >= 0x4780_0000 { 0x7c00 } else { y };
    let y = if a > 0x7f80_0000 { nan } else { y };
    (y | (bits >> 16) & 0x8000) as u16
}

/// The `f32` equal to the `bf16` with these bits.
#[inline(always)]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

/// The bits of the `bf16` nearest to `x`.
#[inline(always)]
pub fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = bits >> 16 | 0x40;
    (if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { rounded }) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_widens_as_the_reference_does() {
        for bits in 0..=u16::MAX {
            let (f, b) = (half::f16::from_bits(bits).to_f32(), half::bf16::from_bits(bits).to_f32());
            assert!(
                f16_to_f32(bits).to_bits() == f.to_bits() || f.is_nan() && f16_to_f32(bits).is_nan(),
                "{bits:x}"
            );
            assert!(
                bf16_to_f32(bits).to_bits() == b.to_bits() || b.is_nan() && bf16_to_f32(bits).is_nan(),
                "{bits:x}"
            );
        }
    }

    #[test]
    fn narrowing_rounds_as_the_reference_does() {
        // Every halfway point and its neighbours, and a stride through all of f32.
        let halfway = (0..=u16::MAX).flat_map(|b| {
            let f = half::f16::from_bits(b).to_f32().to_bits();
            let g = (b as u32) << 16;
            [f, f ^ 0x1000, f ^ 0xfff, f ^ 0x1001, g, g ^ 0x8000, g ^ 0x7fff, g ^ 0x8001]
        });
        for bits in halfway.chain((0..1 << 20).map(|i: u32| i.wrapping_mul(4099))) {
            let x = f32::from_bits(bits);
            let (f, b) = (half::f16::from_f32(x), half::bf16::from_f32(x));
            let (f_got, b_got) = (half::f16::from_bits(f32_to_f16(x)), half::bf16::from_bits(f32_to_bf16(x)));
            assert!(
                f.to_bits() == f_got.to_bits() || f.is_nan() && f_got.is_nan(),
                "{x:e}: {f_got}, not {f}"
            );
            assert!(
                b.to_bits() == b_got.to_bits() || b.is_nan() && b_got.is_nan(),
                "{x:e}: {b_got}, not {b}"
            );
        }
    }
}
