//! Addresses to buffers: which operand lies where.
//!
//! A dispatch may not read a buffer through one binding and write it through another, so operands that share
//! a buffer share a binding; where they start is told in elements.

use crate::device::{Gpu, Held, Launch, Pipeline};
use crate::wgsl::Word;
use smallvec::SmallVec;
use std::sync::Arc;
use steersman_core::{Address, DType, KernelError};

/// One operand's way to its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Which binding.
    pub binding: u8,
    /// The first element, in elements from the buffer's start.
    pub offset: u32,
}

/// Operands with their buffers.
pub(crate) struct Bound {
    pub buffers: SmallVec<[Arc<Held>; 4]>,
    /// Whether each buffer is read.
    pub read: SmallVec<[bool; 8]>,
    /// Whether each buffer is written.
    pub written: SmallVec<[bool; 8]>,
    pub spots: SmallVec<[Spot; 4]>,
}

impl Bound {
    /// Of operands at these addresses, each with its type and whether it is written.
    pub fn new(
        gpu: &Gpu,
        operands: impl Iterator<Item = (Address, DType, bool)>,
    ) -> Result<Bound, KernelError> {
        let mut bound = Bound {
            buffers: SmallVec::new(),
            read: SmallVec::new(),
            written: SmallVec::new(),
            spots: SmallVec::new(),
        };
        for (at, dtype, written) in operands {
            let (held, bytes) = gpu.find(at)?;
            bound.add(held, bytes, dtype, written)?;
        }
        Ok(bound)
    }

    /// One more operand, `bytes` into its buffer.
    pub fn add(
        &mut self,
        held: Arc<Held>,
        bytes: u64,
        dtype: DType,
        written: bool,
    ) -> Result<(), KernelError> {
        if !bytes.is_multiple_of(dtype.size() as u64) {
            return Err(KernelError::Failed(format!("an operand of {dtype} starts inside an element")));
        }
        let at = self.buffers.iter().position(|b| b.start == held.start).unwrap_or_else(|| {
            self.buffers.push(held);
            self.read.push(false);
            self.written.push(false);
            self.buffers.len() - 1
        });
        self.read[at] |= !written;
        self.written[at] |= written;
        let offset = (bytes / dtype.size() as u64) as u32;
        self.spots.push(Spot { binding: at as u8, offset });
        Ok(())
    }
}

impl Bound {
    /// A dispatch over these buffers.
    pub fn launch<'a>(
        &'a self,
        pipeline: &'a Arc<Pipeline>,
        params: &'a [u32],
        groups: [u32; 3],
    ) -> Launch<'a> {
        let Bound { buffers, read, written, .. } = self;
        Launch { pipeline, buffers, read, written, params, groups }
    }
}

/// A buffer that one operand takes for an array of this, and another, if any, of that: what it can be for both.
pub(crate) fn both(known: Option<Word>, word: Word) -> Option<Word> {
    match (known, word) {
        (None, word) => Some(word),
        (Some(known), word) if known == word => Some(word),
        // Reading what others write in parts.
        (Some(Word::Plain), Word::Atomic) | (Some(Word::Atomic), Word::Plain) => Some(Word::Atomic),
        _ => None,
    }
}
