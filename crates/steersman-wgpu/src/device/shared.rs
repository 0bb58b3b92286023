//! Transfers without a copy in between, where host and device share memory: the buffer itself is mapped.
//!
//! A mapped buffer must not be in use, and nothing that uses it may be submitted meanwhile. So the batch is held, and
//! only a device that has nothing to do is taken at its word; a busy one gets its bytes through staging, in order.

use super::batch::Batch;
use super::fault::caught;
use super::gpu::{Gpu, guarded};
use super::pool::Held;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use steersman_core::KernelError;

/// Where a mapping may start.
const ALIGNED: u64 = wgpu::MAP_ALIGNMENT;

/// What came of asking for a mapping.
const ASKED: u8 = 0;
const MAPPED: u8 = 1;

impl Gpu {
    /// Writes bytes to a buffer at once; false if they have to go by the queue.
    pub(super) fn write_shared(
        &self,
        batch: &mut Batch,
        held: &Held,
        at: u64,
        from: &[u8],
    ) -> Result<bool, KernelError> {
        self.mapped_shared(batch, held, at, from.len() as u64, wgpu::MapMode::Write, |buffer, start, end| {
            let mut view =
                buffer.get_mapped_range_mut(start..end).map_err(|e| KernelError::Failed(e.to_string()))?;
            let first = (at - start) as usize;
            view.slice(first..first + from.len()).copy_from_slice(from);
            Ok(())
        })
    }

    /// Reads bytes of a buffer at once; false if they have to be copied by the device first.
    pub(super) fn read_shared(
        &self,
        batch: &mut Batch,
        held: &Held,
        at: u64,
        to: &mut [u8],
    ) -> Result<bool, KernelError> {
        let bytes = to.len();
        self.mapped_shared(batch, held, at, bytes as u64, wgpu::MapMode::Read, |buffer, start, end| {
            let view = buffer.get_mapped_range(start..end).map_err(|e| KernelError::Failed(e.to_string()))?;
            to.copy_from_slice(&view[(at - start) as usize..][..bytes]);
            Ok(())
        })
    }

    fn mapped_shared(
        &self,
        batch: &mut Batch,
        held: &Held,
        at: u64,
        bytes: u64,
        mode: wgpu::MapMode,
        work: impl FnOnce(&wgpu::Buffer, u64, u64) -> Result<(), KernelError>,
    ) -> Result<bool, KernelError> {
        if !self.direct() || !batch.is_empty() || !batch.idle() {
            return Ok(false);
        }
        let (start, end) = (at & !(ALIGNED - 1), (at + bytes).next_multiple_of(4));
        let state = Arc::new(AtomicU8::new(ASKED));
        let told = state.clone();
        let ((), refused) = guarded(|| {
            caught(&self.device, || {
                held.buffer.map_async(mode, start..end, move |r| {
                    told.fetch_add(if r.is_ok() { MAPPED } else { 2 * MAPPED }, Ordering::AcqRel);
                });
                let _ = self.device.poll(wgpu::PollType::Poll);
            })
        })?;
        if let Some(mishap) = refused {
            return Err(KernelError::Failed(mishap.why));
        }
        if state.load(Ordering::Acquire) != MAPPED {
            // Taken back, or never given.
            held.buffer.unmap();
            return Ok(false);
        }
        let done = guarded(|| work(&held.buffer, start, end));
        held.buffer.unmap();
        done??;
        Ok(true)
    }
}
