//! The element types products are made of.

use super::kernels::Kernels;
use crate::isa::Level;

mod sealed {
    /// Keeps the set of element types closed.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for i32 {}
    impl Sealed for u32 {}
    impl Sealed for i64 {}
}

/// A number the reference product takes: `f32`, `f64`, `i32`, `u32`, `i64` (integers wrap).
pub trait Element: sealed::Sealed + Copy + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    /// The neutral element of the sum.
    const ZERO: Self;
    /// `acc + a · b`.
    fn mul_acc(acc: Self, a: Self, b: Self) -> Self;
}

macro_rules! float_element {
    ($($t:ty),*) => {$(
        impl Element for $t {
            const ZERO: Self = 0.0;
            #[inline(always)]
            fn mul_acc(acc: Self, a: Self, b: Self) -> Self {
                acc + a * b
            }
        }
    )*};
}
float_element!(f32, f64);

macro_rules! integer_element {
    ($($t:ty),*) => {$(
        impl Element for $t {
            const ZERO: Self = 0;
            #[inline(always)]
            fn mul_acc(acc: Self, a: Self, b: Self) -> Self {
                acc.wrapping_add(a.wrapping_mul(b))
            }
        }
    )*};
}
integer_element!(i32, u32, i64);

/// A floating-point element with vector kernels: `f32` and `f64`.
pub trait Float: Element + Into<f64> {
    /// The kernels compiled for a level. Not checked against the CPU: that costs as much as a tiny
    /// product, and running what comes back is unsafe anyway.
    #[doc(hidden)]
    fn kernels(level: Level) -> &'static Kernels<Self>;

    /// The product by `matrixmultiply`.
    ///
    /// # Safety
    /// As [`super::by_matrixmultiply`].
    #[doc(hidden)]
    unsafe fn matrixmultiply(g: &super::Gemm<Self>);

    /// The number nearest to `x`.
    fn from_f64(x: f64) -> Self;
}

macro_rules! float {
    ($t:ty, $gemm:path) => {
        impl Float for $t {
            #[inline]
            fn kernels(level: Level) -> &'static Kernels<Self> {
                debug_assert!(
                    level.available(),
                    "this CPU has no {}: a kernel for it must not be offered",
                    level.name()
                );
                <$t as super::kernels::Tables>::table(level)
            }

            unsafe fn matrixmultiply(g: &super::Gemm<Self>) {
                // SAFETY: the caller vouches for every operand at these strides.
                unsafe {
                    $gemm(g.m, g.k, g.n, 1.0, g.a, g.a_rs, g.a_cs, g.b, g.b_rs, g.b_cs, 0.0, g.c, g.c_rs, 1)
                }
            }

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
        }
    };
}
float!(f32, matrixmultiply::sgemm);
float!(f64, matrixmultiply::dgemm);
