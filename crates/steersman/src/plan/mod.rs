//! From a lazy graph to work: collect, share, fuse, place, order, give memory, run. Planned once per structure.
//!
//! | step | room |
//! |---|---|
//! | walk the graph from what is read, without recursion, into a key | `collect` |
//! | look the key up: same structure, shapes, types and layout have the same plan | `cache` |
//! | equal subexpressions once | `graph` |
//! | views become strides; element-wise chains and the reductions behind them become groups | `layout`, `group`, `join`, `keep` |
//! | groups become one fused workload (`express`) or one workload per op, as the engine's estimates say (`guess`); matrix products with what follows them likewise (`epilogue`) | `lower`, `operand`, `fuse` |
//! | where each stage runs | `place` |
//! | memory by last use, in place where nobody else looks, the peak known before anything runs | `memory` |
//! | run, measure, hand values to nodes | `run` |
//! | show | `show`, `picture` |
//!
//! Numbers (scalars, random keys) are parameters of a plan, not part of its structure.

mod cache;
mod collect;
mod epilogue;
mod express;
mod fuse;
mod graph;
mod group;
mod guess;
mod join;
mod keep;
mod layout;
mod lower;
mod memory;
mod operand;
mod picture;
mod place;
mod run;
mod show;
mod stage;

pub use show::{Plan, PlanStage};
pub(crate) use stage::Compiled;

use crate::array::{Array, ArrayError};
use crate::error::Error;
use crate::runtime::Runtime;
use cache::Cache;
use collect::Scratch;
use std::cell::Cell;
use std::sync::{Arc, Mutex};

/// What a runtime keeps for planning.
#[derive(Default)]
pub(crate) struct Planner {
    state: Mutex<State>,
}

/// Held while a graph is walked: marks on nodes are only valid for one walk.
#[derive(Default)]
struct State {
    walks: u64,
    cache: Cache,
}

thread_local! {
    /// Vectors of the last walk on this thread, kept for the next.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Computes these arrays; each has its value afterwards.
pub(crate) fn compute(rt: &Runtime, roots: &[&Array]) -> Result<(), Error> {
    check(rt, roots)?;
    let mut scratch = SCRATCH.take().unwrap_or_default();
    let mut result = attempt(rt, roots, &mut scratch);
    // Every kernel that a plan relied on may have failed, and another plan may do without them: op by op what ran
    // fused. Whoever failed is in quarantine, so the new plan is another one or there is none.
    if let Err(Error::AllFailed { .. } | Error::Engine(_)) = result {
        lock(rt).cache.remove(scratch.hash());
        result = attempt(rt, roots, &mut scratch);
    }
    scratch.clear();
    SCRATCH.set(Some(scratch));
    result
}

fn attempt(rt: &Runtime, roots: &[&Array], scratch: &mut Scratch) -> Result<(), Error> {
    let plan = plan_of(rt, roots, scratch)?;
    run::run(rt, &plan, scratch)
}

fn lock(rt: &Runtime) -> std::sync::MutexGuard<'_, State> {
    rt.inner.planner.state.lock().unwrap_or_else(|e| e.into_inner())
}

/// The plan for these arrays, without running it.
pub(crate) fn planned(rt: &Runtime, roots: &[&Array]) -> Result<Arc<Compiled>, Error> {
    check(rt, roots)?;
    let mut scratch = Box::<Scratch>::default();
    plan_of(rt, roots, &mut scratch)
}

fn check(rt: &Runtime, roots: &[&Array]) -> Result<(), ArrayError> {
    for a in roots {
        a.check()?;
        if !rt.is(a.runtime()) {
            return Err(ArrayError::MixedRuntimes { op: "eval" });
        }
    }
    Ok(())
}

fn plan_of(rt: &Runtime, roots: &[&Array], scratch: &mut Scratch) -> Result<Arc<Compiled>, Error> {
    let hash = {
        let mut state = lock(rt);
        state.walks += 1;
        let walk = state.walks;
        scratch.walk(roots, walk);
        let hash = scratch.hash();
        if let Some(plan) = state.cache.get(hash, &scratch.words) {
            return Ok(plan);
        }
        hash
    };
    // Planning asks the engine for estimates, which takes longer than a walk: other threads go on meanwhile.
    let plan = Arc::new(lower::compile(rt, scratch)?);
    lock(rt).cache.put(hash, plan.clone());
    Ok(plan)
}

impl Runtime {
    /// Plans kept for graphs to come: one for each structure, a few hundred at most.
    pub fn plans(&self) -> usize {
        lock(self).cache.len()
    }

    /// How an array is or would be computed: what fuses, what runs where, predicted and measured times.
    pub fn explain(&self, array: &Array) -> Result<Plan, Error> {
        Plan::of(self, array)
    }
}

impl Array {
    /// How this array is or would be computed; see [`Runtime::explain`].
    pub fn plan(&self) -> Result<Plan, Error> {
        Plan::of(self.runtime(), self)
    }
}
