//! Memory straight from the system.

use std::alloc::Layout;
use std::ptr::NonNull;

/// Every block starts at a multiple of this: a cache line, and the widest vector register.
pub(super) const ALIGN: usize = 64;

/// From here on blocks are mapped on their own, on huge pages where the system has them: fewer
/// page faults at first touch, fewer TLB misses after.
const HUGE: usize = 2 << 20;

/// `size` bytes at a multiple of [`ALIGN`], zeroed if asked; `None` if the system refuses.
pub(super) fn allocate(size: usize, zeroed: bool) -> Option<NonNull<u8>> {
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
        for size in [256, 4096, HUGE - 1024, HUGE, 5 * HUGE / 2, 8 * HUGE] {
            let start = allocate(size, true).expect("small enough for any machine");
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
        assert!(allocate(1 << 46, false).is_none());
        assert!(allocate(usize::MAX - 100, false).is_none());
    }
}
