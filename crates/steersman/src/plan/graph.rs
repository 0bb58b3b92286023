//! The graph of one walk with equal subexpressions made one.

use super::collect::{ArgRef, Scratch};
use crate::array::node::NodeOp;
use crate::array::value::alignment;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use steersman_core::{DType, Dims, Strides};

/// One expression of the graph.
pub(super) struct Item {
    /// The first node of the walk that is it.
    pub node: u32,
    pub op: NodeOp,
    pub dtype: DType,
    pub dims: Dims,
    /// Nodes by item, not by place in the walk.
    pub args: SmallVec<[ArgRef; 2]>,
    pub leaf: Option<Leaf>,
    /// Whether an earlier read went through it without keeping it.
    pub passed: bool,
    /// Nodes of the walk that get its value if it has memory of its own: roots, held ones, and
    /// those that were computed before and are needed again.
    pub keepers: SmallVec<[u32; 1]>,
    /// Whether one of them is a root, so that it must have memory.
    pub root: bool,
}

/// What is known of a value that is there already.
pub(super) struct Leaf {
    /// Its place among the leaves of the walk.
    pub number: u32,
    pub strides: Strides,
    pub align_log2: u8,
}

impl Item {
    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.size()
    }
}

/// Element type and shape, as workloads have them.
impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.dims.iter().map(usize::to_string).collect();
        write!(f, "{} {}", self.dtype, if dims.is_empty() { "1".into() } else { dims.join("x") })
    }
}

/// Items, children first.
pub(super) fn items(scratch: &Scratch) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::with_capacity(scratch.order.len());
    let mut item_of: Vec<u32> = Vec::with_capacity(scratch.order.len());
    let mut known: HashMap<u64, SmallVec<[u32; 1]>> = HashMap::with_capacity(scratch.order.len());
    let mut leaves = 0;
    for (i, array) in scratch.order.iter().enumerate() {
        let node = &*array.node;
        let is_leaf = scratch.leaves.get(leaves) == Some(&(i as u32));
        if is_leaf {
            leaves += 1;
        }
        let to_item = |a: &ArgRef| a.node().map_or(*a, |n| ArgRef(item_of[n as usize]));
        let args: SmallVec<[ArgRef; 2]> = scratch.args_of(i).iter().map(to_item).collect();
        let leaf = node.value.get().filter(|_| is_leaf).map(|v| Leaf {
            number: leaves as u32 - 1,
            strides: Strides::from_slice(&v.strides),
            align_log2: alignment(v.address()),
        });
        let op = if is_leaf { NodeOp::Data } else { node.op.clone() };
        let item = Item {
            node: i as u32,
            op,
            dtype: node.dtype,
            dims: Dims::from_slice(&node.dims),
            args,
            leaf,
            passed: false,
            keepers: SmallVec::new(),
            root: false,
        };
        let same = |o: &Item| {
            o.leaf.is_none()
                && o.op == item.op
                && o.dtype == item.dtype
                && o.dims == item.dims
                && o.args == item.args
        };
        let hash = hash(&item);
        let equals = known.entry(hash).or_default();
        let found = if is_leaf { None } else { equals.iter().copied().find(|&j| same(&items[j as usize])) };
        let index = found.unwrap_or_else(|| {
            equals.push(items.len() as u32);
            items.push(item);
            items.len() as u32 - 1
        });
        item_of.push(index);
        let merged = &mut items[index as usize];
        merged.passed |= scratch.passed[i];
        let looks = matches!(
            node.op,
            NodeOp::Reshape | NodeOp::Permute(_) | NodeOp::Slice(_) | NodeOp::Broadcast | NodeOp::Contiguous
        );
        if scratch.held[i] || (scratch.passed[i] && !looks) {
            merged.keepers.push(i as u32);
        }
    }
    for &root in &scratch.roots {
        let item = &mut items[item_of[root as usize] as usize];
        item.root = true;
        if !item.keepers.contains(&root) {
            item.keepers.push(root);
        }
    }
    items
}

fn hash(item: &Item) -> u64 {
    let mut h = DefaultHasher::new();
    std::mem::discriminant(&item.op).hash(&mut h);
    (item.dtype, &item.dims[..], &item.args[..]).hash(&mut h);
    match &item.op {
        NodeOp::Unary(u) => u.hash(&mut h),
        NodeOp::Binary(b) => b.hash(&mut h),
        NodeOp::Ternary(t) => t.hash(&mut h),
        _ => {}
    }
    h.finish()
}
