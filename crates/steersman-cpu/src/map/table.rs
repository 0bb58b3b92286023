//! From an op and an element type to the loop that does it.

use super::row::Rows;
use super::{float, integer};
use crate::isa::{Baseline, Isa, Level};
use steersman_core::{DType, Op, TernaryOp};

/// Finds the loop of an op on an element type, if there is one.
pub type Find = fn(Op, DType) -> Option<Rows>;

/// The loops of one instruction set.
pub fn of(level: Level) -> Find {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => find::<crate::isa::Avx2>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => find::<crate::isa::Avx512>,
        _ => find::<Baseline>,
    }
}

/// Half-precision types have the loops of `f32`: they are widened on the way in and narrowed on the way
/// out, except by `where`, which only moves bytes.
fn find<I: Isa>(op: Op, dtype: DType) -> Option<Rows> {
    use DType::{BF16, Bool, F16, F32, F64, I32, I64, U8, U32};
    match (op, dtype) {
        (Op::Unary(u), F32 | F16 | BF16) => float::unary_f32::<I>(u),
        (Op::Unary(u), F64) => float::unary_f64::<I>(u),
        (Op::Unary(u), I32) => integer::unary_i32::<I>(u),
        (Op::Unary(u), U32) => integer::unary_u32::<I>(u),
        (Op::Unary(u), I64) => integer::unary_i64::<I>(u),
        (Op::Unary(u), U8 | Bool) => integer::unary_byte::<I>(u),
        (Op::Binary(b), F32 | F16 | BF16) => float::binary_f32::<I>(b),
        (Op::Binary(b), F64) => float::binary_f64::<I>(b),
        (Op::Binary(b), I32) => integer::binary_i32::<I>(b),
        (Op::Binary(b), U32) => integer::binary_u32::<I>(b),
        (Op::Binary(b), I64) => integer::binary_i64::<I>(b),
        (Op::Binary(b), U8 | Bool) => integer::binary_byte::<I>(b),
        (Op::Ternary(TernaryOp::Where), _) => Some(integer::choose::<I>(dtype.size())),
        (Op::Ternary(t), F32 | F16 | BF16) => float::ternary_f32::<I>(t),
        (Op::Ternary(t), F64) => float::ternary_f64::<I>(t),
        (Op::Ternary(t), I32) => integer::ternary_i32::<I>(t),
        (Op::Ternary(t), U32) => integer::ternary_u32::<I>(t),
        (Op::Ternary(t), I64) => integer::ternary_i64::<I>(t),
        (Op::Ternary(t), U8 | Bool) => integer::ternary_byte::<I>(t),
        _ => None,
    }
}
