//! Arrays that run where they are quickest.
//!
//! An [`Array`] is a cheap handle to a node of a lazy graph: operations only note what to compute, and reading
//! plans, fuses and runs it. No operation fails where it is written; one that cannot be makes an array that carries
//! the error, and reading returns it (or [`Array::check`], before anything runs).
//!
//! ```
//! use steersman::array::Axis;
//! # use steersman::{Knobs, Runtime};
//! # let mut knobs = Knobs::default();
//! # knobs.set("wisdom.enabled", "false")?;
//! # knobs.set("calibrate.background", "false")?;
//! # let rt = Runtime::with_knobs(knobs)?;
//! let x = rt.from_vec(vec![1.0f32, -2.0, 3.0, -4.0], [2, 2])?;
//! let w = rt.from_slice(&[1.0f32, 0.5, 0.5, 1.0], [2, 2])?;
//! let y = x.matmul(&w).add(1.0).relu().mean(Axis(0));
//! assert_eq!(y.to_vec::<f32>()?, [1.5, 0.0]);           // planned and run here
//!
//! let wrong = x.matmul(&rt.ones::<f32>([3, 3])).exp();  // nothing happens yet
//! assert!(wrong.check().unwrap_err().to_string().contains("matmul"));
//! # Ok::<(), steersman::Error>(())
//! ```
//!
//! # Semantics
//! Shapes broadcast, axes count and element types promote as in the Python array API standard (2023.12), and some 700
//! answers are tested against NumPy's. Rust numbers are weak: `&a + 2.0` has `a`'s element type, and a number that type
//! cannot hold is an error, never cut off. What differs from the standard, or what it leaves open:
//!
//! | | here |
//! |---|---|
//! | integer with float | the float's type ([`promote`]) |
//! | bool with number | the number's type; `bool` with a Rust number is an error |
//! | `/` of integers | towards zero; by zero gives 0. Python's `//` is [`Array::floor_divide`] |
//! | `%` | the dividend's sign, as in Rust. Python's `%` is [`Array::remainder`] |
//! | functions of reals (`sqrt`, `exp`, `mean`, ...) on integers | an error; cast first |
//! | `pow` of integers | to one whole number of at least 0, wrapping; with an array of exponents an error |
//! | arithmetic, `max`, `min` of bools | an error; cast first. `sum` and `prod` take them |
//! | sums and products of integers and bools | `i64`, of `u8` and `u32` too |
//! | casts of floats to integers | cut towards zero, saturate, NaN gives 0; between integers they wrap |
//! | NaN in `max`, `min`, `argmax`, `maximum`, `clamp`, ... | wins |
//! | slices beyond an axis | cut to it, as in Python |
//! | `var`, `std` | of the whole: divided by n |
//! | `+=` and its kin | the handle stands for a new array; other handles keep the old one |
//! | text | as NumPy prints it |
//! | at most | 8 axes, 2⁴⁶ bytes |
//! | element types | `bool`, `u8`, `u32`, `i32`, `i64`, `f16`, `bf16`, `f32`, `f64` |
//! | not there | sorting, sets, cumulative sums, picking elements by arrays or masks, bits of integers, complex numbers |
//!
//! Names are Rust's where it has one: `ln` for `log`, `clamp` for `clip`, `neg`, `sub`, `mul`, `div`, `eq`, `lt`, ...;
//! `permute`, `expand` and `cast` are the standard's `permute_dims`, `expand_dims` and `astype`.
//!
//! # What is kept
//! What is read is kept, and so are values that had to be written to memory on the way while someone holds a handle
//! to them. A value that only passed through a fused group is not: reading it later computes it again, once, and
//! then keeps it. [`Runtime::eval_all`](crate::Runtime::eval_all) computes several arrays in one plan. What only a lost
//! device held is computed again as long as the arrays that it was made from are held.

mod apply;
mod axis;
mod compose;
mod convert;
mod convolve;
mod create;
mod display;
mod elementwise;
mod error;
#[cfg(feature = "ndarray")]
mod exchange;
mod join;
mod nested;
pub(crate) mod node;
mod number;
mod operand;
mod operators;
mod promote;
mod random;
mod read;
mod reduce;
mod slice;
mod standard;
pub(crate) mod value;
mod views;

pub use axis::{Axis, IntoShape, Over};
pub(crate) use error::Shape;
pub use error::{ArrayError, Spec};
pub use nested::Nested;
pub use number::Number;
pub use operand::Side;
pub use promote::promote;
pub use random::Seed;
pub use read::Data;
pub use slice::{IntoSlices, Slice};

use crate::runtime::Runtime;
use node::{Node, NodeOp};
use std::sync::Arc;
use steersman_core::DType;

/// An n-dimensional array: a cheap handle to a node of a lazy graph. See the [module](self).
#[derive(Clone)]
pub struct Array {
    pub(crate) node: Arc<Node>,
}

impl Array {
    /// Its shape; empty for a scalar, and for an array that carries an error.
    pub fn shape(&self) -> &[usize] {
        &self.node.dims
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.node.dims.len()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.node.elements()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its element type.
    pub fn dtype(&self) -> DType {
        self.node.dtype
    }

    /// The same array with a name, which plans show where they start from it. The first name stays.
    ///
    /// ```
    /// # let mut knobs = steersman::Knobs::default();
    /// # knobs.set("wisdom.enabled", "false")?;
    /// # knobs.set("calibrate.background", "false")?;
    /// # let rt = steersman::Runtime::with_knobs(knobs)?;
    /// let weights = rt.from_vec(vec![1.0f32; 6], [2, 3])?.named("weights");
    /// assert!(rt.explain(&weights.exp())?.to_string().contains("of weights"));
    /// # Ok::<(), steersman::Error>(())
    /// ```
    pub fn named(self, name: &str) -> Array {
        let _ = self.node.name.set(name.into());
        self
    }

    /// Its name, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.node.name.get().map(|n| &**n)
    }

    /// The runtime it belongs to.
    pub fn runtime(&self) -> &Runtime {
        &self.node.runtime
    }

    /// The first operation on the way to this array that cannot be, if there is one. Runs nothing.
    pub fn check(&self) -> Result<(), ArrayError> {
        self.bad().map_or(Ok(()), |why| Err((**why).clone()))
    }

    pub(crate) fn bad(&self) -> Option<&Arc<ArrayError>> {
        match &self.node.op {
            NodeOp::Bad(why) => Some(why),
            _ => None,
        }
    }

    /// An array of this runtime that carries the error.
    pub(crate) fn fail(&self, why: impl Into<ArrayError>) -> Array {
        Node::bad(&self.node.runtime, Arc::new(why.into()))
    }

    /// This array if it carries an error, else the error or array `make` comes to.
    pub(crate) fn or_bad(&self, make: impl FnOnce() -> Result<Array, ArrayError>) -> Array {
        if self.bad().is_some() {
            return self.clone();
        }
        make().unwrap_or_else(|why| self.fail(why))
    }
}
