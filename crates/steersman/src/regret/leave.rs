//! Leave to go on, asked for between runs: a judge who cannot be interrupted keeps people waiting for minutes.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Between runs it is not asked more often than this: asking may draw, and runs take microseconds.
const OFTEN: Duration = Duration::from_millis(50);

/// Who is told how far the judge is, and may break it off.
pub(super) struct Leave<'a> {
    progress: &'a mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    /// Workloads that were begun, and all of them.
    at: (usize, usize),
    asked: Instant,
    broken: bool,
}

impl<'a> Leave<'a> {
    pub(super) fn new(
        workloads: usize,
        progress: &'a mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Leave<'a> {
        Leave { progress, at: (0, workloads), asked: Instant::now(), broken: false }
    }

    /// Whether to go on to this workload; to the one after the last where those are looked at again.
    pub(super) fn to(&mut self, workload: usize) -> bool {
        self.at.0 = workload;
        self.is_given()
    }

    /// Whether to go on, asked now.
    pub(super) fn is_given(&mut self) -> bool {
        self.asked = Instant::now();
        self.broken |= (self.progress)(self.at.0, self.at.1).is_break();
        !self.broken
    }

    /// The same between two runs.
    pub(super) fn between_runs(&mut self) -> ControlFlow<()> {
        let given = if self.asked.elapsed() < OFTEN { !self.broken } else { self.is_given() };
        if given { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Whether it was ever refused.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }
}
