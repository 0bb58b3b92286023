//! Which axes an operation is about, and which shape one asks for.
//!
//! ```
//! use steersman::array::{Axis, Over};
//! # use steersman::{Knobs, Runtime};
//! # let mut knobs = Knobs::default();
//! # knobs.set("wisdom.enabled", "false")?;
//! # knobs.set("calibrate.background", "false")?;
//! # let rt = Runtime::with_knobs(knobs)?;
//! let a = rt.ones::<f32>([2, 3, 4]);
//! assert_eq!(a.sum(..).rank(), 0);                      // all axes
//! assert_eq!(a.sum(Axis(-1)).shape(), [2, 3]);          // the last one
//! assert_eq!(a.sum([0, 2]).shape(), [3]);               // two
//! assert_eq!(a.sum(Axis(1).keep()).shape(), [2, 1, 4]); // kept as an axis of one
//! assert_eq!(a.sum(Over::all().keep()).shape(), [1, 1, 1]);
//! # Ok::<(), steersman::Error>(())
//! ```

use super::Array;
use super::error::ArrayError;
use smallvec::SmallVec;
use steersman_core::{Axes, Dims};

/// One axis; negative ones count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis(pub isize);

impl Axis {
    /// This axis, kept in the result as an axis of one element.
    pub fn keep(self) -> Over {
        Over::from(self).keep()
    }

    pub(crate) fn resolve(self, op: &'static str, of: &Array) -> Result<usize, ArrayError> {
        self.within(op, of, of.rank())
    }

    /// The same where `rank` axes may be named (one more than there are, for `expand` and `stack`).
    pub(crate) fn within(self, op: &'static str, of: &Array, rank: usize) -> Result<usize, ArrayError> {
        let at = if self.0 < 0 { self.0 + rank as isize } else { self.0 };
        if (0..rank as isize).contains(&at) {
            return Ok(at as usize);
        }
        Err(ArrayError::Axis { op, axis: self.0, of: of.into(), rank })
    }
}

macro_rules! axis_from {
    ($($t:ty),*) => { $(
        impl From<$t> for Axis {
            fn from(a: $t) -> Axis { Axis(isize::try_from(a).unwrap_or(isize::MAX)) }
        }
    )* };
}
axis_from!(i32, isize, usize);

/// The axes a reduction goes over, and whether they stay as axes of one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    axes: Option<SmallVec<[isize; 4]>>,
    keep: bool,
}

impl Over {
    /// Every axis.
    pub fn all() -> Over {
        Over { axes: None, keep: false }
    }

    /// These axes; none of them reduces nothing.
    pub fn axes<A: Into<Axis>>(axes: impl IntoIterator<Item = A>) -> Over {
        Over { axes: Some(axes.into_iter().map(|a| a.into().0).collect()), keep: false }
    }

    /// The same, with the reduced axes kept as axes of one element.
    pub fn keep(mut self) -> Over {
        self.keep = true;
        self
    }

    pub(crate) fn kept(&self) -> bool {
        self.keep
    }

    /// Whether no axis is named, and so all are meant.
    pub(crate) fn is_all(&self) -> bool {
        self.axes.is_none()
    }

    /// The axes as a set; `None` for a list that names none.
    pub(crate) fn resolve(&self, op: &'static str, of: &Array) -> Result<Option<Axes>, ArrayError> {
        let Some(list) = &self.axes else { return Ok(Some(Axes::all(of.rank()))) };
        let mut found: SmallVec<[usize; 4]> = SmallVec::new();
        for &a in list {
            let axis = Axis(a).resolve(op, of)?;
            if found.contains(&axis) {
                return Err(ArrayError::AxisTwice { op, axis: a, of: of.into() });
            }
            found.push(axis);
        }
        Ok(Axes::from_list(&found).filter(|a| !a.is_empty()))
    }
}

impl From<Axis> for Over {
    fn from(axis: Axis) -> Over {
        Over::axes([axis])
    }
}
impl From<std::ops::RangeFull> for Over {
    fn from(_: std::ops::RangeFull) -> Over {
        Over::all()
    }
}

macro_rules! over_from {
    ($($t:ty),*) => { $(
        impl From<$t> for Over {
            fn from(axis: $t) -> Over { Over::axes([axis]) }
        }
        impl<const N: usize> From<[$t; N]> for Over {
            fn from(axes: [$t; N]) -> Over { Over::axes(axes) }
        }
        impl<const N: usize> From<&[$t; N]> for Over {
            fn from(axes: &[$t; N]) -> Over { Over::axes(axes.iter().copied()) }
        }
        impl From<&[$t]> for Over {
            fn from(axes: &[$t]) -> Over { Over::axes(axes.iter().copied()) }
        }
        impl From<Vec<$t>> for Over {
            fn from(axes: Vec<$t>) -> Over { Over::axes(axes) }
        }
    )* };
}
over_from!(i32, isize, usize);

/// What can be given as a shape: `[2, 3]`, a slice, a vector, one number, or `()` for a scalar.
pub trait IntoShape {
    /// The dimensions. `reshape` takes one -1 for "whatever is left".
    fn into_shape(self) -> SmallVec<[isize; 4]>;
}

impl IntoShape for () {
    fn into_shape(self) -> SmallVec<[isize; 4]> {
        SmallVec::new()
    }
}

macro_rules! shapes {
    ($($t:ty),*) => { $(
        impl IntoShape for $t {
            fn into_shape(self) -> SmallVec<[isize; 4]> { SmallVec::from_slice(&[isize::try_from(self).unwrap_or(isize::MAX)]) }
        }
        impl<const N: usize> IntoShape for [$t; N] {
            fn into_shape(self) -> SmallVec<[isize; 4]> { (&self[..]).into_shape() }
        }
        impl<const N: usize> IntoShape for &[$t; N] {
            fn into_shape(self) -> SmallVec<[isize; 4]> { self[..].into_shape() }
        }
        impl IntoShape for &[$t] {
            fn into_shape(self) -> SmallVec<[isize; 4]> {
                self.iter().map(|&d| isize::try_from(d).unwrap_or(isize::MAX)).collect()
            }
        }
        impl IntoShape for &Vec<$t> {
            fn into_shape(self) -> SmallVec<[isize; 4]> { self[..].into_shape() }
        }
        impl IntoShape for Vec<$t> {
            fn into_shape(self) -> SmallVec<[isize; 4]> { self[..].into_shape() }
        }
    )* };
}
shapes!(i32, isize, usize);

/// A shape without negative dimensions.
pub(crate) fn shape(op: &'static str, given: &[isize]) -> Result<Dims, ArrayError> {
    if given.iter().any(|&d| d < 0) {
        return Err(ArrayError::NotShape { op, to: list(given) });
    }
    Ok(given.iter().map(|&d| d as usize).collect())
}

pub(crate) fn list(given: &[isize]) -> String {
    let inner: Vec<String> = given.iter().map(|d| d.to_string()).collect();
    format!("({}{})", inner.join(", "), if given.len() == 1 { "," } else { "" })
}
