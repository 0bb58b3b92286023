//! Borrowed data with a shape, and results with memory of their own.

use crate::error::Error;
use crate::runtime::Runtime;
use std::marker::PhantomData;
use steersman_core::{Address, DType, Decision, Op, Operand, Strides, Workload, WorkloadError};
use steersman_cpu::memory::Block;

/// Rust types that are elements.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The element type.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($t:ty => $d:ident),*) => { $(
        impl sealed::Sealed for $t {}
        impl Element for $t { const DTYPE: DType = DType::$d; }
    )* };
}
elements!(f32 => F32, f64 => F64, half::f16 => F16, half::bf16 => BF16, i32 => I32, u32 => U32, i64 => I64, u8 => U8, bool => Bool);

/// Data to read.
#[derive(Clone, Debug)]
pub struct View<'a> {
    at: Address,
    operand: Operand,
    data: PhantomData<&'a [u8]>,
}

/// Data to write.
#[derive(Debug)]
pub struct ViewMut<'a> {
    at: Address,
    operand: Operand,
    data: PhantomData<&'a mut [u8]>,
}

fn align_of_pointer(p: u64) -> u8 {
    p.trailing_zeros().min(6) as u8
}

fn vector<T: Element>(p: *const T, len: usize) -> Operand {
    let mut dims = steersman_core::Dims::new();
    dims.push(len);
    let mut strides = Strides::new();
    strides.push(1);
    Operand {
        dtype: T::DTYPE,
        place: steersman_core::Place::Host,
        align_log2: align_of_pointer(p as u64),
        dims,
        strides,
    }
}

fn reshaped<T: Element>(
    data: &[T],
    dims: &[usize],
    strides: Option<Strides>,
) -> Result<Operand, WorkloadError> {
    let mut operand = match strides {
        None => Operand::new(T::DTYPE, dims)?,
        Some(s) => Operand::strided(T::DTYPE, dims, s)?,
    };
    // Every element the strides reach must lie in the slice; a negative one would reach before its start.
    let last: Option<isize> = operand
        .dims
        .iter()
        .zip(&operand.strides)
        .try_fold(0isize, |at, (&d, &s)| (s >= 0 || d <= 1).then(|| at + s * (d.max(1) as isize - 1)));
    let fits = operand.elements() == 0 || last.is_some_and(|l| (l as usize) < data.len());
    if !fits {
        return Err(WorkloadError::Output {
            op: "view",
            expected: operand.dims,
            expected_dtype: T::DTYPE,
            got: steersman_core::Dims::from_slice(&[data.len()]),
            got_dtype: T::DTYPE,
        });
    }
    operand.align_log2 = align_of_pointer(data.as_ptr() as u64);
    Ok(operand)
}

impl<'a> View<'a> {
    /// A slice as a vector.
    pub fn new<T: Element>(data: &'a [T]) -> View<'a> {
        View {
            at: Address::host(data.as_ptr()),
            operand: vector(data.as_ptr(), data.len()),
            data: PhantomData,
        }
    }

    /// A slice in row-major order as an array of this shape.
    pub fn shaped<T: Element>(data: &'a [T], dims: &[usize]) -> Result<View<'a>, Error> {
        let operand = reshaped(data, dims, None)?;
        Ok(View { at: Address::host(data.as_ptr()), operand, data: PhantomData })
    }

    /// A slice seen through strides in elements (not negative).
    pub fn strided<T: Element>(data: &'a [T], dims: &[usize], strides: &[isize]) -> Result<View<'a>, Error> {
        let operand = reshaped(data, dims, Some(Strides::from_slice(strides)))?;
        Ok(View { at: Address::host(data.as_ptr()), operand, data: PhantomData })
    }
}

impl<'a> ViewMut<'a> {
    /// A slice as a vector.
    pub fn new<T: Element>(data: &'a mut [T]) -> ViewMut<'a> {
        ViewMut {
            at: Address::host(data.as_ptr()),
            operand: vector(data.as_ptr(), data.len()),
            data: PhantomData,
        }
    }

    /// A slice in row-major order as an array of this shape.
    pub fn shaped<T: Element>(data: &'a mut [T], dims: &[usize]) -> Result<ViewMut<'a>, Error> {
        let operand = reshaped(data, dims, None)?;
        Ok(ViewMut { at: Address::host(data.as_mut_ptr()), operand, data: PhantomData })
    }
}

/// A result with memory of its own, from the runtime's pool.
#[derive(Debug)]
pub struct Tensor {
    block: Option<Block>,
    operand: Operand,
}

impl Tensor {
    /// Its shape.
    pub fn dims(&self) -> &[usize] {
        &self.operand.dims
    }

    /// Its element type.
    pub fn dtype(&self) -> DType {
        self.operand.dtype
    }

    /// Its elements in row-major order; `None` if they are of another type.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        if T::DTYPE != self.operand.dtype {
            return None;
        }
        match &self.block {
            None => Some(&[]),
            // SAFETY: the block holds this many initialised elements of this type, suitably aligned.
            Some(b) => {
                Some(unsafe { std::slice::from_raw_parts(b.as_ptr().cast(), self.operand.elements()) })
            }
        }
    }

    /// Its elements, copied.
    pub fn to_vec<T: Element>(&self) -> Option<Vec<T>> {
        self.as_slice().map(|s| s.to_vec())
    }

    /// As an operand of the next op.
    pub fn view(&self) -> View<'_> {
        let at = Address(self.block.as_ref().map_or(64, |b| b.as_ptr() as u64));
        View { at, operand: self.operand.clone(), data: PhantomData }
    }
}

impl Runtime {
    /// Runs `op` where it is quickest, into memory of the pool.
    pub fn eval(&self, op: Op, inputs: &[View<'_>]) -> Result<Tensor, Error> {
        let w = self.workload(op, inputs)?;
        let operand = w.output().clone();
        if w.is_empty() {
            return Ok(Tensor { block: None, operand });
        }
        let memory = |e: steersman_cpu::memory::MemoryError| Error::Memory {
            workload: w.to_string(),
            why: e.to_string(),
        };
        let mut block = self.inner.cpu.memory.take(operand.bytes()).map_err(memory)?;
        let output = Address::host(block.as_mut_ptr());
        // SAFETY: views borrow their data for the call; the block is fresh and large enough.
        unsafe { self.run_views(&w, inputs, output) }?;
        Ok(Tensor { block: Some(block), operand })
    }

    /// Runs `op` where it is quickest, into the caller's memory.
    pub fn eval_into(
        &self,
        op: Op,
        inputs: &[View<'_>],
        output: ViewMut<'_>,
    ) -> Result<Option<Decision>, Error> {
        let at = output.at;
        let numerics = self.inner.knobs.numerics;
        let plain =
            Workload::plain(op, inputs.iter().map(|v| v.operand.clone()), output.operand.clone(), numerics);
        let w = match plain {
            Some(w) => w,
            None => self.workload(op, inputs)?.with_output(output.operand)?,
        };
        if w.is_empty() {
            return Ok(None);
        }
        // SAFETY: views borrow their data for the call; the output is borrowed mutably, so nothing overlaps it.
        unsafe { self.run_views(&w, inputs, at) }.map(Some)
    }

    fn workload(&self, op: Op, inputs: &[View<'_>]) -> Result<Workload, Error> {
        let w = Workload::new(op, inputs.iter().map(|v| v.operand.clone()))?;
        Ok(w.with_numerics(self.inner.knobs.numerics))
    }

    unsafe fn run_views(
        &self,
        w: &Workload,
        inputs: &[View<'_>],
        output: Address,
    ) -> Result<Decision, Error> {
        let mut at = [Address(0); 3];
        for (to, v) in at.iter_mut().zip(inputs) {
            *to = v.at;
        }
        // SAFETY: passed on.
        unsafe { self.run_at(w, &at[..inputs.len()], output) }
    }
}
