//! What can be wrong with a workload, said so that a person can mend it.

use super::Dims;
use crate::dtype::DType;
use crate::op::{MAX_RANK, Op};

/// A workload that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// An op got the wrong number of operands.
    #[error("{op} takes {expected} operand(s), got {got}")]
    Arity {
        /// The op's name.
        op: &'static str,
        /// Operands it takes.
        expected: usize,
        /// Operands it got.
        got: usize,
    },
    /// Shapes that do not broadcast.
    #[error("{op}: shapes {} and {} do not broadcast: dimensions must be equal or 1, counted from the right", show(.a), show(.b))]
    Broadcast {
        /// The op's name.
        op: &'static str,
        /// One shape.
        a: Dims,
        /// The other.
        b: Dims,
    },
    /// Matrix product of shapes that do not fit.
    #[error("matmul: {} times {} does not fit: the first's columns ({k_a}) must equal the second's rows ({k_b})", show(.a), show(.b))]
    Inner {
        /// The first shape.
        a: Dims,
        /// The second shape.
        b: Dims,
        /// Columns of the first.
        k_a: usize,
        /// Rows of the second.
        k_b: usize,
    },
    /// A matrix op on something that is not a matrix.
    #[error("{op} needs at least {need} dimensions, got shape {}", show(.dims))]
    NotMatrix {
        /// The op's name.
        op: &'static str,
        /// Dimensions needed.
        need: usize,
        /// The shape given.
        dims: Dims,
    },
    /// The op has no meaning for this element type.
    #[error("{op} is not defined for {dtype}{}", taken(op))]
    DType {
        /// The op's name.
        op: &'static str,
        /// The element type given.
        dtype: DType,
    },
    /// Operands of different element types.
    #[error("{op}: operands are {a} and {b}; convert one first (nothing is cast silently)")]
    MixedDTypes {
        /// The op's name.
        op: &'static str,
        /// One type.
        a: DType,
        /// The other.
        b: DType,
    },
    /// An axis beyond the rank.
    #[error("{op}: axis {axis} is out of range for shape {} (axes are 0 to {})", show(.dims), .dims.len().saturating_sub(1))]
    Axis {
        /// The op's name.
        op: &'static str,
        /// The axis given.
        axis: usize,
        /// The shape.
        dims: Dims,
    },
    /// A permutation that does not fit the shape.
    #[error("transpose: perm={perm} does not name each axis of shape {} once", show(.dims))]
    Perm {
        /// The permutation given.
        perm: String,
        /// The shape.
        dims: Dims,
    },
    /// `min` of nothing.
    #[error("{op} of zero elements has no value (shape {}): reduce over an axis that is not empty", show(.dims))]
    EmptyReduce {
        /// The op's name.
        op: &'static str,
        /// The shape.
        dims: Dims,
    },
    /// A convolution that does not fit.
    #[error("conv2d: image {} and filter {} do not fit with stride={stride} pad={pad}: {why}", show(.image), show(.filter))]
    Conv {
        /// The image's shape.
        image: Dims,
        /// The filter's shape.
        filter: Dims,
        /// Step.
        stride: u16,
        /// Padding.
        pad: u16,
        /// What does not fit.
        why: &'static str,
    },
    /// Too many dimensions.
    #[error("{rank} dimensions: at most {MAX_RANK} are supported")]
    Rank {
        /// Dimensions given.
        rank: usize,
    },
    /// Too large to address.
    #[error("{dtype} array of shape {} is too large: at most 64 TiB can be addressed", show(.dims))]
    TooLarge {
        /// The shape.
        dims: Dims,
        /// The element type.
        dtype: DType,
    },
    /// As many strides as dimensions are needed.
    #[error("{strides} strides for {dims} dimensions: give one stride per dimension")]
    StrideCount {
        /// Dimensions.
        dims: usize,
        /// Strides.
        strides: usize,
    },
    /// The output memory does not fit the result.
    #[error("{op}: the result is {expected_dtype} {} but the output given is {got_dtype} {}", show(.expected), show(.got))]
    Output {
        /// The op's name.
        op: &'static str,
        /// The result's shape.
        expected: Dims,
        /// The result's type.
        expected_dtype: DType,
        /// The output's shape.
        got: Dims,
        /// The output's type.
        got_dtype: DType,
    },
    /// There is no such output.
    #[error("{op} has {has} result(s): there is no result {named}")]
    OutputCount {
        /// The op's name.
        op: &'static str,
        /// Results it has.
        has: usize,
        /// The result named, from 0.
        named: usize,
    },
    /// A fused op without its expression.
    #[error("a fused workload needs its expression: make it with Workload::fused")]
    NoExpr,
    /// The text form was malformed.
    #[error("cannot read workload '{text}': {problem}; expected {expected}")]
    Text {
        /// The text given.
        text: String,
        /// What is wrong.
        problem: String,
        /// What would be right.
        expected: String,
    },
    /// A line of a workload file was malformed.
    #[error("line {line}: {source}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// What was wrong with it.
        source: Box<WorkloadError>,
    },
}

/// What an op takes instead.
fn taken(op: &str) -> String {
    let Some(op) = Op::from_name(op) else { return String::new() };
    let types: Vec<&str> = DType::ALL.iter().filter(|d| op.takes(**d)).map(|d| d.name()).collect();
    format!("; it takes {}", types.join(" "))
}

/// A shape in the text form; a scalar is `1`.
pub(crate) fn show(dims: &[usize]) -> String {
    if dims.is_empty() {
        return "1".into();
    }
    dims.iter().map(|d| d.to_string()).collect::<Vec<_>>().join("x")
}
