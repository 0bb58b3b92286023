//! A block of memory that goes back to its pool on drop.

use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use super::class::Class;
use super::pool::Shared;

/// Bytes from a [`MemoryPool`](super::MemoryPool), starting at a multiple of 64.
///
/// What is in them is whatever an earlier user left, or nothing yet: write before you read,
/// unless the block came from [`take_zeroed`](super::MemoryPool::take_zeroed).
pub struct Block {
    start: NonNull<u8>,
    len: usize,
    class: Class,
    pool: Arc<Shared>,
}

// SAFETY: a block is the only way to its memory, like a `Box<[MaybeUninit<u8>]>`.
unsafe impl Send for Block {}
// SAFETY: as above; writing needs `&mut`, or `unsafe` through the raw pointer.
unsafe impl Sync for Block {}

impl Block {
    pub(super) fn new(start: NonNull<u8>, len: usize, class: Class, pool: Arc<Shared>) -> Block {
        Block { start, len, class, pool }
    }

    /// The bytes asked for.
    #[allow(clippy::len_without_is_empty, reason = "there are no empty blocks")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The first byte.
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// The first byte, to write.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The bytes, which may hold nothing yet.
    pub fn as_uninit(&self) -> &[MaybeUninit<u8>] {
        // SAFETY: `len` bytes from `start` are this block's; no promise is made on their contents.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len) }
    }

    /// The bytes, to write.
    pub fn as_uninit_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: as above, and `&mut self` makes this the only way to them.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.len) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: this block is the only way to its memory and ends here.
        unsafe { self.pool.give_back(self.start, self.class) };
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes at {:p})", self.len, self.start)
    }
}
