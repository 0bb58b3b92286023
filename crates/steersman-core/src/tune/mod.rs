//! Calibration: spends a time budget where it teaches most.
//!
//! The caller gives a [`Bench`] (lays workloads out in memory) and a list of workloads worth knowing. Each
//! step takes the one whose likely winners are least certain for the time it costs, times its candidates
//! in turns and learns the medians. Interrupted at any point, everything learned so far stays.

mod again;
mod audit;
mod checks;
mod next;
mod search;
mod settle;
mod watchdog;
mod winners;

pub use search::{Finding, search};
pub use settle::settle;
pub use winners::{Kept, Kind, Winner, Winners};

use crate::cost::Variant;
use crate::engine::Engine;
use crate::guard::Offence;
use crate::measure::{Contest, Rig};
use crate::workload::Workload;
use again::Again;
use audit::Audit;
use checks::Checks;
use next::{Queue, is_long};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use watchdog::{Timed, Watchdog};

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
    /// 1 for what everybody runs; what few people run gets less, and so comes later.
    pub importance: f64,
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

/// Runs a calibration. `progress` may break it off.
pub fn calibrate(
    engine: &Engine,
    bench: &dyn Bench,
    wanted: Vec<Wanted>,
    how: &Calibration,
    progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Report {
    let started = Instant::now();
    let mut report = Report::default();
    let mut watchdog = Watchdog::new();
    let mut checks = Checks::default();
    let mut queue = Queue::new(wanted);
    let (mut again, mut audit) = (Again::default(), Audit::default());
    let mut next_draft = how.budget.mul_f64(DRAFTS);
    let first_looks = how.budget.mul_f64(1.0 - SECOND_LOOKS);
    while started.elapsed() < first_looks {
        if started.elapsed() >= next_draft {
            engine.with_model_mut(|m| m.draft());
            next_draft = started.elapsed() + how.budget.mul_f64(DRAFTS);
        }
        let Some(next) = queue.next(engine, how.enough) else { break };
        let w = next.wanted.workload.clone();
        let left = how.budget.saturating_sub(started.elapsed());
        let done = started.elapsed().as_secs_f64() / how.budget.as_secs_f64().max(1e-9);
        if progress(Progress { done: done.min(1.0), left, workload: &w }).is_break() {
            report.interrupted = true;
            break;
        }
        let mut rig = match bench.rig(&w) {
            Ok(rig) => rig,
            Err(why) => {
                report.skipped.push((w.to_string(), why));
                continue;
            }
        };
        // Laying it out is no class's own time: who needs fresh memory first would pay for all.
        let begun = Instant::now();
        let mut contenders = next.contenders(engine);
        let quiet = rig.quiet();
        if quiet {
            queue.resume();
        } else if report.disturbed > how.budget.mul_f64(PATIENCE) {
            rig.accept();
        } else if next.is_parallel() {
            queue.spent(&next, begun.elapsed());
            queue.wait(next);
            report.disturbed += begun.elapsed();
            continue;
        } else if !is_long(engine, &w) {
            queue.put_off(&next, contenders.extract_if(.., |v| v.params.threads > 1).collect());
        }
        let unchecked = checks.due(&w, &contenders);
        match watchdog.contest(rig, contenders, unchecked, how.contest.clone(), how.timeout) {
            Timed::Done { mut series, wrong } => {
                report.workloads += 1;
                for (variant, why) in wrong {
                    put_away(engine, &mut report, variant, &w, Offence::Wrong, why);
                }
                let disturbed = series.iter().filter(|s| s.samples.is_empty() && !s.disturbed.is_empty());
                queue.put_off(&next, disturbed.map(|s| s.variant).collect());
                again.keep_back(&w, &mut series, &again::limits(engine, &w));
                let mut learned = Vec::new();
                for s in series {
                    if let Some(why) = s.failed.clone() {
                        let offence =
                            if why.starts_with("panicked") { Offence::Panicked } else { Offence::Failed };
                        put_away(engine, &mut report, s.variant, &w, offence, why);
                    } else if let Some(m) = s.typical() {
                        engine.learn(s.variant, &w, m, 1.0);
                        learned.push((s.variant, engine.undisturbed(s.variant, m)));
                        report.samples += s.samples.len();
                    }
                }
                audit.note(&w, learned);
            }
            Timed::Hung(variant) => {
                let why = format!("did not come back within {:.1} s", how.timeout.as_secs_f64());
                put_away(engine, &mut report, variant, &w, Offence::Hung, why);
            }
        }
        queue.spent(&next, begun.elapsed());
        if !quiet {
            report.disturbed += begun.elapsed();
        }
    }
    let left = match report.interrupted {
        true => Duration::ZERO,
        false => how.budget.saturating_sub(started.elapsed()),
    };
    let began = Instant::now();
    again.look(engine, bench, how, &mut watchdog, left / 2, &mut report);
    audit.look(engine, bench, how, &mut watchdog, began + left, &mut report);
    let until = Instant::now() + how.budget.mul_f64(LAST_CHECKS);
    for (w, variant) in checks.left() {
        if report.interrupted || Instant::now() > until {
            break;
        }
        let Ok(rig) = bench.rig(&w) else { continue };
        let timed = watchdog.contest(rig, Vec::new(), vec![variant], how.contest.clone(), how.timeout);
        if let Timed::Done { wrong, .. } = timed {
            for (variant, why) in wrong {
                put_away(engine, &mut report, variant, &w, Offence::Wrong, why);
            }
        }
    }
    engine.with_model_mut(|m| m.refit());
    report
}

fn put_away(engine: &Engine, report: &mut Report, v: Variant, w: &Workload, offence: Offence, why: String) {
    engine.quarantine(v.kernel, w, offence, why.clone());
    report.quarantined.push((engine.name(v.kernel), why));
}
