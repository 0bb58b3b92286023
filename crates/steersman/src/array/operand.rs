//! What can stand beside an array: another array, or a Rust number.

use super::Array;
use super::number::Number;

/// An array or a number, as an operand of an op.
#[derive(Clone)]
pub enum Side<'a> {
    /// An array that is borrowed.
    Borrowed(&'a Array),
    /// An array that is handed over.
    Owned(Array),
    /// A number; it takes the other operand's element type.
    Number(Number),
}

impl Side<'_> {
    pub(crate) fn array(&self) -> Option<&Array> {
        match self {
            Side::Borrowed(a) => Some(a),
            Side::Owned(a) => Some(a),
            Side::Number(_) => None,
        }
    }
}

impl<'a> From<&'a Array> for Side<'a> {
    fn from(a: &'a Array) -> Side<'a> {
        Side::Borrowed(a)
    }
}
impl From<Array> for Side<'_> {
    fn from(a: Array) -> Self {
        Side::Owned(a)
    }
}

macro_rules! numbers {
    ($($t:ty),*) => { $(
        impl From<$t> for Side<'_> {
            fn from(x: $t) -> Self { Side::Number(Number::from(x)) }
        }
    )* };
}
numbers!(f32, f64, half::f16, half::bf16, bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);
