//! What can go wrong, from knobs to kernels.

use steersman_core::knobs::KnobError;
use steersman_core::wisdom::WisdomError;
use steersman_core::{EngineError, WorkloadError};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A knob is set to something it does not take.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// The workload cannot be.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Nothing can run it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Wisdom could not be written.
    #[error(transparent)]
    Wisdom(#[from] WisdomError),
    /// No memory for operands or results.
    #[error("no memory for '{workload}': {why}")]
    Memory {
        /// What was to run.
        workload: String,
        /// Why there is none.
        why: String,
    },
    /// The bytes given do not fit the workload.
    #[error("'{workload}' needs {need} bytes for {what}, got {got}")]
    Bytes {
        /// What was to run.
        workload: String,
        /// Which operand.
        what: String,
        /// Bytes needed.
        need: usize,
        /// Bytes given.
        got: usize,
    },
    /// Every kernel that could have run it failed.
    #[error("every kernel that can run '{workload}' failed; the last said: {last}")]
    AllFailed {
        /// What was to run.
        workload: String,
        /// The last failure.
        last: String,
    },
    /// A kernel failed on operands it had begun to overwrite.
    #[error(
        "{kernel} failed on '{workload}' in place ({why}); its operand is half overwritten and cannot be redone"
    )]
    HalfDone {
        /// What was to run.
        workload: String,
        /// Who failed.
        kernel: String,
        /// How.
        why: String,
    },
}
