//! Matrix products on the CPU: what to call and what comes back.
//!
//! A [`Gemm`] names one product `c = a · b` by pointers and strides; transposed operands are strides.
//! Every function here computes it on the calling thread, overwriting `c`:
//!
//! | function | good for |
//! |---|---|
//! | [`naive`] | the reference the others are checked against; integers |
//! | [`small`] | a few to a few hundred rows: no packing, straight from memory |
//! | [`packed`] | large products: both operands copied into cache-sized blocks |
//! | [`gemv`] | one row or one column of output |
//! | [`by_gemm_crate`], [`by_matrixmultiply`], [`blas`] | what other people wrote |
//! | [`amx`] | bf16 on Intel's matrix unit; f32 through it where relaxed numerics are allowed |
//!
//! Beside these, 16-bit floats are multiplied as f32, a strip at a time, and whole numbers in vectors.
//!
//! To use several threads, cut the product with [`split`] and run each part with its own [`Scratch`].
//!
//! ```
//! use steersman_cpu::isa::Level;
//! use steersman_cpu::matmul::{Gemm, small};
//!
//! let (a, b) = ([1.0f32, 2.0, 3.0, 4.0], [1.0f32, 0.0, 0.0, 1.0]);
//! let mut c = [0.0f32; 4];
//! let g = Gemm {
//!     m: 2, k: 2, n: 2,
//!     a: a.as_ptr(), a_rs: 2, a_cs: 1,
//!     b: b.as_ptr(), b_rs: 2, b_cs: 1,
//!     c: c.as_mut_ptr(), c_rs: 2,
//! };
//! // SAFETY: the pointers cover 2×2 elements at these strides.
//! unsafe { small(Level::best(), &g) };
//! assert_eq!(c, a);
//! ```
//!
//! Numerics: sums are reassociated (the error against exact arithmetic grows as `k · eps`), NaN and
//! infinity propagate, `k = 0` writes zeros. `c` must not overlap `a` or `b`.

pub mod amx;
pub mod blas;
mod blocks;
pub mod candidates;
mod element;
mod few;
mod finished;
mod foreign;
mod gemv;
mod kernels;
mod naive;
mod pack;
mod packed;
mod scratch;
mod short;
mod small;
mod split;
mod tile;
mod vector;
mod whole;
mod widened;
mod work;

pub use blocks::Blocks;
pub use element::{Element, Float};
pub(crate) use finished::{Way, finished};
pub use foreign::{by_gemm_crate, by_matrixmultiply};
pub use gemv::gemv;
pub use naive::naive;
pub use packed::packed;
pub use scratch::Scratch;
pub use small::small;
pub(crate) use split::{Cut, shared_out};
pub use split::{Walk, split};
pub(crate) use whole::whole;
pub(crate) use widened::{on_matrix_unit, plain_halves, widened};
pub use work::padded_flops;

/// One product: `c[m×n] = a[m×k] · b[k×n]`; strides in elements; `c`'s column stride is 1.
#[derive(Clone, Copy, Debug)]
pub struct Gemm<T> {
    /// Rows of `a` and `c`.
    pub m: usize,
    /// Columns of `a`, rows of `b`.
    pub k: usize,
    /// Columns of `b` and `c`.
    pub n: usize,
    /// First element of `a`.
    pub a: *const T,
    /// Elements from one row of `a` to the next.
    pub a_rs: isize,
    /// Elements from one column of `a` to the next.
    pub a_cs: isize,
    /// First element of `b`.
    pub b: *const T,
    /// Elements from one row of `b` to the next.
    pub b_rs: isize,
    /// Elements from one column of `b` to the next.
    pub b_cs: isize,
    /// First element of `c`.
    pub c: *mut T,
    /// Elements from one row of `c` to the next.
    pub c_rs: isize,
}

// SAFETY: a description of memory, not an owner; the unsafe kernels state who may touch what, and the
// parts of a `split` write disjoint pieces of `c`.
unsafe impl<T: Send> Send for Gemm<T> {}
// SAFETY: as above; a shared reference gives only a copy of the description.
unsafe impl<T: Sync> Sync for Gemm<T> {}

impl<T> Gemm<T> {
    /// The product of matrices whose rows lie one after the other.
    pub(crate) fn contiguous([m, k, n]: [usize; 3], a: *const T, b: *const T, c: *mut T) -> Gemm<T> {
        let (ks, ns) = (k as isize, n as isize);
        Gemm { m, k, n, a, a_rs: ks, a_cs: 1, b, b_rs: ns, b_cs: 1, c, c_rs: ns }
    }

    /// The same product, rows from the last to the first.
    fn upwards(&self) -> Gemm<T> {
        let last = self.m.saturating_sub(1) as isize;
        Gemm {
            a: self.a.wrapping_offset(last * self.a_rs),
            a_rs: -self.a_rs,
            c: self.c.wrapping_offset(last * self.c_rs),
            c_rs: -self.c_rs,
            ..*self
        }
    }
}

impl<T: Element> Gemm<T> {
    /// Writes zeros to `c`: the product over an empty `k`.
    ///
    /// # Safety
    /// `c` is valid for writes of `m` rows of `n` elements.
    unsafe fn zero_c(&self) {
        for i in 0..self.m {
            for j in 0..self.n {
                // SAFETY: i < m and j < n.
                unsafe { *self.c.offset(i as isize * self.c_rs).add(j) = T::ZERO };
            }
        }
    }
}
