//! From a lazy graph to work: collect, share, fuse, place, order, give memory, run. Planned once per structure.
//!
//! | step | room |
//! |---|---|
//! | walk the graph from what is read, without recursion, into a key | `collect` |
//! | look the key up: same structure, shapes, types and layout have the same plan | `cache` |
//! | equal subexpressions once | `graph` |
//! | views become strides; element-wise chains and the reductions behind them become groups | `layout`, `group`, `time`, `join`, `keep` |
//! | groups become one fused workload (`express`) or one workload per op, as the engine's estimates say (`guess`); matrix products with what follows them likewise (`epilogue`) | `lower`, `operand`, `fuse` |
//! | where each stage runs, and what is carried for it; what of that goes on beside other stages | `place`, `given`, `overlap` |
//! | memory by last use, in place where nobody else looks, the peak known before anything runs | `memory` |
//! | run, measure, hand values to nodes | `run`, `away`, `mover` |
//! | compute again what was lost with a device | `recipe` |
//! | show | `show`, `text`, `picture` |
//!
//! Numbers (scalars, random keys) are parameters of a plan, not part of its structure.

mod away;
mod cache;
mod collect;
mod epilogue;
mod express;
mod fuse;
mod given;
mod graph;
mod group;
mod guess;
mod join;
mod keep;
mod layout;
mod lower;
mod memory;
mod mover;
mod operand;
mod overlap;
mod picture;
mod place;
mod recipe;
mod run;
mod show;
mod stage;
mod text;
mod time;

pub(crate) use recipe::{Recipe, restore};
pub use show::{Plan, PlanInput, PlanStage, PlanTransfer};
pub(crate) use stage::Compiled;

use crate::array::{Array, ArrayError};
use crate::error::Error;
use crate::runtime::Runtime;
use cache::Cache;
use collect::Scratch;
use std::cell::Cell;
use std::sync::{Arc, Mutex};
use steersman_core::Place;

/// What a runtime keeps for planning.
#[derive(Default)]
pub(crate) struct Planner {
    state: Mutex<State>,
    movers: mover::Movers,
}

/// Held while a graph is walked: marks on nodes are only valid for one walk.
#[derive(Default)]
struct State {
    walks: u64,
    cache: Cache,
}

impl State {
    /// The number of a new walk.
    fn next(&mut self) -> u64 {
        self.walks += 1;
        self.walks
    }
}

thread_local! {
    /// Vectors of the last walk on this thread, kept for the next.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Computes these arrays; each has its value afterwards. `read` says that the host is about to look at them.
pub(crate) fn compute(rt: &Runtime, roots: &[&Array], read: bool) -> Result<(), Error> {
    check(rt, roots)?;
    let mut scratch = SCRATCH.take().unwrap_or_default();
    let result = attempt(rt, roots, &mut scratch, read);
    let result = result.or_else(|why| again(rt, roots, &mut scratch, read, why));
    scratch.clear();
    scratch.avoided.clear();
    SCRATCH.set(Some(scratch));
    result
}

fn attempt(rt: &Runtime, roots: &[&Array], scratch: &mut Scratch, read: bool) -> Result<(), Error> {
    let plan = plan_of(rt, roots, scratch, read)?;
    run::run(rt, &plan, scratch)
}

/// Another plan, where one failed that another may do without. Every kernel that it relied on may have failed: op by
/// op what ran fused. A device was lost, or has no room, or did not write what it should. Whoever failed is put away, so
/// the new plan is another one or there is none; the last one is the host's alone.
#[cold]
fn again(
    rt: &Runtime,
    roots: &[&Array],
    scratch: &mut Scratch,
    read: bool,
    mut why: Error,
) -> Result<(), Error> {
    let carrier = &rt.inner.carrier;
    let last = 1 + 2 * carrier.accelerators.count();
    for round in 0..=last {
        let may_go = matches!(
            why,
            Error::AllFailed { .. } | Error::Engine(_) | Error::Lost { .. } | Error::NoRoom { .. }
        );
        if !may_go {
            break;
        }
        if round == last {
            scratch.avoided = carrier.accelerators.iter().map(|(id, _)| Place::Device(id)).collect();
        }
        // What was made from arrays that are still there is made again.
        if matches!(why, Error::Lost { .. }) && !recipe::restore_leaves(rt, scratch)? {
            break;
        }
        lock(rt).cache.remove(scratch.hash());
        // Copies of what is elsewhere too are the first to go.
        if let Some(place) = scratch.short.take()
            && carrier.drop_copies(place) == 0
        {
            scratch.avoided.push(place);
        }
        match attempt(rt, roots, scratch, read) {
            Ok(()) => return Ok(()),
            Err(other) => why = other,
        }
    }
    Err(why)
}

fn lock(rt: &Runtime) -> std::sync::MutexGuard<'_, State> {
    rt.inner.planner.state.lock().unwrap_or_else(|e| e.into_inner())
}

/// The plan for these arrays, without running it, and the names of the arrays it starts from.
pub(crate) fn planned(rt: &Runtime, roots: &[&Array], read: bool) -> Result<Named, Error> {
    check(rt, roots)?;
    let mut scratch = Box::<Scratch>::default();
    let homeward = read && rt.inner.carrier.accelerators.count() > 0;
    let known = {
        let mut state = lock(rt);
        let walk = state.next();
        scratch.walk(roots, walk, homeward);
        state.cache.peek(scratch.hash(), &scratch.words)
    };
    let plan = known.map_or_else(|| plan_of(rt, roots, &mut scratch, read), Ok)?;
    let name = |&leaf: &u32| scratch.order[leaf as usize].name().map(String::from);
    Ok((plan, scratch.leaves.iter().map(name).collect()))
}

/// A plan and what its inputs are called.
type Named = (Arc<Compiled>, Vec<Option<String>>);

fn check(rt: &Runtime, roots: &[&Array]) -> Result<(), ArrayError> {
    for a in roots {
        a.check()?;
        if !rt.is(a.runtime()) {
            return Err(ArrayError::MixedRuntimes { op: "eval" });
        }
    }
    Ok(())
}

fn plan_of(
    rt: &Runtime,
    roots: &[&Array],
    scratch: &mut Scratch,
    read: bool,
) -> Result<Arc<Compiled>, Error> {
    // Where there is only the host, who reads makes no difference.
    let homeward = read && rt.inner.carrier.accelerators.count() > 0;
    let hash = {
        let mut state = lock(rt);
        let walk = state.next();
        scratch.walk(roots, walk, homeward);
        let hash = scratch.hash();
        if scratch.avoided.is_empty()
            && let Some(plan) = state.cache.get(hash, &scratch.words)
        {
            return Ok(plan);
        }
        hash
    };
    // Planning asks the engine for estimates, which takes longer than a walk: other threads go on meanwhile.
    let plan = Arc::new(lower::compile(rt, scratch)?);
    // What is done without a place for want of room may be done there next time.
    if scratch.avoided.is_empty() {
        lock(rt).cache.put(hash, plan.clone());
    }
    Ok(plan)
}

impl Planner {
    /// Forgets every plan: the devices have changed.
    pub(crate) fn forget(&self) {
        self.state.lock().unwrap_or_else(|e| e.into_inner()).cache.clear();
    }
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

    /// The same for several arrays that [`Runtime::eval_all`] computes in one plan, those that are in memory left out.
    pub fn explain_all(&self, arrays: &[&Array]) -> Result<Plan, Error> {
        Plan::of_all(self, arrays)
    }
}

impl Array {
    /// How this array is or would be computed; see [`Runtime::explain`].
    pub fn plan(&self) -> Result<Plan, Error> {
        Plan::of(self.runtime(), self)
    }
}
