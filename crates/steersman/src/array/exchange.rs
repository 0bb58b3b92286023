//! To and from the `ndarray` crate.

use super::Array;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::view::Element;
use ndarray::{ArrayD, ArrayView, Dimension, IxDyn};

impl Runtime {
    /// An array of another library's elements, copied in row-major order.
    pub fn from_ndarray<T: Element, D: Dimension>(&self, data: ArrayView<'_, T, D>) -> Result<Array, Error> {
        let shape = data.shape().to_vec();
        match data.as_slice() {
            Some(slice) => self.from_slice(slice, shape),
            None => self.from_vec(data.iter().copied().collect(), shape),
        }
    }
}

impl Array {
    /// Its elements as another library's array, copied.
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>, Error> {
        let elements = self.to_vec::<T>()?;
        // As many elements as the shape says: an array's own invariant.
        Ok(ArrayD::from_shape_vec(IxDyn(self.shape()), elements)
            .unwrap_or_else(|e| unreachable!("an array with too many or too few elements: {e}")))
    }
}
