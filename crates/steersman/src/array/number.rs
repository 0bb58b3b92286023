//! Rust numbers among arrays: weak, so they take the array's element type.

use steersman_core::{DType, rounded_to_odd};

/// A Rust number on its way into an array. It has no element type of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A float.
    Float(f64),
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
}

macro_rules! numbers {
    ($($t:ty => $v:ident($as:ty)),*) => { $(
        impl From<$t> for Number {
            fn from(x: $t) -> Number { Number::$v(x as $as) }
        }
    )* };
}
numbers!(f32 => Float(f64), f64 => Float(f64), bool => Bool(bool));
numbers!(i8 => Int(i64), i16 => Int(i64), i32 => Int(i64), i64 => Int(i64), isize => Int(i64));
numbers!(u8 => Int(i64), u16 => Int(i64), u32 => Int(i64));

macro_rules! large {
    ($($t:ty),*) => { $(
        /// One beyond `i64` is a float: no array of integers holds it, and one of floats rounds it all the same.
        impl From<$t> for Number {
            fn from(x: $t) -> Number { i64::try_from(x).map_or(Number::Float(x as f64), Number::Int) }
        }
    )* };
}
large!(u64, usize);

impl From<half::f16> for Number {
    fn from(x: half::f16) -> Number {
        Number::Float(x.to_f64())
    }
}
impl From<half::bf16> for Number {
    fn from(x: half::bf16) -> Number {
        Number::Float(x.to_f64())
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Float(x) => write!(f, "{x:?}"),
            Number::Int(x) => write!(f, "{x}"),
            Number::Bool(x) => write!(f, "{x}"),
        }
    }
}

impl Number {
    /// The number as a float.
    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Number::Float(x) => x,
            Number::Int(x) => x as f64,
            Number::Bool(x) => f64::from(u8::from(x)),
        }
    }

    /// Its bits as an element of this type, in the low bytes. Floats round to the type; an integer type takes
    /// only whole numbers in its range, and bool only truth values: anything else is `None`.
    pub(crate) fn bits(self, dtype: DType) -> Option<u64> {
        let whole = || match self {
            Number::Int(x) => Some(x),
            // 2⁶³ is the first float beyond i64.
            Number::Float(x) if x.fract() == 0.0 && x >= -(2f64.powi(63)) && x < 2f64.powi(63) => {
                Some(x as i64)
            }
            _ => None,
        };
        if let (Number::Bool(_), false) | (Number::Float(_) | Number::Int(_), true) =
            (self, dtype == DType::Bool)
        {
            return None;
        }
        Some(match dtype {
            DType::F32 => u64::from((self.as_f64() as f32).to_bits()),
            DType::F64 => self.as_f64().to_bits(),
            DType::F16 => u64::from(half::f16::from_f32(rounded_to_odd(self.as_f64())).to_bits()),
            DType::BF16 => u64::from(half::bf16::from_f32(rounded_to_odd(self.as_f64())).to_bits()),
            DType::I32 => u64::from(i32::try_from(whole()?).ok()? as u32),
            DType::U32 => u64::from(u32::try_from(whole()?).ok()?),
            DType::I64 => whole()? as u64,
            DType::U8 => u64::from(u8::try_from(whole()?).ok()?),
            DType::Bool => u64::from(self.as_f64() != 0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_the_arrays_type_or_are_refused() {
        assert_eq!(Number::from(2.0).bits(DType::I32), Some(2));
        assert_eq!(Number::from(2.5).bits(DType::I32), None, "nothing is cut off silently");
        assert_eq!(Number::from(-1).bits(DType::I32), Some(u64::from(u32::MAX)));
        assert_eq!(Number::from(300).bits(DType::U8), None);
        assert_eq!(Number::from(u32::MAX).bits(DType::U32), Some(u64::from(u32::MAX)));
        assert_eq!(Number::from(-1).bits(DType::U32), None);
        assert_eq!(Number::from(1i64 << 32).bits(DType::U32), None);
        assert_eq!(Number::from(1).bits(DType::F32), Some(u64::from(1.0f32.to_bits())));
        assert_eq!(Number::from(1i64 << 40).bits(DType::I32), None);
        assert_eq!(Number::from(true).bits(DType::Bool), Some(1));
        assert_eq!(Number::from(true).bits(DType::F32), None);
        assert_eq!(Number::from(1).bits(DType::Bool), None);
        assert_eq!(
            Number::from(1e300).bits(DType::F32),
            Some(u64::from(f32::INFINITY.to_bits())),
            "it rounds"
        );
        assert_eq!(Number::from(9.3e18).bits(DType::I64), None);
    }
}
