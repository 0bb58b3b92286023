//! Reading: plans and runs what is missing, then hands out the elements.

use super::Array;
use super::error::ArrayError;
use super::value::{Buffer, Value, is_contiguous};
use crate::error::Error;
use crate::runtime::Runtime;
use crate::view::Element;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use steersman_core::Dims;

/// An array's elements in row-major order, in place. Dereferences to a slice.
pub struct Data<T> {
    buffer: Arc<Buffer>,
    offset: usize,
    len: usize,
    element: PhantomData<T>,
}

impl<T> Deref for Data<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: made by `Array::data` for a buffer that holds `len` initialised elements of this type there;
        // buffers are not written once an array has them, and this one is held here.
        unsafe { std::slice::from_raw_parts((self.buffer.start() + self.offset) as *const T, self.len) }
    }
}

impl Array {
    /// Computes it, if that has not happened yet.
    pub fn eval(&self) -> Result<&Array, Error> {
        self.value()?;
        Ok(self)
    }

    /// Whether its elements are in memory already.
    pub fn is_ready(&self) -> bool {
        self.node.value.get().is_some()
    }

    pub(crate) fn value(&self) -> Result<&Value, Error> {
        if let Some(value) = self.node.value.get() {
            return Ok(value);
        }
        crate::plan::compute(&self.node.runtime, &[self])?;
        // `compute` gives every root its value or fails.
        self.node.value.get().ok_or_else(|| unreachable!("a plan that ran left its root without a value"))
    }

    /// Its elements in row-major order, without a copy if they lie so in memory.
    pub fn data<T: Element>(&self) -> Result<Data<T>, Error> {
        self.check()?;
        if T::DTYPE != self.dtype() {
            return Err(ArrayError::Read { have: self.dtype(), asked: T::DTYPE }.into());
        }
        let value = self.value()?;
        if !is_contiguous(self.shape(), &value.strides) {
            return self.contiguous().data();
        }
        Ok(Data { buffer: value.buffer.clone(), offset: value.offset, len: self.len(), element: PhantomData })
    }

    /// Its elements in row-major order, copied.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Error> {
        Ok(self.data::<T>()?.to_vec())
    }

    /// Its only element.
    pub fn item<T: Element>(&self) -> Result<T, Error> {
        self.check()?;
        if self.len() != 1 {
            return Err(ArrayError::Item { dims: Dims::from_slice(self.shape()) }.into());
        }
        Ok(self.data::<T>()?[0])
    }
}

impl Runtime {
    /// Computes several arrays in one plan, so that what they share is computed once.
    pub fn eval_all(&self, arrays: &[&Array]) -> Result<(), Error> {
        crate::plan::compute(self, arrays)
    }
}
