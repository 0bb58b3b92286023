//! What can go wrong, from knobs to kernels.

use crate::array::ArrayError;
use steersman_core::expr::ExprError;
use steersman_core::knobs::KnobError;
use steersman_core::units::Bytes;
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
    /// A frozen runtime was to learn.
    #[error(
        "this runtime was to {doing}, and the knob frozen forbids it to learn; unset STEERSMAN_FROZEN, or use a \
         runtime with frozen=false"
    )]
    Frozen {
        /// `calibrate`, ...
        doing: &'static str,
    },
    /// An array operation that cannot be.
    #[error(transparent)]
    Array(Box<ArrayError>),
    /// A fused group that cannot be.
    #[error(transparent)]
    Expr(#[from] ExprError),
    /// A plan needs more memory than there is; nothing has run.
    #[error(
        "computing this needs {} at its peak with {} in use, over the limit of {}; \
         read parts of it first, let results go sooner or raise memory.limit",
        Bytes(*.need), Bytes(*.in_use), Bytes(*.limit)
    )]
    PlanTooLarge {
        /// Bytes at the plan's peak.
        need: u64,
        /// Bytes in use already.
        in_use: u64,
        /// The knob memory.limit, or what the machine has.
        limit: u64,
    },
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
    /// A fused group that needs more than operands and room for one result.
    #[error(
        "'{workload}' is a fused group with {scalars} scalars and {results} results, and only operands and one result \
         can be handed over here; compute it with arrays, or split it into groups of one result without scalars"
    )]
    NotPlain {
        /// What was to run.
        workload: String,
        /// Scalars that a run must bring.
        scalars: usize,
        /// Results it has.
        results: usize,
    },
    /// Every kernel that could have run it failed.
    #[error("every kernel that can run '{workload}' failed; the last said: {last}")]
    AllFailed {
        /// What was to run.
        workload: String,
        /// The last failure.
        last: String,
    },
    /// A device is gone, and something that only it held.
    #[error(
        "'{what}' needs what only {place} held, and that was lost ({why}); compute it again from its inputs"
    )]
    Lost {
        /// What was to be read or run.
        what: String,
        /// The device's place.
        place: String,
        /// What is known of why.
        why: String,
    },
    /// A place without room for what a plan puts there; arrays then plan without it.
    #[error("{place} has no room for '{what}': {why}")]
    NoRoom {
        /// What was to run.
        what: String,
        /// Where.
        place: String,
        /// Why there is none.
        why: String,
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

impl From<ArrayError> for Error {
    fn from(why: ArrayError) -> Error {
        Error::Array(Box::new(why))
    }
}
