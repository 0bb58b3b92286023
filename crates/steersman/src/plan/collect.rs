//! Walks a graph from its roots into flat lists and a key, children before parents, without recursion.

use crate::array::Array;
use crate::array::node::{Arg, Args, NodeOp, Spread};
use crate::array::value::{alignment, is_contiguous};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use steersman_core::Place;

/// An argument in the flat lists: a node's place in the order, or one of the run's scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ArgRef(pub u32);

const SCALAR: u32 = 1 << 31;

impl ArgRef {
    pub fn node(self) -> Option<u32> {
        (self.0 & SCALAR == 0).then_some(self.0)
    }

    pub fn scalar(self) -> Option<u32> {
        (self.0 & SCALAR != 0).then_some(self.0 & !SCALAR)
    }
}

/// The flat lists of one walk.
#[derive(Default)]
pub(super) struct Scratch {
    /// Every node once, children first.
    pub order: Vec<Array>,
    /// Arguments of all nodes, one after another; those of node `i` end at `ends[i]`.
    pub args: Vec<ArgRef>,
    pub ends: Vec<u32>,
    /// Nodes that have values already, in order.
    pub leaves: Vec<u32>,
    /// Values of scalars and keys. Equal ones near each other are one: `x * 2.0` twice is one expression.
    pub scalars: Vec<u64>,
    /// Nodes whose handles others hold and which are worth keeping if they get memory anyway.
    pub held: Vec<bool>,
    /// Nodes that an earlier run went through without keeping them.
    pub passed: Vec<bool>,
    pub roots: Vec<u32>,
    /// Whether the host is about to read the roots, where that makes a difference.
    pub homeward: bool,
    /// Places that have no room for this graph, found by trying.
    pub avoided: Vec<Place>,
    /// The place that had none just now.
    pub short: Cell<Option<Place>>,
    /// The key.
    pub words: Vec<u64>,
    uses: Vec<u32>,
    stack: Vec<(Array, bool)>,
}

/// How far back a scalar looks for its equal: far enough for expressions as people write them, and a walk
/// over a thousand different ones stays linear.
const SCALARS_BACK: usize = 8;

const WORK: u64 = 1;

/// Marks a key whose roots the host reads; no root has this number.
const HOMEWARD: u64 = u64::MAX;

/// A place as one bit. More than 62 devices share bits, and then plans.
fn bit(place: Place) -> u64 {
    match place {
        Place::Host => 1,
        Place::Device(id) => 2 << (id.0 % 63),
    }
}

impl Scratch {
    pub fn clear(&mut self) {
        self.order.clear();
        self.args.clear();
        self.ends.clear();
        self.leaves.clear();
        self.scalars.clear();
        self.held.clear();
        self.passed.clear();
        self.roots.clear();
        self.words.clear();
        self.uses.clear();
        self.stack.clear();
    }

    /// The arguments of node `i`.
    pub fn args_of(&self, i: usize) -> &[ArgRef] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.args[start..self.ends[i] as usize]
    }

    /// Fills the lists. `walk` is this walk's number, which no other walk of this runtime has.
    pub fn walk(&mut self, roots: &[&Array], walk: u64, homeward: bool) {
        self.clear();
        self.homeward = homeward;
        self.stack.extend(roots.iter().rev().map(|a| ((*a).clone(), false)));
        while let Some((array, entered)) = self.stack.pop() {
            if !entered && array.node.mark.swap(walk, Relaxed) == walk {
                continue;
            }
            if array.node.value.get().is_some() {
                self.leaf(array);
                continue;
            }
            let args = array.node.args.lock().unwrap_or_else(|e| e.into_inner());
            if entered {
                // Between the visits another thread may have computed it.
                if array.node.value.get().is_some() {
                    drop(args);
                    self.leaf(array);
                    continue;
                }
                self.write(&array, &args);
                drop(args);
                self.order.push(array);
                continue;
            }
            let at = self.stack.len();
            for arg in args.iter().rev() {
                if let Arg::Node(a) = arg
                    && a.node.mark.load(Relaxed) != walk
                {
                    self.stack.push((a.clone(), false));
                }
            }
            if self.stack.len() == at {
                self.write(&array, &args);
                drop(args);
                self.order.push(array);
            } else {
                drop(args);
                self.stack.insert(at, (array, true));
            }
        }
        self.finish(roots);
    }

    fn leaf(&mut self, array: Array) {
        let node = &array.node;
        let index = self.order.len() as u32;
        node.index.store(index, Relaxed);
        if let Some(value) = node.value.get() {
            let plain = is_contiguous(&node.dims, &value.strides);
            let align = u64::from(alignment(value.address()));
            let home = value.buffer.is_at_home();
            let word =
                align << 8 | u64::from(plain) << 16 | u64::from(!home) << 17 | (node.dtype as u64) << 40;
            self.words.push(word | (node.dims.len() as u64) << 48);
            if !home {
                self.words.push(value.buffer.places().iter().fold(0, |mask, &p| mask | bit(p)));
            }
            self.words.extend(node.dims.iter().map(|&d| d as u64));
            if !plain {
                self.words.extend(value.strides.iter().map(|&s| s as u64));
            }
        }
        self.leaves.push(index);
        self.passed.push(false);
        self.ends.push(self.args.len() as u32);
        self.uses.push(0);
        self.order.push(array);
    }

    /// Everything about a node that a plan depends on.
    fn write(&mut self, array: &Array, args: &Args) {
        let node = &*array.node;
        node.index.store(self.order.len() as u32, Relaxed);
        let first = self.args.len();
        let mut same = false;
        for arg in args {
            let code = match arg {
                Arg::Node(a) => {
                    let index = a.node.index.load(Relaxed);
                    self.uses[index as usize] += 1;
                    same |= a.node.dims[..] == node.dims[..];
                    index
                }
                Arg::Scalar(bits) => SCALAR | self.scalar(*bits),
            };
            self.args.push(ArgRef(code));
        }
        self.ends.push(self.args.len() as u32);
        self.uses.push(0);
        let passed = node.passed.load(Relaxed);
        self.passed.push(passed);
        let facts = (node.dtype as u64) << 40
            | (node.dims.len() as u64) << 48
            | u64::from(passed) << 56
            | u64::from(same) << 57;
        self.words.push(op_word(&node.op) | facts);
        match &node.op {
            NodeOp::Permute(perm) => self.words.push(perm.bits()),
            NodeOp::Slice(steps) => {
                self.words.extend(steps.iter().flat_map(|&(start, step)| [start as u64, step as u64]));
            }
            NodeOp::Concat(_) => self.words.push(args.len() as u64),
            _ => {}
        }
        if !same {
            self.words.extend(node.dims.iter().map(|&d| d as u64));
        }
        for pair in self.args[first..].chunks(2) {
            self.words.push(u64::from(pair[0].0) | u64::from(pair.get(1).map_or(0, |a| a.0)) << 32);
        }
    }

    fn scalar(&mut self, bits: u64) -> u32 {
        let from = self.scalars.len().saturating_sub(SCALARS_BACK);
        let equal = self.scalars[from..].iter().position(|&s| s == bits);
        equal.map_or_else(
            || {
                self.scalars.push(bits);
                self.scalars.len() as u32 - 1
            },
            |i| (from + i) as u32,
        )
    }

    /// Roots, and who is held from outside: more handles than this walk and the graph account for.
    fn finish(&mut self, roots: &[&Array]) {
        let mut bits = WORK;
        for (i, array) in self.order.iter().enumerate() {
            let worth = matches!(
                array.node.op,
                NodeOp::Reduce { .. }
                    | NodeOp::MatMul
                    | NodeOp::Conv2d { .. }
                    | NodeOp::Concat(_)
                    | NodeOp::Contiguous
            );
            let held = worth && Arc::strong_count(&array.node) > self.uses[i] as usize + 1;
            self.held.push(held);
            bits = bits << 1 | u64::from(held);
            if i % 32 == 31 {
                self.words.push(bits);
                bits = WORK;
            }
        }
        self.words.push(bits);
        if self.homeward {
            self.words.push(HOMEWARD);
        }
        for root in roots {
            let index = root.node.index.load(Relaxed);
            self.roots.push(index);
            self.words.push(u64::from(index));
        }
    }

    /// Notes on every node that it was computed through.
    pub fn note_passed(&self) {
        for array in &self.order {
            array.node.passed.store(true, Relaxed);
        }
    }

    pub fn hash(&self) -> u64 {
        let mix = |h: u64, word: &u64| (h.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let h = self.words.iter().fold(0x243F_6A88_85A3_08D3, mix);
        h ^ (h >> 32)
    }
}

/// The op and its attributes but for those that take words of their own.
pub(super) fn op_word(op: &NodeOp) -> u64 {
    let (tag, rest) = match op {
        NodeOp::Data | NodeOp::Bad(_) => (0, 0),
        NodeOp::Unary(u) => (1, *u as u64),
        NodeOp::Binary(b) => (2, *b as u64),
        NodeOp::Ternary(t) => (3, *t as u64),
        NodeOp::Cast => (4, 0),
        NodeOp::Full => (5, 0),
        NodeOp::Position => (6, 0),
        NodeOp::Random(Spread::Uniform) => (7, 0),
        NodeOp::Random(Spread::Normal) => (7, 1),
        NodeOp::Reduce { kind, axes } => (8, *kind as u64 | u64::from(axes.bits()) << 8),
        NodeOp::MatMul => (9, 0),
        NodeOp::Reshape => (10, 0),
        NodeOp::Permute(_) => (11, 0),
        NodeOp::Slice(_) => (12, 0),
        NodeOp::Broadcast => (13, 0),
        NodeOp::Contiguous => (14, 0),
        NodeOp::Concat(axis) => (15, *axis as u64),
        NodeOp::Conv2d { stride, pad } => (16, u64::from(*stride) | u64::from(*pad) << 16),
    };
    // Leaves have tag 0 here and a set bit nowhere else in the low byte.
    tag | rest << 8
}
