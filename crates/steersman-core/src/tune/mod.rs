//! Calibration: spends a time budget where it teaches most.
//!
//! The caller gives a [`Bench`] (lays workloads out in memory) and a list of workloads worth knowing. Each
//! step takes the one whose likely winners are least certain for the time it costs, times its candidates
//! in turns and learns the medians. Interrupted at any point, everything learned so far stays.

mod again;
mod checks;
mod search;
mod settle;
mod watchdog;
mod winners;

pub use search::{Finding, search};
pub use settle::settle;
pub use winners::{Kept, Kind, Winner, Winners};

use crate::candidate::{Candidate, Candidates};
use crate::cost::Variant;
use crate::engine::Engine;
use crate::guard::Offence;
use crate::measure::{Contest, Rig, UNMOVED};
use crate::workload::Workload;
use again::Again;
use checks::Checks;
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
                rounds: 4,
                least: 2,
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

/// Share of the budget for second looks at what is doubted.
const SECOND_LOOKS: f64 = 0.06;

/// Shares of the budget after which it is looked up where nothing was measured yet.
const DRAFTS: f64 = 0.12;

/// Workloads looked at to find the next: enough to find a good one, few enough to cost nothing.
const LOOK: usize = 16;

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
    let mut pending: Vec<Pending> = wanted.into_iter().map(Pending::new).collect();
    let mut cursor = 0;
    // What was only timed on one thread, in a disturbed spell.
    let mut half_done = Vec::new();
    let mut again = Again::default();
    let mut next_draft = how.budget.mul_f64(DRAFTS);
    let first_looks = how.budget.mul_f64(1.0 - SECOND_LOOKS);
    while !(pending.is_empty() && half_done.is_empty()) && started.elapsed() < first_looks {
        if pending.is_empty() {
            pending.append(&mut half_done);
        }
        if started.elapsed() >= next_draft {
            engine.with_model_mut(|m| m.draft());
            next_draft = started.elapsed() + how.budget.mul_f64(DRAFTS);
        }
        let Some(at) = most_informative(engine, &pending, cursor, how.enough) else { break };
        cursor = cursor.wrapping_add(LOOK);
        let next = pending.swap_remove(at);
        let w = next.wanted.workload.clone();
        let begun = Instant::now();
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
        let mut contenders = contenders(engine, &next);
        let quiet = rig.quiet();
        if quiet {
            pending.append(&mut half_done);
        } else if report.disturbed > how.budget.mul_f64(PATIENCE) {
            rig.accept();
        } else if next.serial_done {
            half_done.push(next);
            report.disturbed += begun.elapsed();
            continue;
        } else if contenders.iter().any(|v| v.params.threads > 1) && !is_long(engine, &w) {
            contenders.retain(|v| v.params.threads == 1);
            half_done.extend(next.without_serial());
        }
        let unchecked = checks.due(&w, &contenders);
        match watchdog.contest(rig, contenders, unchecked, how.contest.clone(), how.timeout) {
            Timed::Done { mut series, wrong } => {
                report.workloads += 1;
                for (variant, why) in wrong {
                    put_away(engine, &mut report, variant, &w, Offence::Wrong, why);
                }
                if series.iter().any(|s| s.samples.is_empty() && !s.disturbed.is_empty()) {
                    half_done.extend(next.without_serial());
                }
                again.keep_back(&w, &mut series);
                for s in series {
                    if let Some(why) = s.failed.clone() {
                        let offence =
                            if why.starts_with("panicked") { Offence::Panicked } else { Offence::Failed };
                        put_away(engine, &mut report, s.variant, &w, offence, why);
                    } else if let Some(m) = s.typical() {
                        engine.learn(s.variant, &w, m, 1.0);
                        report.samples += s.samples.len();
                    }
                }
            }
            Timed::Hung(variant) => {
                let why = format!("did not come back within {:.1} s", how.timeout.as_secs_f64());
                put_away(engine, &mut report, variant, &w, Offence::Hung, why);
            }
        }
        if !quiet {
            report.disturbed += begun.elapsed();
        }
    }
    let left = match report.interrupted {
        true => Duration::ZERO,
        false => how.budget.saturating_sub(started.elapsed()),
    };
    again.look(engine, bench, how, &mut watchdog, left, &mut report);
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

/// Short runs cost nothing to time, so that everyone is timed there: seconds.
const SHORT: f64 = 1e-6;

/// Runs this long (seconds) cost so much that only those likely to win are timed.
const LONG: f64 = 100e-6;
/// How far behind the best a candidate may be thought and still be likely to win a long run.
const LIKELY: f64 = 2.5;

fn is_long(engine: &Engine, w: &Workload) -> bool {
    unmoved(engine, w).iter().all(|c| c.estimate.mean.0 > UNMOVED)
}

/// Candidates for which nothing has to be moved: work is learned here, not links.
fn unmoved(engine: &Engine, w: &Workload) -> Candidates {
    let mut all = engine.estimates(w);
    all.retain(|c| !c.is_moved());
    all
}

/// A workload still to be measured.
struct Pending {
    wanted: Wanted,
    /// Whether only its parallel variants are left.
    serial_done: bool,
    /// Times that it was put off because the machine was disturbed.
    put_off: u8,
}

/// Times that a workload is put off at most.
const PUT_OFF: u8 = 4;

impl Pending {
    fn new(wanted: Wanted) -> Pending {
        Pending { wanted, serial_done: false, put_off: 0 }
    }

    /// The same later, for its parallel variants; `None` if that was tried often enough.
    fn without_serial(&self) -> Option<Pending> {
        let put_off = self.put_off + 1;
        (put_off <= PUT_OFF).then(|| Pending { wanted: self.wanted.clone(), serial_done: true, put_off })
    }

    fn lacks(&self, v: Variant) -> bool {
        !self.serial_done || v.params.threads > 1
    }
}

/// Candidates that may win.
fn likely(all: &Candidates) -> impl Iterator<Item = &Candidate> {
    let least = |time: fn(&Candidate) -> f64| all.iter().map(time).fold(f64::INFINITY, f64::min);
    let (best, best_high) = (least(|c| c.estimate.mean.0), least(|c| c.estimate.high.0));
    all.iter().filter(move |c| {
        let e = &c.estimate;
        e.low.0 <= best_high && (best < LONG || e.mean.0 <= LIKELY * best)
    })
}

/// Candidates worth timing: those that may win, and where it costs nothing everyone.
fn contenders(engine: &Engine, p: &Pending) -> Vec<Variant> {
    let all = unmoved(engine, &p.wanted.workload);
    let mut wanted: Vec<Variant> = likely(&all).map(|c| c.variant).collect();
    let cheap = |c: &&Candidate| {
        c.estimate.mean.0 < SHORT || c.estimate.mean.0 < LONG && c.estimate.evidence.samples < 3
    };
    wanted.extend(all.iter().filter(cheap).map(|c| c.variant));
    wanted.retain(|v| p.lacks(*v));
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

/// Index of the pending workload with the most doubt per second, among a window of them.
fn most_informative(engine: &Engine, pending: &[Pending], cursor: usize, enough: f64) -> Option<usize> {
    let n = pending.len();
    let window = (0..LOOK.min(n)).map(|i| (cursor + i * 7919) % n);
    let scored = window.map(|i| (i, pending[i].wanted.importance * score(engine, &pending[i])));
    let (at, score) = scored.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (score >= enough || n > LOOK).then_some(at)
}

/// Summed variance of the candidates that may win, for each second that timing them takes.
fn score(engine: &Engine, p: &Pending) -> f64 {
    let all = unmoved(engine, &p.wanted.workload);
    let (mut doubt, mut cost) = (0.0, 300e-6);
    for c in likely(&all).filter(|c| p.lacks(c.variant)) {
        doubt += c.estimate.spread.min(1.0).powi(2);
        cost += 4.0 * c.estimate.mean.0.max(30e-6);
    }
    doubt / cost
}
