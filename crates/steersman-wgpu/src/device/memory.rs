//! The device's memory: blocks, transfers, waiting, timing.

use super::batch::{Alone, PASSES, Stamps};
use super::copy;
use super::fault::{Mishap, caught};
use super::gpu::{Gpu, guarded};
use super::pool::{Held, Untaken};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use steersman_core::memory::{Block, Lent, Memory, MemoryError};
use steersman_core::{Address, KernelError, Ran, Seconds};

/// Uploads go to the queue at the latest after this many bytes, which the queue keeps a copy of until then.
const WRITTEN: u64 = 32 << 20;

impl Memory for Gpu {
    fn take(self: Arc<Self>, bytes: usize) -> Result<Block, MemoryError> {
        if let Some(why) = self.faults.lost() {
            return Err(MemoryError::Lost(why));
        }
        let taken = self.pool().take(bytes, |size| self.buffer(size));
        let taken = match taken {
            Err(Untaken::NoMemory { .. }) => {
                // The driver has less than the limit: it gets back what nobody has.
                self.let_go();
                self.pool().take(bytes, |size| self.buffer(size))
            }
            other => other,
        };
        let (address, dropped) = taken?;
        if dropped {
            self.batch().forget_groups();
        }
        self.faults.heal(address.0);
        Ok(Block::new(self, address, bytes))
    }

    fn give_back(&self, at: Address, _bytes: usize) {
        let dropped = self.pool().give_back(at);
        self.faults.heal(at.0);
        if dropped {
            self.batch().forget_groups();
        }
    }

    fn upload(&self, from: &[u8], to: Address) -> Result<(), KernelError> {
        self.faults.alive()?;
        if from.is_empty() {
            return Ok(());
        }
        let (held, offset) = self.find(to)?;
        inside(&held, offset, from.len())?;
        if offset == 0 {
            self.faults.heal(held.start);
        }
        {
            let mut batch = self.batch();
            if self.write_shared(&mut batch, &held, offset, from)? {
                drop(batch);
                self.uploaded.fetch_add(from.len() as u64, Ordering::Relaxed);
                return Ok(());
            }
        }
        // Copies are of whole words: what shares a word with a neighbour is read first.
        let (start, end) = (offset & !3, (offset + from.len() as u64).next_multiple_of(4));
        let whole = start == offset && end == offset + from.len() as u64;
        let patched;
        let bytes = if whole {
            from
        } else {
            let mut words = vec![0u8; (end - start) as usize];
            let n = words.len();
            if start != offset {
                self.fetch(&held, start, &mut words[..4])?;
            }
            if end != offset + from.len() as u64 {
                self.fetch(&held, end - 4, &mut words[n - 4..])?;
            }
            words[(offset - start) as usize..][..from.len()].copy_from_slice(from);
            patched = words;
            &patched
        };
        let mut batch = self.batch();
        let ((), mishap) = guarded(|| {
            caught(&self.device, || {
                // Writes go before the next submission's work, whatever order they were asked in.
                if batch.touches(held.start) {
                    batch.submit();
                }
                for (i, piece) in bytes.chunks(WRITTEN as usize).enumerate() {
                    let (at, size) = (start + i as u64 * WRITTEN, wgpu::BufferSize::new(piece.len() as u64));
                    let view = size.and_then(|size| self.queue.write_buffer_with(&held.buffer, at, size));
                    // There is none if the driver refuses, which is heard below.
                    if let Some(mut view) = view {
                        copy::into(piece, view.slice(..));
                    }
                    batch.written += piece.len() as u64;
                    if batch.written >= WRITTEN {
                        batch.submit();
                        let _ = self.device.poll(wgpu::PollType::Poll);
                    }
                }
            })
        })?;
        drop(batch);
        self.uploaded.fetch_add(from.len() as u64, Ordering::Relaxed);
        mishap.map_or(Ok(()), |m| Err(KernelError::Failed(m.why)))
    }

    fn download(&self, from: Address, to: &mut [u8]) -> Result<(), KernelError> {
        self.faults.alive()?;
        if to.is_empty() {
            return Ok(());
        }
        let (held, offset) = self.find(from)?;
        inside(&held, offset, to.len())?;
        if self.direct() {
            guarded(|| self.batch().submit())?;
            self.finish(None)?;
            self.faults.readable(held.start)?;
            let mut batch = self.batch();
            if self.read_shared(&mut batch, &held, offset, to)? {
                drop(batch);
                self.downloaded.fetch_add(to.len() as u64, Ordering::Relaxed);
                return Ok(());
            }
        }
        self.fetch(&held, offset, to)?;
        self.downloaded.fetch_add(to.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn wait(&self) -> Result<(), KernelError> {
        self.faults.alive()?;
        guarded(|| self.batch().submit())?;
        self.finish(None)?;
        self.faults.take()
    }

    fn unwritten(&self, at: Address) -> Option<String> {
        let (held, _) = self.find(at).ok()?;
        self.faults.spoilt(held.start).map(|spoilt| spoilt.why().to_string())
    }

    fn lend(&self, what: &[Lent], work: &mut dyn FnMut(&[Address])) -> Result<bool, KernelError> {
        self.faults.alive()?;
        if !self.direct() {
            return Ok(false);
        }
        self.lend_shared(what, work)
    }

    fn rouse(self: Arc<Self>) {
        // Who times work next hears of what is wrong with the device.
        let _ = self.warm_up();
    }

    fn timed(
        &self,
        work: &mut dyn FnMut() -> Result<Ran, KernelError>,
    ) -> Result<(Ran, Seconds), KernelError> {
        let _alone = self.clock.lock().unwrap_or_else(|e| e.into_inner());
        // What failed before is not this work's fault.
        let _ = self.wait();
        self.faults.alive()?;
        if self.can().timestamps {
            let set = guarded(|| {
                self.device.create_query_set(&wgpu::QuerySetDescriptor {
                    label: None,
                    ty: wgpu::QueryType::Timestamp,
                    count: PASSES * 2,
                })
            })?;
            self.batch().stamps = Some(Stamps { set, passes: 0 });
        }
        self.batch().alone = Some(Alone { by: std::thread::current().id(), others: 0 });
        let started = Instant::now();
        let ran = work();
        let waited = self.wait();
        let by_host: Seconds = started.elapsed().into();
        let (stamps, alone) = {
            let mut batch = self.batch();
            (batch.stamps.take(), batch.alone.take())
        };
        let ran = ran?;
        waited?;
        // The device's time was not this work's alone.
        let disturbed = ran == Ran::Clean && alone.is_none_or(|a| a.others > 0);
        let ran = if disturbed { Ran::Disturbed } else { ran };
        let by_device = match stamps {
            // Its clock knows nothing of a compiler.
            Some(s) if ran != Ran::Cold && (1..PASSES).contains(&s.passes) => self.stamped(&s)?,
            _ => None,
        };
        Ok((ran, by_device.unwrap_or(by_host)))
    }

    fn in_use(&self) -> usize {
        self.pool().in_use() as usize
    }

    fn limit(&self) -> Option<usize> {
        Some(self.pool().limit() as usize)
    }
}

pub(super) fn inside(held: &Held, offset: u64, bytes: usize) -> Result<(), KernelError> {
    if offset + bytes as u64 <= held.bytes {
        return Ok(());
    }
    let has = held.bytes - offset;
    Err(KernelError::Failed(format!("{bytes} bytes were asked for where the block has {has}")))
}

impl Gpu {
    fn buffer(&self, size: u64) -> Result<wgpu::Buffer, Mishap> {
        let shared = match self.direct() {
            true => wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE,
            false => wgpu::BufferUsages::empty(),
        };
        let made = guarded(|| {
            caught(&self.device, || {
                self.device.create_buffer(&wgpu::BufferDescriptor {
                    label: None,
                    size,
                    usage: wgpu::BufferUsages::STORAGE
                        | wgpu::BufferUsages::COPY_SRC
                        | wgpu::BufferUsages::COPY_DST
                        | shared,
                    mapped_at_creation: false,
                })
            })
        });
        match made {
            Ok((buffer, None)) => Ok(buffer),
            Ok((_, Some(mishap))) => Err(mishap),
            Err(panicked) => Err(Mishap { why: panicked.to_string(), memory: false }),
        }
    }

    /// Gives the driver every buffer back that nobody has.
    fn let_go(&self) {
        self.pool().let_go();
        // Work that waits may still use them, and groups keep them.
        let _ = guarded(|| {
            let mut batch = self.batch();
            batch.submit();
            batch.forget_groups();
        });
        let _ = self.finish(None);
    }

    /// Waits until a submission, or all of them, are done.
    pub(super) fn finish(&self, index: Option<wgpu::SubmissionIndex>) -> Result<(), KernelError> {
        let how = wgpu::PollType::Wait { submission_index: index, timeout: None };
        let _looking = self.looking.read().unwrap_or_else(|e| e.into_inner());
        match guarded(|| self.device.poll(how))? {
            Ok(_) => Ok(()),
            Err(e) => {
                self.faults.alive()?;
                Err(KernelError::Failed(format!("waiting for the device failed: {e}")))
            }
        }
    }

    /// Device time of the stamped passes together; `None` if the clock did not tick.
    fn stamped(&self, stamps: &Stamps) -> Result<Option<Seconds>, KernelError> {
        let bytes = u64::from(stamps.passes) * 16;
        let resolved = guarded(|| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: bytes,
                usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            })
        })?;
        let staging = guarded(|| self.staging.take(&self.device, bytes))?;
        let index = guarded(|| {
            self.batch().submit_with(&|encoder| {
                encoder.resolve_query_set(&stamps.set, 0..stamps.passes * 2, &resolved, 0);
                encoder.copy_buffer_to_buffer(&resolved, 0, &staging, 0, bytes);
            })
        })??;
        let mut ticks = 0u64;
        self.awaited(self.mapping(staging, bytes, index)?, |b| {
            for pair in b.chunks_exact(16) {
                let at = |i: usize| u64::from_ne_bytes(std::array::from_fn(|k| pair[i + k]));
                ticks += at(8).saturating_sub(at(0));
            }
        })?;
        let seconds = ticks as f64 * f64::from(self.queue.get_timestamp_period()) * 1e-9;
        Ok((ticks > 0).then_some(Seconds(seconds)))
    }
}
