//! Handing work to threads and reusing memory allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use steersman_cpu::memory::MemoryPool;
use steersman_cpu::threads::Team;

struct Counting;
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.load(Relaxed);
    work();
    ALLOCATIONS.load(Relaxed) - before
}

// One test, because the count is the whole process's.
#[test]
fn warm_runs_and_takes_allocate_nothing() {
    let team = Team::new(3);
    let pool = MemoryPool::new(1 << 20);
    // Both must have started and met the test's thread once.
    let all = std::sync::Barrier::new(3);
    let _ = team.run(3, &|_| {
        all.wait();
    });
    drop(pool.take(1000));
    let runs = allocations(|| {
        for parts in 0..1000 {
            let _ = team.run(parts % 7, &|_| ());
        }
    });
    let takes = allocations(|| {
        for _ in 0..1000 {
            assert!(pool.take(1000).is_ok());
        }
    });
    assert_eq!((runs, takes), (0, 0));
    assert!(allocations(|| drop(std::hint::black_box(Box::new(1)))) > 0, "the count works");
}
