//! Products by other people's Rust crates, as candidates beside our own.

use super::{Float, Gemm};

/// Computes `c = a · b` with the `gemm` crate on the calling thread; it finds the instruction set itself.
///
/// # Safety
/// `a`, `b` and `c` are valid at their shapes and strides; `c` overlaps neither `a` nor `b`.
pub unsafe fn by_gemm_crate<T: Float>(g: &Gemm<T>) {
    // SAFETY: the caller vouches for every operand at these strides.
    unsafe {
        gemm::gemm(
            g.m,
            g.n,
            g.k,
            g.c,
            1,
            g.c_rs,
            false,
            g.a,
            g.a_cs,
            g.a_rs,
            g.b,
            g.b_cs,
            g.b_rs,
            T::from_f64(0.0),
            T::from_f64(1.0),
            false,
            false,
            false,
            gemm::Parallelism::None,
        )
    }
}

/// Computes `c = a · b` with the `matrixmultiply` crate on the calling thread.
///
/// # Safety
/// `a`, `b` and `c` are valid at their shapes and strides; `c` overlaps neither `a` nor `b`.
pub unsafe fn by_matrixmultiply<T: Float>(g: &Gemm<T>) {
    // SAFETY: the caller's promise is the same.
    unsafe { T::matrixmultiply(g) }
}
