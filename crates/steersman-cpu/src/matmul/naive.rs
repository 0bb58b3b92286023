//! The reference product: three loops, nothing clever.

use super::{Element, Gemm};

/// Computes `c = a · b` row by row, adding one row of `b` at a time.
///
/// Not for speed: it is what every other kernel is checked against, and the product of integers.
///
/// # Safety
/// `a`, `b` and `c` are valid at their shapes and strides; `c` overlaps neither `a` nor `b`.
pub unsafe fn naive<T: Element>(g: &Gemm<T>) {
    // SAFETY: every index stays below m, k or n, which the caller vouches for.
    unsafe {
        g.zero_c();
        for i in 0..g.m {
            let a = g.a.offset(i as isize * g.a_rs);
            let c = g.c.offset(i as isize * g.c_rs);
            for p in 0..g.k {
                let x = *a.offset(p as isize * g.a_cs);
                let b = g.b.offset(p as isize * g.b_rs);
                for j in 0..g.n {
                    *c.add(j) = T::mul_acc(*c.add(j), x, *b.offset(j as isize * g.b_cs));
                }
            }
        }
    }
}
