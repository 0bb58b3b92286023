//! Products of whole numbers, which wrap: any order of the sums gives the same, so that four steps go together in vectors.

use super::{Element, Gemm, naive};
use crate::isa::{Body, Isa, Level};

/// Steps whose terms are added to a row of `c` at once, and rows that share what is read of `b` meanwhile.
const STEPS: usize = 4;
const ROWS: usize = 2;

struct Whole<'a, T>(&'a Gemm<T>);

impl<T: Element> Body for Whole<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let g = self.0;
        let mut i = 0;
        // SAFETY: rows below m, steps below k, columns below n, which the caller vouches for.
        unsafe {
            while i + ROWS <= g.m {
                rows::<T, ROWS>(g, i);
                i += ROWS;
            }
            while i < g.m {
                rows::<T, 1>(g, i);
                i += 1;
            }
        }
    }
}

/// Rows of `c` from the `i`-th on.
#[inline(always)]
unsafe fn rows<T: Element, const R: usize>(g: &Gemm<T>, i: usize) {
    // SAFETY: as said there.
    unsafe {
        let c: [*mut T; R] = std::array::from_fn(|r| g.c.offset((i + r) as isize * g.c_rs));
        let a = |r: usize, p: usize| *g.a.offset((i + r) as isize * g.a_rs + p as isize * g.a_cs);
        for row in c {
            (0..g.n).for_each(|j| *row.add(j) = T::ZERO);
        }
        let mut p = 0;
        while p + STEPS <= g.k {
            add_steps::<T, R, STEPS>(g, c, a, p);
            p += STEPS;
        }
        while p < g.k {
            add_steps::<T, R, 1>(g, c, a, p);
            p += 1;
        }
    }
}

/// Adds the terms of the steps from `p` on.
#[inline(always)]
unsafe fn add_steps<T: Element, const R: usize, const S: usize>(
    g: &Gemm<T>,
    c: [*mut T; R],
    a: impl Fn(usize, usize) -> T,
    p: usize,
) {
    let x: [[T; S]; R] = std::array::from_fn(|r| std::array::from_fn(|s| a(r, p + s)));
    // SAFETY: as above.
    unsafe {
        let b: [*const T; S] = std::array::from_fn(|s| g.b.offset((p + s) as isize * g.b_rs));
        for j in 0..g.n {
            for r in 0..R {
                let mut sum = *c[r].add(j);
                for s in 0..S {
                    sum = T::mul_acc(sum, x[r][s], *b[s].add(j));
                }
                *c[r].add(j) = sum;
            }
        }
    }
}

/// Computes `c = a · b` of whole numbers on this thread.
///
/// # Safety
/// `a`, `b` and `c` are valid at their shapes and strides; `c` overlaps neither `a` nor `b`; the CPU has the level.
pub(crate) unsafe fn whole<T: Element>(level: Level, g: &Gemm<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        match g.b_cs {
            1 => level.dispatch_unchecked(Whole(g)),
            _ => naive(g),
        }
    }
}
