//! Idle blocks of one size class, oldest at the front.

use std::collections::VecDeque;
use std::ptr::NonNull;

/// Milliseconds since the pool began.
pub(super) type Stamp = u64;

/// A block nobody uses.
pub(super) struct Idle {
    pub(super) start: NonNull<u8>,
    /// When it was let go.
    pub(super) since: Stamp,
}

// SAFETY: idle memory belongs to nobody but the shelf it lies on.
unsafe impl Send for Idle {}

/// The idle blocks of a class and what happened to them.
#[derive(Default)]
pub(super) struct Shelf {
    blocks: VecDeque<Idle>,
    /// Blocks handed out again from here.
    pub(super) hits: u64,
    /// Takes and returns, to read the clock only now and then.
    pub(super) visits: u32,
}

impl Shelf {
    /// The block let go last, whose contents are the most likely to be in cache.
    pub(super) fn newest(&mut self) -> Option<NonNull<u8>> {
        let block = self.blocks.pop_back()?;
        self.hits += 1;
        Some(block.start)
    }

    /// Keeps a block; hands it back if there is no memory to note it.
    pub(super) fn keep(&mut self, block: Idle) -> Result<(), Idle> {
        if self.blocks.try_reserve(1).is_err() {
            return Err(block);
        }
        self.blocks.push_back(block);
        Ok(())
    }

    /// Since when the oldest block has been here.
    pub(super) fn oldest(&self) -> Option<Stamp> {
        self.blocks.front().map(|block| block.since)
    }

    /// Removes the oldest block if it was let go at `before` or earlier.
    pub(super) fn remove_oldest(&mut self, before: Stamp) -> Option<NonNull<u8>> {
        if self.oldest()? > before {
            return None;
        }
        self.blocks.pop_front().map(|block| block.start)
    }
}
