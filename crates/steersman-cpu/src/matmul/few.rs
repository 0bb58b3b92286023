//! Products of many long lines with a few: one operand is read once, as it lies, in dot products.
//!
//! A batch of up to [`MOST_LINES`] vectors times a transposed matrix of weights is such a product, and
//! so is a matrix with contiguous rows times a few columns.

use super::kernels::Kernels;
use super::tile::unroll;
use super::vector::Vector;
use super::{Float, Gemm, Scratch};

/// `out[l * out_line + f * out_few] = Σ_p lines[l * line + p] · few[f * few_line + p]`, `p` below `k`.
#[derive(Clone, Copy)]
pub(super) struct Few<T> {
    k: usize,
    lines: *const T,
    line: isize,
    count: usize,
    few: *const T,
    few_line: isize,
    few_count: usize,
    out: *mut T,
    out_line: isize,
    out_few: isize,
}

/// Lines of the small operand up to which this is chosen: two groups of the widest tile.
const MOST_LINES: usize = 16;
/// Lines of the large operand from which copying the small one does not matter.
const MANY_LINES: usize = 64;
/// Lines of the large operand read side by side.
const SIDE_BY_SIDE: usize = 3;
/// Vectors in a line from which adding up the lanes at its end does not matter.
const LONG: usize = 8;

/// Whether `m` contiguous rows of `k` times `n` columns gain by it: as many columns as fill a vector cost less as a tile.
/// With AVX-512 a step of a tile takes 0.245 ns for each row on Zen 4 and 0.2 on a Xeon, one of this 0.42 and 0.59 ns for
/// each row and column by the lanes, and copying a column 0.6 ns: 63×476 · 476×2 f32 takes 2.0 µs on Zen 4, and 7.3 as a
/// tile; 40×220 · 220×3 f64 2.3 on a Xeon, and 1.8, 165×167 · 167×8 f32 6.4, and 5.2.
pub(super) fn few_columns(lanes: usize, m: usize, k: usize, n: usize) -> bool {
    let (rows, columns) = (m as f64, n as f64);
    k >= LONG * lanes && n <= lanes / 2 && 0.2 * rows > 0.5 * rows * columns / lanes as f64 + 0.6 * columns
}

impl<T: Float> Few<T> {
    /// Whether the product has this form, with lines long and many enough to gain by it.
    pub(super) fn suits(kernels: &Kernels<T>, g: &Gemm<T>) -> bool {
        Self::by_rows(kernels, g) || g.k >= LONG * kernels.lanes && Self::by_columns(g)
    }

    fn by_rows(kernels: &Kernels<T>, g: &Gemm<T>) -> bool {
        g.a_cs == 1 && few_columns(kernels.lanes, g.m, g.k, g.n)
    }

    /// A few rows of `a` times `b`'s contiguous columns.
    fn by_columns(g: &Gemm<T>) -> bool {
        g.b_rs == 1 && g.b_cs != 1 && g.n >= MANY_LINES && g.m <= MOST_LINES
    }

    /// Computes `c = a · b`.
    ///
    /// # Safety
    /// As [`super::small`], and the product [`Few::suits`].
    pub(super) unsafe fn multiply(kernels: &Kernels<T>, g: &Gemm<T>) {
        let by_rows = Self::by_rows(kernels, g);
        // What is few: where, its strides between lines and along k, how many lines.
        let (few, line, step, few_count) =
            if by_rows { (g.b, g.b_cs, g.b_rs, g.n) } else { (g.a, g.a_rs, g.a_cs, g.m) };
        let mut product = Few {
            k: g.k,
            lines: if by_rows { g.a } else { g.b },
            line: if by_rows { g.a_rs } else { g.b_cs },
            count: if by_rows { g.m } else { g.n },
            few,
            few_line: line,
            few_count,
            out: g.c,
            out_line: if by_rows { g.c_rs } else { 1 },
            out_few: if by_rows { 1 } else { g.c_rs },
        };
        // SAFETY: the caller's promise; the copy has room for few_count lines of k.
        unsafe {
            if step == 1 {
                (kernels.few)(&product);
                return;
            }
            Scratch::with_local(|scratch| {
                let (copy, _) = scratch.pair::<T>(few_count * g.k, 0);
                for f in 0..few_count {
                    for p in 0..g.k {
                        *copy.add(f * g.k + p) = *few.offset(f as isize * line + p as isize * step);
                    }
                }
                product.few = copy;
                product.few_line = g.k as isize;
                (kernels.few)(&product);
            });
        }
    }
}

/// All dot products of `t`.
///
/// # Safety
/// The operands are valid at their strides; the CPU has the vector's instruction set.
#[inline(always)]
pub(super) unsafe fn few_lines<V: Vector, const WIDE: bool>(t: &Few<V::T>) {
    // SAFETY: groups stay below count and few_count.
    unsafe {
        let mut l = 0;
        while l < t.count {
            let lines = if t.count - l >= SIDE_BY_SIDE { SIDE_BY_SIDE } else { 1 };
            let mut f = 0;
            while f < t.few_count {
                let left = t.few_count - f;
                f += match (lines, left) {
                    (SIDE_BY_SIDE, 8..) if WIDE => dots::<V, SIDE_BY_SIDE, 8>(t, l, f),
                    (SIDE_BY_SIDE, 4..) => dots::<V, SIDE_BY_SIDE, 4>(t, l, f),
                    (SIDE_BY_SIDE, 2..) => dots::<V, SIDE_BY_SIDE, 2>(t, l, f),
                    (SIDE_BY_SIDE, _) => dots::<V, SIDE_BY_SIDE, 1>(t, l, f),
                    (_, 4..) => dots::<V, 1, 4>(t, l, f),
                    _ => dots::<V, 1, 1>(t, l, f),
                };
            }
            l += lines;
        }
    }
}

/// `L` lines with `F` of the few; returns `F`.
#[inline(always)]
unsafe fn dots<V: Vector, const L: usize, const F: usize>(t: &Few<V::T>, l: usize, f: usize) -> usize {
    // SAFETY: whole vectors stay below k, then one masked load covers the rest.
    unsafe {
        let lines = t.lines.offset(l as isize * t.line);
        let few = t.few.offset(f as isize * t.few_line);
        let mut sums = [[V::zero(); L]; F];
        let mut p = 0;
        while p + V::LANES <= t.k {
            let mut x = [V::zero(); L];
            unroll!(I < L, 4, { x[I] = V::load(lines.offset(I as isize * t.line).add(p)) });
            unroll!(J < F, 8, {
                let y = V::load(few.offset(J as isize * t.few_line).add(p));
                unroll!(I < L, 4, { sums[J][I] = x[I].fma(y, sums[J][I]) });
            });
            p += V::LANES;
        }
        if p < t.k {
            let mask = V::mask(t.k - p);
            unroll!(J < F, 8, {
                let y = V::load_masked(few.offset(J as isize * t.few_line).add(p), mask);
                unroll!(I < L, 4, {
                    let x = V::load_masked(lines.offset(I as isize * t.line).add(p), mask);
                    sums[J][I] = x.fma(y, sums[J][I]);
                });
            });
        }
        unroll!(J < F, 8, {
            unroll!(I < L, 4, {
                let at = (l + I) as isize * t.out_line + (f + J) as isize * t.out_few;
                *t.out.offset(at) = sums[J][I].sum();
            });
        });
    }
    F
}
