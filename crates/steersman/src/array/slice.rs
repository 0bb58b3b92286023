//! Which elements along an axis: Python's slices, with Rust's ranges.
//!
//! `2..5`, `..`, `1..`, `..3`, `2..=4` are what they look like; [`Slice::step`] takes every n-th, backwards if negative.
//! Negative bounds count from the end and bounds beyond the axis are cut to it, as in Python.

use super::Array;
use super::error::ArrayError;
use smallvec::SmallVec;
use std::fmt;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use steersman_core::Dims;

/// Some elements along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    start: Option<isize>,
    stop: Option<isize>,
    step: isize,
}

impl Slice {
    /// All elements.
    pub const ALL: Slice = Slice { start: None, stop: None, step: 1 };

    /// From `start` up to but not including `stop`, by `step`; `None` is the end that the step leads from or to.
    pub fn new(start: Option<isize>, stop: Option<isize>, step: isize) -> Slice {
        Slice { start, stop, step }
    }

    /// The same with every `step`-th element; a negative step goes from the end to the start.
    pub fn step(self, step: isize) -> Slice {
        Slice { step, ..self }
    }

    /// First element, step and number of elements on an axis of `n`. `None` for a step of zero.
    pub(crate) fn resolve(self, n: usize) -> Option<(usize, isize, usize)> {
        let n = n as isize;
        if self.step == 0 {
            return None;
        }
        let (low, high) = if self.step > 0 { (0, n) } else { (-1, n - 1) };
        let bound = |given: Option<isize>, default: isize| match given {
            None => default,
            Some(i) => (if i < 0 { i.saturating_add(n) } else { i }).clamp(low, high),
        };
        let forward = self.step > 0;
        let start = bound(self.start, if forward { low } else { high });
        let stop = bound(self.stop, if forward { high } else { low });
        let distance = if forward { stop - start } else { start - stop };
        let count = if distance <= 0 { 0 } else { (distance as usize - 1) / self.step.unsigned_abs() + 1 };
        Some(if count == 0 { (0, 1, 0) } else { (start as usize, self.step, count) })
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |e: Option<isize>| e.map_or(String::new(), |i| i.to_string());
        write!(f, "{}:{}", end(self.start), end(self.stop))?;
        if self.step == 1 { Ok(()) } else { write!(f, ":{}", self.step) }
    }
}

impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Slice {
        Slice::ALL
    }
}

/// A range alone is about the first axis.
macro_rules! one_axis {
    ($($t:ty),*) => { $(
        impl IntoSlices for $t {
            fn into_slices(self) -> SmallVec<[Slice; 4]> { SmallVec::from_slice(&[self.into()]) }
        }
    )* };
}

macro_rules! ranges {
    ($($t:ty),*) => { $(
        impl From<Range<$t>> for Slice {
            fn from(r: Range<$t>) -> Slice { Slice::new(bound(r.start), bound(r.end), 1) }
        }
        impl From<RangeFrom<$t>> for Slice {
            fn from(r: RangeFrom<$t>) -> Slice { Slice::new(bound(r.start), None, 1) }
        }
        impl From<RangeTo<$t>> for Slice {
            fn from(r: RangeTo<$t>) -> Slice { Slice::new(None, bound(r.end), 1) }
        }
        impl From<RangeInclusive<$t>> for Slice {
            fn from(r: RangeInclusive<$t>) -> Slice { Slice::new(bound(*r.start()), after(*r.end()), 1) }
        }
        impl From<RangeToInclusive<$t>> for Slice {
            fn from(r: RangeToInclusive<$t>) -> Slice { Slice::new(None, after(r.end), 1) }
        }
        one_axis!(Range<$t>, RangeFrom<$t>, RangeTo<$t>, RangeInclusive<$t>, RangeToInclusive<$t>);
    )* };
}

/// A bound; one beyond every axis stays so, and does not count from the end.
fn bound(at: impl TryInto<isize>) -> Option<isize> {
    Some(at.try_into().unwrap_or(isize::MAX))
}

/// The bound behind the last element taken; behind the very last one there is none.
fn after(last: impl TryInto<isize>) -> Option<isize> {
    match last.try_into().unwrap_or(isize::MAX) {
        -1 => None,
        last => Some(last.saturating_add(1)),
    }
}

one_axis!(Slice, RangeFull);
ranges!(i32, isize, usize);

/// What can be given to [`Array::slice`](super::Array::slice): a range or a tuple of ranges and slices, one for each
/// axis from the first; axes not named are taken whole.
pub trait IntoSlices {
    /// One slice for each axis named.
    fn into_slices(self) -> SmallVec<[Slice; 4]>;
}

impl IntoSlices for &[Slice] {
    fn into_slices(self) -> SmallVec<[Slice; 4]> {
        SmallVec::from_slice(self)
    }
}
impl<const N: usize> IntoSlices for [Slice; N] {
    fn into_slices(self) -> SmallVec<[Slice; 4]> {
        SmallVec::from_slice(&self)
    }
}

macro_rules! tuples {
    ($(($($name:ident)*))*) => { $(
        impl<$($name: Into<Slice>),*> IntoSlices for ($($name,)*) {
            #[allow(non_snake_case, reason = "the type's name stands for its value")]
            fn into_slices(self) -> SmallVec<[Slice; 4]> {
                let ($($name,)*) = self;
                let mut all = SmallVec::new();
                $(all.push($name.into());)*
                all
            }
        }
    )* };
}
tuples!((A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F));

/// Start and step along each axis, and the shape that is left.
pub(crate) type Cut = (Box<[(usize, isize)]>, Dims);

/// Start and step along each axis, and the shape that is left.
pub(crate) fn cut(slices: &[Slice], of: &Array) -> Result<Cut, ArrayError> {
    let dims = of.shape();
    let text = || slices.iter().map(|s| s.to_string()).collect::<Vec<_>>().join(", ");
    let fail = |why| ArrayError::Slice { text: text(), of: of.into(), why };
    if slices.len() > dims.len() {
        return Err(fail("more slices than axes"));
    }
    let mut steps = Vec::with_capacity(dims.len());
    let mut left = Dims::new();
    for (axis, &n) in dims.iter().enumerate() {
        let slice = slices.get(axis).copied().unwrap_or(Slice::ALL);
        let (start, step, count) = slice.resolve(n).ok_or_else(|| fail("a step of 0 leads nowhere"))?;
        steps.push((start, step));
        left.push(count);
    }
    Ok((steps.into(), left))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python's `range(n)[start:stop:step]` gives.
    fn naive(s: Slice, n: usize) -> Vec<usize> {
        let n = n as isize;
        let wrap = |i: isize| if i < 0 { i + n } else { i };
        let mut out = Vec::new();
        let mut i = match (s.start, s.step > 0) {
            (None, true) => 0,
            (None, false) => n - 1,
            (Some(i), true) => wrap(i).max(0),
            (Some(i), false) => wrap(i).min(n - 1),
        };
        let more = |i: isize| match (s.stop, s.step > 0) {
            (None, true) => i < n,
            (None, false) => i >= 0,
            (Some(e), true) => i < wrap(e).min(n),
            (Some(e), false) => i > wrap(e).max(-1),
        };
        while more(i) && i >= 0 {
            out.push(i as usize);
            i += s.step;
        }
        out
    }

    #[test]
    fn slices_mean_what_python_means() {
        let ends =
            [None, Some(-9), Some(-5), Some(-2), Some(-1), Some(0), Some(1), Some(3), Some(5), Some(9)];
        for n in [0usize, 1, 5] {
            for start in ends {
                for stop in ends {
                    for step in [-7, -2, -1, 1, 2, 7] {
                        let s = Slice::new(start, stop, step);
                        let (first, by, count) = s.resolve(n).unwrap();
                        let got: Vec<usize> =
                            (0..count as isize).map(|i| (first as isize + i * by) as usize).collect();
                        assert_eq!(got, naive(s, n), "{s} of {n}");
                    }
                }
            }
        }
        assert_eq!(Slice::ALL.step(0).resolve(3), None);
    }

    #[test]
    fn ranges_with_their_end_and_beyond_every_axis_are_what_they_look_like() {
        let taken = |s: Slice| s.resolve(5).map(|(first, _, count)| (first, count));
        assert_eq!(taken((1..=3).into()), Some((1, 3)));
        assert_eq!(taken((..=-1).into()), Some((0, 5)), "up to and with the last one");
        assert_eq!(taken((..=-2).into()), Some((0, 4)));
        assert_eq!(taken((2..usize::MAX).into()), Some((2, 3)), "no number of elements is negative");
        assert_eq!(taken((..=usize::MAX).into()), Some((0, 5)));
        assert_eq!(taken((usize::MAX..).into()), Some((0, 0)));
    }
}
