//! Elements given by their bits: what they stand for and how far they are apart.

use steersman_core::{DType, rounded_to_odd};

/// Units in the last place between two elements given by their bits; infinite between NaN and a number.
/// Zeros of both signs are the same only where rounding is allowed at all.
pub fn distance(dtype: DType, a: u64, b: u64) -> f64 {
    let bits = dtype.size() as u32 * 8;
    let (exponent, sign) = match dtype {
        DType::F64 => (0x7ff0 << 48, 1u64 << 63),
        DType::F32 => (0x7f80 << 16, 1 << 31),
        DType::F16 => (0x7c00, 1 << 15),
        DType::BF16 => (0x7f80, 1 << 15),
        _ => return if a == b { 0.0 } else { f64::INFINITY },
    };
    let nan = |x: u64| x & (sign - 1) > exponent;
    if nan(a) || nan(b) {
        return if nan(a) && nan(b) { 0.0 } else { f64::INFINITY };
    }
    let ordered = |x: u64| if x & sign != 0 { -((x & (sign - 1)) as i128) } else { x as i128 };
    debug_assert!(bits == 64 || a >> bits == 0);
    let apart = (ordered(a) - ordered(b)).unsigned_abs() as f64;
    // Opposite zeros are no rounding error but not the same bits either.
    if apart == 0.0 && a != b { 0.5 } else { apart }
}

/// The number an element given by its bits stands for.
pub fn value(dtype: DType, bits: u64) -> f64 {
    match dtype {
        DType::F64 => f64::from_bits(bits),
        DType::F32 => f32::from_bits(bits as u32).into(),
        DType::F16 => half::f16::from_bits(bits as u16).into(),
        DType::BF16 => half::bf16::from_bits(bits as u16).into(),
        DType::I64 => bits as i64 as f64,
        DType::I32 => (bits as u32 as i32).into(),
        DType::U8 | DType::U32 | DType::Bool => bits as f64,
    }
}

/// The bits of a number in a type; integers are eight times as large, and negative ones wrap in `u32`: what compares it as
/// signed is found out.
pub fn encode(dtype: DType, x: f64) -> u64 {
    match dtype {
        DType::F32 => (x as f32).to_bits().into(),
        DType::F64 => x.to_bits(),
        DType::F16 => half::f16::from_f32(rounded_to_odd(x)).to_bits().into(),
        DType::BF16 => half::bf16::from_f32(rounded_to_odd(x)).to_bits().into(),
        DType::I32 => u64::from((x * 8.0) as i32 as u32),
        DType::U32 => u64::from((x * 8.0) as i64 as u32),
        DType::I64 => (x * 8.0) as i64 as u64,
        DType::U8 => (x * 8.0).abs() as u8 as u64,
        DType::Bool => u64::from(x > 0.0),
    }
}

pub fn show(dtype: DType, bits: u64) -> String {
    if dtype.is_float() { format!("{:e}", value(dtype, bits)) } else { format!("{}", value(dtype, bits)) }
}
