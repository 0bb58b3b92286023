//! Honest timing: candidates interleaved, warmed up, batched well above the timer's resolution.
//!
//! A [`Rig`] can run any variant of one workload again and again; [`contest`] times several of them in
//! turns, so that whatever disturbs the machine disturbs all alike.

mod contest;
mod duel;
mod series;

pub use contest::{Contest, contest};
pub(crate) use contest::{UNMOVED, panic_text};
pub use duel::Duel;
pub use series::Series;

use crate::cost::Variant;
use crate::kernel::{KernelError, Ran};
use std::time::Duration;

/// One workload laid out in memory, ready to be run by any variant.
pub trait Rig: Send {
    /// Runs it once.
    fn run(&mut self, variant: Variant) -> Result<Ran, KernelError>;

    /// Runs the variant and the reference on the same operands and compares: an error says how they differ.
    fn check(&mut self, variant: Variant) -> Result<(), String>;

    /// Called before every sample of a variant, outside its time: for what must be awake to be timed.
    fn rouse(&mut self, variant: Variant) {
        let _ = variant;
    }

    /// Whether the machine is undisturbed as far as can be told: asked after every sample of a parallel variant,
    /// and one taken otherwise is marked, not trusted.
    fn quiet(&mut self) -> bool {
        true
    }

    /// Whether so many threads have their cores to themselves, as far as can be told, for which it waits so long at most:
    /// asked before and after every sample, which is taken again if not.
    fn whole(&mut self, threads: usize, longest: Duration) -> bool {
        let _ = (threads, longest);
        true
    }

    /// Takes the present for undisturbed: it has gone on too long to wait.
    fn accept(&mut self) {}
}
