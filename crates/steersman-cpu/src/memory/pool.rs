//! The pool: takes blocks from shelves or the system, and keeps the books.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::class::{Class, LARGEST};
use super::raw;
use super::shelf::{Idle, Shelf, Stamp};
use super::{Block, MemoryError, PoolStats};

/// How long a block may lie idle.
const KEEP_FOR: Duration = Duration::from_secs(10);
/// How often old blocks are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// A visit to a shelf reads the clock once in this many: the clock costs as much as the visit.
const VISITS_PER_CLOCK: u32 = 64;
/// Bytes up to which a touched block has room for the next power of two: of more, what nobody asked for is missed elsewhere.
const ROUNDED: usize = 1 << 30;

/// A pool of reusable memory; clones share it. See the [module](super) for an example.
#[derive(Clone)]
pub struct MemoryPool {
    shared: Arc<Shared>,
}

/// The books. Idle bytes are not counted but derived (owned less in use): that spares the quick
/// path an atomic operation each way.
pub(super) struct Shared {
    shelves: Box<[Mutex<Shelf>]>,
    began: Instant,
    /// Milliseconds since `began`, refreshed now and then.
    now: AtomicU64,
    next_sweep: AtomicU64,
    /// Idle bytes kept at most.
    idle_limit: usize,
    /// Bytes in use at most; `usize::MAX` for no limit.
    hard_limit: AtomicUsize,
    /// Bytes taken from the system and not given back.
    owned: AtomicUsize,
    in_use: AtomicUsize,
    peak: AtomicUsize,
    misses: AtomicU64,
    trimmed: AtomicU64,
}

impl MemoryPool {
    /// A pool that keeps at most `limit` idle bytes.
    pub fn new(limit: usize) -> MemoryPool {
        MemoryPool {
            shared: Arc::new(Shared {
                shelves: Class::all().map(|_| Mutex::default()).collect(),
                began: Instant::now(),
                now: AtomicU64::new(0),
                next_sweep: AtomicU64::new(millis(SWEEP_EVERY)),
                idle_limit: limit,
                hard_limit: AtomicUsize::new(usize::MAX),
                owned: AtomicUsize::new(0),
                in_use: AtomicUsize::new(0),
                peak: AtomicUsize::new(0),
                misses: AtomicU64::new(0),
                trimmed: AtomicU64::new(0),
            }),
        }
    }

    /// A block of `bytes` bytes whose contents are whatever they happen to be.
    pub fn take(&self, bytes: usize) -> Result<Block, MemoryError> {
        self.take_with(bytes, false)
    }

    /// A block of `bytes` bytes, all zero. Fresh memory is zero already, and is not written again.
    pub fn take_zeroed(&self, bytes: usize) -> Result<Block, MemoryError> {
        self.take_with(bytes, true)
    }

    /// A block of `bytes` bytes in the smallest idle one that has room, whatever its size; a fresh one has room for the next
    /// power of two up to a gigabyte. For who takes all sizes in turn and wants memory that was touched before.
    pub fn take_touched(&self, bytes: usize) -> Result<Block, MemoryError> {
        let least = Class::holding(bytes.min(LARGEST));
        let touched = |class: &Class| self.shared.shelf(*class).oldest().is_some();
        let fresh = || match bytes > ROUNDED {
            true => least,
            false => Class::holding(bytes.next_power_of_two()),
        };
        let class = Class::all().skip(least.index()).find(touched).unwrap_or_else(fresh);
        self.take_of(class, bytes, false)
    }

    fn take_with(&self, bytes: usize, zeroed: bool) -> Result<Block, MemoryError> {
        self.take_of(Class::holding(bytes.min(LARGEST)), bytes, zeroed)
    }

    fn take_of(&self, class: Class, bytes: usize, zeroed: bool) -> Result<Block, MemoryError> {
        if bytes == 0 {
            return Err(MemoryError::Empty);
        }
        if bytes > LARGEST {
            return Err(MemoryError::TooLarge { asked: bytes, most: LARGEST });
        }
        self.shared.charge(bytes, class.size())?;
        let start = self.shared.get(bytes, class, zeroed).inspect_err(|_| {
            self.shared.in_use.fetch_sub(class.size(), Relaxed);
        })?;
        Ok(Block::new(start, bytes, class, Arc::clone(&self.shared)))
    }

    /// What the pool holds and has done. While other threads use it, a snapshot of moving parts.
    pub fn stats(&self) -> PoolStats {
        let shared = &self.shared;
        PoolStats {
            in_use: shared.in_use.load(Relaxed),
            idle: shared.idle(),
            peak: shared.peak.load(Relaxed),
            hits: Class::all().map(|class| shared.shelf(class).hits).sum(),
            misses: shared.misses.load(Relaxed),
            trimmed: shared.trimmed.load(Relaxed),
        }
    }

    /// Gives idle blocks back to the system, oldest first, until at most `keep` bytes lie idle.
    pub fn trim(&self, keep: usize) {
        self.shared.trim(keep);
    }

    /// The limit that was set, if one was.
    pub fn hard_limit(&self) -> Option<usize> {
        Some(self.shared.hard_limit.load(Relaxed)).filter(|limit| *limit != usize::MAX)
    }

    /// Refuses blocks that would bring the bytes in use above `limit`; `None` lifts the limit.
    pub fn set_hard_limit(&self, limit: Option<usize>) {
        self.shared.hard_limit.store(limit.unwrap_or(usize::MAX), Relaxed);
    }
}

fn millis(duration: Duration) -> Stamp {
    duration.as_millis() as Stamp
}

impl Shared {
    fn shelf(&self, class: Class) -> MutexGuard<'_, Shelf> {
        self.shelves[class.index()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle(&self) -> usize {
        self.owned.load(Relaxed).saturating_sub(self.in_use.load(Relaxed))
    }

    /// Counts `size` bytes as in use, if the hard limit allows.
    fn charge(&self, asked: usize, size: usize) -> Result<(), MemoryError> {
        let limit = self.hard_limit.load(Relaxed);
        let in_use = if limit == usize::MAX {
            self.in_use.fetch_add(size, Relaxed)
        } else {
            self.in_use
                .fetch_update(Relaxed, Relaxed, |now| now.checked_add(size).filter(|&sum| sum <= limit))
                .map_err(|in_use| MemoryError::OverLimit { asked, in_use, limit })?
        } + size;
        if in_use > self.peak.load(Relaxed) {
            self.peak.fetch_max(in_use, Relaxed);
        }
        Ok(())
    }

    fn get(&self, asked: usize, class: Class, zeroed: bool) -> Result<NonNull<u8>, MemoryError> {
        let (found, visits) = {
            let mut shelf = self.shelf(class);
            shelf.visits = shelf.visits.wrapping_add(1);
            (shelf.newest(), shelf.visits)
        };
        if visits.is_multiple_of(VISITS_PER_CLOCK) {
            self.sweep_if_due();
        }
        let Some(start) = found else {
            return self.fresh(asked, class.size(), zeroed);
        };
        if zeroed {
            // SAFETY: the block is this caller's alone and has room for `asked` bytes.
            unsafe { start.write_bytes(0, asked) };
        }
        Ok(start)
    }

    #[cold]
    fn fresh(&self, asked: usize, size: usize, zeroed: bool) -> Result<NonNull<u8>, MemoryError> {
        self.sweep_if_due();
        let number = self.misses.fetch_add(1, Relaxed);
        let start = raw::allocate(size, zeroed, number).or_else(|| {
            // Not `trim`: this request is counted as in use and not yet as owned.
            self.sweep(Stamp::MAX);
            raw::allocate(size, zeroed, number)
        });
        let refused = || {
            let in_use = self.in_use.load(Relaxed).saturating_sub(size);
            MemoryError::Refused { asked, in_use }
        };
        let start = start.ok_or_else(refused)?;
        self.owned.fetch_add(size, Relaxed);
        Ok(start)
    }

    /// Takes a block back.
    ///
    /// # Safety
    /// `start` came from [`Shared::get`] for this class and is not used any more.
    pub(super) unsafe fn give_back(&self, start: NonNull<u8>, class: Class) {
        let size = class.size();
        if size > self.idle_limit {
            self.in_use.fetch_sub(size, Relaxed);
            // SAFETY: the caller's promise.
            return unsafe { self.release(start, size) };
        }
        let (kept, visits) = {
            let mut shelf = self.shelf(class);
            shelf.visits = shelf.visits.wrapping_add(1);
            (shelf.keep(Idle { start, since: self.now.load(Relaxed) }), shelf.visits)
        };
        self.in_use.fetch_sub(size, Relaxed);
        if let Err(block) = kept {
            // SAFETY: the caller's promise; the shelf did not keep it.
            return unsafe { self.release(block.start, size) };
        }
        if visits.is_multiple_of(VISITS_PER_CLOCK) {
            self.read_clock();
        }
        if self.idle() > self.idle_limit {
            // An eighth below, so that a pool at its limit does not search its shelves each time.
            self.trim(self.idle_limit - self.idle_limit / 8);
        }
    }

    /// # Safety
    /// `start` is a block of `size` bytes from this pool that is on no shelf and not in use.
    unsafe fn release(&self, start: NonNull<u8>, size: usize) {
        // SAFETY: the caller's promise.
        unsafe { raw::release(start, size) };
        self.owned.fetch_sub(size, Relaxed);
        self.trimmed.fetch_add(size as u64, Relaxed);
    }

    fn read_clock(&self) -> Stamp {
        let now = millis(self.began.elapsed());
        self.now.fetch_max(now, Relaxed);
        now
    }

    fn sweep_if_due(&self) {
        let now = self.read_clock();
        let due = self.next_sweep.load(Relaxed);
        let next = now + millis(SWEEP_EVERY);
        if now >= due && self.next_sweep.compare_exchange(due, next, Relaxed, Relaxed).is_ok() {
            self.sweep(now);
        }
    }

    /// Gives back what has lain idle for too long at `now`.
    fn sweep(&self, now: Stamp) {
        let Some(before) = now.checked_sub(millis(KEEP_FOR)) else { return };
        for class in Class::all() {
            while let Some(start) = self.remove_oldest(class, before) {
                // SAFETY: just taken off its shelf.
                unsafe { self.release(start, class.size()) };
            }
        }
    }

    fn trim(&self, keep: usize) {
        // Stamps are milliseconds, so the class of the oldest block is searched for once for all
        // blocks that are as old.
        while self.idle() > keep {
            let oldest = Class::all().filter_map(|class| Some((self.shelf(class).oldest()?, class)));
            let Some((since, class)) = oldest.min_by_key(|(since, _)| *since) else { return };
            while self.idle() > keep
                && let Some(start) = self.remove_oldest(class, since)
            {
                // SAFETY: just taken off its shelf.
                unsafe { self.release(start, class.size()) };
            }
        }
    }

    /// A function of its own so that the lock is let go before the system is called.
    fn remove_oldest(&self, class: Class, before: Stamp) -> Option<NonNull<u8>> {
        self.shelf(class).remove_oldest(before)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Blocks hold the pool, so none is in use here: all there is lies on shelves.
        self.sweep(Stamp::MAX);
    }
}

#[cfg(test)]
mod tests;
