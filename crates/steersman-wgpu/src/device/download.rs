//! The way home through staging buffers: pieces, one of which is on its way while the one before is copied out.

use super::copy;
use super::gpu::{Gpu, guarded};
use super::pool::Held;
use super::staging::PIECE;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use steersman_core::KernelError;

/// How long a finished download may take to be reported.
const PATIENCE: Duration = Duration::from_secs(10);

/// A staging buffer that a submission writes to, and that will be mapped when it has.
pub(super) struct Coming {
    staging: wgpu::Buffer,
    bytes: u64,
    index: Option<wgpu::SubmissionIndex>,
    mapped: Receiver<Result<(), wgpu::BufferAsyncError>>,
}

impl Gpu {
    /// Copies a part of a buffer to the host.
    pub(super) fn fetch(&self, held: &Held, offset: u64, mut to: &mut [u8]) -> Result<(), KernelError> {
        let taken = |(coming, skip, part): (Coming, usize, &mut [u8])| {
            self.awaited(coming, |bytes| copy::out(&bytes[skip..][..part.len()], part))
        };
        let (mut at, mut before) = (offset, None);
        while !to.is_empty() {
            // Copies are of whole words.
            let start = at & !3;
            let skip = (at - start) as usize;
            let (part, rest) = to.split_at_mut(to.len().min(PIECE as usize - skip));
            let end = (at + part.len() as u64).next_multiple_of(4);
            at += part.len() as u64;
            to = rest;
            let coming = (self.ask(held, start, end - start)?, skip, part);
            before.replace(coming).map_or(Ok(()), taken)?;
        }
        before.map_or(Ok(()), taken)
    }

    /// Has `bytes` of a buffer from `start` on, both multiples of four, at most [`PIECE`], written to a staging buffer.
    fn ask(&self, held: &Held, start: u64, bytes: u64) -> Result<Coming, KernelError> {
        let staging = guarded(|| self.staging.take(&self.device, bytes))?;
        let index = guarded(|| {
            self.batch().submit_with(&|encoder| {
                encoder.copy_buffer_to_buffer(&held.buffer, start, &staging, 0, bytes);
            })
        })??;
        if let Err(why) = self.faults.readable(held.start) {
            self.staging.keep(staging);
            return Err(why);
        }
        self.mapping(staging, bytes, index)
    }

    /// What a submission writes to `staging`, as soon as it has.
    pub(super) fn mapping(
        &self,
        staging: wgpu::Buffer,
        bytes: u64,
        index: Option<wgpu::SubmissionIndex>,
    ) -> Result<Coming, KernelError> {
        let (send, mapped) = channel();
        guarded(|| staging.map_async(wgpu::MapMode::Read, 0..bytes, move |r| drop(send.send(r))))?;
        Ok(Coming { staging, bytes, index, mapped })
    }

    /// Waits for it, calls `f` with it, and keeps the buffer for others.
    pub(super) fn awaited(&self, coming: Coming, f: impl FnOnce(&[u8])) -> Result<(), KernelError> {
        let Coming { staging, bytes, index, mapped } = coming;
        self.finish(index)?;
        // Another thread that waits may be the one to call back.
        match mapped.recv_timeout(PATIENCE) {
            Ok(Ok(())) => {}
            Ok(Err(e)) => return Err(KernelError::Failed(format!("the result could not be read: {e}"))),
            Err(_) => return Err(KernelError::Failed("the result never came".into())),
        }
        let view = guarded(|| staging.get_mapped_range(0..bytes))?
            .map_err(|e| KernelError::Failed(e.to_string()))?;
        f(&view);
        drop(view);
        staging.unmap();
        self.staging.keep(staging);
        Ok(())
    }
}
