//! Arrays from data, and arrays that are computed from nothing.

use super::Array;
use super::axis::{IntoShape, list, shape};
use super::elementwise::fits;
use super::error::{ArrayError, Spec};
use super::node::{Arg, Args, Node, NodeOp};
use super::number::Number;
use super::value::{Buffer, Value, contiguous};
use crate::error::Error;
use crate::runtime::Runtime;
use crate::view::Element;
use smallvec::smallvec;
use std::sync::Arc;
use steersman_core::{DType, Dims};

impl Runtime {
    /// An array of a vector's elements in row-major order. The vector's memory is used as it is.
    pub fn from_vec<T: Element>(&self, data: Vec<T>, to: impl IntoShape) -> Result<Array, Error> {
        let dims = held::<T>("from_vec", data.len(), &to.into_shape())?;
        let buffer = if data.is_empty() { Buffer::empty() } else { Buffer::owned(data) };
        Ok(self.given(T::DTYPE, dims, buffer))
    }

    /// An array of a slice's elements in row-major order, copied.
    pub fn from_slice<T: Element>(&self, data: &[T], to: impl IntoShape) -> Result<Array, Error> {
        let dims = held::<T>("from_slice", data.len(), &to.into_shape())?;
        if data.is_empty() {
            return Ok(self.given(T::DTYPE, dims, Buffer::empty()));
        }
        let bytes = std::mem::size_of_val(data);
        let mut block = self.inner.cpu.memory.take(bytes).map_err(|e| Error::Memory {
            workload: format!("from_slice {} {}", T::DTYPE, data.len()),
            why: e.to_string(),
        })?;
        // SAFETY: the block has room for `bytes` bytes, is fresh, and elements are plain data.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr().cast(), block.as_mut_ptr(), bytes) };
        Ok(self.given(T::DTYPE, dims, Buffer::pool(block)))
    }

    /// An array of as many elements as its shape holds; of more axes than there can be, one that carries the error.
    pub(super) fn made_of<T: Element>(&self, op: &'static str, data: Vec<T>, dims: &[usize]) -> Array {
        self.made(op, T::DTYPE, dims, |dims| {
            let buffer = if data.is_empty() { Buffer::empty() } else { Buffer::owned(data) };
            Ok(self.given(T::DTYPE, dims, buffer))
        })
    }

    fn given(&self, dtype: DType, dims: Dims, buffer: Buffer) -> Array {
        let strides = contiguous(&dims);
        let array = Node::make(self, NodeOp::Data, dtype, dims, Args::new());
        let value = Value { buffer: Arc::new(buffer), offset: 0, strides, plan: None };
        // A new node has no value yet.
        let _ = array.node.value.set(value);
        array
    }

    /// One number, as an array without axes.
    pub fn scalar<T: Element + Into<Number>>(&self, x: T) -> Array {
        self.full((), x)
    }

    /// The same number everywhere.
    pub fn full<T: Element + Into<Number>>(&self, to: impl IntoShape, x: T) -> Array {
        self.made("full", T::DTYPE, to, |dims| {
            let args = smallvec![number("full", x.into(), T::DTYPE)?];
            Ok(Node::make(self, NodeOp::Full, T::DTYPE, dims, args))
        })
    }

    /// Zero everywhere; false for bools.
    pub fn zeros<T: Element>(&self, to: impl IntoShape) -> Array {
        self.filled::<T>("zeros", 0, to)
    }

    /// One everywhere; true for bools.
    pub fn ones<T: Element>(&self, to: impl IntoShape) -> Array {
        self.filled::<T>("ones", 1, to)
    }

    fn filled<T: Element>(&self, op: &'static str, x: i64, to: impl IntoShape) -> Array {
        self.made(op, T::DTYPE, to, |dims| {
            let args = smallvec![number(op, unit(T::DTYPE, x), T::DTYPE)?];
            Ok(Node::make(self, NodeOp::Full, T::DTYPE, dims, args))
        })
    }

    /// `start`, `start + step`, ... up to but not including `stop`.
    pub fn arange<T: Element + Into<Number>>(&self, start: T, stop: T, step: T) -> Array {
        let (from, to, by) = (start.into(), stop.into(), step.into());
        let fail = || {
            let why = ArrayError::Range {
                op: "arange",
                start: from.to_string(),
                stop: to.to_string(),
                step: by.to_string(),
            };
            Node::bad(self, Arc::new(why))
        };
        if let (Number::Int(from), Number::Int(to), Number::Int(by)) = (from, to, by) {
            if by == 0 {
                return fail();
            }
            let distance = (to as i128 - from as i128) * by.signum() as i128;
            let n = (distance.max(0) as u128).div_ceil(by.unsigned_abs() as u128);
            return self
                .position("arange", [usize::try_from(n).unwrap_or(usize::MAX)], DType::I64)
                .mul(by)
                .add(from)
                .cast(T::DTYPE);
        }
        let n = ((to.as_f64() - from.as_f64()) / by.as_f64()).ceil();
        if !n.is_finite() || by.as_f64() == 0.0 {
            return fail();
        }
        // In f64 and then rounded: f32 counts exactly only up to 2²⁴.
        self.position("arange", [n.max(0.0) as usize], DType::F64)
            .mul(by.as_f64())
            .add(from.as_f64())
            .cast(T::DTYPE)
    }

    /// `n` numbers from `start` to `stop`, both included, evenly apart. Without the end: of `n + 1`, the first `n`.
    pub fn linspace<T: Element + Into<Number>>(&self, start: T, stop: T, n: usize) -> Array {
        let (from, to) = (start.into().as_f64(), stop.into().as_f64());
        let last = n.saturating_sub(1).max(1) as f64;
        let at = self.position("linspace", [n], DType::F64);
        let step = (to - from) / last;
        let line = at.mul(step).add(from);
        // Rounding may leave the last step beside the end, and whether it does is known here. The kernel may round the
        // product or not.
        let held = |x: f64| match T::DTYPE.is_float() {
            true => Number::Float(x).bits(T::DTYPE),
            false => Some(x as i64 as u64),
        };
        let misses = |end: f64| held(end) != held(to);
        if n > 1 && (misses(step * last + from) || misses(step.mul_add(last, from))) {
            return at.lt(last).where_(&line, to).cast(T::DTYPE);
        }
        line.cast(T::DTYPE)
    }

    /// Ones on a diagonal of a matrix, zeros elsewhere; diagonal 1 is the one above the main one, -1 the one below.
    pub fn eye_at<T: Element>(&self, rows: usize, columns: usize, diagonal: isize) -> Array {
        self.made("eye_at", T::DTYPE, [rows, columns], |_| {
            let (row, column) = (
                self.position("eye_at", [rows, 1], DType::I64),
                self.position("eye_at", [columns], DType::I64),
            );
            Ok(row.add(diagonal).eq(&column).cast(T::DTYPE))
        })
    }

    /// Ones on the diagonal of an `n` by `n` matrix, zeros elsewhere.
    pub fn eye<T: Element>(&self, n: usize) -> Array {
        self.made("eye", T::DTYPE, [n, n], |_| {
            Ok(self.position("eye", [n, n], DType::I64).rem(n.saturating_add(1) as i64).eq(0).cast(T::DTYPE))
        })
    }

    /// Each element's row-major position, as a number of this type.
    fn position(&self, op: &'static str, to: impl IntoShape, dtype: DType) -> Array {
        self.made(op, dtype, to, |dims| Ok(Node::make(self, NodeOp::Position, dtype, dims, Args::new())))
    }

    fn made(
        &self,
        op: &'static str,
        dtype: DType,
        to: impl IntoShape,
        make: impl FnOnce(Dims) -> Result<Array, ArrayError>,
    ) -> Array {
        let made = shape(op, &to.into_shape()).and_then(|dims| {
            fits(op, dtype, &dims)?;
            make(dims)
        });
        made.unwrap_or_else(|why| Node::bad(self, Arc::new(why)))
    }
}

impl Array {
    /// The same number everywhere, in this array's shape and element type.
    pub fn full_like(&self, x: impl Into<Number>) -> Array {
        self.or_bad(|| {
            let args = smallvec![number("full_like", x.into(), self.dtype())?];
            Ok(Node::make(self.runtime(), NodeOp::Full, self.dtype(), Dims::from_slice(self.shape()), args))
        })
    }

    /// Zero everywhere, false for bools, in this array's shape and element type.
    pub fn zeros_like(&self) -> Array {
        self.full_like(unit(self.dtype(), 0))
    }

    /// One everywhere, true for bools, in this array's shape and element type.
    pub fn ones_like(&self) -> Array {
        self.full_like(unit(self.dtype(), 1))
    }
}

/// Zero or one of this type.
fn unit(dtype: DType, x: i64) -> Number {
    if dtype == DType::Bool { Number::Bool(x != 0) } else { Number::Int(x) }
}

pub(super) fn number(op: &'static str, x: Number, dtype: DType) -> Result<Arg, ArrayError> {
    let bits = x.bits(dtype);
    bits.map(Arg::Scalar).ok_or_else(|| ArrayError::Number { op, number: x.to_string(), dtype })
}

/// The shape, if `elements` fill it.
fn held<T: Element>(op: &'static str, elements: usize, to: &[isize]) -> Result<Dims, ArrayError> {
    let dims = shape(op, to)?;
    if dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d)) != Some(elements) {
        return Err(ArrayError::Reshape { op, of: Spec::new(T::DTYPE, &[elements]), to: list(to) });
    }
    fits(op, T::DTYPE, &dims)?;
    Ok(dims)
}
