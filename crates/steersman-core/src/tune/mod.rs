//! Calibration: spends a time budget where it teaches most.
//!
//! The caller gives a [`Bench`] (lays workloads out in memory) and a list of workloads worth knowing. Each
//! step takes the one whose likely winners are least certain for the time it costs, times its candidates
//! in turns and learns the medians. Interrupted at any point, everything learned so far stays.

mod again;
mod audit;
mod checks;
mod course;
mod disturbed;
#[cfg(test)]
mod fixtures;
mod next;
mod search;
mod settle;
mod watchdog;
mod winners;

pub use search::{Finding, search};
pub use settle::settle;
pub use winners::{Kept, Kind, Winner, Winners};

use crate::engine::Engine;
use crate::measure::{Contest, Rig};
use crate::workload::Workload;
use again::Again;
use audit::Audit;
use checks::Checks;
use course::Course;
use disturbed::Disturbed;
use next::{Queue, is_long};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Lays workloads out in memory.
pub trait Bench {
    /// A rig for this workload; an error says why there is none (too large, no memory).
    fn rig(&self, w: &Workload) -> Result<Box<dyn Rig>, String>;
}

/// A workload worth measuring, and how much it matters beside the others.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The workload.
    pub workload: Workload,
    /// 1 for what everybody runs; what few people run gets less, and so comes later. [`Wanted::FIRST`] comes before all
    /// others, in the order given, as long as half of the time is left.
    pub importance: f64,
}

impl Wanted {
    /// The importance of what is measured whatever it teaches.
    pub const FIRST: f64 = f64::INFINITY;
}

/// How a calibration is run.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Time it may take.
    pub budget: Duration,
    /// How each workload is measured.
    pub contest: Contest,
    /// A variant whose run takes longer than this hangs: it is put into quarantine.
    pub timeout: Duration,
    /// Workloads whose likely winners are all known better than this need no more samples.
    pub enough: f64,
}

impl Default for Calibration {
    fn default() -> Calibration {
        Calibration {
            budget: Duration::from_secs(9),
            contest: Contest {
                // Other shapes teach more than further samples of one. (Three calibrations each, 683 shapes: mean regret 1.8%
                // with four rounds, 1.4 with three, 1.3 with two; choices that differ by over 10% 31, 18 and 24 of a pair.)
                rounds: 3,
                least: 2,
                least_long: 1,
                batch: Duration::from_micros(10),
                limit: Duration::from_millis(8),
                patience: 1,
                ..Contest::default()
            },
            timeout: Duration::from_secs(5),
            enough: 0.0,
        }
    }
}

/// How far a calibration is.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Share of the budget used, 0 to 1.
    pub done: f64,
    /// Time left.
    pub left: Duration,
    /// What is measured now.
    pub workload: &'a Workload,
}

/// What a calibration did.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Report {
    /// Workloads measured.
    pub workloads: usize,
    /// Samples learned from.
    pub samples: usize,
    /// Kernels put into quarantine, with why.
    pub quarantined: Vec<(String, String)>,
    /// Workloads passed over, with why.
    pub skipped: Vec<(String, String)>,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// How long the machine was disturbed meanwhile, so that only serial variants could be timed.
    pub disturbed: Duration,
}

impl std::ops::AddAssign for Report {
    /// Both one after the other.
    fn add_assign(&mut self, next: Report) {
        self.workloads += next.workloads;
        self.samples += next.samples;
        self.quarantined.extend(next.quarantined);
        self.skipped.extend(next.skipped);
        self.interrupted |= next.interrupted;
        self.disturbed += next.disturbed;
    }
}

/// Share of the budget that may go by in disturbed spells before they are taken for how the machine is.
const PATIENCE: f64 = 0.3;

/// Share of the budget that checks of kernels that only take large workloads may go on after it.
const LAST_CHECKS: f64 = 0.03;

/// Share of the budget for second looks at what is doubted: half of it for what was doubted at once.
const SECOND_LOOKS: f64 = 0.16;

/// Shares of the budget after which it is looked up where nothing was measured yet.
const DRAFTS: f64 = 0.12;

/// Runs a calibration. `progress` may break it off. A frozen engine must not learn: nothing is measured.
pub fn calibrate(
    engine: &Engine,
    bench: &dyn Bench,
    wanted: Vec<Wanted>,
    how: &Calibration,
    progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Report {
    if engine.is_frozen() {
        return Report::default();
    }
    let _calibrating = engine.calibrating();
    let mut course = Course::start(engine, bench, how, progress);
    let mut checks = Checks::default();
    let mut queue = Queue::new(wanted);
    let (mut again, mut audit) = (Again::default(), Audit::default());
    let mut never_quiet = Disturbed::default();
    let mut next_draft = how.budget.mul_f64(DRAFTS);
    let first_looks = how.budget.mul_f64(1.0 - SECOND_LOOKS);
    while course.elapsed() < first_looks {
        if course.elapsed() >= next_draft {
            engine.with_model_mut(|m| m.draft());
            next_draft = course.elapsed() + how.budget.mul_f64(DRAFTS);
        }
        if course.elapsed() > how.budget / 2 {
            queue.drop_first();
        }
        let Some(next) = queue.next(engine, how.enough) else { break };
        let w = next.wanted.workload.clone();
        let Some(mut rig) = course.lay_out(&w) else {
            if course.report.interrupted {
                break;
            }
            continue;
        };
        // Laying it out is no class's own time: who needs fresh memory first would pay for all.
        let begun = Instant::now();
        let mut contenders = next.contenders(engine);
        let quiet = rig.quiet();
        if quiet {
            queue.resume();
        } else if course.report.disturbed > how.budget.mul_f64(PATIENCE) {
            rig.accept();
        } else if next.is_parallel() {
            queue.spent(&next, begun.elapsed());
            queue.wait(next);
            course.report.disturbed += begun.elapsed();
            continue;
        } else if next.can_wait() && !is_long(engine, &w) {
            queue.put_off(&next, contenders.extract_if(.., |v| v.params.threads > 1).collect());
        }
        let unchecked = checks.due(&w, &contenders);
        let mut series = course.time(rig, &w, contenders, unchecked, &how.contest);
        course.report.workloads += usize::from(!series.is_empty());
        never_quiet.note(&w, &series);
        let disturbed = series.iter().filter(|s| s.samples.is_empty() && !s.disturbed.is_empty());
        queue.put_off(&next, disturbed.map(|s| s.variant).collect());
        again.keep_back(&w, &mut series, &again::limits(engine, &w));
        let mut learned = Vec::new();
        for s in series {
            if let Some(m) = s.typical() {
                engine.learn(s.variant, &w, m, 1.0);
                learned.push((s.variant, engine.undisturbed(s.variant, m)));
                course.report.samples += s.samples.len();
            }
        }
        audit.note(&w, learned);
        queue.spent(&next, begun.elapsed());
        if !quiet {
            course.report.disturbed += begun.elapsed();
        }
    }
    let left = course.left();
    let began = Instant::now();
    again.look(&mut course, began + left / 2);
    audit.look(&mut course, began + left);
    let until = Instant::now() + how.budget.mul_f64(LAST_CHECKS);
    for (w, variant) in checks.left() {
        if course.is_over(until) {
            break;
        }
        if let Some(rig) = course.lay_out(&w) {
            course.time(rig, &w, Vec::new(), vec![variant], &how.contest);
        }
    }
    never_quiet.learn(engine);
    engine.refit();
    course.report
}
