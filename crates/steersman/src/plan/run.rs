//! Runs a plan for one graph of its structure.

use super::collect::Scratch;
use super::stage::{Base, Compiled, Keep, Source, Stage};
use crate::array::value::{Buffer, Value};
use crate::error::Error;
use crate::runtime::Runtime;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use steersman_core::{Address, Io, Strides};

/// A stage expected to take this long is timed every time: two looks at the clock are 1% of it.
const TIMED: f64 = 5e-6;
/// Quicker ones are timed once in this many runs.
const TIMED_EVERY: u64 = 64;
/// From this peak on a plan is checked against the memory there is before it runs; the question takes 2 µs.
const CHECKED: usize = 16 << 20;

type Slots = SmallVec<[Option<Arc<Buffer>>; 8]>;

pub(super) fn run(rt: &Runtime, plan: &Arc<Compiled>, scratch: &Scratch) -> Result<(), Error> {
    fits(rt, plan)?;
    let mut result = attempt(rt, plan, scratch);
    // What was overwritten in place is gone, but it can be computed again, by other kernels: whoever failed is in
    // quarantine. Each round puts one away, so this ends.
    while let Err(Error::HalfDone { .. }) = result {
        result = attempt(rt, plan, scratch);
    }
    if result.is_ok() {
        scratch.note_passed();
    }
    result
}

/// Whether there is memory for the plan, asked before anything runs.
fn fits(rt: &Runtime, plan: &Compiled) -> Result<(), Error> {
    let knob = rt.knobs().memory_limit.map(|b| b.0);
    if knob.is_none() && plan.peak < CHECKED {
        return Ok(());
    }
    let Some(limit) = knob.or(rt.cpu().host.memory) else { return Ok(()) };
    let in_use = rt.cpu().memory.stats().in_use as u64;
    if in_use + plan.peak as u64 > limit {
        return Err(Error::PlanTooLarge { need: plan.peak as u64, in_use, limit });
    }
    Ok(())
}

fn attempt(rt: &Runtime, plan: &Arc<Compiled>, scratch: &Scratch) -> Result<(), Error> {
    let time_all = plan.runs.fetch_add(1, Relaxed).is_multiple_of(TIMED_EVERY);
    let mut slots: Slots = smallvec::smallvec![None; plan.slots.len()];
    for stage in &plan.stages {
        for &slot in &stage.take {
            slots[slot as usize] = Some(memory(rt, stage, plan.slots[slot as usize])?);
        }
        let timed = time_all || stage.predicted >= TIMED || stage.measured().is_none();
        let started = timed.then(Instant::now);
        execute(rt, plan, stage, scratch, &mut slots)?;
        if let Some(started) = started {
            stage.measured.store(started.elapsed().as_secs_f64().to_bits(), Relaxed);
        }
        for keep in &stage.keeps {
            give(plan, keep, scratch, &slots);
        }
        for &slot in &stage.free {
            slots[slot as usize] = None;
        }
    }
    for keep in &plan.finals {
        give(plan, keep, scratch, &slots);
    }
    Ok(())
}

fn memory(rt: &Runtime, stage: &Stage, bytes: usize) -> Result<Arc<Buffer>, Error> {
    let block = rt.inner.cpu.memory.take(bytes);
    let block =
        block.map_err(|e| Error::Memory { workload: stage.workload.to_string(), why: e.to_string() })?;
    Ok(Arc::new(Buffer::Pool(block)))
}

/// Where a source's first element is.
fn address(plan: &Compiled, source: &Source, scratch: &Scratch, slots: &Slots, scalars: &[u64]) -> Address {
    let base = match source.base {
        Base::Leaf(n) => {
            let node = &scratch.order[scratch.leaves[n as usize] as usize].node;
            node.value.get().map_or(0, |v| v.address())
        }
        Base::Slot(s) => slots[s as usize].as_ref().map_or(0, |b| b.start()),
        Base::Scalar(s) => scalars[s as usize..].as_ptr() as usize,
        Base::Empty => Buffer::Empty.start(),
    };
    debug_assert!(base != 0, "a plan of {} stages reads what is not there", plan.stages.len());
    Address(base.wrapping_add_signed(source.offset) as u64)
}

fn execute(
    rt: &Runtime,
    plan: &Compiled,
    stage: &Stage,
    scratch: &Scratch,
    slots: &mut Slots,
) -> Result<(), Error> {
    let at = |source: &Source, slots: &Slots| address(plan, source, scratch, slots, &scratch.scalars);
    let inputs: SmallVec<[Address; 8]> = stage.inputs.iter().map(|source| at(source, slots)).collect();
    for &(to, from) in &stage.reuse {
        slots[to as usize] = slots[from as usize].take();
    }
    let target = |&(slot, offset): &(u32, usize)| Source { base: Base::Slot(slot), offset: offset as isize };
    let outputs: SmallVec<[Address; 4]> = stage.outputs.iter().map(|o| at(&target(o), slots)).collect();
    let scalars: SmallVec<[u64; 8]> = stage.scalars.iter().map(|&s| scratch.scalars[s as usize]).collect();
    let io = Io { inputs: &inputs, output: outputs[0], more: &outputs[1..], scalars: &scalars };
    // SAFETY: leaves are held by the walk's nodes and slots by `slots`, each as large as the plan found its operand
    // to be; a slot written is nobody's input but where the plan found it legal in place; scalars lie in the walk's
    // list, eight bytes each.
    unsafe { rt.inner.run_io(&stage.workload, io) }?;
    Ok(())
}

/// Hands a value to its node, which then lets go of what it was computed from.
fn give(plan: &Arc<Compiled>, keep: &Keep, scratch: &Scratch, slots: &Slots) {
    let node = &scratch.order[keep.node as usize].node;
    let (buffer, start) = match keep.from.base {
        Base::Slot(s) => match &slots[s as usize] {
            Some(buffer) => (buffer.clone(), 0),
            None => return,
        },
        Base::Leaf(n) => match scratch.order[scratch.leaves[n as usize] as usize].node.value.get() {
            Some(value) => (value.buffer.clone(), value.offset),
            None => return,
        },
        Base::Empty | Base::Scalar(_) => (Arc::new(Buffer::Empty), 0),
    };
    let offset = start.wrapping_add_signed(keep.from.offset);
    let strides = Strides::from_slice(&keep.strides);
    // Another thread may have been quicker; its value is as good.
    let _ = node.value.set(Value { buffer, offset, strides, plan: Some(plan.clone()) });
    drop(node.take_args());
}
