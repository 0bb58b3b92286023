//! Ops as functions of single values, by the standard library.

use steersman_core::{BinaryOp, TernaryOp, UnaryOp};

/// A float type the arithmetic is done in.
pub trait Real: Copy + PartialOrd {
    /// The function of a unary op.
    fn unary(op: UnaryOp) -> Option<fn(Self) -> Self>;
    /// The function of a binary op whose result is a float.
    fn binary(op: BinaryOp) -> Option<fn(Self, Self) -> Self>;
    /// The function of a ternary op but `where`.
    fn ternary(op: TernaryOp) -> Option<fn(Self, Self, Self) -> Self>;
}

/// An integer type; `u8` serves for `bool` too.
pub trait Integer: Copy + Ord {
    /// The function of a unary op.
    fn unary(op: UnaryOp) -> Option<fn(Self) -> Self>;
    /// The function of a binary op whose result is an integer.
    fn binary(op: BinaryOp) -> Option<fn(Self, Self) -> Self>;
    /// The function of a ternary op but `where`.
    fn ternary(op: TernaryOp) -> Option<fn(Self, Self, Self) -> Self>;
}

/// The function of a comparison.
pub fn compare<T: PartialOrd>(op: BinaryOp) -> Option<fn(&T, &T) -> bool> {
    Some(match op {
        BinaryOp::Eq => T::eq,
        BinaryOp::Ne => T::ne,
        BinaryOp::Lt => T::lt,
        BinaryOp::Le => T::le,
        BinaryOp::Gt => T::gt,
        BinaryOp::Ge => T::ge,
        _ => return None,
    })
}

unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
}

fn sigmoid(x: f64) -> f64 {
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

fn silu(x: f64) -> f64 {
    match x {
        _ if x < -800.0 => -0.0,
        // e^x would be subnormal, and the product with x inexact.
        _ if x < -600.0 => x * (x + 100.0).exp() * (-100f64).exp(),
        _ => x * sigmoid(x),
    }
}

fn gelu(x: f64) -> f64 {
    if x.is_infinite() {
        return if x > 0.0 { x } else { -0.0 };
    }
    // erfc multiplies a relative error of its argument by twice the argument's square: keep what the
    // rounded product -x/√2 lacks, and make up for it to first order.
    const ROOT: f64 = std::f64::consts::FRAC_1_SQRT_2;
    const ROOT_REST: f64 = -4.833646656726457e-17;
    let z = -x * ROOT;
    let rest = (-x).mul_add(ROOT, -z) - x * ROOT_REST;
    let tail = erfc(z) - std::f64::consts::FRAC_2_SQRT_PI * (-z * z).exp() * rest;
    0.5 * x * tail
}

macro_rules! real {
    ($t:ident) => {
        impl Real for $t {
            fn unary(op: UnaryOp) -> Option<fn($t) -> $t> {
                Some(match op {
                    UnaryOp::Neg => |x| -x,
                    UnaryOp::Abs => $t::abs,
                    UnaryOp::Sign => |x| {
                        if x == 0.0 {
                            0.0
                        } else if x.is_nan() {
                            x
                        } else {
                            x.signum()
                        }
                    },
                    UnaryOp::Sqrt => $t::sqrt,
                    UnaryOp::Rsqrt => |x| x.sqrt().recip(),
                    UnaryOp::Recip => $t::recip,
                    UnaryOp::Exp => $t::exp,
                    UnaryOp::Expm1 => $t::exp_m1,
                    UnaryOp::Ln => $t::ln,
                    UnaryOp::Log1p => $t::ln_1p,
                    UnaryOp::Log2 => $t::log2,
                    UnaryOp::Sin => $t::sin,
                    UnaryOp::Cos => $t::cos,
                    UnaryOp::Tan => $t::tan,
                    UnaryOp::Asin => $t::asin,
                    UnaryOp::Acos => $t::acos,
                    UnaryOp::Atan => $t::atan,
                    UnaryOp::Sinh => $t::sinh,
                    UnaryOp::Cosh => $t::cosh,
                    UnaryOp::Tanh => $t::tanh,
                    // No library has these three as functions of f32.
                    UnaryOp::Sigmoid => |x| sigmoid(f64::from(x)) as $t,
                    UnaryOp::Gelu => |x| gelu(f64::from(x)) as $t,
                    UnaryOp::Silu => |x| silu(f64::from(x)) as $t,
                    UnaryOp::Relu => |x| if x <= 0.0 { 0.0 } else { x },
                    UnaryOp::Erf => |x| erf(f64::from(x)) as $t,
                    UnaryOp::Floor => $t::floor,
                    UnaryOp::Ceil => $t::ceil,
                    UnaryOp::Round => $t::round_ties_even,
                    UnaryOp::Trunc => $t::trunc,
                    UnaryOp::Not => return None,
                })
            }

            fn binary(op: BinaryOp) -> Option<fn($t, $t) -> $t> {
                Some(match op {
                    BinaryOp::Add => |a, b| a + b,
                    BinaryOp::Sub => |a, b| a - b,
                    BinaryOp::Mul => |a, b| a * b,
                    BinaryOp::Div => |a, b| a / b,
                    BinaryOp::Rem => |a, b| a % b,
                    BinaryOp::Pow => $t::powf,
                    BinaryOp::Min => min,
                    BinaryOp::Max => max,
                    BinaryOp::Atan2 => $t::atan2,
                    _ => return None,
                })
            }

            fn ternary(op: TernaryOp) -> Option<fn($t, $t, $t) -> $t> {
                Some(match op {
                    TernaryOp::Fma => $t::mul_add,
                    TernaryOp::Clamp => |a, b, c| min(max(a, b), c),
                    TernaryOp::Where => return None,
                })
            }
        }
    };
}
real!(f32);
real!(f64);

/// The smaller; NaN if either is (a comparison with it is false, and so is its equality with itself).
fn min<T: Copy + PartialOrd>(a: T, b: T) -> T {
    if a < b || a.partial_cmp(&a).is_none() { a } else { b }
}

/// The larger; NaN if either is.
fn max<T: Copy + PartialOrd>(a: T, b: T) -> T {
    if a > b || a.partial_cmp(&a).is_none() { a } else { b }
}

macro_rules! integer {
    ($t:ident, $($uop:ident: $uf:expr),+; $($bop:ident: $bf:expr),*) => {
        impl Integer for $t {
            fn unary(op: UnaryOp) -> Option<fn($t) -> $t> {
                Some(match op {
                    $(UnaryOp::$uop => $uf,)+
                    _ => return None,
                })
            }

            fn binary(op: BinaryOp) -> Option<fn($t, $t) -> $t> {
                Some(match op {
                    BinaryOp::Add => $t::wrapping_add,
                    BinaryOp::Sub => $t::wrapping_sub,
                    BinaryOp::Mul => $t::wrapping_mul,
                    BinaryOp::Div => |a, b| if b == 0 { 0 } else { a.wrapping_div(b) },
                    BinaryOp::Rem => |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) },
                    BinaryOp::Min => std::cmp::min,
                    BinaryOp::Max => std::cmp::max,
                    $(BinaryOp::$bop => $bf,)*
                    _ => return None,
                })
            }

            fn ternary(op: TernaryOp) -> Option<fn($t, $t, $t) -> $t> {
                Some(match op {
                    TernaryOp::Fma => |a, b, c| a.wrapping_mul(b).wrapping_add(c),
                    TernaryOp::Clamp => |a, b, c| a.max(b).min(c),
                    TernaryOp::Where => return None,
                })
            }
        }
    };
}
integer!(i32, Neg: i32::wrapping_neg, Abs: i32::wrapping_abs, Sign: i32::signum, Relu: |x| x.max(0););
integer!(i64, Neg: i64::wrapping_neg, Abs: i64::wrapping_abs, Sign: i64::signum, Relu: |x| x.max(0););
integer!(u32, Abs: |x| x, Sign: |x| x.min(1), Relu: |x| x;);
integer!(u8, Abs: |x| x, Sign: |x| x.min(1), Relu: |x| x, Not: |x| 1 - x;
    And: |a, b| a & b, Or: |a, b| a | b, Xor: |a, b| a ^ b);
