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
//! worker is up, it takes the job back and does it itself. Without that a call on a sleeping team
//! took 89 µs for an empty body on a two-core virtual machine (waking a halted core takes 45 µs
//! there, and the caller had gone to sleep too).
//!
//! Only the caller that holds the team writes the job, and only while the word is IDLE or PARKED;
//! the worker reads it only while the word is POSTED or WATCHED.

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
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
    job: UnsafeCell<Option<Job>>,
}

// SAFETY: `job` is handed over through `gate` as the module's diagram says; the body it points to
// is `Sync`.
unsafe impl Sync for Slot {}
// SAFETY: as above.
unsafe impl Send for Slot {}

impl Slot {
    /// A slot whose worker is yet to start, which looks like one that is yet to wake.
    pub(super) fn new() -> Slot {
        Slot { gate: Gate::new(PARKED), job: UnsafeCell::new(None) }
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
        if spin_until(spin, || !working(word.load(Acquire))) {
            return;
        }
        // Either it becomes WATCHED here, or the worker has finished and the loop ends at once.
        let _ = word.compare_exchange(POSTED, WATCHED, Relaxed, Relaxed);
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
                    let _ = word.compare_exchange(CALLED, POSTED, AcqRel, Relaxed);
                }
                QUIT => return None,
                // Up, but the job was taken back: the next one is likely soon.
                PARKED => {
                    let _ = word.compare_exchange(PARKED, IDLE, AcqRel, Relaxed);
                }
                _ => {
                    if !spin_until(spin, || word.load(Relaxed) != IDLE)
                        && word.compare_exchange(IDLE, PARKED, AcqRel, Relaxed).is_ok()
                    {
                        self.gate.sleep_while(PARKED);
                    }
                }
            }
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
