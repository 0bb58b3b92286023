//! Memory of a device that is not the host: taking it, moving bytes in and out, waiting.
//!
//! A device family implements [`Memory`] once; runtimes and plans move operands through it and know nothing
//! else of the device. Addresses behave like pointers: a block's first byte plus an offset inside the block
//! is the address of that byte, and blocks never overlap.
//!
//! Work on a device is enqueued: a kernel's `run` may return before its result is there. What is enqueued
//! later sees what was enqueued before; the host sees it after [`Memory::download`] or [`Memory::wait`].

use crate::kernel::{Address, KernelError, Ran};
use crate::units::Seconds;
use std::sync::Arc;
use std::time::Instant;

/// Why no memory was to be had.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MemoryError {
    /// More than the limit, or than the device has.
    #[error("{need} bytes do not fit: {in_use} of {limit} bytes are in use")]
    Full {
        /// Bytes asked for.
        need: usize,
        /// Bytes taken already.
        in_use: usize,
        /// The most there may be.
        limit: usize,
    },
    /// One block cannot be so large on this device, whatever is free.
    #[error("{need} bytes in one piece are more than this device takes ({most})")]
    TooLarge {
        /// Bytes asked for.
        need: usize,
        /// Bytes of the largest block.
        most: usize,
    },
    /// The device's driver gave none, though the limit allows it.
    #[error("the driver gave no {need} bytes: {why}")]
    Refused {
        /// Bytes asked for.
        need: usize,
        /// What it said.
        why: String,
    },
    /// The device is gone.
    #[error("the device was lost: {0}")]
    Lost(String),
}

/// Bytes of a device that the host works on where they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// The first of them.
    pub at: Address,
    /// How many there are.
    pub bytes: usize,
    /// Whether the host writes them; others it only reads.
    pub written: bool,
}

/// Memory of one device.
pub trait Memory: Send + Sync {
    /// Takes a block. Its content is undefined.
    fn take(self: Arc<Self>, bytes: usize) -> Result<Block, MemoryError>;

    /// Takes a block back. Work already enqueued may still use it; what is enqueued later must not.
    fn give_back(&self, at: Address, bytes: usize);

    /// Copies bytes to the device. `from` may be reused when this returns. From its first byte on a block is as good as
    /// new, whatever failed to write it before.
    fn upload(&self, from: &[u8], to: Address) -> Result<(), KernelError>;

    /// Copies bytes to the host, after all that was enqueued before.
    fn download(&self, from: Address, to: &mut [u8]) -> Result<(), KernelError>;

    /// Returns when everything enqueued is done; says if some of what this thread enqueued failed.
    fn wait(&self) -> Result<(), KernelError>;

    /// Why the block at this address does not hold what it should, if what was enqueued to write it is known to have
    /// failed. Who has such a block computes its content again; see also [`KernelError::Operand`].
    fn unwritten(&self, _at: Address) -> Option<String> {
        None
    }

    /// Whether a transfer that another thread starts goes on beside the device's work and the host's. Plans then
    /// start transfers as soon as there is something to move, from threads of their own, and wait for one when its
    /// value is needed. What is enqueued after `upload` returned sees it, on whichever thread that was.
    fn overlaps(&self) -> bool {
        false
    }

    /// Has the host work on bytes where they lie, after all that was enqueued before: `work` gets where it finds the first
    /// of each. Nothing else gets at the device's memory meanwhile, from whichever thread. `false`, and `work` was not called,
    /// where host and device share no memory, or these cannot be lent now; they can still be carried.
    fn lend(&self, _what: &[Lent], _work: &mut dyn FnMut(&[Address])) -> Result<bool, KernelError> {
        Ok(false)
    }

    /// Has the device run as fast as it does under load: one with little to do may lower its clock, and short work does
    /// not raise it. Asked by who times work for its own sake, before each sample.
    fn rouse(self: Arc<Self>) {}

    /// How long `work` takes on the device, by its own clock where it has one.
    fn timed(
        &self,
        work: &mut dyn FnMut() -> Result<Ran, KernelError>,
    ) -> Result<(Ran, Seconds), KernelError> {
        self.wait()?;
        let started = Instant::now();
        let ran = work()?;
        self.wait()?;
        Ok((ran, started.elapsed().into()))
    }

    /// Bytes in blocks that are taken.
    fn in_use(&self) -> usize;

    /// The most bytes that may be taken, if known.
    fn limit(&self) -> Option<usize>;
}

/// A piece of a device's memory; goes back when dropped.
pub struct Block {
    memory: Arc<dyn Memory>,
    address: Address,
    bytes: usize,
}

impl Block {
    /// For implementers of [`Memory::take`].
    pub fn new(memory: Arc<dyn Memory>, address: Address, bytes: usize) -> Block {
        Block { memory, address, bytes }
    }

    /// The first byte.
    pub fn address(&self) -> Address {
        self.address
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whose it is.
    pub fn memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.memory.give_back(self.address, self.bytes);
    }
}
