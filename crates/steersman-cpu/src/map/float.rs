//! The functions of `f32` and `f64`, and which of them each op is.

use super::row::{Fun1, Fun2, Fun3, Rows};
use crate::isa::{Isa, fma64};
use crate::math::{self, trig};
use steersman_core::{BinaryOp, TernaryOp, UnaryOp};

/// Elements in a block of 64 bytes.
const L32: usize = 16;
const L64: usize = 8;

macro_rules! unary {
    ($($op:ident($x:ident): $f32:expr, $f64:expr, $rows:ident $(=> $any32:path, $any64:path)?;)+) => {
        $(
            struct $op;
            impl Fun1<f32> for $op {
                #[inline(always)]
                fn apply<I: Isa>($x: f32) -> f32 {
                    $f32
                }
                $(
                    const PARTIAL: bool = true;
                    #[inline(always)]
                    fn misses(x: f32) -> bool {
                        trig::needs_slow_path_f32(x)
                    }
                    fn anywhere(x: f32) -> f32 {
                        $any32(x)
                    }
                )?
            }
            impl Fun1<f64> for $op {
                #[inline(always)]
                fn apply<I: Isa>($x: f64) -> f64 {
                    $f64
                }
                $(
                    const PARTIAL: bool = true;
                    #[inline(always)]
                    fn misses(x: f64) -> bool {
                        trig::needs_slow_path_f64(x)
                    }
                    fn anywhere(x: f64) -> f64 {
                        $any64(x)
                    }
                )?
            }
        )+

        /// Rows of a unary op on `f32`.
        pub fn unary_f32<I: Isa>(op: UnaryOp) -> Option<Rows> {
            match op {
                $(UnaryOp::$op => Some(Rows::$rows::<I, f32, $op, L32>()),)+
                UnaryOp::Not => None,
            }
        }

        /// Rows of a unary op on `f64`.
        pub fn unary_f64<I: Isa>(op: UnaryOp) -> Option<Rows> {
            match op {
                $(UnaryOp::$op => Some(Rows::$rows::<I, f64, $op, L64>()),)+
                UnaryOp::Not => None,
            }
        }
    };
}

unary! {
    Neg(x): -x, -x, one;
    Abs(x): x.abs(), x.abs(), one;
    Sqrt(x): x.sqrt(), x.sqrt(), one;
    Sign(x): math::sign_f32::<I>(x), math::sign_f64::<I>(x), one;
    Rsqrt(x): math::rsqrt_f32::<I>(x), math::rsqrt_f64::<I>(x), one;
    Recip(x): math::recip_f32::<I>(x), math::recip_f64::<I>(x), one;
    Exp(x): math::exp_f32::<I>(x), math::exp_f64::<I>(x), one_slow;
    Expm1(x): math::expm1_f32::<I>(x), math::expm1_f64::<I>(x), one_slow;
    Ln(x): math::ln_f32::<I>(x), math::ln_f64::<I>(x), one_slow;
    Log1p(x): math::log1p_f32::<I>(x), math::log1p_f64::<I>(x), one_slow;
    Log2(x): math::log2_f32::<I>(x), math::log2_f64::<I>(x), one_slow;
    Sin(x): math::sin_f32::<I>(x), math::sin_f64::<I>(x), one_slow => trig::sin_anywhere_f32, trig::sin_anywhere_f64;
    Cos(x): math::cos_f32::<I>(x), math::cos_f64::<I>(x), one_slow => trig::cos_anywhere_f32, trig::cos_anywhere_f64;
    Tan(x): math::tan_f32::<I>(x), math::tan_f64::<I>(x), one_slow => trig::tan_anywhere_f32, trig::tan_anywhere_f64;
    Asin(x): math::asin_f32::<I>(x), math::asin_f64::<I>(x), one_slow;
    Acos(x): math::acos_f32::<I>(x), math::acos_f64::<I>(x), one_slow;
    Atan(x): math::atan_f32::<I>(x), math::atan_f64::<I>(x), one_slow;
    Sinh(x): math::sinh_f32::<I>(x), math::sinh_f64::<I>(x), one_slow;
    Cosh(x): math::cosh_f32::<I>(x), math::cosh_f64::<I>(x), one_slow;
    Tanh(x): math::tanh_f32::<I>(x), math::tanh_f64::<I>(x), one_slow;
    Sigmoid(x): math::sigmoid_f32::<I>(x), math::sigmoid_f64::<I>(x), one_slow;
    Relu(x): math::relu_f32::<I>(x), math::relu_f64::<I>(x), one;
    Gelu(x): math::gelu_f32::<I>(x), math::gelu_f64::<I>(x), one_slow;
    Silu(x): math::silu_f32::<I>(x), math::silu_f64::<I>(x), one_slow;
    Erf(x): math::erf_f32::<I>(x), math::erf_f64::<I>(x), one_slow;
    Floor(x): math::floor_f32::<I>(x), math::floor_f64::<I>(x), one;
    Ceil(x): math::ceil_f32::<I>(x), math::ceil_f64::<I>(x), one;
    Round(x): math::round_f32::<I>(x), math::round_f64::<I>(x), one;
    Trunc(x): math::trunc_f32::<I>(x), math::trunc_f64::<I>(x), one;
}

macro_rules! binary {
    ($($op:ident($a:ident, $b:ident) -> $out32:ty, $out64:ty: $f32:expr, $f64:expr, $rows:ident;)+) => {
        $(
            struct $op;
            impl Fun2<f32> for $op {
                type Out = $out32;
                #[inline(always)]
                fn apply<I: Isa>($a: f32, $b: f32) -> $out32 {
                    $f32
                }
            }
            impl Fun2<f64> for $op {
                type Out = $out64;
                #[inline(always)]
                fn apply<I: Isa>($a: f64, $b: f64) -> $out64 {
                    $f64
                }
            }
        )+

        /// Rows of a binary op on `f32`.
        pub fn binary_f32<I: Isa>(op: BinaryOp) -> Option<Rows> {
            match op {
                $(BinaryOp::$op => Some(Rows::$rows::<I, f32, $op, L32>()),)+
                BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => None,
            }
        }

        /// Rows of a binary op on `f64`.
        pub fn binary_f64<I: Isa>(op: BinaryOp) -> Option<Rows> {
            match op {
                $(BinaryOp::$op => Some(Rows::$rows::<I, f64, $op, L64>()),)+
                BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => None,
            }
        }
    };
}

binary! {
    Add(a, b) -> f32, f64: a + b, a + b, two;
    Sub(a, b) -> f32, f64: a - b, a - b, two;
    Mul(a, b) -> f32, f64: a * b, a * b, two;
    Div(a, b) -> f32, f64: a / b, a / b, two;
    Rem(a, b) -> f32, f64: math::rem_f32::<I>(a, b), math::rem_f64::<I>(a, b), two_slow;
    Pow(a, b) -> f32, f64: math::pow_f32::<I>(a, b), math::pow_f64::<I>(a, b), two_slow;
    Min(a, b) -> f32, f64: math::min_f32::<I>(a, b), math::min_f64::<I>(a, b), two;
    Max(a, b) -> f32, f64: math::max_f32::<I>(a, b), math::max_f64::<I>(a, b), two;
    Atan2(a, b) -> f32, f64: math::atan2_f32::<I>(a, b), math::atan2_f64::<I>(a, b), two_slow;
    Eq(a, b) -> u8, u8: (a == b) as u8, (a == b) as u8, two;
    Ne(a, b) -> u8, u8: (a != b) as u8, (a != b) as u8, two;
    Lt(a, b) -> u8, u8: (a < b) as u8, (a < b) as u8, two;
    Le(a, b) -> u8, u8: (a <= b) as u8, (a <= b) as u8, two;
    Gt(a, b) -> u8, u8: (a > b) as u8, (a > b) as u8, two;
    Ge(a, b) -> u8, u8: (a >= b) as u8, (a >= b) as u8, two;
}

struct Fma;
struct Clamp;

/// `a * b + c` with one rounding, or two that are as good: the product of two `f32` is exact in `f64`.
#[inline(always)]
fn fma_wide<I: Isa>(a: f32, b: f32, c: f32) -> f32 {
    if I::FMA { a.mul_add(b, c) } else { (f64::from(a) * f64::from(b) + f64::from(c)) as f32 }
}

macro_rules! ternary {
    ($t:ident, $fma:ident, $min:ident, $max:ident, $rows:ident, $l:ident) => {
        impl Fun3<$t> for Fma {
            type First = $t;
            #[inline(always)]
            fn apply<I: Isa>(a: $t, b: $t, c: $t) -> $t {
                $fma::<I>(a, b, c)
            }
        }
        impl Fun3<$t> for Clamp {
            type First = $t;
            #[inline(always)]
            fn apply<I: Isa>(a: $t, b: $t, c: $t) -> $t {
                math::$min::<I>(math::$max::<I>(a, b), c)
            }
        }
        /// Rows of a ternary op; `where` is a matter of size, not of type.
        pub fn $rows<I: Isa>(op: TernaryOp) -> Option<Rows> {
            match op {
                TernaryOp::Fma => Some(Rows::three::<I, $t, Fma, $l>()),
                TernaryOp::Clamp => Some(Rows::three::<I, $t, Clamp, $l>()),
                TernaryOp::Where => None,
            }
        }
    };
}

ternary!(f32, fma_wide, min_f32, max_f32, ternary_f32, L32);
ternary!(f64, fma64, min_f64, max_f64, ternary_f64, L64);
