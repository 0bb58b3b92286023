//! One worker's mailbox: a cache line over which the caller hands it work and hears it is done.
//!
//! ```text
//!            caller posts                    worker finishes
//!   IDLE ──────────────────────────► POSTED ──────────────────► IDLE
//!    │ ▲ worker is up,                ▲   │ caller tires of spinning
//!    ▼ │ nothing to do                │   ▼
//!   PARKED ── posts, wakes ─► CALLED ─┘  WATCHED ── worker finishes, wakes the caller
//!      ▲                        │ worker is up
//!      └── caller takes it back ┘
//! ```
//! A worker found asleep is only called: if the caller is through with its own part before the
//! worker is up, it takes the job back and does it itself. A sleeper is up after 5 to 25 µs on a
//! quiet two-core virtual machine, and the caller need not lose them on work that is shorter.
//!
//! When another process holds the other cores, caller and worker end up on one: whoever spins there
//! keeps the other from running: 45 µs for a round trip that takes 0.13 on two cores. So each
//! leaves a note of its core and spins only for someone on another, which makes it 4.5 µs.
//!
//! Only the caller that holds the team writes the job, and only while the word is IDLE or PARKED;
//! the worker reads it only while the word is POSTED or WATCHED.

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicU32};
use std::time::Duration;

use super::gate::{Gate, spin_until};

const IDLE: u32 = 0;
const POSTED: u32 = 1;
const PARKED: u32 = 2;
const WATCHED: u32 = 3;
const CALLED: u32 = 4;
const QUIT: u32 = 5;

/// What a worker is asked to do. The pointer is good until the worker calls [`Slot::finish`].
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) body: *const (dyn Fn(usize) + Sync + 'static),
    /// The part to run; with `shared`, ignored.
    pub(super) part: usize,
    pub(super) parts: usize,
    /// Whether parts are drawn from the team's counter rather than assigned.
    pub(super) shared: bool,
}

// 128: neighbouring lines are fetched in pairs on Intel, and AArch64 has 128-byte lines.
#[repr(align(128))]
pub(super) struct Slot {
    gate: Gate,
    /// The core the worker was last seen on.
    worker_core: AtomicU32,
    /// The core the caller was on when it last called the worker up or went to sleep itself.
    caller_core: AtomicU32,
    /// The worker's thread, 0 until it runs or where the system does not tell.
    worker: AtomicI32,
    job: UnsafeCell<Option<Job>>,
}

/// How long the caller spins before it looks where the worker is.
const FIRST_SPIN: Duration = Duration::from_micros(2);

/// Not a core.
const UNKNOWN: u32 = u32::MAX;

/// The core this thread is on now, [`UNKNOWN`] where the system does not tell.
fn core_now() -> u32 {
    #[cfg(target_os = "linux")]
    // SAFETY: a plain query; -1, which is UNKNOWN, on failure.
    let core = unsafe { libc::sched_getcpu() } as u32;
    #[cfg(not(target_os = "linux"))]
    let core = UNKNOWN;
    core
}

/// Whether a noted core is the one this thread is on.
fn is_here(noted: &AtomicU32) -> bool {
    let here = core_now();
    here != UNKNOWN && noted.load(Relaxed) == here
}

// SAFETY: `job` is handed over through `gate` as the module's diagram says; the body it points to
// is `Sync`.
unsafe impl Sync for Slot {}
// SAFETY: as above.
unsafe impl Send for Slot {}

impl Slot {
    /// A slot whose worker is yet to start, which looks like one that is yet to wake.
    pub(super) fn new() -> Slot {
        Slot {
            gate: Gate::new(PARKED),
            worker_core: AtomicU32::new(UNKNOWN),
            caller_core: AtomicU32::new(UNKNOWN),
            worker: AtomicI32::new(0),
            job: UnsafeCell::new(None),
        }
    }

    /// Hands the worker a job.
    ///
    /// # Safety
    /// The caller holds the team, has waited for every job posted before, and keeps what the job
    /// points to alive until [`Slot::take_back`] has succeeded or [`Slot::wait_finished`] returned.
    pub(super) unsafe fn post(&self, job: Job) {
        // SAFETY: the worker has finished (the word is IDLE or PARKED), so it does not read.
        unsafe { *self.job.get() = Some(job) };
        let word = &self.gate.word;
        while word.compare_exchange(IDLE, POSTED, AcqRel, Relaxed).is_err() {
            self.caller_core.store(core_now(), Relaxed);
            if word.compare_exchange(PARKED, CALLED, AcqRel, Relaxed).is_ok() {
                return self.gate.wake();
            }
        }
    }

    /// Takes the job back if the worker was asleep and is not up yet.
    pub(super) fn take_back(&self) -> bool {
        let word = &self.gate.word;
        word.load(Relaxed) == CALLED && word.compare_exchange(CALLED, PARKED, AcqRel, Relaxed).is_ok()
    }

    /// Waits until the worker has finished what was posted and not taken back.
    pub(super) fn wait_finished(&self, spin: Duration) {
        let word = &self.gate.word;
        let working = |now: u32| now == POSTED || now == WATCHED;
        let mut finished = || !working(word.load(Acquire));
        if spin_until(spin.min(FIRST_SPIN), &mut finished)
            || !is_here(&self.worker_core) && spin_until(spin, finished)
        {
            return;
        }
        self.caller_core.store(core_now(), Relaxed);
        // Either it becomes WATCHED here, or the worker has finished and the loop ends at once.
        let _ = word.compare_exchange(POSTED, WATCHED, Release, Relaxed);
        while working(word.load(Acquire)) {
            self.gate.sleep_while(WATCHED);
        }
    }

    /// The worker's side: waits for a job; `None` when it should end.
    pub(super) fn next(&self, spin: Duration) -> Option<Job> {
        let word = &self.gate.word;
        loop {
            match word.load(Acquire) {
                // SAFETY: POSTED or WATCHED: the caller has written the job and will not write
                // again before this worker calls `finish`.
                POSTED | WATCHED => return unsafe { *self.job.get() },
                CALLED => {
                    self.note_worker();
                    let _ = word.compare_exchange(CALLED, POSTED, AcqRel, Relaxed);
                }
                QUIT => return None,
                // Up, but the job was taken back: the next one is likely soon.
                PARKED => {
                    let _ = word.compare_exchange(PARKED, IDLE, AcqRel, Relaxed);
                }
                _ => {
                    self.note_worker();
                    let spin = if is_here(&self.caller_core) { Duration::ZERO } else { spin };
                    if !spin_until(spin, || word.load(Relaxed) != IDLE)
                        && word.compare_exchange(IDLE, PARKED, AcqRel, Relaxed).is_ok()
                    {
                        self.gate.sleep_while(PARKED);
                    }
                }
            }
        }
    }

    /// The caller's side: whether the worker was last seen on the caller's core.
    pub(super) fn is_on_this_core(&self) -> bool {
        is_here(&self.worker_core)
    }

    /// The worker's side: leaves word of which thread it is.
    pub(super) fn introduce(&self) {
        #[cfg(target_os = "linux")]
        // SAFETY: a plain query.
        self.worker.store(unsafe { libc::gettid() }, Relaxed);
    }

    /// The caller's side: moves the worker to any core but this one. Left alone, the scheduler may keep both
    /// on one core for milliseconds (15 µs for a run that takes 3), since each of them sleeps for the other.
    #[cold]
    pub(super) fn send_away(&self) {
        #[cfg(target_os = "linux")]
        {
            let (worker, here) = (self.worker.load(Relaxed), core_now());
            if worker == 0 || here == UNKNOWN {
                return;
            }
            let size = std::mem::size_of::<libc::cpu_set_t>();
            // SAFETY: the set is plain bits, of the size that is passed; `worker` is a thread of this process
            // that lives as long as the team, or a number that the system refuses.
            unsafe {
                let mut cores: libc::cpu_set_t = std::mem::zeroed();
                if libc::sched_getaffinity(0, size, &mut cores) != 0 || (here as usize) >= 8 * size {
                    return;
                }
                libc::CPU_CLR(here as usize, &mut cores);
                if libc::CPU_COUNT(&cores) > 0 {
                    libc::sched_setaffinity(worker, size, &cores);
                }
            }
        }
    }

    /// The worker's side: leaves a note of its core.
    fn note_worker(&self) {
        let core = core_now();
        // Written only when it changes: the caller may be looking at this line.
        if self.worker_core.load(Relaxed) != core {
            self.worker_core.store(core, Relaxed);
        }
    }

    /// The worker's side: it no longer uses the job.
    pub(super) fn finish(&self) {
        if self.gate.word.swap(IDLE, AcqRel) == WATCHED {
            self.gate.wake();
        }
    }

    /// Tells the worker to end. No job may be under way.
    pub(super) fn quit(&self) {
        if self.gate.word.swap(QUIT, AcqRel) == PARKED {
            self.gate.wake();
        }
    }
}
