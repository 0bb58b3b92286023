//! What can be wrong with an array operation, said with the op, the shapes and the types.

use super::Array;
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
    #[error("{op}: axis {axis} is out of range for {of} ({})", range(*.rank))]
    Axis {
        /// The op's name.
        op: &'static str,
        /// The axis given.
        axis: isize,
        /// The array.
        of: Spec,
        /// How many axes can be named here.
        rank: usize,
    },
    /// Axes that are not those of the array in another order.
    #[error("permute: axes {axes} do not name each axis of {of} once")]
    Permute {
        /// The axes given.
        axes: String,
        /// The array.
        of: Spec,
    },
    /// An element type that the op does not take.
    #[error("{op} is not defined for {of}; cast to {} first", takes(.op, .of.dtype))]
    DType {
        /// The op's name.
        op: &'static str,
        /// The array, or what several are computed in.
        of: Spec,
    },
    /// Shapes that do not stretch to one.
    #[error("{op}: {a} and {b} do not broadcast: dimensions must be equal or 1, counted from the right")]
    Broadcast {
        /// The op's name.
        op: &'static str,
        /// The first array.
        a: Spec,
        /// The one that does not fit.
        b: Spec,
    },
    /// Matrices that cannot be multiplied.
    #[error(
        "matmul: {a} times {b} does not fit: the first's columns ({columns}) must equal the second's rows ({rows})"
    )]
    Inner {
        /// The first array.
        a: Spec,
        /// The second.
        b: Spec,
        /// The first's columns.
        columns: usize,
        /// The second's rows.
        rows: usize,
    },
    /// Fewer axes than the op needs.
    #[error("{op}: {of} has {} axes, and it takes at least {need}", .of.dims.len())]
    FewAxes {
        /// The op's name.
        op: &'static str,
        /// The array.
        of: Spec,
        /// How many it takes.
        need: usize,
    },
    /// A reduction of nothing that has no value for it.
    #[error("{op}: {of} has no elements to take it of; reduce over an axis that is not empty")]
    Empty {
        /// The op's name.
        op: &'static str,
        /// The array.
        of: Spec,
    },
    /// A condition that is not one.
    #[error("where: the condition is {of}, not bool; compare first, as in x.ne(0)")]
    Condition {
        /// The condition.
        of: Spec,
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
    #[error("{op}: {of} is too large; an array has at most 64 TiB")]
    TooLarge {
        /// The op's name.
        op: &'static str,
        /// The array asked for.
        of: Spec,
    },
    /// An axis named twice.
    #[error("{op}: axis {axis} is named twice for {of}")]
    AxisTwice {
        /// The op's name.
        op: &'static str,
        /// The axis.
        axis: isize,
        /// The array.
        of: Spec,
    },
    /// A shape that does not hold the elements.
    #[error("{op}: the {} elements of {of} do not make shape {to}", .of.elements())]
    Reshape {
        /// The op's name.
        op: &'static str,
        /// The array, or a vector's elements along one axis.
        of: Spec,
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
    #[error("broadcast_to: {of} does not stretch to shape {}: dimensions must be equal or 1, counted from the right", Shape(.to))]
    Stretch {
        /// The array.
        of: Spec,
        /// The shape asked for.
        to: Dims,
    },
    /// An axis to squeeze that has more than one element.
    #[error("squeeze: axis {axis} of {of} has {} elements, not 1", .of.dims[*.axis])]
    Squeeze {
        /// The axis.
        axis: usize,
        /// The array.
        of: Spec,
    },
    /// A slice that cannot be.
    #[error("slice {text} of {of}: {why}")]
    Slice {
        /// The slice.
        text: String,
        /// The array.
        of: Spec,
        /// What is wrong.
        why: &'static str,
    },
    /// An index beyond its axis.
    #[error("index {index} is out of range for axis {axis} of {of}")]
    Index {
        /// The index.
        index: isize,
        /// The axis.
        axis: usize,
        /// The array.
        of: Spec,
    },
    /// Arrays that do not join.
    #[error("{op}: {b} does not join {a} along axis {axis}: {}", joins(.op))]
    Join {
        /// The op's name.
        op: &'static str,
        /// The axis.
        axis: usize,
        /// The first array.
        a: Spec,
        /// The one that does not fit.
        b: Spec,
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
    #[error("item: {of} has {} elements, not one; read them with to_vec", .of.elements())]
    Item {
        /// The array.
        of: Spec,
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

/// Element type and shape of an array: `f32 (2, 3)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The element type.
    pub dtype: DType,
    /// The shape.
    pub dims: Dims,
}

impl Spec {
    pub(crate) fn new(dtype: DType, dims: &[usize]) -> Spec {
        Spec { dtype, dims: Dims::from_slice(dims) }
    }

    fn elements(&self) -> usize {
        self.dims.iter().product()
    }
}

impl From<&Array> for Spec {
    fn from(a: &Array) -> Spec {
        Spec::new(a.dtype(), a.shape())
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dtype, Shape(&self.dims))
    }
}

impl ArrayError {
    /// What the engine says of two operands, in the words of arrays.
    pub(crate) fn of_two(why: WorkloadError, a: &Array, b: &Array) -> ArrayError {
        match why {
            WorkloadError::Broadcast { op, .. } => ArrayError::Broadcast { op, a: a.into(), b: b.into() },
            WorkloadError::Inner { k_a, k_b, .. } => {
                ArrayError::Inner { a: a.into(), b: b.into(), columns: k_a, rows: k_b }
            }
            WorkloadError::NotMatrix { op, need, .. } => {
                let of = if a.rank() < need { a } else { b };
                ArrayError::FewAxes { op, of: of.into(), need }
            }
            WorkloadError::DType { op, dtype } => {
                let of = if a.dtype() == dtype { a } else { b };
                ArrayError::DType { op, of: of.into() }
            }
            other => other.into(),
        }
    }
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
fn takes(op: &str, dtype: DType) -> &'static str {
    match op {
        "and" | "or" | "xor" | "not" => "bool",
        _ if UnaryOp::ALL.iter().any(|u| u.name() == op && u.takes(DType::I32)) => "a number",
        _ if dtype == DType::Bool => "a number",
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
        0 => "a scalar has none".into(),
        n => format!("axes are -{n} to {}", n - 1),
    }
}
