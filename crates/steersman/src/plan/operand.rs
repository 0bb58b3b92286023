//! Operands of stages: where an item's elements come from and how they lie.

use super::group::Role;
use super::lower::{Fed, Lower, NO_SLOT};
use super::stage::{Base, Source};
use crate::array::node::NodeOp;
use steersman_core::{DType, Op, Operand, Place, Workload, WorkloadError};

impl Lower<'_> {
    /// An item's elements in memory.
    pub fn fed(&self, i: u32) -> Fed {
        let (base, look) = self.groups.look(i);
        let (item, owner) = (&self.items[i as usize], &self.items[base as usize]);
        let offset = look.offset * item.dtype.size() as isize;
        let (from, align) = match (&self.groups.roles[base as usize], &owner.leaf) {
            (Role::Empty, _) => (Base::Empty, 6),
            (_, Some(leaf)) => (Base::Leaf(leaf.number), leaf.align_log2),
            _ => (Base::Slot(self.slot_of[base as usize]), 6),
        };
        let align_log2 = if offset == 0 { align } else { align.min(offset.trailing_zeros().min(6) as u8) };
        let operand = Operand {
            dtype: item.dtype,
            place: Place::Host,
            align_log2,
            dims: item.dims.clone(),
            strides: look.strides,
        };
        (Source { base: from, offset }, operand)
    }

    /// Argument `k` of an element-wise item as an operand of an op of its own.
    pub fn operand(&self, i: u32, k: usize) -> Result<Fed, WorkloadError> {
        let item = &self.items[i as usize];
        let constant = |s: u32, dtype| {
            Ok((
                Source { base: Base::Scalar(s), offset: 0 },
                Operand { align_log2: 3, ..Operand::new(dtype, &[])? },
            ))
        };
        if let Some(s) = item.args[k].scalar() {
            return constant(s, self.argument_type(i, k));
        }
        let a = item.args[k].node().unwrap_or(0);
        match (&self.groups.roles[a as usize], self.items[a as usize].args.first().and_then(|a| a.scalar())) {
            (Role::Constant(_), Some(s)) => constant(s, self.items[a as usize].dtype),
            (Role::Step(_), _) if self.slot_of[a as usize] == NO_SLOT => {
                // Only asked for to be estimated.
                let item = &self.items[a as usize];
                Ok((Source { base: Base::Empty, offset: 0 }, Operand::new(item.dtype, &item.dims)?))
            }
            _ => Ok(self.fed(a)),
        }
    }

    /// The element type of argument `k`, which may be a bare number.
    pub fn argument_type(&self, i: u32, k: usize) -> DType {
        let item = &self.items[i as usize];
        let of = |k: usize| item.args[k].node().map(|a| self.items[a as usize].dtype);
        match item.op {
            NodeOp::Binary(_) => of(k).or_else(|| of(1 - k)).unwrap_or(item.dtype),
            _ => of(k).unwrap_or(item.dtype),
        }
    }

    /// An element-wise item as the engine's own op, if it has one.
    pub fn plain(&self, i: u32) -> Result<Option<(Workload, Vec<Fed>)>, WorkloadError> {
        let item = &self.items[i as usize];
        let op = match item.op {
            NodeOp::Unary(u) => Op::Unary(u),
            NodeOp::Binary(b) => Op::Binary(b),
            NodeOp::Ternary(t) => Op::Ternary(t),
            _ => return Ok(None),
        };
        let inputs = (0..item.args.len()).map(|k| self.operand(i, k)).collect::<Result<Vec<_>, _>>()?;
        let w = Workload::new(op, inputs.iter().map(|(_, o)| o.clone()))?;
        // Two numbers and a scalar condition broadcast to less than the item's shape.
        Ok((w.output().dims == item.dims).then_some((w, inputs)))
    }
}
