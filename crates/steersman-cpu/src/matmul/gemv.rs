//! Matrix times vector and vector times matrix: bound by reading the matrix once.

use super::vector::Vector;
use super::{Float, Gemm, Scratch, short};
use crate::isa::Level;

/// A matrix as lines of contiguous elements, times a vector.
///
/// As dot products: `out[l * out_stride] = Σ_i lines[l * line + i] · x[i]` over `length` elements.
/// As sums: `out[i] = Σ_l lines[l * line + i] · x[l * x_stride]` over `count` lines.
#[derive(Clone, Copy)]
pub(super) struct Lines<T> {
    /// First element of the first line.
    pub from: *const T,
    /// Elements between lines.
    pub line: isize,
    /// Lines.
    pub count: usize,
    /// Elements in a line.
    pub length: usize,
    /// The vector; contiguous for dot products.
    pub x: *const T,
    /// Elements between elements of the vector, for sums.
    pub x_stride: isize,
    /// The result; contiguous for sums.
    pub out: *mut T,
    /// Elements between results, for dot products.
    pub out_stride: isize,
}

/// Half vectors that hold a line which is summed up by them.
const NARROW: usize = 3;

/// Computes `c = a · b` where one of `m`, `n` is 1.
///
/// # Safety
/// The CPU has `level`. `a`, `b` and `c` are valid at their shapes and strides; `c` overlaps neither
/// `a` nor `b`.
///
/// # Panics
/// If neither `m` nor `n` is 1.
pub unsafe fn gemv<T: Float>(level: Level, g: &Gemm<T>) {
    assert!(g.m == 1 || g.n == 1, "gemv takes one row or one column, not {}×{}", g.m, g.n);
    let kernels = T::kernels(level);
    // Whether m or n is 1: outputs, strides of the matrix along outputs and along k, the vector, the
    // stride of the result.
    let (outputs, matrix, out_step, k_step, x, x_step, c_step) = if g.m == 1 {
        (g.n, g.b, g.b_cs, g.b_rs, g.a, g.a_cs, 1)
    } else {
        (g.m, g.a, g.a_rs, g.a_cs, g.b, g.b_rs, g.c_rs)
    };
    // SAFETY: each branch reads outputs × k of the matrix, k of the vector, writes outputs results.
    unsafe {
        if g.k == 0 {
            g.zero_c();
        // Of one step both ways are open: single products one after another take ten times as long as a line of them.
        } else if k_step == 1 && !(g.k == 1 && out_step == 1) {
            let mut lines = Lines {
                from: matrix,
                line: out_step,
                count: outputs,
                length: g.k,
                x,
                x_stride: 1,
                out: g.c,
                out_stride: c_step,
            };
            if x_step == 1 {
                (kernels.dots)(&lines);
            } else {
                Scratch::with_local(|scratch| {
                    let (copy, _) = scratch.pair::<T>(g.k, 0);
                    for p in 0..g.k {
                        *copy.add(p) = *x.offset(p as isize * x_step);
                    }
                    lines.x = copy;
                    (kernels.dots)(&lines);
                });
            }
        } else if out_step == 1 {
            let mut lines = Lines {
                from: matrix,
                line: k_step,
                count: g.k,
                length: outputs,
                x,
                x_stride: x_step,
                out: g.c,
                out_stride: 1,
            };
            // Lines that a few half vectors hold: whole ones lie across two cache lines more often. (1×194 · 194×21 f32 on a
            // Zen 4 took 290 ns by whole vectors, 192 by halves; 1×99 · 99×8 97 and 66.)
            let axpys = match kernels.half {
                Some(half) if outputs <= NARROW * half.lanes => half.axpys,
                _ => kernels.axpys,
            };
            if c_step == 1 {
                axpys(&lines);
            } else {
                Scratch::with_local(|scratch| {
                    let (sums, _) = scratch.pair::<T>(outputs, 0);
                    lines.out = sums;
                    axpys(&lines);
                    for o in 0..outputs {
                        *g.c.offset(o as isize * c_step) = *sums.add(o);
                    }
                });
            }
        } else {
            for o in 0..outputs {
                let mut sum = T::ZERO;
                for p in 0..g.k as isize {
                    let at = matrix.offset(o as isize * out_step + p * k_step);
                    sum = T::mul_acc(sum, *at, *x.offset(p * x_step));
                }
                *g.c.offset(o as isize * c_step) = sum;
            }
        }
    }
}

/// Lines read side by side in the dot form.
const DOTS: usize = 4;
/// Vectors of each line summed apart in the dot form: with four lines, enough sums to hide the
/// latency of an addition.
const PARTS: usize = 4;

/// The dot form.
///
/// # Safety
/// The lines, the vector and the results are valid; the CPU has the vector's instruction set.
#[inline(always)]
pub(super) unsafe fn dot_lines<V: Vector>(l: &Lines<V::T>) {
    // SAFETY: groups of lines stay below count.
    unsafe {
        if short::suits(l) {
            return short::short_lines::<V>(l);
        }
        let mut at = 0;
        while at + DOTS <= l.count {
            dots::<V, DOTS>(l, at);
            at += DOTS;
        }
        while at < l.count {
            dots::<V, 1>(l, at);
            at += 1;
        }
    }
}

#[inline(always)]
unsafe fn dots<V: Vector, const L: usize>(l: &Lines<V::T>, at: usize) {
    // SAFETY: whole vectors stay below length, then one masked load covers the rest.
    unsafe {
        let from: [*const V::T; L] = std::array::from_fn(|i| l.from.offset((at + i) as isize * l.line));
        let mut sums = [[V::zero(); L]; PARTS];
        let mut i = 0;
        while i + PARTS * V::LANES <= l.length {
            for (part, sums) in sums.iter_mut().enumerate() {
                let x = V::load(l.x.add(i + part * V::LANES));
                for (line, sum) in sums.iter_mut().enumerate() {
                    *sum = V::load(from[line].add(i + part * V::LANES)).fma(x, *sum);
                }
            }
            i += PARTS * V::LANES;
        }
        while i < l.length {
            let mask = V::mask((l.length - i).min(V::LANES));
            let x = V::load_masked(l.x.add(i), mask);
            for (line, sum) in sums[0].iter_mut().enumerate() {
                *sum = V::load_masked(from[line].add(i), mask).fma(x, *sum);
            }
            i += V::LANES;
        }
        let [first, second, third, fourth] = sums;
        for (line, sum) in first.into_iter().enumerate() {
            let sum = sum.add(second[line]).add(third[line].add(fourth[line])).sum();
            *l.out.offset((at + line) as isize * l.out_stride) = sum;
        }
    }
}

/// Lines added at a time in the sum form: `out` is read and written once for these.
const SUMS: usize = 8;

/// The sum form.
///
/// # Safety
/// The lines, the vector and the results are valid; the CPU has the vector's instruction set.
#[inline(always)]
pub(super) unsafe fn axpy_lines<V: Vector>(l: &Lines<V::T>) {
    // SAFETY: groups of lines stay below count.
    unsafe {
        let bytes = l.count * l.length * size_of::<V::T>();
        if l.length <= 2 * V::LANES || l.count >= SUMS && bytes <= NEAR {
            return strips::<V>(l);
        }
        let mut at = 0;
        while at + SUMS <= l.count {
            sums::<V, SUMS>(l, at);
            at += SUMS;
        }
        // All that are left at once: each time through, the results are read and written. (1×3 · 3×1264 f64 took 340 ns on a
        // Xeon line by line.)
        match l.count - at {
            0 => {}
            1 => sums::<V, 1>(l, at),
            2 => sums::<V, 2>(l, at),
            3 => sums::<V, 3>(l, at),
            4 => sums::<V, 4>(l, at),
            5 => sums::<V, 5>(l, at),
            6 => sums::<V, 6>(l, at),
            _ => sums::<V, 7>(l, at),
        }
    }
}

/// Bytes of lines that are near enough to be read strip by strip.
const NEAR: usize = 512 << 10;

/// The sum form in strips of up to four vectors, whose sums stay in registers. (1×212 · 212×40 f32 took 520 ns on a Xeon
/// with eight lines added to memory at a time, 216 so; 1×720 · 720×11 f64 1.46 µs on Zen 4, and 0.8.)
#[inline(always)]
unsafe fn strips<V: Vector>(l: &Lines<V::T>) {
    let mut strip = *l;
    let mut left = l.length;
    while left > 0 {
        let vectors = left.div_ceil(V::LANES).min(4);
        strip.length = left.min(vectors * V::LANES);
        // SAFETY: so many elements of each line are left.
        unsafe {
            // More sums of the same lane where there are few lanes, to hide the latency of an addition.
            match (vectors, strip.length % V::LANES != 0) {
                (1, true) => narrow::<V, 1, 4, true>(&strip),
                (1, false) => narrow::<V, 1, 4, false>(&strip),
                (2, true) => narrow::<V, 2, 4, true>(&strip),
                (2, false) => narrow::<V, 2, 4, false>(&strip),
                (3, true) => narrow::<V, 3, 2, true>(&strip),
                (3, false) => narrow::<V, 3, 2, false>(&strip),
                (_, true) => narrow::<V, 4, 2, true>(&strip),
                (_, false) => narrow::<V, 4, 2, false>(&strip),
            }
        }
        strip.from = strip.from.wrapping_add(strip.length);
        strip.out = strip.out.wrapping_add(strip.length);
        left -= strip.length;
    }
}

/// The sum form of lines of `NV` vectors, the last of which is cut short if `MASKED`, in `APART` sums.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "slices of the sums would keep them in memory")]
unsafe fn narrow<V: Vector, const NV: usize, const APART: usize, const MASKED: bool>(l: &Lines<V::T>) {
    // SAFETY: lines stay below count; whole vectors stay below length, and a masked one covers the rest.
    unsafe {
        let mask = V::mask(l.length - (NV - 1) * V::LANES);
        let mut sums = [[V::zero(); NV]; APART];
        let add = |sums: &mut [V; NV], at: usize| {
            let p = l.from.offset(at as isize * l.line);
            let x = V::splat(*l.x.offset(at as isize * l.x_stride));
            for (j, sum) in sums.iter_mut().enumerate() {
                let p = p.add(j * V::LANES);
                *sum = if MASKED && j == NV - 1 { V::load_masked(p, mask) } else { V::load(p) }.fma(x, *sum);
            }
        };
        let mut at = 0;
        while at + APART <= l.count {
            for (i, sums) in sums.iter_mut().enumerate() {
                add(sums, at + i);
            }
            at += APART;
        }
        // Here and below by indices that are known when this is compiled: others keep all sums in memory. (1×30 · 30×64 f32 took
        // 114 ns so on a Zen 4 and takes 65, 1×194 · 194×40 432 and 254.)
        for (i, sums) in sums.iter_mut().enumerate() {
            if at + i < l.count {
                add(sums, at + i);
            }
        }
        for i in 1..APART {
            for j in 0..NV {
                sums[0][j] = sums[0][j].add(sums[i][j]);
            }
        }
        for (j, sum) in sums[0].into_iter().enumerate() {
            let out = l.out.add(j * V::LANES);
            if MASKED && j == NV - 1 { sum.store_masked(out, mask) } else { sum.store(out) }
        }
    }
}

#[inline(always)]
unsafe fn sums<V: Vector, const L: usize>(l: &Lines<V::T>, at: usize) {
    // SAFETY: whole vectors stay below length, then one masked load and store cover the rest.
    unsafe {
        let from: [*const V::T; L] = std::array::from_fn(|i| l.from.offset((at + i) as isize * l.line));
        let x: [V; L] = std::array::from_fn(|i| V::splat(*l.x.offset((at + i) as isize * l.x_stride)));
        let mut i = 0;
        while i + V::LANES <= l.length {
            let mut sum = if at == 0 { V::zero() } else { V::load(l.out.add(i)) };
            for line in 0..L {
                sum = V::load(from[line].add(i)).fma(x[line], sum);
            }
            sum.store(l.out.add(i));
            i += V::LANES;
        }
        if i < l.length {
            let mask = V::mask(l.length - i);
            let mut sum = if at == 0 { V::zero() } else { V::load_masked(l.out.add(i), mask) };
            for line in 0..L {
                sum = V::load_masked(from[line].add(i), mask).fma(x[line], sum);
            }
            sum.store_masked(l.out.add(i), mask);
        }
    }
}
