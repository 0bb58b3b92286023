//! A calibration under way: what it asks, whom it tells, and what becomes of kernels that fail in it.

use super::watchdog::{Timed, Watchdog};
use super::{Bench, Calibration, Progress, Report};
use crate::cost::Variant;
use crate::engine::Engine;
use crate::guard::Offence;
use crate::measure::{Contest, Rig, Series};
use crate::workload::Workload;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

pub(super) struct Course<'a> {
    pub(super) engine: &'a Engine,
    pub(super) how: &'a Calibration,
    pub(super) report: Report,
    bench: &'a dyn Bench,
    progress: &'a mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    watchdog: Watchdog,
    started: Instant,
}

impl<'a> Course<'a> {
    pub(super) fn start(
        engine: &'a Engine,
        bench: &'a dyn Bench,
        how: &'a Calibration,
        progress: &'a mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Course<'a> {
        let (report, watchdog, started) = (Report::default(), Watchdog::new(), Instant::now());
        Course { engine, how, report, bench, progress, watchdog, started }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// What is left of the budget: nothing once it was interrupted.
    pub(super) fn left(&self) -> Duration {
        match self.report.interrupted {
            true => Duration::ZERO,
            false => self.how.budget.saturating_sub(self.elapsed()),
        }
    }

    /// Whether there is no time left until then, or it was interrupted.
    pub(super) fn is_over(&self, until: Instant) -> bool {
        self.report.interrupted || Instant::now() >= until
    }

    /// Lays out a workload, unless whoever watches has broken it off or there is no room.
    pub(super) fn lay_out(&mut self, w: &Workload) -> Option<Box<dyn Rig>> {
        let done = self.elapsed().as_secs_f64() / self.how.budget.as_secs_f64().max(1e-9);
        let progress = Progress { done: done.min(1.0), left: self.left(), workload: w };
        if self.report.interrupted || (self.progress)(progress).is_break() {
            self.report.interrupted = true;
            return None;
        }
        self.bench.rig(w).map_err(|why| self.report.skipped.push((w.to_string(), why))).ok()
    }

    /// Compares those of `unchecked` with the reference and times `variants`. What fails, hangs or is wrong is put into
    /// quarantine and has no series; after one that hung the others are timed anew without it.
    pub(super) fn time(
        &mut self,
        mut rig: Box<dyn Rig>,
        w: &Workload,
        mut variants: Vec<Variant>,
        mut unchecked: Vec<Variant>,
        contest: &Contest,
    ) -> Vec<Series> {
        let timeout = self.how.timeout;
        loop {
            let timed =
                self.watchdog.contest(rig, variants.clone(), unchecked.clone(), contest.clone(), timeout);
            let hung = match timed {
                Timed::Done { series, wrong } => return self.sound(w, series, wrong),
                Timed::Hung(variant) => variant,
            };
            let why = format!("did not come back within {:.1} s", timeout.as_secs_f64());
            self.put_away(hung, w, Offence::Hung, why);
            if hung.params.threads > 1
                && let Some((_, said)) = self.report.quarantined.last_mut()
            {
                said.push_str(
                    "; as long as it holds its threads, this process runs on one what it would on several",
                );
            }
            let before = variants.len() + unchecked.len();
            variants.retain(|v| v.kernel != hung.kernel);
            unchecked.retain(|v| v.kernel != hung.kernel);
            if (1..before).contains(&(variants.len() + unchecked.len()))
                && let Some(next) = self.lay_out(w)
            {
                rig = next;
            } else {
                return Vec::new();
            }
        }
    }

    /// The series of those that did as they should; the others are put away, but for those that could not be run now.
    fn sound(&mut self, w: &Workload, mut series: Vec<Series>, wrong: Vec<(Variant, String)>) -> Vec<Series> {
        for (variant, why) in wrong {
            self.put_away(variant, w, Offence::Wrong, why);
        }
        for failed in series.extract_if(.., |s| s.failed.is_some()) {
            let why = failed.failed.unwrap_or_default();
            if failed.excused {
                let name = self.engine.name(failed.variant.kernel);
                self.report.skipped.push((format!("{w} by {name}"), why));
                continue;
            }
            let offence = if why.starts_with("panicked") { Offence::Panicked } else { Offence::Failed };
            self.put_away(failed.variant, w, offence, why);
        }
        series
    }

    fn put_away(&mut self, v: Variant, w: &Workload, offence: Offence, why: String) {
        self.engine.quarantine(v.kernel, w, offence, why.clone());
        self.report.quarantined.push((self.engine.name(v.kernel), why));
    }
}
