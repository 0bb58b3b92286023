//! What to compute, with its attributes, apart from any shape.
//!
//! ```
//! use steersman_core::{BinaryOp, Op};
//! assert_eq!(Op::Binary(BinaryOp::Add).name(), "add");
//! assert_eq!(Op::Binary(BinaryOp::Add).arity(), 2);
//! ```

mod elementwise;
mod reduce;

pub use elementwise::{BinaryOp, TernaryOp, UnaryOp};
pub use reduce::{Axes, Perm, ReduceOp};

use crate::dtype::DType;
use crate::expr::ExprHash;

/// The name of every fused group, which has no text form of its own.
pub const FUSED: &str = "fused";

/// The most dimensions an operand may have.
pub const MAX_RANK: usize = 8;

/// What to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// One element in, one out.
    Unary(UnaryOp),
    /// Two elements in, one out; operands broadcast.
    Binary(BinaryOp),
    /// Three elements in, one out; operands broadcast.
    Ternary(TernaryOp),
    /// Many elements in, one out, over the given axes.
    Reduce {
        /// How elements combine.
        kind: ReduceOp,
        /// Which axes disappear.
        axes: Axes,
    },
    /// Matrix product; leading dimensions are batches and broadcast.
    MatMul,
    /// Axes reordered into fresh memory.
    Transpose {
        /// Output axis `i` is input axis `perm[i]`.
        perm: Perm,
    },
    /// Elements copied into contiguous memory.
    Copy,
    /// 2-D convolution, NCHW by OIHW.
    Conv2d {
        /// Step in both directions.
        stride: u16,
        /// Zeros around the image.
        pad: u16,
    },
    /// A user's own function, by its registered name; operand shapes are its size features.
    Custom(&'static str),
    /// A fused group, by the hash of its [`Expr`](crate::expr::Expr), which the workload carries.
    Fused(ExprHash),
}

/// Operations that share a cost structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum OpClass {
    /// Unary element-wise.
    Unary,
    /// Binary element-wise.
    Binary,
    /// Ternary element-wise.
    Ternary,
    /// Reductions.
    Reduce,
    /// Matrix products.
    MatMul,
    /// Data movement: transpose and copy.
    Move,
    /// Convolution.
    Conv,
    /// User code.
    Custom,
    /// Fused groups.
    Fused,
}

impl Op {
    /// The name used in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Op::Unary(u) => u.name(),
            Op::Binary(b) => b.name(),
            Op::Ternary(t) => t.name(),
            Op::Reduce { kind, .. } => kind.name(),
            Op::MatMul => "matmul",
            Op::Transpose { .. } => "transpose",
            Op::Copy => "copy",
            Op::Conv2d { .. } => "conv2d",
            Op::Custom(name) => name,
            Op::Fused(_) => FUSED,
        }
    }

    /// How many operands it takes by itself; how many a fused group takes, only its expression knows.
    pub fn arity(self) -> usize {
        match self {
            Op::Unary(_) | Op::Reduce { .. } | Op::Transpose { .. } | Op::Copy | Op::Custom(_) => 1,
            Op::Binary(_) | Op::MatMul | Op::Conv2d { .. } => 2,
            Op::Ternary(_) => 3,
            Op::Fused(_) => 0,
        }
    }

    /// The class whose cost structure it shares.
    pub fn class(self) -> OpClass {
        match self {
            Op::Unary(_) => OpClass::Unary,
            Op::Binary(_) => OpClass::Binary,
            Op::Ternary(_) => OpClass::Ternary,
            Op::Reduce { .. } => OpClass::Reduce,
            Op::MatMul => OpClass::MatMul,
            Op::Transpose { .. } | Op::Copy => OpClass::Move,
            Op::Conv2d { .. } => OpClass::Conv,
            Op::Custom(_) => OpClass::Custom,
            Op::Fused(_) => OpClass::Fused,
        }
    }

    /// Whether it is defined for elements of this type; for `where` those it chooses from.
    pub fn takes(self, dtype: DType) -> bool {
        match self {
            Op::Unary(u) => u.takes(dtype),
            Op::Binary(b) => b.takes(dtype),
            Op::Ternary(t) => t.takes(dtype),
            Op::Reduce { kind, .. } => kind.takes(dtype),
            Op::MatMul => !matches!(dtype, DType::Bool | DType::U8),
            Op::Conv2d { .. } => dtype.is_float(),
            Op::Transpose { .. } | Op::Copy | Op::Custom(_) | Op::Fused(_) => true,
        }
    }

    /// Whether each output element depends on one element of each input.
    pub fn is_elementwise(self) -> bool {
        matches!(self, Op::Unary(_) | Op::Binary(_) | Op::Ternary(_))
    }

    /// The op of this name with default attributes, if there is one. Custom ops and fused
    /// groups have no text form.
    pub fn from_name(name: &str) -> Option<Op> {
        if let Some(u) = UnaryOp::ALL.iter().find(|u| u.name() == name) {
            return Some(Op::Unary(*u));
        }
        if let Some(b) = BinaryOp::ALL.iter().find(|b| b.name() == name) {
            return Some(Op::Binary(*b));
        }
        if let Some(t) = TernaryOp::ALL.iter().find(|t| t.name() == name) {
            return Some(Op::Ternary(*t));
        }
        if let Some(r) = ReduceOp::ALL.iter().find(|r| r.name() == name) {
            return Some(Op::Reduce { kind: *r, axes: Axes::NONE });
        }
        match name {
            "matmul" => Some(Op::MatMul),
            "transpose" => Some(Op::Transpose { perm: Perm::default() }),
            "copy" => Some(Op::Copy),
            "conv2d" => Some(Op::Conv2d { stride: 1, pad: 0 }),
            _ => None,
        }
    }

    /// Whether it may read no more than the first elements: how long it takes then depends on what they are.
    pub fn stops_early(self) -> bool {
        matches!(self, Op::Reduce { kind: ReduceOp::Any | ReduceOp::All, .. })
    }

    /// Every name of the text form, for error messages and completion.
    pub fn names() -> Vec<&'static str> {
        UnaryOp::ALL
            .iter()
            .map(|o| o.name())
            .chain(BinaryOp::ALL.iter().map(|o| o.name()))
            .chain(TernaryOp::ALL.iter().map(|o| o.name()))
            .chain(ReduceOp::ALL.iter().map(|o| o.name()))
            .chain(["matmul", "transpose", "copy", "conv2d"])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_op() {
        for name in Op::names() {
            assert_eq!(Op::from_name(name).map(|o| o.name()), Some(name));
        }
    }

    #[test]
    fn names_are_unique_but_for_max_and_min() {
        // `max`/`min` are binary with two operands and reductions with one: the text form tells by operand count.
        let mut names = Op::names();
        names.sort_unstable();
        let repeated: Vec<_> = names.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect();
        assert_eq!(repeated, ["max", "min"]);
    }
}
