//! Copying operands into panels: the order in which the micro-kernel reads them.
//!
//! A panel holds `width` items for each step of `k`: rows of `a` or columns of `b`. Item `i` of step
//! `p` lands at `to[p * stride + i]`; items from `width` up to `stride` are zero.

use super::Element;
use super::vector::Vector;

/// One panel to copy.
#[derive(Clone, Copy)]
pub(super) struct Panel<T> {
    /// First item of the first step.
    pub from: *const T,
    /// Elements between items.
    pub item: isize,
    /// Elements between steps.
    pub step: isize,
    /// Items that exist.
    pub width: usize,
    /// Steps of `k`.
    pub steps: usize,
    /// Where it goes.
    pub to: *mut T,
    /// Elements between steps in the panel; at least `width`.
    pub stride: usize,
}

/// Steps copied at a time: their source lines and the panel's lines stay in the first cache.
const STEPS: usize = 16;

/// Copies one panel.
///
/// # Safety
/// The source is valid at its strides, `to` for `steps * stride` elements; the CPU has the vector's
/// instruction set.
#[inline(always)]
pub(super) unsafe fn pack_panel<V: Vector>(p: &Panel<V::T>) {
    // SAFETY: items stay below width, steps below steps.
    unsafe {
        if p.item == 1 {
            rows::<V>(p);
            return;
        }
        if p.step == 1 && p.width >= V::SQUARE && p.steps >= V::SQUARE {
            squares::<V>(p);
        } else {
            one_by_one(p);
        }
        if p.width < p.stride {
            for s in 0..p.steps {
                for i in p.width..p.stride {
                    *p.to.add(s * p.stride + i) = V::T::ZERO;
                }
            }
        }
    }
}

/// Steps are contiguous: squares are transposed in registers, the last ones overlapping those before.
#[inline(always)]
unsafe fn squares<V: Vector>(p: &Panel<V::T>) {
    // SAFETY: every square lies inside the panel: both sides are at least a square long.
    unsafe {
        let mut s = 0;
        loop {
            let from = p.from.add(s);
            let to = p.to.add(s * p.stride);
            let mut i = 0;
            loop {
                V::transpose(from.offset(i as isize * p.item), p.item, to.add(i), p.stride);
                if i + V::SQUARE == p.width {
                    break;
                }
                i = (i + V::SQUARE).min(p.width - V::SQUARE);
            }
            if s + V::SQUARE == p.steps {
                break;
            }
            s = (s + V::SQUARE).min(p.steps - V::SQUARE);
        }
    }
}

/// Any strides.
#[inline(always)]
unsafe fn one_by_one<T: Element>(p: &Panel<T>) {
    // SAFETY: items stay below width, steps below steps.
    unsafe {
        for start in (0..p.steps).step_by(STEPS) {
            let end = p.steps.min(start + STEPS);
            for i in 0..p.width {
                let from = p.from.offset(i as isize * p.item);
                for s in start..end {
                    *p.to.add(s * p.stride + i) = *from.offset(s as isize * p.step);
                }
            }
        }
    }
}

/// Items are contiguous: whole vectors at a time.
#[inline(always)]
unsafe fn rows<V: Vector>(p: &Panel<V::T>) {
    // SAFETY: vectors stay below width, then one masked load covers the rest; stores stay below stride.
    unsafe {
        let whole = p.width / V::LANES * V::LANES;
        let rest = p.width - whole;
        let mask = V::mask(rest);
        for s in 0..p.steps {
            let from = p.from.offset(s as isize * p.step);
            let to = p.to.add(s * p.stride);
            let mut i = 0;
            while i < whole {
                V::load(from.add(i)).store(to.add(i));
                i += V::LANES;
            }
            if rest > 0 {
                V::load_masked(from.add(i), mask)
                    .store_masked(to.add(i), V::mask((p.stride - i).min(V::LANES)));
                i = (i + V::LANES).min(p.stride);
            }
            while i < p.stride {
                *to.add(i) = V::T::ZERO;
                i += 1;
            }
        }
    }
}
