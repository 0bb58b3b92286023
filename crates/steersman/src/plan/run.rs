//! Runs a plan for one graph of its structure.

use super::away;
use super::collect::Scratch;
use super::mover::Underway;
use super::recipe;
use super::stage::{Base, Compiled, Keep, Source, Stage};
use crate::array::value::{Buffer, Value};
use crate::error::Error;
use crate::runtime::{Piece, Runtime};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use steersman_core::{Address, Io, Place, Strides};

/// A stage expected to take this long is timed every time: two looks at the clock are 1% of it.
const TIMED: f64 = 5e-6;
/// Quicker ones are timed once in this many runs.
const TIMED_EVERY: u64 = 64;
/// From this peak on a plan is checked against the memory there is before it runs; the question takes 2 µs.
const CHECKED: usize = 16 << 20;

pub(super) type Slots = SmallVec<[Option<Arc<Buffer>>; 8]>;

pub(super) fn run(rt: &Runtime, plan: &Arc<Compiled>, scratch: &Scratch) -> Result<(), Error> {
    fits(rt, plan)?;
    for &(place, peak) in &plan.placed.peaks {
        away::fits(rt, scratch, place, peak)?;
    }
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
    // If a device is lost half-way, what it made is gone with it: nodes get their values when all went well.
    let at_home = plan.placed.slots.is_empty();
    let beside = !plan.placed.early.is_empty();
    let began = beside.then(Instant::now);
    let mut underway = Underway::default();
    for (s, stage) in plan.stages.iter().enumerate() {
        if beside {
            underway.start(rt, plan, s, scratch, &slots);
        }
        for &slot in &stage.take {
            let (bytes, place) = (plan.slots[slot as usize], plan.placed.slot(slot));
            slots[slot as usize] = Some(match place {
                Place::Host => memory(rt, stage, bytes)?,
                place => away::memory(rt, scratch, stage, bytes, place)?,
            });
        }
        let timed = time_all || stage.measured().is_none();
        for (i, carry) in stage.carries.iter().enumerate() {
            match plan.placed.starts(s, i) {
                Some(_) => underway.finish(rt, carry, (s, i), scratch)?,
                None => away::carry(rt, carry, scratch, &slots, timed)?,
            }
        }
        // Waiting for a device so as to time it holds up what could go on: seldom.
        let timed = timed || stage.place == Place::Host && stage.predicted >= TIMED;
        if timed {
            away::clear(rt, stage)?;
        }
        let started = timed.then(Instant::now);
        execute(rt, plan, stage, scratch, &mut slots)?;
        if let Some(started) = started {
            away::wait(rt, stage)?;
            stage.measured.store(started.elapsed().as_secs_f64().to_bits(), Relaxed);
        }
        if at_home {
            stage.keeps.iter().for_each(|keep| give(plan, keep, scratch, &slots));
        }
        for &slot in &stage.free {
            slots[slot as usize] = None;
        }
    }
    let last = plan.stages.len();
    for (i, carry) in plan.placed.homeward.iter().enumerate() {
        match plan.placed.starts(last, i) {
            Some(_) => underway.finish(rt, carry, (last, i), scratch)?,
            None => away::carry(rt, carry, scratch, &slots, time_all || carry.measured().is_none())?,
        }
    }
    if let Some(began) = began {
        plan.lasted.store(began.elapsed().as_secs_f64().to_bits(), Relaxed);
    }
    if !at_home {
        recipe::note(scratch, plan, &slots);
        let keeps = plan.stages.iter().flat_map(|s| &s.keeps);
        keeps.for_each(|keep| give(plan, keep, scratch, &slots));
    }
    plan.finals.iter().for_each(|keep| give(plan, keep, scratch, &slots));
    Ok(())
}

fn memory(rt: &Runtime, stage: &Stage, bytes: usize) -> Result<Arc<Buffer>, Error> {
    let block = rt.inner.cpu.memory.take(bytes);
    let block =
        block.map_err(|e| Error::Memory { workload: stage.workload.to_string(), why: e.to_string() })?;
    Ok(Arc::new(Buffer::pool(block)))
}

/// The buffer behind a base, and how far in its first element lies.
pub(super) fn buffer<'a>(
    base: Base,
    scratch: &'a Scratch,
    slots: &'a Slots,
) -> Option<(&'a Arc<Buffer>, usize)> {
    match base {
        Base::Leaf(n) => {
            let node = &scratch.order[scratch.leaves[n as usize] as usize].node;
            node.value.get().map(|v| (&v.buffer, v.offset))
        }
        Base::Slot(s) => slots[s as usize].as_ref().map(|b| (b, 0)),
        Base::Scalar(_) | Base::Empty => None,
    }
}

/// Copies that a stage reads, held while it does.
pub(super) type Held = SmallVec<[Arc<Piece>; 2]>;

/// Where a source's first element is at the place where its stage has it.
fn address(
    rt: &Runtime,
    source: &Source,
    (stage, place): (&Stage, Place),
    (scratch, slots): (&Scratch, &Slots),
    held: &mut Held,
) -> Result<Address, Error> {
    let base = match source.base {
        Base::Scalar(s) => scratch.scalars[s as usize..].as_ptr() as usize,
        Base::Empty => Buffer::empty().start(),
        base => match buffer(base, scratch, slots) {
            Some((buffer, offset)) if buffer.place() == place => buffer.start() + offset,
            Some((buffer, offset)) => away::start(rt, buffer, (stage, place), scratch, held)? + offset,
            None => unreachable!("a plan reads only what is there"),
        },
    };
    Ok(Address(base.wrapping_add_signed(source.offset) as u64))
}

fn execute(
    rt: &Runtime,
    plan: &Compiled,
    stage: &Stage,
    scratch: &Scratch,
    slots: &mut Slots,
) -> Result<(), Error> {
    let mut held = Held::new();
    let mut inputs: SmallVec<[Address; 8]> = SmallVec::new();
    for (source, operand) in stage.inputs.iter().zip(stage.workload.inputs()) {
        inputs.push(address(rt, source, (stage, operand.place), (scratch, slots), &mut held)?);
    }
    for &(to, from) in &stage.reuse {
        slots[to as usize] = slots[from as usize].take();
    }
    let mut outputs: SmallVec<[Address; 4]> = SmallVec::new();
    for (&(slot, offset), operand) in stage.outputs.iter().zip(stage.workload.outputs()) {
        let target = Source { base: Base::Slot(slot), offset: offset as isize };
        outputs.push(address(rt, &target, (stage, operand.place), (scratch, slots), &mut held)?);
    }
    debug_assert!(!outputs.is_empty(), "a stage of {} writes nothing", plan.stages.len());
    let scalars: SmallVec<[u64; 8]> = stage.scalars.iter().map(|&s| scratch.scalars[s as usize]).collect();
    let io = Io { inputs: &inputs, output: outputs[0], more: &outputs[1..], scalars: &scalars };
    // SAFETY: leaves are held by the walk's nodes and slots by `slots`, their copies by `held`, each as large as the
    // plan found its operand to be; a slot written is nobody's input but where the plan found it legal in place;
    // scalars lie in the walk's list, eight bytes each.
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
        Base::Empty | Base::Scalar(_) => (Arc::new(Buffer::empty()), 0),
    };
    let offset = start.wrapping_add_signed(keep.from.offset);
    let strides = Strides::from_slice(&keep.strides);
    // Another thread may have been quicker; its value is as good.
    let _ = node.value.set(Value { buffer, offset, strides, plan: Some(plan.clone()) });
    drop(node.take_args());
}
