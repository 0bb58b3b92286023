//! The words of an expression.

use crate::dtype::DType;
use crate::op::{Axes, BinaryOp, ReduceOp, TernaryOp, UnaryOp};

/// A value of an expression: the step that computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

impl Value {
    /// Its step's index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an expression is known by: its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprHash(pub u64);

/// How random numbers are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Dist {
    /// Evenly in [0, 1).
    Uniform,
    /// With mean 0 and variance 1.
    Normal,
}

impl Dist {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Dist::Uniform => "uniform",
            Dist::Normal => "normal",
        }
    }

    /// Nominal operations per number: ten rounds of Philox for four words, then the distribution.
    pub const fn flops(self) -> f64 {
        match self {
            Dist::Uniform => 30.0,
            Dist::Normal => 60.0,
        }
    }
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Operand by index, broadcast to the group's shape.
    Input(u16),
    /// The run's scalar of this index and type, the same for every element.
    Scalar(u16, DType),
    /// One value in.
    Unary(UnaryOp, Value),
    /// Two values in.
    Binary(BinaryOp, Value, Value),
    /// Three values in.
    Ternary(TernaryOp, Value, Value, Value),
    /// A value in another type: floats to integers towards zero (what does not fit becomes the nearest, NaN
    /// zero), integers to smaller ones by dropping high bits, anything to bool by being unequal to zero.
    Cast(DType, Value),
    /// The element's flat row-major position in the group's shape.
    Index(DType),
    /// A random number, a pure function of a key (the run's scalar of index `key`, all 64 bits) and the
    /// element's flat row-major position.
    Random {
        /// How numbers are distributed.
        dist: Dist,
        /// `f32` or `f64`.
        dtype: DType,
        /// Which scalar is the key.
        key: u16,
    },
    /// The matrix product of two operands, which has the group's shape. They are used for nothing else, and an
    /// expression has at most one product; its flops are the workload's to know, which has shapes.
    Product(u16, u16),
}

impl Step {
    /// The values it takes, in order.
    pub fn arguments(&self) -> impl Iterator<Item = Value> + use<> {
        let [a, b, c] = match *self {
            Step::Unary(_, a) | Step::Cast(_, a) => [Some(a), None, None],
            Step::Binary(_, a, b) => [Some(a), Some(b), None],
            Step::Ternary(_, a, b, c) => [Some(a), Some(b), Some(c)],
            Step::Input(_) | Step::Scalar(..) | Step::Index(_) | Step::Random { .. } | Step::Product(..) => {
                [None; 3]
            }
        };
        [a, b, c].into_iter().flatten()
    }

    /// Nominal operations per element.
    pub fn flops(&self) -> f64 {
        match *self {
            Step::Input(_) | Step::Scalar(..) | Step::Product(..) => 0.0,
            Step::Unary(u, _) => u.flops(),
            Step::Binary(b, ..) => b.flops(),
            Step::Ternary(t, ..) => t.flops(),
            Step::Cast(..) | Step::Index(_) => 1.0,
            Step::Random { dist, .. } => dist.flops(),
        }
    }

    /// In three words, for the hash.
    pub(super) fn words(&self) -> [u64; 3] {
        let pair = |a: Value, b: Value| u64::from(a.0) << 32 | u64::from(b.0);
        let word = |tag: u64, what: u64, more: u64| tag | what << 8 | more << 16;
        match *self {
            Step::Input(i) => [word(0, 0, i.into()), 0, 0],
            Step::Scalar(i, d) => [word(1, d as u64, i.into()), 0, 0],
            Step::Unary(u, a) => [word(2, u as u64, 0), u64::from(a.0), 0],
            Step::Binary(o, a, b) => [word(3, o as u64, 0), pair(a, b), 0],
            Step::Ternary(t, a, b, c) => [word(4, t as u64, 0), pair(a, b), u64::from(c.0)],
            Step::Cast(d, a) => [word(5, d as u64, 0), u64::from(a.0), 0],
            Step::Index(d) => [word(6, d as u64, 0), 0, 0],
            Step::Random { dist, dtype, key } => {
                [word(7, dist as u64, u64::from(key) << 8 | dtype as u64), 0, 0]
            }
            Step::Product(a, b) => [word(8, 0, u64::from(a) << 16 | u64::from(b)), 0, 0],
        }
    }
}

/// What comes out of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Every element of a value: an array of the group's shape.
    Array(Value),
    /// A value reduced over axes of the group's shape ([`Axes::NONE`]: all of them).
    Reduce {
        /// How elements combine.
        kind: ReduceOp,
        /// Which axes disappear.
        axes: Axes,
        /// What is reduced.
        value: Value,
    },
}

impl Output {
    /// The value it is made of.
    pub fn value(&self) -> Value {
        match *self {
            Output::Array(value) | Output::Reduce { value, .. } => value,
        }
    }

    pub(super) fn word(&self) -> u64 {
        match *self {
            Output::Array(v) => 1 << 63 | u64::from(v.0),
            Output::Reduce { kind, axes, value } => {
                u64::from(value.0) | (kind as u64) << 32 | u64::from(axes.bits()) << 40
            }
        }
    }
}
