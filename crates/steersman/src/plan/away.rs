//! What a plan does away from the host: memory there, carrying, waiting. Failures say what another plan must avoid.

use super::collect::Scratch;
use super::run::{Held, Slots, buffer};
use super::stage::{Carry, Stage};
use crate::array::value::Buffer;
use crate::error::Error;
use crate::runtime::{Runtime, Trouble, settle};
use std::sync::Arc;
use std::time::Instant;
use steersman_core::log::Entry;
use steersman_core::{KernelError, Place};

/// Memory of a device for a slot.
#[cold]
pub(super) fn memory(
    rt: &Runtime,
    scratch: &Scratch,
    stage: &Stage,
    bytes: usize,
    place: Place,
) -> Result<Arc<Buffer>, Error> {
    let piece = rt.inner.carrier.room(place, bytes);
    let piece = piece.map_err(|trouble| failed(rt, scratch, stage.workload.to_string(), trouble))?;
    Ok(Arc::new(Buffer::piece(piece, bytes)))
}

/// Carries a value; what it took is kept if it is `timed`.
#[cold]
pub(super) fn carry(
    rt: &Runtime,
    carry: &Carry,
    scratch: &Scratch,
    slots: &Slots,
    timed: bool,
) -> Result<(), Error> {
    let Some((buffer, _)) = buffer(carry.base, scratch, slots) else { return Ok(()) };
    let carrier = &rt.inner.carrier;
    let what = || carry.named();
    if timed && let Some(memory) = carrier.accelerators.memory(carry.from) {
        // What is under way is not the transfer's time.
        settle(&**memory).map_err(|why| failed(rt, scratch, what(), trouble(carry.from, why)))?;
    }
    let started = Instant::now();
    let brought = buffer.bring(carrier, carry.to, timed);
    let (_, moved) = brought.map_err(|trouble| failed(rt, scratch, what(), trouble))?;
    if timed && moved {
        carry.measure(started.elapsed());
    }
    Ok(())
}

/// Where a buffer that was made elsewhere starts at the place where its stage has it: what was carried, or is now.
#[cold]
pub(super) fn start(
    rt: &Runtime,
    buffer: &Arc<Buffer>,
    (stage, place): (&Stage, Place),
    scratch: &Scratch,
    held: &mut Held,
) -> Result<usize, Error> {
    let copy = match buffer.copy_at(place) {
        Some(copy) => copy,
        None => {
            let brought = buffer.bring(&rt.inner.carrier, place, false);
            brought.map_err(|trouble| failed(rt, scratch, stage.workload.to_string(), trouble))?.0
        }
    };
    let at = copy.start().0 as usize;
    held.push(copy);
    Ok(at)
}

/// Waits until all is done where a stage is about to run and where its operands are, so that it can be timed.
pub(super) fn clear(rt: &Runtime, stage: &Stage) -> Result<(), Error> {
    let mut done = Place::Host;
    let all = stage.workload.inputs().iter().chain(stage.workload.outputs());
    for place in all.map(|o| o.place).chain([stage.place]) {
        if place != done
            && let Some(memory) = rt.inner.carrier.accelerators.memory(place)
        {
            settle(&**memory).map_err(|why| gone(rt, (stage, place), why))?;
            done = place;
        }
    }
    Ok(())
}

/// Waits until a stage is done, so that it is timed.
pub(super) fn wait(rt: &Runtime, stage: &Stage) -> Result<(), Error> {
    match rt.inner.carrier.accelerators.memory(stage.place) {
        Some(memory) => memory.wait().map_err(|why| gone(rt, (stage, stage.place), why)),
        None => Ok(()),
    }
}

/// The error for a stage one of whose devices says this when it is waited for.
fn gone(rt: &Runtime, (stage, place): (&Stage, Place), why: KernelError) -> Error {
    match trouble(place, why) {
        Trouble::Lost(id, why) => {
            rt.inner.lose(id, &why);
            lost(rt, stage.workload.to_string(), place, why)
        }
        trouble => Error::AllFailed { workload: stage.workload.to_string(), last: trouble.why().into() },
    }
}

/// Whether a device has room for its part, asked before anything runs.
#[cold]
pub(super) fn fits(rt: &Runtime, scratch: &Scratch, place: Place, peak: usize) -> Result<(), Error> {
    let Some(memory) = rt.inner.carrier.accelerators.memory(place) else { return Ok(()) };
    match memory.limit() {
        Some(limit) if memory.in_use() + peak > limit => {
            let why = format!("{peak} bytes at the peak with {} of {limit} in use", memory.in_use());
            Err(failed(rt, scratch, "a plan".into(), Trouble::Away(place, why)))
        }
        _ => Ok(()),
    }
}

fn trouble(place: Place, why: KernelError) -> Trouble {
    match (place, why) {
        (Place::Device(id), KernelError::Lost(why)) => Trouble::Lost(id, why),
        (place, KernelError::Operand(why)) => Trouble::Unwritten(place, why),
        (place, why) => Trouble::Away(place, why.to_string()),
    }
}

fn lost(rt: &Runtime, what: String, place: Place, why: String) -> Error {
    Error::Lost { what, place: rt.engine().places().name(place), why }
}

/// Says something about a place in the log.
pub(super) fn say(rt: &Runtime, place: &str, note: String) {
    rt.log().push(Entry { kernel: place.into(), note: Some(note), ..Entry::default() });
}

/// Says in the log that a plan does without a place.
pub(super) fn note(rt: &Runtime, what: &str, place: &str, why: &str) {
    let note = Some(format!("{place} could not be used for a plan: {why}"));
    rt.log().push(Entry { workload: what.into(), kernel: place.into(), note, ..Entry::default() });
}

/// The error for a plan that could not go on, with what another must do without noted.
pub(super) fn failed(rt: &Runtime, scratch: &Scratch, what: String, trouble: Trouble) -> Error {
    match trouble {
        Trouble::Lost(id, why) => {
            rt.inner.lose(id, &why);
            lost(rt, what, Place::Device(id), why)
        }
        Trouble::Unwritten(place, why) => lost(rt, what, place, why),
        Trouble::Away(Place::Host, why)
        | Trouble::Kernel(_, why)
        | Trouble::Unable(why)
        | Trouble::HalfDone(why) => Error::Memory { workload: what, why },
        Trouble::Away(place, why) => {
            scratch.short.set(Some(place));
            let name = rt.engine().places().name(place);
            note(rt, &what, &name, &why);
            Error::NoRoom { what, place: name, why }
        }
    }
}
