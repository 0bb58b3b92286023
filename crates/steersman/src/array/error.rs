//! What can be wrong with an array operation, said with the op, the shapes and the types.

use std::fmt;
use steersman_core::{DType, Dims, MAX_RANK, UnaryOp, WorkloadError};

/// An array operation that cannot be.
///
/// An array made by such an operation carries this error, and so does everything computed from it; reading any
/// of them returns it. It therefore names the first operation that was wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// Shapes or element types that the op does not take.
    #[error(transparent)]
    Op(#[from] WorkloadError),
    /// Arrays of different runtimes.
    #[error("{op}: the arrays belong to different runtimes; make both with the same Runtime")]
    MixedRuntimes {
        /// The op's name.
        op: &'static str,
    },
    /// A Rust number that the array's element type cannot hold.
    #[error("{op}: the number {number} does not fit an array of {dtype}; cast the array first")]
    Number {
        /// The op's name.
        op: &'static str,
        /// The number.
        number: String,
        /// The array's element type.
        dtype: DType,
    },
    /// Only numbers, so that no runtime and no element type is known.
    #[error("{op}: at least one operand must be an array")]
    NoArray {
        /// The op's name.
        op: &'static str,
    },
    /// A number where only an array will do.
    #[error("{op} takes arrays, and {number} is a number; Runtime::scalar makes an array of it")]
    NotArray {
        /// The op's name.
        op: &'static str,
        /// The number.
        number: String,
    },
    /// An op of the engine that arrays do not have.
    #[error("{op} is no operation of arrays; run it as a workload, by Runtime::eval")]
    NotForArrays {
        /// The op's name.
        op: &'static str,
    },
    /// An axis that is not there.
    #[error("{op}: axis {axis} is out of range for shape {} (axes are {})", Shape(.dims), range(*.rank))]
    Axis {
        /// The op's name.
        op: &'static str,
        /// The axis given.
        axis: isize,
        /// The shape.
        dims: Dims,
        /// How many axes can be named here.
        rank: usize,
    },
    /// Axes that are not those of the array in another order.
    #[error("permute: axes {axes} do not name each axis of shape {} once", Shape(.dims))]
    Permute {
        /// The axes given.
        axes: String,
        /// The shape.
        dims: Dims,
    },
    /// An element type that the op does not take.
    #[error("{op} is not defined for {dtype}; cast to {} first", takes(.op, .dtype))]
    DType {
        /// The op's name.
        op: &'static str,
        /// The array's element type.
        dtype: DType,
    },
    /// A condition that is not one.
    #[error("where: the condition is {dtype}, not bool; compare first, as in x.ne(0)")]
    Condition {
        /// The condition's element type.
        dtype: DType,
    },
    /// More axes than an array can have.
    #[error("{op}: shape {} has {} axes; an array has at most {MAX_RANK}", Shape(.dims), .dims.len())]
    Rank {
        /// The op's name.
        op: &'static str,
        /// The shape.
        dims: Dims,
    },
    /// More bytes than can be addressed.
    #[error("{op}: {dtype} of shape {} is too large; an array has at most 64 TiB", Shape(.dims))]
    TooLarge {
        /// The op's name.
        op: &'static str,
        /// The element type.
        dtype: DType,
        /// The shape.
        dims: Dims,
    },
    /// An axis named twice.
    #[error("{op}: axis {axis} is named twice for shape {}", Shape(.dims))]
    AxisTwice {
        /// The op's name.
        op: &'static str,
        /// The axis.
        axis: isize,
        /// The shape.
        dims: Dims,
    },
    /// A shape that does not hold the elements.
    #[error("{op}: {elements} elements of shape {} do not make shape {to}", Shape(.from))]
    Reshape {
        /// The op's name.
        op: &'static str,
        /// The elements there are.
        elements: usize,
        /// The shape they have.
        from: Dims,
        /// The shape asked for.
        to: String,
    },
    /// A shape with a negative dimension.
    #[error("{op}: {to} is not a shape; dimensions are 0 or more")]
    NotShape {
        /// The op's name.
        op: &'static str,
        /// What was given.
        to: String,
    },
    /// A shape that does not stretch to another.
    #[error("broadcast: shape {} does not stretch to {}: dimensions must be equal or 1, counted from the right", Shape(.from), Shape(.to))]
    Stretch {
        /// The shape there is.
        from: Dims,
        /// The shape asked for.
        to: Dims,
    },
    /// An axis to squeeze that has more than one element.
    #[error("squeeze: axis {axis} of shape {} has {} elements, not 1", Shape(.dims), .dims[*.axis])]
    Squeeze {
        /// The axis.
        axis: usize,
        /// The shape.
        dims: Dims,
    },
    /// A slice that cannot be.
    #[error("slice {text} of shape {}: {why}", Shape(.dims))]
    Slice {
        /// The slice.
        text: String,
        /// The shape.
        dims: Dims,
        /// What is wrong.
        why: &'static str,
    },
    /// An index beyond its axis.
    #[error("index {index} is out of range for axis {axis} of shape {}", Shape(.dims))]
    Index {
        /// The index.
        index: isize,
        /// The axis.
        axis: usize,
        /// The shape.
        dims: Dims,
    },
    /// Arrays that do not join.
    #[error("{op}: shape {} does not join shape {} along axis {axis}: {}", Shape(.b), Shape(.a), joins(.op))]
    Join {
        /// The op's name.
        op: &'static str,
        /// The axis.
        axis: usize,
        /// The first shape.
        a: Dims,
        /// The one that does not fit.
        b: Dims,
    },
    /// Nothing to join.
    #[error("{op} needs at least one array")]
    NothingToJoin {
        /// The op's name.
        op: &'static str,
    },
    /// The elements are of another type than asked for.
    #[error("the array's elements are {have}, not {asked}; read them as {have} or cast the array")]
    Read {
        /// The array's element type.
        have: DType,
        /// The type asked for.
        asked: DType,
    },
    /// More or less than one element where one was asked for.
    #[error("item: an array of shape {} has {} elements, not one; read them with to_vec", Shape(.dims), .dims.iter().product::<usize>())]
    Item {
        /// The shape.
        dims: Dims,
    },
    /// Steps that lead nowhere.
    #[error("{op}: from {start} to {stop} in steps of {step} is not a finite number of elements")]
    Range {
        /// The op's name.
        op: &'static str,
        /// First.
        start: String,
        /// End.
        stop: String,
        /// Step.
        step: String,
    },
}

/// A shape as people write it: `(2, 3)`.
pub(crate) struct Shape<'a>(pub &'a [usize]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, d) in self.0.iter().enumerate() {
            write!(f, "{}{d}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str(if self.0.len() == 1 { ",)" } else { ")" })
    }
}

/// What an op that did not take this type would have taken.
fn takes(op: &str, dtype: &DType) -> &'static str {
    match op {
        "and" | "or" | "xor" | "not" => "bool",
        _ if UnaryOp::ALL.iter().any(|u| u.name() == op && u.takes(DType::I32)) => "a number",
        _ if *dtype == DType::Bool => "a number",
        _ => "a float",
    }
}

fn joins(op: &str) -> &'static str {
    match op {
        "stack" => "all shapes must be equal",
        _ => "all other dimensions must be equal",
    }
}

fn range(rank: usize) -> String {
    match rank {
        0 => "none: it is a scalar".into(),
        n => format!("-{n} to {}", n - 1),
    }
}
