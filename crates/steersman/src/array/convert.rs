//! Between arrays and what Rust has: vectors, numbers, sums.

use super::Array;
use crate::error::Error;
use crate::view::Element;
use std::iter::Sum;

/// Its elements in row-major order, as [`Array::to_vec`] reads them.
impl<T: Element> TryFrom<&Array> for Vec<T> {
    type Error = Error;
    fn try_from(array: &Array) -> Result<Vec<T>, Error> {
        array.to_vec()
    }
}

macro_rules! items {
    ($($t:ty),*) => { $(
        /// Its only element, as [`Array::item`] reads it.
        impl TryFrom<&Array> for $t {
            type Error = Error;
            fn try_from(array: &Array) -> Result<$t, Error> { array.item() }
        }
    )* };
}
items!(f32, f64, half::f16, half::bf16, i32, i64, u8, u32, bool);

/// All of them added up; nothing if there are none, since a sum of no arrays has no shape.
impl<'a> Sum<&'a Array> for Option<Array> {
    fn sum<I: Iterator<Item = &'a Array>>(arrays: I) -> Option<Array> {
        Array::total(arrays)
    }
}
impl Sum<Array> for Option<Array> {
    fn sum<I: Iterator<Item = Array>>(arrays: I) -> Option<Array> {
        arrays.reduce(|sum, a| sum + a)
    }
}
