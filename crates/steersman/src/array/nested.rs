//! Arrays written down in the program: rows in brackets.

use super::Array;
use crate::runtime::Runtime;
use crate::view::Element;
use smallvec::SmallVec;

/// A number, a list of numbers, a list of such lists, and so on: what [`Runtime::array`] takes. Its shape is part of its
/// type, so that no row can be shorter than another.
pub trait Nested {
    /// The numbers' type.
    type Element: Element;
    /// Puts the dimensions, outermost first, behind those that are there.
    fn dims(to: &mut SmallVec<[usize; 4]>);
    /// Puts the numbers, row by row, behind those that are there.
    fn elements(self, to: &mut Vec<Self::Element>);
}

macro_rules! leaves {
    ($($t:ty),*) => { $(
        impl Nested for $t {
            type Element = $t;
            fn dims(_: &mut SmallVec<[usize; 4]>) {}
            fn elements(self, to: &mut Vec<$t>) { to.push(self); }
        }
    )* };
}
leaves!(f32, f64, half::f16, half::bf16, i32, i64, u8, u32, bool);

impl<N: Nested, const K: usize> Nested for [N; K] {
    type Element = N::Element;

    fn dims(to: &mut SmallVec<[usize; 4]>) {
        to.push(K);
        N::dims(to);
    }

    fn elements(self, to: &mut Vec<N::Element>) {
        for inner in self {
            inner.elements(to);
        }
    }
}

impl Runtime {
    /// An array of what is written down.
    ///
    /// ```
    /// # let mut knobs = steersman::Knobs::default();
    /// # knobs.set("wisdom.enabled", "false")?;
    /// # knobs.set("calibrate.background", "false")?;
    /// # let rt = steersman::Runtime::with_knobs(knobs)?;
    /// let a = rt.array([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(a.shape(), [2, 3]);
    /// assert_eq!(a.sum(0).to_vec::<f32>()?, [5.0, 7.0, 9.0]);
    /// # Ok::<(), steersman::Error>(())
    /// ```
    pub fn array<N: Nested>(&self, rows: N) -> Array {
        let (mut dims, mut elements) = (SmallVec::new(), Vec::new());
        N::dims(&mut dims);
        rows.elements(&mut elements);
        self.made_of("array", elements, &dims)
    }
}
