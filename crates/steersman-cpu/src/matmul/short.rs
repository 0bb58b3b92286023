//! Many lines of a few elements each, one after the other in memory, times a vector.
//!
//! A line is shorter than a register, so registers hold an element of each of many lines instead: what lies at every
//! second, third or eighth place is gathered by shuffles, which the compiler finds for itself where lines are counted in
//! the inner loop. (622 rows of f32 on a Zen 5 by AVX-512, as lines of their own and as this: 2 columns 0.42 and 0.05 µs,
//! 3 0.53 and 0.07, 5 0.70 and 0.13, 8 0.70 and 0.25; with 10 columns it found none that pay.)

use super::Element;
use super::gemv::Lines;
use super::vector::Vector;
use std::array::from_fn;

/// Elements of a line at most.
pub(super) const MOST: usize = 8;

/// Whether a product of `k` steps with one column, of contiguous operands, is one of these.
pub(super) fn is_short(k: usize, n: usize) -> bool {
    n == 1 && (2..=MOST).contains(&k)
}

/// Whether these lines are.
pub(super) fn suits<T>(l: &Lines<T>) -> bool {
    is_short(l.length, 1) && l.line == l.length as isize && l.out_stride == 1
}

/// The dot form for lines that [suit](suits).
///
/// # Safety
/// The lines, the vector and the results are valid; the CPU has the vector's instruction set.
#[inline(always)]
pub(super) unsafe fn short_lines<V: Vector>(l: &Lines<V::T>) {
    // SAFETY: the caller's promise.
    unsafe {
        match l.length {
            2 => by_lanes::<V, 2>(l),
            3 => by_lanes::<V, 3>(l),
            4 => by_lanes::<V, 4>(l),
            5 => by_lanes::<V, 5>(l),
            6 => by_lanes::<V, 6>(l),
            7 => by_lanes::<V, 7>(l),
            _ => by_lanes::<V, 8>(l),
        }
    }
}

#[inline(always)]
unsafe fn by_lanes<V: Vector, const K: usize>(l: &Lines<V::T>) {
    // SAFETY: the caller's promise.
    unsafe {
        match V::LANES {
            16 if K <= 6 => lines::<V::T, K, 16>(l),
            // Of 16 lines the compiler finds no shuffles then: 7 columns took 0.47 µs, of 8 lines 0.21.
            16 | 8 => lines::<V::T, K, 8>(l),
            4 => lines::<V::T, K, 4>(l),
            _ => lines::<V::T, K, 2>(l),
        }
    }
}

#[inline(always)]
unsafe fn lines<T: Element, const K: usize, const LANES: usize>(l: &Lines<T>) {
    // SAFETY: groups of lines stay below count; a line is K elements.
    unsafe {
        let x: [T; K] = from_fn(|i| *l.x.add(i));
        let mut at = 0;
        while at + LANES <= l.count {
            let mut sums = [T::ZERO; LANES];
            for (i, x) in x.iter().enumerate() {
                for (line, sum) in sums.iter_mut().enumerate() {
                    *sum = T::mul_acc(*sum, *l.from.add((at + line) * K + i), *x);
                }
            }
            l.out.add(at).cast::<[T; LANES]>().write_unaligned(sums);
            at += LANES;
        }
        for line in at..l.count {
            let add = |sum, i: usize| T::mul_acc(sum, *l.from.add(line * K + i), x[i]);
            *l.out.add(line) = (0..K).fold(T::ZERO, add);
        }
    }
}
