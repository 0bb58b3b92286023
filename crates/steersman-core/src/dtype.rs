//! Element types.

use std::fmt;
use std::str::FromStr;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum DType {
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
    /// 16-bit IEEE float; stored as such, computed in f32.
    F16,
    /// bfloat16; stored as such, computed in f32.
    BF16,
    /// 32-bit signed integer; arithmetic wraps.
    I32,
    /// 64-bit signed integer; arithmetic wraps.
    I64,
    /// 8-bit unsigned integer; arithmetic wraps.
    U8,
    /// One byte, 0 or 1.
    Bool,
    /// 32-bit unsigned integer; arithmetic wraps. Last, since the others' numbers are part of keys.
    U32,
}

/// `x` as an `f32`, rounded to odd: of the two neighbours of an `x` between them, the one whose last bit is
/// set. A second rounding, to half precision, then sees no tie that `x` was not, and gives what one rounding
/// would (which the `half` crate's `from_f64` does not: it drops the low 32 bits first).
#[inline(always)]
pub fn rounded_to_odd(x: f64) -> f32 {
    let near = x as f32;
    let (bits, back) = (near.to_bits(), near as f64);
    // An exact value stays, and NaN.
    let between = back != x && !x.is_nan();
    let away = if back.abs() < x.abs() { 1 } else { u32::MAX };
    f32::from_bits(if between && bits & 1 == 0 { bits.wrapping_add(away) } else { bits })
}

impl DType {
    /// Every element type.
    pub const ALL: [DType; 9] = [
        DType::F32,
        DType::F64,
        DType::F16,
        DType::BF16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::Bool,
        DType::U32,
    ];

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::F64 | DType::I64 => 8,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 | DType::BF16 => 2,
            DType::U8 | DType::Bool => 1,
        }
    }

    /// Whether it is one of the float types.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64 | DType::F16 | DType::BF16)
    }

    /// Whether it is one of the integer types (`bool` is not).
    pub const fn is_integer(self) -> bool {
        matches!(self, DType::I32 | DType::I64 | DType::U8 | DType::U32)
    }

    /// Its name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::Bool => "bool",
            DType::U32 => "u32",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = ();
    fn from_str(s: &str) -> Result<DType, ()> {
        DType::ALL.into_iter().find(|d| d.name() == s).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::{DType, rounded_to_odd};
    use half::{bf16, f16};

    #[test]
    fn numbers_of_types_are_their_places_and_stay() {
        let names = DType::ALL.map(DType::name);
        assert_eq!(names, ["f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool", "u32"]);
        assert!(DType::ALL.iter().enumerate().all(|(i, d)| *d as usize == i));
    }

    /// The nearest half by comparing with both neighbours; ties to the even one.
    fn nearest(x: f64, up: f64, down: f64, up_even: bool) -> f64 {
        match (up - x).partial_cmp(&(x - down)).expect("numbers") {
            std::cmp::Ordering::Less => up,
            std::cmp::Ordering::Greater => down,
            std::cmp::Ordering::Equal if up_even => up,
            std::cmp::Ordering::Equal => down,
        }
    }

    #[test]
    fn halves_of_doubles_are_rounded_once() {
        // About every midpoint: it, its neighbours, and what is a hair off in the bits an f32 has not.
        let hairs = [0.0, 2f64.powi(-40), -(2f64.powi(-40)), 2f64.powi(-20), -(2f64.powi(-20))];
        for bits in 0..0x7bffu16 {
            let (down, up) = (f16::from_bits(bits).to_f64(), f16::from_bits(bits + 1).to_f64());
            for hair in hairs {
                let x = f64::midpoint(down, up) * (1.0 + hair);
                let want = nearest(x, up, down, bits & 1 == 1);
                assert_eq!(f16::from_f32(rounded_to_odd(x)).to_f64(), want, "{x:e}");
                assert_eq!(f16::from_f32(rounded_to_odd(-x)).to_f64(), -want, "-{x:e}");
            }
        }
        for bits in 0..0x7f7fu16 {
            let (down, up) = (bf16::from_bits(bits).to_f64(), bf16::from_bits(bits + 1).to_f64());
            for hair in hairs {
                let x = f64::midpoint(down, up) * (1.0 + hair);
                let want = nearest(x, up, down, bits & 1 == 1);
                assert_eq!(bf16::from_f32(rounded_to_odd(x)).to_f64(), want, "{x:e}");
            }
        }
    }

    #[test]
    fn what_is_no_number_or_too_large_stays_so() {
        assert!(f16::from_f32(rounded_to_odd(f64::NAN)).is_nan());
        assert_eq!(rounded_to_odd(f64::INFINITY), f32::INFINITY);
        assert_eq!(f16::from_f32(rounded_to_odd(1e300)), f16::INFINITY);
        assert_eq!(bf16::from_f32(rounded_to_odd(-1e300)), bf16::NEG_INFINITY);
        assert_eq!(rounded_to_odd(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(bf16::from_f32(rounded_to_odd(f64::MIN_POSITIVE)), bf16::ZERO);
    }
}
