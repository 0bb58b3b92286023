//! A node of the lazy graph: what to compute from which other nodes, and the value once it is there.

use super::Array;
use super::error::ArrayError;
use super::value::Value;
use crate::runtime::Runtime;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use steersman_core::{Axes, BinaryOp, DType, Dims, Perm, ReduceOp, TernaryOp, UnaryOp};

/// How random numbers are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Spread {
    /// Evenly in [0, 1).
    Uniform,
    /// Normally, mean 0, deviation 1.
    Normal,
}

/// What a node computes. Shape and element type are the node's own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeOp {
    /// Nothing: its value was given.
    Data,
    /// Nothing: it cannot be.
    Bad(Arc<ArrayError>),
    Unary(UnaryOp),
    Binary(BinaryOp),
    Ternary(TernaryOp),
    /// To the node's element type.
    Cast,
    /// One number everywhere.
    Full,
    /// Each element's row-major position.
    Position,
    /// Random numbers, by the key that is its only argument.
    Random(Spread),
    Reduce {
        kind: ReduceOp,
        axes: Axes,
    },
    MatMul,
    Conv2d {
        stride: u16,
        pad: u16,
    },
    /// The same elements in row-major order, in the node's shape.
    Reshape,
    /// Output axis `i` is input axis `perm[i]`.
    Permute(Perm),
    /// First element and step along each axis.
    Slice(Box<[(usize, isize)]>),
    /// Stretched to the node's shape.
    Broadcast,
    /// The same elements one after another in memory.
    Contiguous,
    /// All arguments along this axis.
    Concat(usize),
}

/// What a node is computed from.
#[derive(Clone)]
pub(crate) enum Arg {
    Node(Array),
    /// Bits of one element, or a random key.
    Scalar(u64),
}

pub(crate) type Args = SmallVec<[Arg; 2]>;

pub(crate) struct Node {
    pub runtime: Runtime,
    pub op: NodeOp,
    pub dtype: DType,
    pub dims: Dims,
    /// Emptied once the value is there, so that what it was computed from can go.
    pub args: Mutex<Args>,
    pub value: OnceLock<Value>,
    /// The latest walk that met this node, and where that put it; both belong to the runtime's planner.
    pub mark: AtomicU64,
    pub index: AtomicU32,
    /// What its owner calls it.
    pub name: OnceLock<Box<str>>,
    /// Whether an earlier read computed through this node without keeping its value.
    pub passed: AtomicBool,
}

impl Node {
    pub fn make(runtime: &Runtime, op: NodeOp, dtype: DType, dims: Dims, args: Args) -> Array {
        Array {
            node: Arc::new(Node {
                runtime: runtime.clone(),
                op,
                dtype,
                dims,
                args: Mutex::new(args),
                value: OnceLock::new(),
                mark: AtomicU64::new(0),
                index: AtomicU32::new(0),
                name: OnceLock::new(),
                passed: AtomicBool::new(false),
            }),
        }
    }

    pub fn bad(runtime: &Runtime, why: impl Into<Arc<ArrayError>>) -> Array {
        Node::make(runtime, NodeOp::Bad(why.into()), DType::F32, Dims::new(), Args::new())
    }

    /// The arguments, for good.
    pub fn take_args(&self) -> Args {
        std::mem::take(&mut *self.args.lock().unwrap_or_else(|e| e.into_inner()))
    }

    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }
}

/// Nodes go one after another, not one inside the other: a chain of a million would overflow the stack.
impl Drop for Node {
    fn drop(&mut self) {
        let args = self.args.get_mut().unwrap_or_else(|e| e.into_inner());
        if args.is_empty() {
            return;
        }
        let mut left = std::mem::take(args);
        while let Some(arg) = left.pop() {
            // Where two threads let go of the same node at once, neither is alone; then it drops by itself.
            if let Arg::Node(mut array) = arg
                && let Some(node) = Arc::get_mut(&mut array.node)
            {
                let args = node.args.get_mut().unwrap_or_else(|e| e.into_inner());
                left.extend(args.drain(..).filter(|a| matches!(a, Arg::Node(_))));
            }
        }
    }
}
