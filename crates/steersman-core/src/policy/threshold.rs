//! The rule most programs have today: one thread below a size, all threads above it.

use super::{Choice, Policy, Query, confidence};
use crate::log::ReasonCode;

/// Widest serial kernel below a number of elements, widest kernel on all threads from there on.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    /// Elements from which all threads are used.
    pub elements: usize,
}

impl Policy for Threshold {
    fn name(&self) -> &'static str {
        "threshold"
    }

    fn choose(&self, q: &Query<'_>) -> Choice {
        let w = q.workload;
        let elements = w.inputs().iter().chain([w.output()]).map(|o| o.elements()).max().unwrap_or(0);
        let most = q.candidates.iter().map(|c| c.variant.params.threads).max().unwrap_or(1);
        let threads = if elements >= self.elements { most } else { 1 };
        // Kernels are registered plainest first, so the last is the widest.
        let index = q
            .candidates
            .iter()
            .rposition(|c| c.variant.params.threads == threads)
            .unwrap_or(q.candidates.len() - 1);
        Choice {
            index,
            reason: ReasonCode::Threshold,
            confidence: confidence(q.candidates, index, q.tie_band),
        }
    }
}
