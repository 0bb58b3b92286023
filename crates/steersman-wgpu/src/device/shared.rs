//! Buffers that the host works on where they lie, where host and device share memory: they are mapped, with no copy in between.
//!
//! A mapped buffer must not be in use, and nothing that uses it may be submitted meanwhile. So the batch is held, and
//! only a device that has nothing to do is taken at its word; a busy one gets its bytes through staging, in order.

use super::batch::Batch;
use super::fault::caught;
use super::gpu::{Gpu, guarded};
use super::memory::inside;
use super::pool::Held;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, TryLockError};
use steersman_core::memory::Lent;
use steersman_core::{Address, KernelError};

/// Where a mapping may start.
const ALIGNED: u64 = wgpu::MAP_ALIGNMENT;

/// A part of a buffer to be mapped, to be written or only read.
struct Part {
    held: Arc<Held>,
    start: u64,
    end: u64,
    written: bool,
}

impl Part {
    fn new(held: Arc<Held>, at: u64, bytes: u64, written: bool) -> Part {
        Part { held, start: at & !(ALIGNED - 1), end: (at + bytes).next_multiple_of(4), written }
    }
}

/// Buffers that are mapped as long as this is there: the first so many of these.
struct Mapped<'a> {
    parts: &'a [Part],
    asked: usize,
}

impl Drop for Mapped<'_> {
    fn drop(&mut self) {
        for part in &self.parts[..self.asked] {
            // What a driver panics about here it says of the next call as well.
            let _ = guarded(|| part.held.buffer.unmap());
        }
    }
}

impl Gpu {
    /// Writes bytes to a buffer at once; false if they have to go by the queue.
    pub(super) fn write_shared(
        &self,
        batch: &mut Batch,
        held: &Arc<Held>,
        at: u64,
        from: &[u8],
    ) -> Result<bool, KernelError> {
        let parts = [Part::new(held.clone(), at, from.len() as u64, true)];
        let Some(_mapped) = self.map(batch, &parts)? else { return Ok(false) };
        let [part] = &parts;
        guarded(|| {
            let mut view = held.buffer.get_mapped_range_mut(part.start..part.end).map_err(failed)?;
            let first = (at - part.start) as usize;
            view.slice(first..first + from.len()).copy_from_slice(from);
            Ok(true)
        })?
    }

    /// Reads bytes of a buffer at once; false if they have to be copied by the device first.
    pub(super) fn read_shared(
        &self,
        batch: &mut Batch,
        held: &Arc<Held>,
        at: u64,
        to: &mut [u8],
    ) -> Result<bool, KernelError> {
        let parts = [Part::new(held.clone(), at, to.len() as u64, false)];
        let Some(_mapped) = self.map(batch, &parts)? else { return Ok(false) };
        let [part] = &parts;
        guarded(|| {
            let view = held.buffer.get_mapped_range(part.start..part.end).map_err(failed)?;
            to.copy_from_slice(&view[(at - part.start) as usize..][..to.len()]);
            Ok(true)
        })?
    }

    /// Has `work` done on mapped buffers; false, and nothing done, if they cannot be mapped now.
    pub(super) fn lend_shared(
        &self,
        what: &[Lent],
        work: &mut dyn FnMut(&[Address]),
    ) -> Result<bool, KernelError> {
        let mut parts: SmallVec<[Part; 4]> = SmallVec::new();
        // Of each, which part it lies in, and where its buffer says its first byte is.
        let mut lies: SmallVec<[(usize, u64); 4]> = SmallVec::new();
        for lent in what {
            let (held, at) = self.find(lent.at)?;
            inside(&held, at, lent.bytes)?;
            let part = Part::new(held, at, lent.bytes as u64, lent.written);
            match parts.iter().position(|p| p.held.start == part.held.start) {
                // A buffer is mapped once, to be read or to be written.
                Some(i) if parts[i].written || part.written => return Ok(false),
                Some(i) => {
                    let known = &mut parts[i];
                    (known.start, known.end) = (known.start.min(part.start), known.end.max(part.end));
                    lies.push((i, at));
                }
                None => {
                    lies.push((parts.len(), at));
                    parts.push(part);
                }
            }
        }
        guarded(|| self.batch().submit())?;
        self.finish(None)?;
        parts.iter().filter(|p| !p.written).try_for_each(|p| self.faults.readable(p.held.start))?;
        let mut batch = self.batch();
        let _alone = match self.looking.try_write() {
            Ok(alone) => alone,
            Err(TryLockError::Poisoned(e)) => e.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        let Some(_mapped) = self.map(&mut batch, &parts)? else { return Ok(false) };
        let views: SmallVec<[View; 4]> =
            guarded(|| parts.iter().map(View::of).collect::<Result<_, KernelError>>())??;
        let found: SmallVec<[Address; 4]> =
            lies.iter().map(|&(i, at)| Address(views[i].start + (at - parts[i].start))).collect();
        for (lent, (i, at)) in what.iter().zip(&lies) {
            if lent.written && *at == 0 {
                self.faults.heal(parts[*i].held.start);
            }
        }
        work(&found);
        drop(views);
        Ok(true)
    }

    /// Maps parts of buffers, no two of the same; none if that is not possible now.
    fn map<'a>(&self, batch: &mut Batch, parts: &'a [Part]) -> Result<Option<Mapped<'a>>, KernelError> {
        if !self.direct() || !batch.is_empty() || !batch.idle() {
            return Ok(None);
        }
        let given = Arc::new(AtomicUsize::new(0));
        let mut mapped = Mapped { parts, asked: 0 };
        let ((), refused) = guarded(|| {
            caught(&self.device, || {
                for part in parts {
                    let mode = if part.written { wgpu::MapMode::Write } else { wgpu::MapMode::Read };
                    let told = given.clone();
                    mapped.asked += 1;
                    part.held.buffer.map_async(mode, part.start..part.end, move |r| {
                        told.fetch_add(usize::from(r.is_ok()), Ordering::AcqRel);
                    });
                }
                let _ = self.device.poll(wgpu::PollType::Poll);
            })
        })?;
        match refused {
            Some(mishap) => Err(KernelError::Failed(mishap.why)),
            // Those that were not given are taken back.
            None => Ok((given.load(Ordering::Acquire) == parts.len()).then_some(mapped)),
        }
    }
}

/// What the host sees of a mapped part, and where that starts.
struct View {
    start: u64,
    /// To be read, or else written.
    _held: Result<wgpu::BufferView, wgpu::BufferViewMut>,
}

impl View {
    fn of(part: &Part) -> Result<View, KernelError> {
        let buffer = &part.held.buffer;
        if !part.written {
            let view = buffer.get_mapped_range(part.start..part.end).map_err(failed)?;
            return Ok(View { start: view.as_ptr() as u64, _held: Ok(view) });
        }
        let mut view = buffer.get_mapped_range_mut(part.start..part.end).map_err(failed)?;
        let start = view.slice(..).as_raw_element_ptr().as_ptr() as u64;
        Ok(View { start, _held: Err(view) })
    }
}

fn failed(why: wgpu::MapRangeError) -> KernelError {
    KernelError::Failed(why.to_string())
}
