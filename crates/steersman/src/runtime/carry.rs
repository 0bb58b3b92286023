//! Between memories: room at a place, bytes from one place to another, and kernels whose operands live elsewhere.

use super::accelerator::Accelerators;
use super::lend::Lender;
use crate::array::value::Buffer;
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use steersman_core::guard::Offence;
use steersman_core::memory::{Block, MemoryError};
use steersman_core::{
    Address, Bytes, DeviceId, Engine, Io, Kernel, KernelError, Memory, Operand, Params, Place, Ran, Seconds,
    Workload,
};
use steersman_cpu::Cpu;

/// Memory at some place; goes back when dropped.
pub(crate) enum Piece {
    Host(steersman_cpu::memory::Block),
    Device(Block, Place),
}

impl Piece {
    pub fn start(&self) -> Address {
        match self {
            Piece::Host(block) => Address::host(block.as_ptr()),
            Piece::Device(block, _) => block.address(),
        }
    }

    pub fn place(&self) -> Place {
        match self {
            Piece::Host(_) => Place::Host,
            Piece::Device(_, place) => *place,
        }
    }
}

/// Room for an operand with any strides.
pub(crate) struct StandIn {
    piece: Piece,
    lowest: u64,
    first: u64,
}

impl StandIn {
    /// Where its lowest element goes, and with it the first of the bytes it spans.
    pub fn lowest(&self) -> Address {
        Address(self.piece.start().0 + self.lowest)
    }

    /// Where its first element goes.
    pub fn first(&self) -> Address {
        Address(self.piece.start().0 + self.first)
    }
}

/// Why something did not come about.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The kernel's own fault.
    Kernel(Offence, String),
    /// The kernel cannot run it, or not now, which is no fault of it: it has written nothing.
    Unable(String),
    /// There is no room at this place now, or nothing gets there.
    Away(Place, String),
    /// What lies at this place was never written: no kernel of this call is at fault.
    Unwritten(Place, String),
    /// This device is gone.
    Lost(DeviceId, String),
    /// Operands are partly overwritten: nothing can run on them any more.
    HalfDone(String),
}

impl Trouble {
    pub fn why(&self) -> &str {
        match self {
            Trouble::Kernel(_, why)
            | Trouble::Unable(why)
            | Trouble::Away(_, why)
            | Trouble::Unwritten(_, why)
            | Trouble::Lost(_, why)
            | Trouble::HalfDone(why) => why,
        }
    }

    /// What a kernel said that was to run at this place.
    pub fn running(place: Place, why: KernelError) -> Trouble {
        match (place, why) {
            (Place::Device(id), KernelError::Lost(why)) => Trouble::Lost(id, why),
            (place, KernelError::Operand(why)) => Trouble::Unwritten(place, why),
            (_, why) if why.is_offence() => Trouble::Kernel(Offence::Failed, why.to_string()),
            (_, why) => Trouble::Unable(why.to_string()),
        }
    }

    /// The same for who knows no places.
    pub fn into_error(self) -> KernelError {
        match self {
            Trouble::Kernel(_, why) | Trouble::HalfDone(why) => KernelError::Failed(why),
            Trouble::Unable(why) | Trouble::Away(_, why) => KernelError::NoRoom(why),
            Trouble::Unwritten(_, why) => KernelError::Operand(why),
            Trouble::Lost(_, why) => KernelError::Lost(why),
        }
    }

    /// What a device said when bytes were to be moved.
    pub fn moving(place: Place, why: KernelError) -> Trouble {
        match (place, why) {
            (Place::Device(id), KernelError::Lost(why)) => Trouble::Lost(id, why),
            (place, KernelError::Operand(why)) => Trouble::Unwritten(place, why),
            (place, why) => Trouble::Away(place, why.to_string()),
        }
    }
}

/// How a kernel's run ended, and how long it took if that was asked for.
pub(crate) type Done = (Ran, Option<Seconds>);
/// Runs a kernel on operands that are where it finds them.
pub(super) type Perform<'a> = dyn Fn(Io<'_>) -> Result<Done, Trouble> + 'a;

/// Knows every memory there is.
#[derive(Clone)]
pub(crate) struct Carrier {
    pub engine: Arc<Engine>,
    pub cpu: Cpu,
    pub accelerators: Arc<Accelerators>,
    /// Buffers that were copied to devices, to be let go when room is short there.
    copies: Arc<Mutex<Vec<Weak<Buffer>>>>,
}

/// Bytes that a link is probed with, and how often each.
const PROBED: [usize; 5] = [4 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20];
const PROBES: usize = 4;
/// After a size that took so long all in all larger ones are left out.
const LONG_PROBES: Duration = Duration::from_millis(30);

/// Operands that were carried start at a multiple of this, as fresh memory does.
const ALIGNED: usize = 64;

/// Waits until a device is done, so that what comes next can be timed. What failed before is told to who reads it.
pub(crate) fn settle(memory: &dyn Memory) -> Result<(), KernelError> {
    match memory.wait() {
        Err(KernelError::Lost(why)) => Err(KernelError::Lost(why)),
        _ => Ok(()),
    }
}

impl Carrier {
    pub fn new(engine: Arc<Engine>, cpu: Cpu) -> Carrier {
        Carrier { engine, cpu, accelerators: Arc::default(), copies: Arc::default() }
    }

    /// Remembers that a buffer has a copy on some device.
    pub fn note_copy(&self, buffer: &Arc<Buffer>) {
        let mut copies = self.copies.lock().unwrap_or_else(|e| e.into_inner());
        if copies.len() == copies.capacity() {
            copies.retain(|b| b.strong_count() > 0);
        }
        copies.push(Arc::downgrade(buffer));
    }

    /// Lets every copy at a place go that is not what holds the only elements; returns the bytes freed.
    pub fn drop_copies(&self, place: Place) -> usize {
        let all = std::mem::take(&mut *self.copies.lock().unwrap_or_else(|e| e.into_inner()));
        let mut freed = 0;
        for buffer in all.iter().filter_map(|b| b.upgrade()) {
            freed += buffer.drop_copy(place);
            if buffer.places().len() > 1 {
                self.note_copy(&buffer);
            }
        }
        freed
    }

    /// Room for so many bytes.
    pub fn room(&self, place: Place, bytes: usize) -> Result<Piece, Trouble> {
        let bytes = bytes.max(1);
        let Place::Device(id) = place else {
            let block = self.cpu.memory.take(bytes);
            return block.map(Piece::Host).map_err(|e| Trouble::Away(place, e.to_string()));
        };
        let Some(memory) = self.accelerators.memory(place) else {
            return Err(Trouble::Away(place, format!("there is no device at {place}")));
        };
        match memory.clone().take(bytes) {
            Ok(block) => Ok(Piece::Device(block, place)),
            Err(MemoryError::Lost(why)) => Err(Trouble::Lost(id, why)),
            Err(why) => Err(Trouble::Away(place, why.to_string())),
        }
    }

    /// Why the block at this address does not hold what it should, if that is known.
    pub fn unwritten(&self, (place, at): (Place, Address)) -> Option<String> {
        self.accelerators.memory(place)?.unwritten(at)
    }

    /// Copies bytes from one place to another; between two devices by the host. If `observed`, links learn from
    /// it, for which what is under way has to end first.
    ///
    /// # Safety
    /// `from` and `to` must be the first of so many bytes at their places, nobody else's while this lasts.
    pub unsafe fn carry(
        &self,
        (from, from_at): (Place, Address),
        (to, to_at): (Place, Address),
        bytes: usize,
        observed: bool,
    ) -> Result<(), Trouble> {
        let memory = |place: Place| {
            let known = self.accelerators.memory(place);
            known.ok_or_else(|| Trouble::Away(place, format!("there is no device at {place}")))
        };
        let timed = |device: Place, work: &mut dyn FnMut() -> Result<(), KernelError>| {
            let memory = memory(device)?;
            let moving = |why| Trouble::moving(device, why);
            if !observed {
                return work().map_err(moving);
            }
            settle(&**memory).map_err(moving)?;
            let started = Instant::now();
            work().and_then(|()| memory.wait()).map_err(moving)?;
            let took: Seconds = started.elapsed().into();
            self.engine.observe_transfer(from, to, Bytes(bytes as u64), took);
            Ok(())
        };
        match (from, to) {
            (Place::Host, Place::Host) => {
                // SAFETY: the caller's promise.
                unsafe { std::ptr::copy(from_at.as_ptr::<u8>(), to_at.as_mut_ptr(), bytes) };
                Ok(())
            }
            (Place::Host, _) => {
                // SAFETY: the caller's promise; bytes are plain data.
                let data = unsafe { std::slice::from_raw_parts(from_at.as_ptr::<u8>(), bytes) };
                let memory = memory(to)?;
                timed(to, &mut || memory.upload(data, to_at))
            }
            (_, Place::Host) => {
                // SAFETY: the caller's promise; bytes are plain data and only written.
                let data = unsafe { std::slice::from_raw_parts_mut(to_at.as_mut_ptr::<u8>(), bytes) };
                let memory = memory(from)?;
                timed(from, &mut || memory.download(from_at, data))
            }
            _ => {
                let by = self.room(Place::Host, bytes)?;
                // SAFETY: fresh memory of this size, and the caller's promise.
                unsafe {
                    self.carry((from, from_at), (Place::Host, by.start()), bytes, observed)?;
                    self.carry((Place::Host, by.start()), (to, to_at), bytes, observed)
                }
            }
        }
    }

    /// Learns the way to a device and back, and whether it lends its memory: a few sizes up to `most` bytes, each a few times. A device with no room for
    /// one, or that does not answer, is left with what is known.
    pub fn probe_link(&self, place: Place, most: usize) {
        self.probe_lending(place);
        for bytes in PROBED.into_iter().filter(|bytes| *bytes <= most) {
            let Ok(there) = self.room(place, bytes) else { return };
            let Ok(here) = self.room(Place::Host, bytes) else { return };
            let (here, there) = ((Place::Host, here.start()), (place, there.start()));
            let began = Instant::now();
            // SAFETY: fresh memory, each so large. Written first, so that reading it is sound.
            unsafe {
                std::ptr::write_bytes(here.1.as_mut_ptr::<u8>(), 0, bytes);
                for round in 0..PROBES {
                    // The first time is slower than all others.
                    let out = self.carry(here, there, bytes, round > 0);
                    if out.and_then(|()| self.carry(there, here, bytes, round > 0)).is_err() {
                        return;
                    }
                }
            }
            if began.elapsed() > LONG_PROBES {
                return;
            }
        }
    }

    /// Runs a kernel wherever it is, with what lives elsewhere brought or lent to it and its results brought to where they
    /// are wanted. If `timed`, says how long the kernel itself took.
    ///
    /// # Safety
    /// `io` must hold valid addresses for the workload's operands at their places, and the kernel must support it.
    pub unsafe fn run(
        &self,
        w: &Workload,
        (index, kernel): (u16, &dyn Kernel),
        params: Params,
        io: Io<'_>,
        timed: bool,
    ) -> Result<Done, Trouble> {
        let place = self.engine.place_of(index).unwrap_or(Place::Host);
        // SAFETY: passed on.
        let perform = |io: Io<'_>| self.perform(place, timed, &mut || unsafe { kernel.run(w, params, io) });
        if let Some(lender) = self.lender(w, place, io) {
            // SAFETY: passed on.
            let done = unsafe { self.with_operands(w, place, Some(&lender), io, timed, &perform) }?;
            if let Some(done) = done {
                return Ok(done);
            }
        }
        // SAFETY: passed on.
        let done = unsafe { self.with_operands(w, place, None, io, timed, &perform) }?;
        done.ok_or_else(|| Trouble::Unable("it was not run".into()))
    }

    /// Calls `perform` with all operands where a kernel at `place` finds them; afterwards carries results to where they are
    /// wanted. None, with nothing run, if what was to be lent is not.
    ///
    /// # Safety
    /// As for [`Carrier::run`].
    unsafe fn with_operands(
        &self,
        w: &Workload,
        place: Place,
        lender: Option<&Lender>,
        io: Io<'_>,
        timed: bool,
        perform: &Perform<'_>,
    ) -> Result<Option<Done>, Trouble> {
        let there = |o: &Operand| o.place == place || o.elements() == 0 || lender.is_some_and(|l| l.has(o));
        let mut held: SmallVec<[Piece; 4]> = SmallVec::new();
        let mut inputs: SmallVec<[Address; 8]> = SmallVec::new();
        for (i, (o, &at)) in w.inputs().iter().zip(io.inputs).enumerate() {
            if there(o) {
                inputs.push(at);
                continue;
            }
            // The same operand twice is carried once.
            let twice = (0..i).find(|&j| io.inputs[j] == at && w.inputs()[j] == *o);
            if let Some(j) = twice {
                inputs.push(inputs[j]);
                continue;
            }
            let room = self.stand_in(place, o)?;
            let (bytes, first) = o.span();
            let (from, to) = (Address(at.0 - first as u64), room.lowest());
            // SAFETY: the operand spans so many bytes from its lowest element on, for which there is room.
            unsafe { self.carry((o.place, from), (place, to), bytes, timed) }?;
            inputs.push(room.first());
            held.push(room.piece);
        }
        let mut outputs: SmallVec<[Address; 4]> = SmallVec::new();
        // Results that are wanted elsewhere: where they are, where to, how many bytes.
        let mut wanted: SmallVec<[(Address, Place, Address, usize); 2]> = SmallVec::new();
        for (o, at) in w.outputs().iter().zip(io.outputs()) {
            if there(o) {
                outputs.push(at);
                continue;
            }
            let piece = self.room(place, o.bytes())?;
            outputs.push(piece.start());
            wanted.push((piece.start(), o.place, at, o.bytes()));
            held.push(piece);
        }
        let done = match lender {
            Some(lender) => {
                let Some(done) = self.lend(w, lender, (inputs, outputs), io.scalars, timed, perform)? else {
                    return Ok(None);
                };
                done
            }
            None => {
                perform(Io { inputs: &inputs, output: outputs[0], more: &outputs[1..], scalars: io.scalars })?
            }
        };
        for (from, to, at, bytes) in wanted {
            // SAFETY: results wanted elsewhere lie one element after the other, in both places.
            unsafe { self.carry_home((place, from), (to, at), bytes, timed, io.in_place()) }?;
        }
        Ok(Some(done))
    }

    /// Carries a result to where it is wanted. If operands may lie there, these stay whole until all of it has come: whoever
    /// runs instead needs them.
    ///
    /// # Safety
    /// As for [`Carrier::carry`].
    unsafe fn carry_home(
        &self,
        (place, from): (Place, Address),
        (to, at): (Place, Address),
        bytes: usize,
        timed: bool,
        in_place: bool,
    ) -> Result<(), Trouble> {
        let here = match in_place && to == Place::Host {
            true => Some(self.room(to, bytes)?),
            false => None,
        };
        let lands = here.as_ref().map_or(at, Piece::start);
        // SAFETY: the caller's promise, and fresh memory of this size.
        unsafe { self.carry((place, from), (to, lands), bytes, timed) }.map_err(|trouble| match trouble {
            // What was enqueued and failed says so here.
            Trouble::Away(at, why) if at == place => Trouble::Kernel(Offence::Failed, why),
            Trouble::Away(at, why) if at == to && in_place => Trouble::HalfDone(why),
            other => other,
        })?;
        if here.is_some() {
            // SAFETY: all of it has come; the caller's promise for where it is wanted.
            unsafe { std::ptr::copy_nonoverlapping(lands.as_ptr::<u8>(), at.as_mut_ptr(), bytes) };
        }
        Ok(())
    }

    /// Room at `place` for all that an operand spans, its first element where fresh memory would have it.
    pub fn stand_in(&self, place: Place, o: &Operand) -> Result<StandIn, Trouble> {
        let (bytes, first) = o.span();
        let shift = first.next_multiple_of(ALIGNED) - first;
        let piece = self.room(place, bytes + shift)?;
        Ok(StandIn { piece, lowest: shift as u64, first: (first + shift) as u64 })
    }

    fn perform(
        &self,
        place: Place,
        timed: bool,
        work: &mut dyn FnMut() -> Result<Ran, KernelError>,
    ) -> Result<Done, Trouble> {
        let ran = catch_unwind(AssertUnwindSafe(|| match self.accelerators.memory(place) {
            Some(memory) if timed => memory.timed(work).map(|(ran, took)| (ran, Some(took))),
            _ => {
                let started = timed.then(Instant::now);
                work().map(|ran| (ran, started.map(|s| s.elapsed().into())))
            }
        }));
        match ran {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(why)) => Err(Trouble::running(place, why)),
            Err(panic) => {
                let why = format!("panicked: {}", crate::panic_text(&*panic));
                Err(Trouble::Kernel(Offence::Panicked, why))
            }
        }
    }
}
