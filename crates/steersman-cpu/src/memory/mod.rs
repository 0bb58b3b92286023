//! Memory for results, kept for the next result.
//!
//! The first touch of fresh pages runs at about 2 GB/s, far below what memory can take, so a block
//! that was let go is handed out again:
//!
//! ```
//! use steersman_cpu::memory::MemoryPool;
//!
//! let pool = MemoryPool::new(64 << 20); // keep at most 64 MiB that nobody uses
//! let first = pool.take(1000)?;
//! let address = first.as_ptr();
//! drop(first);
//! assert_eq!(pool.take(1000)?.as_ptr(), address);
//! assert_eq!(pool.stats().hits, 1);
//! # Ok::<(), steersman_cpu::memory::MemoryError>(())
//! ```
//!
//! Sizes are rounded up to classes at most 25% apart. What lies idle is bounded by the limit and
//! by age, oldest out first; there is no thread behind it, the work is done by later calls.

mod block;
mod class;
mod pool;
mod raw;
mod shelf;

pub use block::Block;
pub use pool::MemoryPool;

/// What a pool holds and has done. Sizes are in bytes, as rounded up to size classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Bytes in blocks that are out.
    pub in_use: usize,
    /// Bytes kept for later.
    pub idle: usize,
    /// The most `in_use` has been.
    pub peak: usize,
    /// Blocks that were handed out again.
    pub hits: u64,
    /// Blocks that had to come from the system.
    pub misses: u64,
    /// Bytes given back to the system.
    pub trimmed: u64,
}

/// Why a pool gave no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// No bytes were asked for.
    #[error("asked the memory pool for 0 bytes; an empty result needs no block")]
    Empty,
    /// More than any machine has.
    #[error(
        "asked the memory pool for {asked} bytes, more than the {most} it can ever give; check the shapes"
    )]
    TooLarge {
        /// Bytes asked for.
        asked: usize,
        /// The largest block there is.
        most: usize,
    },
    /// The hard limit on memory in use does not allow it.
    #[error(
        "asked the memory pool for {asked} bytes with {in_use} in use, over its limit of {limit}; \
         let results go sooner or raise the limit"
    )]
    OverLimit {
        /// Bytes asked for.
        asked: usize,
        /// Bytes in blocks that were out at the time.
        in_use: usize,
        /// The hard limit.
        limit: usize,
    },
    /// The system has no more, even after all idle blocks were given back.
    #[error(
        "asked the system for {asked} bytes with {in_use} in use and it refused; free memory or use smaller arrays"
    )]
    Refused {
        /// Bytes asked for.
        asked: usize,
        /// Bytes in blocks that were out at the time.
        in_use: usize,
    },
}
