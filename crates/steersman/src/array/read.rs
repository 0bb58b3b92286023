//! Reading: plans and runs what is missing, then hands out the elements.

use super::Array;
use super::error::{ArrayError, Shape};
use super::value::{Buffer, Value, is_contiguous};
use crate::error::Error;
use crate::runtime::{Piece, Runtime, Trouble};
use crate::view::Element;
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use steersman_core::Place;

/// An array's elements in row-major order, in place. Dereferences to a slice.
pub struct Data<T> {
    held: Held,
    len: usize,
    element: PhantomData<T>,
}

/// Host memory with an array's elements in row-major order, held.
pub(crate) struct Held {
    _buffer: Arc<Buffer>,
    /// The copy in host memory of what was made elsewhere.
    _copy: Option<Arc<Piece>>,
    pub start: usize,
}

impl<T> Deref for Data<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: made by `Array::data` for a buffer that holds `len` initialised elements of this type there, or a
        // copy of it; buffers are not written once an array has them, and this one is held here.
        unsafe { std::slice::from_raw_parts(self.held.start as *const T, self.len) }
    }
}

impl Array {
    /// Computes it, if that has not happened yet. It stays where it was computed until someone reads it.
    pub fn eval(&self) -> Result<&Array, Error> {
        self.value(false)?;
        Ok(self)
    }

    /// Whether its elements are in memory already.
    pub fn is_ready(&self) -> bool {
        self.node.value.get().is_some()
    }

    /// Its value; `read` says that the host is about to look at the elements.
    fn value(&self, read: bool) -> Result<&Value, Error> {
        if let Some(value) = self.node.value.get() {
            return Ok(value);
        }
        crate::plan::compute(&self.node.runtime, &[self], read)?;
        // `compute` gives every root its value or fails.
        self.node.value.get().ok_or_else(|| unreachable!("a plan that ran left its root without a value"))
    }

    /// Its elements in row-major order, without a copy if they lie so in memory.
    pub fn data<T: Element>(&self) -> Result<Data<T>, Error> {
        self.check()?;
        if T::DTYPE != self.dtype() {
            return Err(ArrayError::Read { have: self.dtype(), asked: T::DTYPE }.into());
        }
        Ok(Data { held: self.at_home()?, len: self.len(), element: PhantomData })
    }

    /// Its elements in host memory in row-major order, computed and brought there if need be.
    pub(crate) fn at_home(&self) -> Result<Held, Error> {
        let value = self.value(true)?;
        if !is_contiguous(self.shape(), &value.strides) {
            return self.contiguous().at_home();
        }
        let (start, copy) = match value.buffer.place() {
            Place::Host => (value.buffer.start(), None),
            Place::Device(_) => {
                let copy = self.brought_home(value)?;
                (copy.start().0 as usize, Some(copy))
            }
        };
        Ok(Held { _buffer: value.buffer.clone(), _copy: copy, start: start + value.offset })
    }

    /// The elements in host memory: carried there once, or computed again if the device that had them is lost
    /// or did not write them.
    fn brought_home(&self, value: &Value) -> Result<Arc<Piece>, Error> {
        let inner = &self.node.runtime.inner;
        let what = || format!("{} {}", self.dtype(), Shape(self.shape()));
        let mut brought = value.buffer.bring(&inner.carrier, Place::Host, false);
        if let Err(Trouble::Lost(id, why)) = &brought {
            inner.lose(*id, why);
        }
        if let Err(Trouble::Lost(..) | Trouble::Unwritten(..)) = &brought
            && crate::plan::restore(&self.node.runtime, &value.buffer)?
        {
            brought = value.buffer.bring(&inner.carrier, Place::Host, false);
        }
        match brought {
            Ok((copy, _)) => Ok(copy),
            Err(Trouble::Lost(id, why)) => {
                let place = inner.engine.places().name(Place::Device(id));
                Err(Error::Lost { what: what(), place, why })
            }
            Err(Trouble::Unwritten(place, why)) => {
                Err(Error::Lost { what: what(), place: inner.engine.places().name(place), why })
            }
            Err(trouble) => Err(Error::Memory { workload: what(), why: trouble.why().into() }),
        }
    }

    /// Its elements in row-major order, copied.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Error> {
        Ok(self.data::<T>()?.to_vec())
    }

    /// Its only element.
    pub fn item<T: Element>(&self) -> Result<T, Error> {
        self.check()?;
        if self.len() != 1 {
            return Err(ArrayError::Item { of: self.into() }.into());
        }
        Ok(self.data::<T>()?[0])
    }
}

impl Runtime {
    /// Computes several arrays in one plan, so that what they share is computed once. They stay where they were
    /// computed until someone reads them.
    pub fn eval_all<A: Borrow<Array>>(&self, arrays: &[A]) -> Result<(), Error> {
        let arrays: SmallVec<[&Array; 8]> = arrays.iter().map(Borrow::borrow).collect();
        crate::plan::compute(self, &arrays, false)
    }
}
