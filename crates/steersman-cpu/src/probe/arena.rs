//! Memory for the streams to run through, touched beforehand and timed while it is.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use crate::host::Host;
use crate::memory::{Block, MemoryPool};
use crate::threads::Team;

/// Memory that has been written to, for the streams to run through.
pub(super) struct Arena {
    block: Block,
    /// Bytes written so far; the rest is not used.
    touched: usize,
    /// Where the last walk through main memory ended, in elements.
    cursor: usize,
}

impl Arena {
    /// Touches fresh memory, four times the largest cache if the time allows; with the rate at which
    /// one thread did.
    pub(super) fn touch(host: &Host, team: &Team, slice: Duration) -> Option<(Arena, f64)> {
        let bytes = (4 * largest_cache(host)).clamp(8 << 20, 1 << 30);
        let share = host.memory.map_or(usize::MAX, |bytes| (bytes / 8) as usize);
        let mut block = MemoryPool::new(0).take(bytes.min(share) / STEP * STEP).ok()?;
        let started = Instant::now();
        let memory = block.as_uninit_mut();
        let touched_alone = touch_in_steps(memory, slice.div_f64(3.0), |step| step.fill(ZERO), STEP);
        let rate = touched_alone as f64 / started.elapsed().as_secs_f64();
        // The rest by all threads: a machine with many cores has much cache to go beyond.
        let left = slice.saturating_sub(started.elapsed());
        let rest = &mut memory[touched_alone..];
        let touched_together = touch_in_steps(
            rest,
            left,
            |steps| {
                let count = steps.len() / STEP;
                let lanes = Lanes::new(steps, STEP);
                let _ = team.run(count, &|part| {
                    // SAFETY: each part runs once, so no two threads get the same lane.
                    unsafe { lanes.get(part) }.fill(ZERO);
                });
            },
            STEP * team.max(),
        );
        Some((Arena { block, touched: touched_alone + touched_together, cursor: 0 }, rate))
    }

    /// Bytes that have been written to.
    pub(super) fn touched(&self) -> usize {
        self.touched
    }

    /// Where the next `elements` to walk through begin: on from the last, or at the start again.
    pub(super) fn advance(&mut self, elements: usize) -> usize {
        let all = self.touched / size_of::<f32>();
        let from = if self.cursor + elements > all { 0 } else { self.cursor };
        self.cursor = from + elements;
        from
    }

    /// The touched memory.
    pub(super) fn floats(&mut self) -> &mut [f32] {
        let len = self.touched / size_of::<f32>();
        // SAFETY: that much was written, blocks are aligned for any vector, and every bit pattern
        // is a float.
        unsafe { std::slice::from_raw_parts_mut(self.block.as_mut_ptr().cast(), len) }
    }
}

/// Whether data can be put out of all caches here.
pub(super) const FLUSHES: bool = cfg!(target_arch = "x86_64");

/// Puts memory out of all caches, where that can be done.
pub(super) fn flush(memory: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::{asm, x86_64 as x86};
        // Line after line it takes 130 ns each; many at once, a tenth of that.
        let (many, opt) = (x86::__cpuid(0).eax >= 7, 1 << 23);
        let many = many && x86::__cpuid_count(7, 0).ebx & opt != 0;
        for line in memory.chunks(64 / size_of::<f32>()).map(|line| line.as_ptr().cast::<u8>()) {
            // SAFETY: the line is memory of ours, nothing in it changes, and the processor has the instruction.
            unsafe {
                match many {
                    true => asm!("clflushopt [{0}]", in(reg) line, options(nostack, preserves_flags)),
                    false => x86::_mm_clflush(line),
                }
            }
        }
        // SAFETY: part of every x86-64.
        unsafe { x86::_mm_mfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = memory;
}

/// A huge page.
const STEP: usize = 2 << 20;
const ZERO: MaybeUninit<u8> = MaybeUninit::new(0);

/// Bytes in the largest cache; where none is known, as much as servers commonly have.
pub(super) fn largest_cache(host: &Host) -> usize {
    host.caches.last().map_or(32 << 20, |cache| cache.bytes)
}

/// Has `touch` write `memory` in pieces of `size` until all is written or `slice` has passed;
/// returns how many bytes were.
fn touch_in_steps(
    memory: &mut [MaybeUninit<u8>],
    slice: Duration,
    mut touch: impl FnMut(&mut [MaybeUninit<u8>]),
    size: usize,
) -> usize {
    let started = Instant::now();
    let mut touched = 0;
    for piece in memory.chunks_mut(size) {
        touch(piece);
        touched += piece.len();
        if started.elapsed() >= slice {
            break;
        }
    }
    touched
}

/// A slice cut into lanes of equal length, one for each thread.
pub(super) struct Lanes<'a, T> {
    start: *mut T,
    each: usize,
    count: usize,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: `get` hands each lane to one thread.
unsafe impl<T: Send> Sync for Lanes<'_, T> {}

impl<'a, T> Lanes<'a, T> {
    pub(super) fn new(memory: &'a mut [T], each: usize) -> Lanes<'a, T> {
        Lanes { start: memory.as_mut_ptr(), each, count: memory.len() / each, memory: PhantomData }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// One lane.
    ///
    /// # Safety
    /// No lane is asked for again while it is in use.
    #[allow(clippy::mut_from_ref, reason = "the promise above makes each lane the only one")]
    pub(super) unsafe fn get(&self, index: usize) -> &mut [T] {
        assert!(index < self.count, "one lane for each thread");
        // SAFETY: inside the memory, and apart from every other lane.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(index * self.each), self.each) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_out_of_the_caches_is_not_lost() {
        // No whole number of lines, and an odd beginning.
        let memory: Vec<f32> = (0..1003).map(|i| i as f32).collect();
        flush(&memory[1..]);
        flush(&[]);
        assert!(memory.iter().enumerate().all(|(i, x)| *x == i as f32));
    }

    #[test]
    fn touching_stops_when_its_time_is_over() {
        let mut memory = vec![MaybeUninit::new(1u8); 1000];
        assert_eq!(touch_in_steps(&mut memory, Duration::ZERO, |_| (), 300), 300);
        assert_eq!(touch_in_steps(&mut memory, Duration::MAX, |_| (), 300), 1000);
        assert_eq!(touch_in_steps(&mut [], Duration::MAX, |_| (), 300), 0);
    }
}
