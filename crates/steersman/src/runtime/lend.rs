//! Operands that the host works on where a device has them, where host and device share memory.

use super::carry::{Carrier, Done, Perform, Trouble, settle};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Instant;
use steersman_core::memory::Lent;
use steersman_core::place::Lane;
use steersman_core::{Address, Bytes, DeviceId, Io, Memory, Operand, Place, Seconds, Workload};

/// The device that lends what it has of a workload; what others have is carried.
pub(crate) struct Lender {
    id: DeviceId,
    memory: Arc<dyn Memory>,
}

impl Lender {
    /// Whether this operand is among what it lends.
    pub fn has(&self, o: &Operand) -> bool {
        o.place == Place::Device(self.id)
    }
}

/// Bytes that lending is probed with, and how often each.
const PROBED: [usize; 3] = [4 << 10, 256 << 10, 16 << 20];
const PROBES: usize = 6;
/// Memory that the host reads so many times as slowly as its own is not lent: work on a copy would be done sooner.
const SLOWER: f64 = 2.0;

impl Carrier {
    /// Who lends what it has of a workload that runs at `place`.
    pub(super) fn lender(&self, w: &Workload, place: Place, io: Io<'_>) -> Option<Lender> {
        if place != Place::Host || io.in_place() {
            return None;
        }
        let away = w.inputs().iter().chain(w.outputs()).filter(|o| o.elements() > 0);
        let id = away.filter_map(|o| o.place.device()).find(|id| self.engine.lends(w, *id))?;
        let memory = self.accelerators.memory(Place::Device(id))?.clone();
        Some(Lender { id, memory })
    }

    /// Calls `perform` with what is lent put in for what lies at the lender's; none if it lends nothing now.
    pub(super) fn lend(
        &self,
        w: &Workload,
        lender: &Lender,
        (mut inputs, mut outputs): (SmallVec<[Address; 8]>, SmallVec<[Address; 4]>),
        scalars: &[u64],
        timed: bool,
        perform: &Perform<'_>,
    ) -> Result<Option<Done>, Trouble> {
        let all = w.inputs().iter().zip(&inputs).map(|(o, at)| (o, *at, false));
        let all = all.chain(w.outputs().iter().zip(&outputs).map(|(o, at)| (o, *at, true)));
        let lent: SmallVec<[Lent; 6]> = all
            .filter(|(o, ..)| lender.has(o) && o.elements() > 0)
            .map(|(o, at, written)| {
                let (bytes, first) = o.span();
                Lent { at: Address(at.0 - first as u64), bytes, written }
            })
            .collect();
        let moving = |why| {
            let unwritten = || lent.iter().filter(|l| !l.written).find_map(|l| lender.memory.unwritten(l.at));
            match Trouble::moving(Place::Device(lender.id), why) {
                Trouble::Away(place, why) => match unwritten() {
                    Some(why) => Trouble::Unwritten(place, why),
                    None => Trouble::Away(place, why),
                },
                other => other,
            }
        };
        if timed {
            settle(&*lender.memory).map_err(moving)?;
        }
        let mut done = None;
        let mut worked = Seconds::ZERO;
        let started = Instant::now();
        let given = lender.memory.lend(&lent, &mut |found| {
            let mut found = found.iter();
            let operands = w.inputs().iter().zip(&mut inputs);
            for (o, at) in operands.chain(w.outputs().iter().zip(&mut outputs)) {
                if lender.has(o) && o.elements() > 0 {
                    let Some(lowest) = found.next() else { return };
                    *at = Address(lowest.0 + o.span().1 as u64);
                    // Kernels rely on what the workload says of it.
                    if !at.0.is_multiple_of(1 << o.align_log2) {
                        return;
                    }
                }
            }
            let started = Instant::now();
            done = Some(perform(Io { inputs: &inputs, output: outputs[0], more: &outputs[1..], scalars }));
            worked = started.elapsed().into();
        });
        let took: Seconds = started.elapsed().into();
        if !given.map_err(moving)? {
            return Ok(None);
        }
        if timed && done.is_some() {
            self.engine.observe_lent(lender.id, took - worked);
        }
        done.transpose()
    }

    /// Finds out whether a device lends its memory and what that costs, and has it do so from now on, or not.
    pub fn probe_lending(&self, place: Place) {
        if let (Some(id), Some(memory)) = (place.device(), self.accelerators.memory(place)) {
            self.engine.set_lent(id, lending(memory));
        }
    }
}

/// What lending costs; none if the device does not lend, or memory that is slow to read.
pub(super) fn lending(memory: &Arc<dyn Memory>) -> Option<Lane> {
    let mut lane = Lane::default();
    let (mut here, mut there) = (f64::INFINITY, f64::INFINITY);
    for bytes in PROBED {
        let block = memory.clone().take(bytes).ok()?;
        let own = vec![1u8; bytes];
        memory.upload(&own, block.address()).ok()?;
        let lent = [Lent { at: block.address(), bytes, written: false }];
        (here, there) = (f64::INFINITY, f64::INFINITY);
        for round in 0..PROBES {
            here = here.min(reading(&own));
            settle(&**memory).ok()?;
            let mut read = 0.0;
            let started = Instant::now();
            let given = memory.lend(&lent, &mut |found| {
                // SAFETY: what is lent is there while this lasts.
                read = reading(unsafe { std::slice::from_raw_parts(found[0].as_ptr::<u8>(), bytes) });
            });
            let took = started.elapsed().as_secs_f64();
            if !given.ok()? {
                return None;
            }
            there = there.min(read);
            // The first time is slower than all others.
            if round > 0 {
                lane.add(Bytes(0), Seconds(took - read));
            }
        }
    }
    (there < SLOWER * here).then_some(lane)
}

/// Seconds that reading bytes takes.
fn reading(bytes: &[u8]) -> f64 {
    let started = Instant::now();
    let (words, _) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0u64, |sum, w| sum.wrapping_add(u64::from_ne_bytes(*w)));
    std::hint::black_box(sum);
    started.elapsed().as_secs_f64()
}
