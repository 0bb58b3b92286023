//! The functions of integers and bytes: arithmetic wraps, division by zero gives 0.

use super::row::{Fun1, Fun2, Fun3, Rows};
use crate::isa::Isa;
use steersman_core::{BinaryOp, TernaryOp, UnaryOp};

macro_rules! functors {
    ($($name:ident),+) => { $(struct $name;)+ };
}
functors!(
    Neg, Abs, Sign, Relu, Not, Add, Sub, Mul, Div, Rem, Min, Max, Eq, Ne, Lt, Le, Gt, Ge, And, Or, Xor, Fma,
    Clamp, Where
);

macro_rules! unary {
    ($t:ident: $($op:ident($x:ident) $e:expr;)+) => {$(
        impl Fun1<$t> for $op {
            #[inline(always)]
            fn apply<I: Isa>($x: $t) -> $t {
                $e
            }
        }
    )+};
}

macro_rules! binary {
    ($t:ident: $($op:ident($a:ident, $b:ident) -> $out:ty: $e:expr;)+) => {$(
        impl Fun2<$t> for $op {
            type Out = $out;
            #[inline(always)]
            fn apply<I: Isa>($a: $t, $b: $t) -> $out {
                $e
            }
        }
    )+};
}

macro_rules! arithmetic {
    ($t:ident, $l:literal, $unary:ident [$($uop:ident)+], $binary:ident [$($logic:ident)*], $ternary:ident) => {
        binary! { $t:
            Add(a, b) -> $t: a.wrapping_add(b);
            Sub(a, b) -> $t: a.wrapping_sub(b);
            Mul(a, b) -> $t: a.wrapping_mul(b);
            Div(a, b) -> $t: if b == 0 { 0 } else { a.wrapping_div(b) };
            Rem(a, b) -> $t: if b == 0 { 0 } else { a.wrapping_rem(b) };
            Min(a, b) -> $t: if a < b { a } else { b };
            Max(a, b) -> $t: if a > b { a } else { b };
            Eq(a, b) -> u8: (a == b) as u8;
            Ne(a, b) -> u8: (a != b) as u8;
            Lt(a, b) -> u8: (a < b) as u8;
            Le(a, b) -> u8: (a <= b) as u8;
            Gt(a, b) -> u8: (a > b) as u8;
            Ge(a, b) -> u8: (a >= b) as u8;
        }
        impl Fun3<$t> for Fma {
            type First = $t;
            #[inline(always)]
            fn apply<I: Isa>(a: $t, b: $t, c: $t) -> $t {
                a.wrapping_mul(b).wrapping_add(c)
            }
        }
        impl Fun3<$t> for Clamp {
            type First = $t;
            #[inline(always)]
            fn apply<I: Isa>(a: $t, b: $t, c: $t) -> $t {
                let low = if a > b { a } else { b };
                if low < c { low } else { c }
            }
        }

        /// Rows of a unary op.
        pub fn $unary<I: Isa>(op: UnaryOp) -> Option<Rows> {
            match op {
                $(UnaryOp::$uop => Some(Rows::one::<I, $t, $uop, $l>()),)+
                _ => None,
            }
        }

        /// Rows of a binary op.
        pub fn $binary<I: Isa>(op: BinaryOp) -> Option<Rows> {
            Some(match op {
                BinaryOp::Add => Rows::two::<I, $t, Add, $l>(),
                BinaryOp::Sub => Rows::two::<I, $t, Sub, $l>(),
                BinaryOp::Mul => Rows::two::<I, $t, Mul, $l>(),
                BinaryOp::Div => Rows::two_slow::<I, $t, Div, $l>(),
                BinaryOp::Rem => Rows::two_slow::<I, $t, Rem, $l>(),
                BinaryOp::Min => Rows::two::<I, $t, Min, $l>(),
                BinaryOp::Max => Rows::two::<I, $t, Max, $l>(),
                BinaryOp::Eq => Rows::two::<I, $t, Eq, $l>(),
                BinaryOp::Ne => Rows::two::<I, $t, Ne, $l>(),
                BinaryOp::Lt => Rows::two::<I, $t, Lt, $l>(),
                BinaryOp::Le => Rows::two::<I, $t, Le, $l>(),
                BinaryOp::Gt => Rows::two::<I, $t, Gt, $l>(),
                BinaryOp::Ge => Rows::two::<I, $t, Ge, $l>(),
                $(BinaryOp::$logic => Rows::two::<I, $t, $logic, $l>(),)*
                _ => return None,
            })
        }

        /// Rows of a ternary op but `where`.
        pub fn $ternary<I: Isa>(op: TernaryOp) -> Option<Rows> {
            match op {
                TernaryOp::Fma => Some(Rows::three::<I, $t, Fma, $l>()),
                TernaryOp::Clamp => Some(Rows::three::<I, $t, Clamp, $l>()),
                TernaryOp::Where => None,
            }
        }
    };
}

unary! { i32: Neg(x) x.wrapping_neg(); Abs(x) x.wrapping_abs(); Sign(x) x.signum(); Relu(x) x.max(0); }
unary! { i64: Neg(x) x.wrapping_neg(); Abs(x) x.wrapping_abs(); Sign(x) x.signum(); Relu(x) x.max(0); }
unary! { u32: Abs(x) x; Sign(x) x.min(1); Relu(x) x; }
unary! { u8: Abs(x) x; Sign(x) x.min(1); Relu(x) x; Not(x) x ^ 1; }
binary! { u8: And(a, b) -> u8: a & b; Or(a, b) -> u8: a | b; Xor(a, b) -> u8: a ^ b; }
arithmetic!(i32, 16, unary_i32 [Neg Abs Sign Relu], binary_i32 [], ternary_i32);
arithmetic!(u32, 16, unary_u32 [Abs Sign Relu], binary_u32 [], ternary_u32);
arithmetic!(i64, 8, unary_i64 [Neg Abs Sign Relu], binary_i64 [], ternary_i64);
// `bool` is a byte of 0 or 1, for which these are right too; the workload has checked what an op takes.
arithmetic!(u8, 64, unary_byte [Abs Sign Relu Not], binary_byte [And Or Xor], ternary_byte);

macro_rules! choice {
    ($($t:ident)+) => {$(
        impl Fun3<$t> for Where {
            type First = u8;
            #[inline(always)]
            fn apply<I: Isa>(a: u8, b: $t, c: $t) -> $t {
                if a != 0 { b } else { c }
            }
        }
    )+};
}
choice!(u8 u16 u32 u64);

/// Rows of `where` for elements of `size` bytes.
pub fn choose<I: Isa>(size: usize) -> Rows {
    match size {
        1 => Rows::three::<I, u8, Where, 64>(),
        2 => Rows::three::<I, u16, Where, 32>(),
        4 => Rows::three::<I, u32, Where, 16>(),
        _ => Rows::three::<I, u64, Where, 8>(),
    }
}
