//! Memory straight from the system.

use std::alloc::Layout;
use std::ptr::NonNull;

/// Every block starts at a multiple of this: a cache line, and the widest vector register.
pub(super) const ALIGN: usize = 64;

/// From here on blocks are mapped on their own, on huge pages where the system has them: fewer
/// page faults at first touch, fewer TLB misses after.
const HUGE: usize = 2 << 20;

/// Blocks from here on do not all start at the same place of their pages: elements of several arrays at one
/// position would meet in the same bank of memory and the same lines of every cache. `add` of 96 million `f32` whose
/// arrays lay a power of two apart moved 25 GB/s on two Zen 4 cores, with a step between them 34 to 37; past the
/// cache 35 against 45.
const STAGGERED: usize = 4 * HUGE;
/// Bytes from the start of one block to that of the next, in their pages; 256 did as well as a megabyte.
const APART: usize = (64 << 10) + 256;
/// Different starts; then they repeat.
const STARTS: usize = 16;

/// `size` bytes at a multiple of [`ALIGN`], zeroed if asked; `None` if the system refuses. Blocks with numbers
/// that follow each other do not get in each other's way.
pub(super) fn allocate(size: usize, zeroed: bool, number: u64) -> Option<NonNull<u8>> {
    if cfg!(target_os = "linux") && size >= STAGGERED {
        let start = number as usize % STARTS * APART;
        // SAFETY: below HUGE, which is how much more was mapped.
        return Some(unsafe { map(size.checked_add(HUGE)?)?.add(start) });
    }
    if cfg!(target_os = "linux") && size >= HUGE {
        return map(size);
    }
    let layout = Layout::from_size_align(size, ALIGN).ok()?;
    // SAFETY: classes are never empty.
    NonNull::new(unsafe { if zeroed { std::alloc::alloc_zeroed(layout) } else { std::alloc::alloc(layout) } })
}

/// Gives memory back.
///
/// # Safety
/// `start` came from [`allocate`] with the same size and is not used any more.
pub(super) unsafe fn release(start: NonNull<u8>, size: usize) {
    if cfg!(target_os = "linux") && size >= STAGGERED {
        let into = start.as_ptr() as usize % HUGE;
        // SAFETY: the caller's promise; the mapping begins at the multiple of HUGE below.
        return unsafe { unmap(start.sub(into), size + HUGE) };
    }
    if cfg!(target_os = "linux") && size >= HUGE {
        // SAFETY: the caller's promise; `map` left a mapping of exactly this range.
        return unsafe { unmap(start, size) };
    }
    // SAFETY: the caller's promise; the layout was valid when it was allocated.
    unsafe { std::alloc::dealloc(start.as_ptr(), Layout::from_size_align_unchecked(size, ALIGN)) }
}

/// Fresh pages, which the system zeroes, at a multiple of [`HUGE`].
#[cfg(target_os = "linux")]
fn map(size: usize) -> Option<NonNull<u8>> {
    let reserved = size.checked_add(HUGE)?;
    // SAFETY: a new private mapping wherever the system likes.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            reserved,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return None;
    }
    let head = start.cast::<u8>().align_offset(HUGE);
    // SAFETY: `head` is below HUGE, so the block and both ends lie inside the mapping; sizes of
    // HUGE and more are multiples of the page size, as is `start`.
    unsafe {
        let block = start.cast::<u8>().add(head);
        if head > 0 {
            libc::munmap(start, head);
        }
        if head < HUGE {
            libc::munmap(block.add(size).cast(), HUGE - head);
        }
        // Advice: where it is not taken the block works all the same.
        libc::madvise(block.cast(), size, libc::MADV_HUGEPAGE);
        NonNull::new(block)
    }
}

#[cfg(target_os = "linux")]
unsafe fn unmap(start: NonNull<u8>, size: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(start.as_ptr().cast(), size) };
}

#[cfg(not(target_os = "linux"))]
fn map(_: usize) -> Option<NonNull<u8>> {
    None
}

#[cfg(not(target_os = "linux"))]
unsafe fn unmap(_: NonNull<u8>, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_writable_to_its_end_and_zero_when_asked() {
        for (number, size) in
            [256, 4096, HUGE - 1024, HUGE, 5 * HUGE / 2, 8 * HUGE, 9 * HUGE].into_iter().enumerate()
        {
            let start = allocate(size, true, 11 + number as u64).expect("small enough for any machine");
            assert_eq!(start.as_ptr() as usize % ALIGN, 0);
            // SAFETY: inside what was allocated, freed with its own size, once.
            unsafe {
                assert_eq!((start.read(), start.add(size - 1).read()), (0, 0));
                start.write(1);
                start.add(size - 1).write(1);
                release(start, size);
            }
        }
    }

    #[test]
    fn what_no_machine_has_is_refused() {
        assert!(allocate(1 << 46, false, 0).is_none());
        assert!(allocate(usize::MAX - 100, false, 0).is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn large_blocks_start_at_different_places_of_their_pages() {
        let starts: Vec<usize> = (0..STARTS as u64)
            .map(|number| {
                let start = allocate(STAGGERED, false, number).expect("small enough for any machine");
                // SAFETY: allocated just now with this size.
                unsafe { release(start, STAGGERED) };
                start.as_ptr() as usize % HUGE
            })
            .collect();
        for (i, a) in starts.iter().enumerate() {
            assert!(starts[..i].iter().all(|b| a % (1 << 18) != b % (1 << 18)), "{starts:?}");
        }
    }
}
