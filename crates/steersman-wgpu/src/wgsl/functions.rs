//! Ops as WGSL expressions.

use super::library::{Library, Wanted};
use steersman_core::{BinaryOp, DType, TernaryOp, UnaryOp};

/// One value in; `None` if there is no right way here.
pub(super) fn unary(op: UnaryOp, d: DType, x: &str, wanted: &mut Wanted) -> Option<String> {
    match d {
        DType::F32 | DType::F16 | DType::BF16 => {
            wanted.add(Library::Bits);
            let library = match op {
                UnaryOp::Exp
                | UnaryOp::Expm1
                | UnaryOp::Sigmoid
                | UnaryOp::Silu
                | UnaryOp::Tanh
                | UnaryOp::Cosh
                | UnaryOp::Sinh => Library::Exp,
                UnaryOp::Ln | UnaryOp::Log1p | UnaryOp::Log2 => Library::Log,
                UnaryOp::Sin | UnaryOp::Cos | UnaryOp::Tan => Library::Trig,
                UnaryOp::Asin | UnaryOp::Acos | UnaryOp::Atan => Library::Inverse,
                UnaryOp::Erf | UnaryOp::Gelu => Library::Erf,
                _ => Library::Bits,
            };
            wanted.add(library);
            Some(match op {
                UnaryOp::Neg => format!("negated({x})"),
                UnaryOp::Abs => format!("magnitude({x})"),
                UnaryOp::Recip => format!("f_div(1.0, {x})"),
                UnaryOp::Round => format!("round({x})"),
                UnaryOp::Trunc => format!("trunc({x})"),
                UnaryOp::Not => return None,
                _ => format!("f_{}({x})", op.name()),
            })
        }
        DType::F64 => {
            wanted.add(Library::Double);
            Some(match op {
                UnaryOp::Neg => format!("(-{x})"),
                UnaryOp::Abs => format!("abs({x})"),
                UnaryOp::Sign | UnaryOp::Relu => format!("d_{}({x})", op.name()),
                UnaryOp::Sqrt => format!("sqrt({x})"),
                UnaryOp::Rsqrt => format!("(1.0lf / sqrt({x}))"),
                UnaryOp::Recip => format!("(1.0lf / {x})"),
                UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc => format!("{}({x})", op.name()),
                _ => return None,
            })
        }
        DType::I32 => Some(match op {
            UnaryOp::Neg => format!("(-{x})"),
            UnaryOp::Abs => format!("abs({x})"),
            UnaryOp::Sign => format!("sign({x})"),
            UnaryOp::Relu => format!("max({x}, 0)"),
            _ => return None,
        }),
        DType::U8 | DType::U32 => Some(match op {
            UnaryOp::Abs | UnaryOp::Relu => x.to_string(),
            UnaryOp::Sign => format!("min({x}, 1u)"),
            _ => return None,
        }),
        DType::Bool => (op == UnaryOp::Not).then(|| format!("(!{x})")),
        DType::I64 => None,
    }
}

/// Two values in.
pub(super) fn binary(op: BinaryOp, d: DType, a: &str, b: &str, wanted: &mut Wanted) -> Option<String> {
    use BinaryOp::*;
    let sign = match op {
        Add => "+",
        Sub => "-",
        Mul => "*",
        Div => "/",
        Eq => "==",
        Ne => "!=",
        Lt => "<",
        Le => "<=",
        Gt => ">",
        Ge => ">=",
        _ => "",
    };
    let plain = || format!("({a} {sign} {b})");
    match d {
        DType::F32 | DType::F16 | DType::BF16 => {
            wanted.add(Library::Bits);
            Some(match op {
                Add | Sub | Mul => plain(),
                Div => format!("f_div({a}, {b})"),
                Rem | Pow | Atan2 | Min | Max => {
                    match op {
                        Rem => wanted.add(Library::Rem),
                        Pow => wanted.add(Library::Pow),
                        Atan2 => wanted.add(Library::Inverse),
                        _ => {}
                    }
                    format!("f_{}({a}, {b})", op.name())
                }
                _ if op.compares() => format!("f_{}({a}, {b})", op.name()),
                _ => return None,
            })
        }
        DType::F64 => {
            wanted.add(Library::Double);
            Some(match op {
                Min | Max => format!("d_{}({a}, {b})", op.name()),
                // Not `!=`, which some compilers make of an ordered comparison.
                Ne => format!("(!({a} == {b}))"),
                _ if !sign.is_empty() => plain(),
                _ => return None,
            })
        }
        DType::I32 => {
            wanted.add(Library::Integer);
            Some(match op {
                Div | Rem => format!("i_{}({a}, {b})", op.name()),
                Min | Max => format!("{}({a}, {b})", op.name()),
                _ if !sign.is_empty() => plain(),
                _ => return None,
            })
        }
        DType::U8 | DType::U32 => {
            wanted.add(Library::Integer);
            Some(match op {
                Add | Sub | Mul if d == DType::U8 => format!("({} & 0xffu)", plain()),
                Div | Rem => format!("u_{}({a}, {b})", op.name()),
                Min | Max => format!("{}({a}, {b})", op.name()),
                _ if !sign.is_empty() => plain(),
                _ => return None,
            })
        }
        DType::Bool => Some(match op {
            And => format!("({a} && {b})"),
            Or => format!("({a} || {b})"),
            Xor | Ne => format!("({a} != {b})"),
            Eq => format!("({a} == {b})"),
            Lt => format!("(!{a} && {b})"),
            Le => format!("(!{a} || {b})"),
            Gt => format!("({a} && !{b})"),
            Ge => format!("({a} || !{b})"),
            _ => return None,
        }),
        DType::I64 => None,
    }
}

/// Three values in.
pub(super) fn ternary(op: TernaryOp, d: DType, [a, b, c]: [&str; 3], wanted: &mut Wanted) -> Option<String> {
    Some(match (op, d) {
        // By bits: a float may be a NaN that selecting need not keep.
        (TernaryOp::Where, DType::F32) => {
            format!("bitcast<f32>(select(bitcast<u32>({c}), bitcast<u32>({b}), {a}))")
        }
        (TernaryOp::Where, _) => format!("select({c}, {b}, {a})"),
        (_, DType::I64 | DType::Bool) => return None,
        (TernaryOp::Fma, DType::I32 | DType::U32) => format!("({a} * {b} + {c})"),
        (TernaryOp::Fma, DType::U8) => format!("(({a} * {b} + {c}) & 0xffu)"),
        (TernaryOp::Fma, _) => format!("fma({a}, {b}, {c})"),
        (TernaryOp::Clamp, DType::I32 | DType::U8 | DType::U32) => format!("min(max({a}, {b}), {c})"),
        (TernaryOp::Clamp, DType::F64) => {
            wanted.add(Library::Double);
            format!("d_clamp({a}, {b}, {c})")
        }
        (TernaryOp::Clamp, _) => {
            wanted.add(Library::Bits);
            format!("f_clamp({a}, {b}, {c})")
        }
    })
}

/// A value in another type.
pub(super) fn cast(from: DType, to: DType, x: &str, wanted: &mut Wanted) -> Option<String> {
    use DType::*;
    wanted.add(Library::Integer);
    let single = |d: DType| matches!(d, F32 | F16 | BF16);
    Some(match (from, to) {
        _ if from == to => x.to_string(),
        (_, F32 | F16 | BF16) if single(from) => x.to_string(),
        (Bool, F32 | F16 | BF16) => format!("select(0.0, 1.0, {x})"),
        (Bool, F64) => format!("select(0.0lf, 1.0lf, {x})"),
        (Bool, I32) => format!("select(0, 1, {x})"),
        (Bool, U8 | U32) => format!("select(0u, 1u, {x})"),
        (Bool, I64) => format!("vec2<u32>(select(0u, 1u, {x}), 0u)"),
        (I32 | U8 | U32 | F64, F32) => format!("f32({x})"),
        // Rounded once: integers of these sizes are f32 before they are 16 bits, but for the largest.
        (U8, F16 | BF16) => format!("f32({x})"),
        (F32 | F16 | BF16 | I32 | U8 | U32, F64) => format!("f64({x})"),
        (F32 | F16 | BF16, I32) => format!("to_i32({x})"),
        (F32 | F16 | BF16, U32) => format!("to_u32({x})"),
        (F32 | F16 | BF16, U8) => format!("to_u8({x})"),
        (F32 | F16 | BF16, Bool) => format!("f_nonzero({x})"),
        (F64, I32) => {
            wanted.add(Library::Double);
            format!("d_to_i32({x})")
        }
        (F64, U32) => {
            wanted.add(Library::Double);
            format!("d_to_u32({x})")
        }
        (F64, Bool) => format!("(!({x} == 0.0lf))"),
        (I32, U32) => format!("bitcast<u32>({x})"),
        (I32, U8) => format!("(bitcast<u32>({x}) & 0xffu)"),
        (I32, Bool) => format!("({x} != 0)"),
        (U8 | U32, Bool) => format!("({x} != 0u)"),
        (U8, U32) => x.to_string(),
        (U32, U8) => format!("({x} & 0xffu)"),
        (U8 | U32, I32) => format!("bitcast<i32>({x})"),
        (I32, I64) => {
            wanted.add(Library::Wide);
            format!("i64_from({x})")
        }
        (U8 | U32, I64) => format!("vec2<u32>({x}, 0u)"),
        (I64, I32) => format!("bitcast<i32>(({x}).x)"),
        (I64, U32) => format!("({x}).x"),
        (I64, U8) => format!("(({x}).x & 0xffu)"),
        (I64, Bool) => format!("((({x}).x | ({x}).y) != 0u)"),
        _ => return None,
    })
}
