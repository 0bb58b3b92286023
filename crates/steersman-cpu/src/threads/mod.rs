//! Threads that are handed work in a fraction of a microsecond.
//!
//! A kernel that splits its work asks a [`Team`] to run each part; the call returns when all are
//! done, and says whether they really ran side by side.
//!
//! ```
//! use std::sync::atomic::{AtomicUsize, Ordering};
//! use steersman_cpu::threads::Team;
//!
//! let team = Team::new(4);
//! let sum = AtomicUsize::new(0);
//! let outcome = team.run(4, &|part| {
//!     sum.fetch_add(part, Ordering::Relaxed);
//! });
//! assert_eq!(sum.into_inner(), 6);
//! println!("{outcome:?}"); // Parallel, or why not
//! ```
//!
//! How it keeps the hand-off short: a worker that has just finished spins for a moment before it
//! sleeps, and each worker has one cache line of its own over which it gets its work and reports
//! back. A worker that is asleep is called but not waited for: what it has not begun when the caller
//! is through with its own part, the caller does too. Nothing is queued: a team that is busy is not waited for, the caller does the work alone
//! and [`Outcome`] tells, so that the time it took is not taken for the parallel one.

mod calm;
mod gate;
mod prevailing;
mod slot;
mod team;
mod tempo;
mod usual;
mod whole;

pub use calm::Calm;
pub use team::Team;
pub use tempo::Tempo;
pub use whole::Whole;

/// How the parts of one [`Team::run`] were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a run that turned out serial says nothing about the parallel time"]
pub enum Outcome {
    /// By the caller and workers side by side.
    Parallel,
    /// By the caller and workers, of which one was last seen on the caller's core: another process holds the
    /// others, or the system had not moved it yet. They took turns rather than ran side by side.
    Crowded,
    /// By the caller and some workers; others were asleep and not up in time, and the caller ran their parts too.
    Partly,
    /// One after another on the calling thread.
    Serial {
        /// What stood in the way.
        reason: WhySerial,
    },
}

impl Outcome {
    /// Whether the parts ran side by side, all of them.
    pub fn is_parallel(self) -> bool {
        self == Outcome::Parallel
    }
}

/// Why a run stayed on the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhySerial {
    /// Another caller was using the team.
    Busy,
    /// The caller is itself a part of a parallel run.
    Nested,
    /// There was at most one part to run.
    OnePart,
    /// The workers were asleep, and the caller was through before any of them was up.
    Asleep,
    /// The team has no workers: it is a team of one, or the system refused to start threads.
    NoWorkers,
}
