//! `+ - * / %` and their assigning forms, unary `-`, and `& | ^ !` of bools, between arrays and numbers, owned or borrowed.
//!
//! On the right any number may stand. On the left it is `f64` or `i64` (what literals then are), because Rust must know
//! the result's type before it knows a literal's: an `f32` variable goes to the right, or to the method.

use super::Array;
use super::elementwise::binary;
use super::operand::Side;
use steersman_core::BinaryOp;

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident, $($left:ty)*;)*) => { $(
        impl<'s, S: Into<Side<'s>>> std::ops::$trait<S> for Array {
            type Output = Array;
            fn $method(self, other: S) -> Array { binary(BinaryOp::$op, self.into(), other.into()) }
        }
        impl<'s, S: Into<Side<'s>>> std::ops::$trait<S> for &Array {
            type Output = Array;
            fn $method(self, other: S) -> Array { binary(BinaryOp::$op, self.into(), other.into()) }
        }
        $(
            impl std::ops::$trait<Array> for $left {
                type Output = Array;
                fn $method(self, other: Array) -> Array { binary(BinaryOp::$op, self.into(), other.into()) }
            }
            impl std::ops::$trait<&Array> for $left {
                type Output = Array;
                fn $method(self, other: &Array) -> Array { binary(BinaryOp::$op, self.into(), other.into()) }
            }
        )*
    )* };
}
operators! {
    Add add Add, f64 i64;
    Sub sub Sub, f64 i64;
    Mul mul Mul, f64 i64;
    Div div Div, f64 i64;
    Rem rem Rem, f64 i64;
    BitAnd bitand And, bool;
    BitOr bitor Or, bool;
    BitXor bitxor Xor, bool;
}

macro_rules! assign {
    ($($trait:ident $method:ident $op:ident;)*) => { $(
        /// The handle stands for the result from then on; what others hold of the array stays as it was.
        impl<'s, S: Into<Side<'s>>> std::ops::$trait<S> for Array {
            fn $method(&mut self, other: S) {
                *self = binary(BinaryOp::$op, (&*self).into(), other.into());
            }
        }
    )* };
}
assign! {
    AddAssign add_assign Add;
    SubAssign sub_assign Sub;
    MulAssign mul_assign Mul;
    DivAssign div_assign Div;
    RemAssign rem_assign Rem;
    BitAndAssign bitand_assign And;
    BitOrAssign bitor_assign Or;
    BitXorAssign bitxor_assign Xor;
}

impl std::ops::Neg for &Array {
    type Output = Array;
    fn neg(self) -> Array {
        Array::neg(self)
    }
}
impl std::ops::Neg for Array {
    type Output = Array;
    fn neg(self) -> Array {
        Array::neg(&self)
    }
}
impl std::ops::Not for &Array {
    type Output = Array;
    fn not(self) -> Array {
        Array::not(self)
    }
}
impl std::ops::Not for Array {
    type Output = Array;
    fn not(self) -> Array {
        Array::not(&self)
    }
}
