//! Packing memory that is kept from call to call.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::thread::LocalKey;

/// Transparent huge pages are this large on x86-64 and on most AArch64.
const HUGE: usize = 2 << 20;
/// One cache line, and one AVX-512 register.
pub(super) const LINE: usize = 64;

/// Reusable, aligned packing memory: grows to the largest product seen, then allocates no more.
///
/// One per thread; [`Scratch::with_local`] lends the calling thread's own.
#[derive(Debug, Default)]
pub struct Scratch {
    memory: Option<(std::ptr::NonNull<u8>, Layout)>,
}

// SAFETY: the memory is owned by this value alone.
unsafe impl Send for Scratch {}

thread_local! {
    static LOCAL: RefCell<Scratch> = const { RefCell::new(Scratch::new()) };
}

impl Scratch {
    /// No memory yet.
    pub const fn new() -> Self {
        Scratch { memory: None }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.memory.map_or(0, |(_, layout)| layout.size())
    }

    /// Runs `f` with the calling thread's own scratch, or with a fresh one when `f` is nested.
    pub fn with_local<R>(f: impl FnOnce(&mut Scratch) -> R) -> R {
        Scratch::with(&LOCAL, f)
    }

    /// The same with another one of the calling thread's.
    pub(crate) fn with<R>(
        local: &'static LocalKey<RefCell<Scratch>>,
        f: impl FnOnce(&mut Scratch) -> R,
    ) -> R {
        local.with(|local| match local.try_borrow_mut() {
            Ok(mut scratch) => f(&mut scratch),
            Err(_) => f(&mut Scratch::new()),
        })
    }

    /// Two uninitialised, line-aligned pieces of `first` and `second` elements.
    pub(crate) fn pair<T>(&mut self, first: usize, second: usize) -> (*mut T, *mut T) {
        let bytes = |elements: usize| (elements * size_of::<T>()).next_multiple_of(LINE);
        let base = self.at_least(bytes(first) + bytes(second));
        // SAFETY: at_least returned that many bytes.
        (base.cast(), unsafe { base.add(bytes(first)) }.cast())
    }

    fn at_least(&mut self, bytes: usize) -> *mut u8 {
        if let Some((memory, layout)) = self.memory
            && layout.size() >= bytes
        {
            return memory.as_ptr();
        }
        self.release();
        // Large blocks are whole huge pages: one TLB entry then serves a whole packed block.
        let unit = if bytes >= HUGE / 2 { HUGE } else { LINE };
        let layout = Layout::from_size_align(bytes.max(LINE).next_multiple_of(unit), unit)
            .expect("packing blocks are far below isize::MAX");
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc(layout) };
        let Some(memory) = std::ptr::NonNull::new(memory) else { handle_alloc_error(layout) };
        #[cfg(target_os = "linux")]
        if unit == HUGE {
            // SAFETY: advice on our own allocation; a refusal changes nothing.
            unsafe { libc::madvise(memory.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
        }
        self.memory = Some((memory, layout));
        memory.as_ptr()
    }

    fn release(&mut self) {
        if let Some((memory, layout)) = self.memory.take() {
            // SAFETY: allocated with this layout in `at_least`.
            unsafe { dealloc(memory.as_ptr(), layout) };
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_request_reuses_the_memory() {
        let mut scratch = Scratch::new();
        let (first, _) = scratch.pair::<f32>(1000, 10);
        let held = scratch.bytes();
        let (again, second) = scratch.pair::<f64>(16, 3);
        assert_eq!((first as usize, held), (again as usize, scratch.bytes()));
        assert_eq!(second as usize - again as usize, 128);
    }

    #[test]
    fn pieces_start_on_cache_lines() {
        let mut scratch = Scratch::new();
        let (first, second) = scratch.pair::<f32>(7, 1 << 20);
        assert_eq!((first as usize % LINE, second as usize % LINE), (0, 0));
    }

    #[test]
    fn nested_use_of_the_local_scratch_gets_memory_of_its_own() {
        let (outer, inner) = Scratch::with_local(|outer| {
            let (a, _) = outer.pair::<u8>(64, 64);
            (a as usize, Scratch::with_local(|inner| inner.pair::<u8>(64, 64).0 as usize))
        });
        assert_ne!(outer, inner);
    }
}
