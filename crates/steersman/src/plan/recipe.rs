//! How to compute again what only a lost device held, or what a device should have written and did not.
//!
//! A value that was made on a device and stays there has a recipe: the steps of the graph that made it, and which arrays
//! they started from. It holds those arrays weakly, so that it keeps no memory from being freed: a loop that evaluates
//! its state on a device holds one state, not all of them. As long as somebody holds the arrays that a value was made
//! from (or the arrays that those were made from), losing the device costs time; after that it is an error that says
//! what is lost.

use super::collect::{ArgRef, Scratch};
use super::run::Slots;
use super::stage::Compiled;
use crate::array::Array;
use crate::array::node::{Arg, Node, NodeOp};
use crate::array::value::Buffer;
use crate::error::Error;
use crate::runtime::Runtime;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};
use steersman_core::{Address, DType, Dims, Place};

/// Nodes of a graph up to which it is remembered: 0.7 MB at most for each plan whose results stay away.
const REMEMBERED: usize = 4096;

/// The graph of one run, without what it computed.
pub(crate) struct Recipe {
    steps: Vec<Step>,
    scalars: Vec<u64>,
}

enum Step {
    Given(Weak<Node>),
    Made { op: NodeOp, dtype: DType, dims: Dims, args: SmallVec<[ArgRef; 2]> },
}

/// Notes on what a plan made away from the host how to make it again.
#[cold]
pub(super) fn note(scratch: &Scratch, plan: &Compiled, slots: &Slots) {
    if plan.placed.makers.is_empty() || scratch.order.len() > REMEMBERED {
        return;
    }
    let recipe = Arc::new(Recipe::of(scratch));
    for &(slot, node) in &plan.placed.makers {
        if let Some(buffer) = &slots[slot as usize] {
            buffer.remember(recipe.clone(), node);
        }
    }
}

impl Recipe {
    fn of(scratch: &Scratch) -> Recipe {
        let mut leaves = scratch.leaves.iter().copied().peekable();
        let step = |(i, array): (usize, &Array)| {
            let node = &array.node;
            if leaves.next_if_eq(&(i as u32)).is_some() {
                return Step::Given(Arc::downgrade(node));
            }
            let args = SmallVec::from_slice(scratch.args_of(i));
            Step::Made { op: node.op.clone(), dtype: node.dtype, dims: Dims::from_slice(&node.dims), args }
        };
        let steps = scratch.order.iter().enumerate().map(step).collect();
        Recipe { steps, scalars: scratch.scalars.clone() }
    }

    /// The array that step `at` made, not computed yet, and the buffers it starts from; none if one of the arrays it
    /// was made from is gone.
    fn follow(&self, rt: &Runtime, at: u32) -> Option<(Array, Vec<Arc<Buffer>>)> {
        let at = at as usize;
        let mut needed = vec![false; at + 1];
        needed[at] = true;
        for i in (0..=at).rev().filter(|&i| matches!(self.steps[i], Step::Made { .. })) {
            if let (true, Step::Made { args, .. }) = (needed[i], &self.steps[i]) {
                args.iter().filter_map(|a| a.node()).for_each(|a| needed[a as usize] = true);
            }
        }
        let mut made: Vec<Option<Array>> = vec![None; at + 1];
        let mut buffers = Vec::new();
        for i in (0..=at).filter(|&i| needed[i]) {
            made[i] = Some(match &self.steps[i] {
                Step::Given(node) => {
                    let node = node.upgrade()?;
                    buffers.extend(node.value.get().map(|v| v.buffer.clone()));
                    Array { node }
                }
                Step::Made { op, dtype, dims, args } => {
                    let arg = |a: &ArgRef| match (a.node(), a.scalar()) {
                        (Some(n), _) => made[n as usize].clone().map(Arg::Node),
                        (None, s) => s.map(|s| Arg::Scalar(self.scalars[s as usize])),
                    };
                    let args = args.iter().map(arg).collect::<Option<_>>()?;
                    Node::make(rt, op.clone(), *dtype, dims.clone(), args)
                }
            });
        }
        Some((made[at].take()?, buffers))
    }
}

/// Why nobody holds these elements, if nobody does: their device was lost, or they were never written.
fn is_lost(rt: &Runtime, buffer: &Buffer) -> Option<String> {
    let gone = |seat: (Place, Address)| match seat.0 {
        Place::Host => None,
        Place::Device(id) => rt.engine().guard().lost(id).or_else(|| rt.inner.carrier.unwritten(seat)),
    };
    buffer.seats().into_iter().map(gone).try_fold(String::new(), |_, why| why)
}

/// Computes again what is lost, and all that this needs which is lost too. Returns whether it could: not
/// if it is not known any more from what it was made.
#[cold]
pub(crate) fn restore(rt: &Runtime, buffer: &Arc<Buffer>) -> Result<bool, Error> {
    // One after another, not one inside the other: each may have been made from the one before.
    let mut due = vec![buffer.clone()];
    while let Some(buffer) = due.last().cloned() {
        let Some(why) = is_lost(rt, &buffer) else {
            due.pop();
            continue;
        };
        let followed = buffer.recipe().and_then(|(recipe, at)| recipe.follow(rt, *at));
        let Some((array, sources)) = followed else { return Ok(false) };
        let before = due.len();
        due.extend(sources.into_iter().filter(|source| is_lost(rt, source).is_some()));
        if due.len() > before {
            continue;
        }
        let place = rt.engine().places().name(buffer.place());
        super::away::say(rt, &place, format!("{array:?} was lost with {place} and is computed again: {why}"));
        buffer.restore(&rt.inner.carrier, &array)?;
        due.pop();
    }
    Ok(true)
}

/// The same for everything that a walk starts from.
#[cold]
pub(super) fn restore_leaves(rt: &Runtime, scratch: &Scratch) -> Result<bool, Error> {
    for &leaf in &scratch.leaves {
        if let Some(value) = scratch.order[leaf as usize].node.value.get()
            && !restore(rt, &value.buffer)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}
