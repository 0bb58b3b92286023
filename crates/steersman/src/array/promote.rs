//! Which element type two arrays of different types are computed in.
//!
//! As the Python array API standard has it within a kind: `u8 < i32 < i64`, `u8 < u32 < i64`, `f16 < f32 < f64`,
//! `bf16 < f32`; `u32` with `i32` gives `i64`, the smallest type that holds both.
//! Where the standard leaves the answer open:
//!
//! - an integer with a float gives that float (`i64` with `f32` is `f32`, as in JAX and PyTorch; NumPy says `f64`);
//! - `bool` with a number gives the number's type;
//! - `f16` with `bf16` gives `f32`, the smallest type that holds both.

use steersman_core::DType;

/// The type that arrays of types `a` and `b` are computed in.
pub fn promote(a: DType, b: DType) -> DType {
    if a == b {
        return a;
    }
    let rank = |d: DType| match d {
        DType::Bool => 0,
        DType::U8 => 1,
        DType::I32 | DType::U32 => 2,
        DType::I64 => 3,
        DType::F16 | DType::BF16 => 4,
        DType::F32 => 5,
        DType::F64 => 6,
    };
    match rank(a).cmp(&rank(b)) {
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Equal if a.is_integer() => DType::I64,
        std::cmp::Ordering::Equal => DType::F32,
    }
}
