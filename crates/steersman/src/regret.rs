//! The honest judge: how much slower the chosen candidate is than the best in hindsight.
//!
//! For each workload the decision is taken first, with learning off. Then every legal candidate is timed, in
//! turns. The best is picked on the even samples and everything is judged on the odd ones, so that luck is
//! not taken for speed. What had to be timed while the machine was disturbed is timed again at the end; and where the
//! chosen one seems to have lost, it meets the seeming best in duels at several times, whose outcome counts either way.

mod leave;
mod report;

pub use report::{LeftOut, RegretReport, RegretRow, Timed};

use crate::error::Error;
use crate::runtime::Runtime;
use leave::Leave;
use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use steersman_core::measure::{Contest, Duel, Series};
use steersman_core::{Candidate, Decision, Variant, Workload};

/// Six samples of each at least, so that each half has three; then as many as a third of a second allows. Two of long runs that
/// are clearly behind: with six, fourteen workloads of up to 4096×4096 in a GPU's memory took over two minutes.
const HOW: Contest = Contest {
    rounds: 15,
    least: 6,
    least_long: 2,
    batch: Duration::from_micros(100),
    limit: Duration::from_millis(300),
    give_up: 1.5,
    wait: Duration::from_micros(300),
    patience: usize::MAX,
};

/// A candidate that at its quickest takes so many times longer than the best one at its slowest, and this many seconds,
/// is not timed: a few of them would take minutes.
const HOPELESS: f64 = 8.0;
const TOO_LONG: f64 = 20e-3;

/// Of what is expected to take this many seconds, and so many times longer than the best is expected to, the same holds.
const DEAR: f64 = 1.0;
const CLEARLY: f64 = 3.0;

/// Where a run is expected to take this many seconds, there are so many samples, and one of what is clearly behind: chance
/// is a small share of such times, and six of each candidate of a product of 6000×6000 took five minutes.
const LONG: f64 = 0.3;
const FEW: usize = 2;

/// A contest of runs that are expected to take so long.
fn bounded(how: &Contest, expected: f64) -> Contest {
    match expected > LONG {
        true => Contest { rounds: FEW, least: FEW, least_long: 1, ..how.clone() },
        false => how.clone(),
    }
}

/// Regret from which there are duels: runs of a virtual machine's memory differ by half from one spell to the next.
const DOUBTED: f64 = 0.05;
/// How many, each after all others had theirs: spells last for seconds.
const DUELS: usize = 3;
const DUEL: Contest = Contest {
    rounds: 21,
    least: 7,
    least_long: 7,
    batch: Duration::from_micros(100),
    limit: Duration::from_millis(200),
    give_up: f64::INFINITY,
    wait: Duration::from_millis(2),
    patience: usize::MAX,
};

/// For what a row says of a chosen one and a best of which there are hardly any clean samples: short batches and long
/// waits, until there are.
const PATIENT: Contest = Contest {
    rounds: 12,
    least: 6,
    least_long: 6,
    batch: Duration::from_micros(30),
    limit: Duration::from_millis(250),
    give_up: f64::INFINITY,
    wait: Duration::from_millis(20),
    patience: usize::MAX,
};

/// Clean samples with which a candidate's time is settled: two in each half.
const SETTLED: usize = 4;
/// Times that unsettled workloads are looked at again.
const AGAIN: usize = 2;
/// How long to wait for the machine to come to rest in all, and more for each workload: one that is disturbed longer is
/// like that. Cores of a virtual machine can be far apart for ten seconds.
const PATIENCE: Duration = Duration::from_secs(20);
const PATIENCE_EACH: Duration = Duration::from_millis(100);
/// Looks at where they lie, of which the middle one counts.
const LOOKS: usize = 3;
/// How long to wait for cores to lie again as they did for a workload: mostly tenths of a second.
const RECUR: Duration = Duration::from_secs(1);
/// How long to wait for it before a duel, even when patience is at an end.
const REST: Duration = Duration::from_millis(300);

/// One workload on trial.
struct Trial<'a> {
    workload: &'a Workload,
    decision: Decision,
    /// Seconds of a hand-off when it was decided, where that is known.
    handoff: Option<f64>,
    series: Vec<Series>,
    /// Legal candidates that are not timed, with the seconds they are expected to take.
    left_out: Vec<(Variant, f64)>,
    /// Who seemed the best when the chosen one seemed to have lost to it, and both beside each other alone.
    duel: Option<(Variant, Duel)>,
}

fn is_settled(s: &Series) -> bool {
    s.disturbed.is_empty() || s.samples.len() >= SETTLED
}

impl Trial<'_> {
    fn is_settled(&self) -> bool {
        self.series.iter().all(is_settled)
    }

    /// The chosen one, and the one that is quickest by the even samples, each with its time by the odd ones.
    fn rivals(&self) -> Option<[(Variant, f64); 2]> {
        let timed = |s: &Series| Some((s.variant, s.half(0)?, s.half(1)?));
        let all: Vec<_> = self.series.iter().filter_map(timed).collect();
        let best = all.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let chosen = all.iter().find(|s| s.0 == self.decision.variant())?;
        Some([chosen, best].map(|s| (s.0, s.2)))
    }

    /// Who seems quicker than the chosen one, by enough to look again.
    fn challenger(&self) -> Option<Variant> {
        let [(_, chosen_s), (best, best_s)] = self.rivals()?;
        (chosen_s > best_s * (1.0 + DOUBTED)).then_some(best)
    }

    /// The best, and what the chosen one and it take.
    fn outcome(&self) -> Option<(Variant, [f64; 2])> {
        let fought = self.duel.as_ref().and_then(|(best, duel)| Some((*best, duel.outcome()?)));
        let (best, [chosen_s, best_s]) =
            fought.or_else(|| self.rivals().map(|[chosen, best]| (best.0, [chosen.1, best.1])))?;
        Some(match chosen_s < best_s {
            // It won after all.
            true => (self.decision.variant(), [chosen_s; 2]),
            false => (best, [chosen_s, best_s]),
        })
    }

    /// Whether what it is judged by was disturbed.
    fn is_disturbed(&self) -> bool {
        let of = |v: Variant| self.series.iter().find(|s| s.variant == v).is_none_or(|s| !is_settled(s));
        self.rivals().is_none_or(|rivals| rivals.iter().any(|(v, _)| of(*v)))
    }

    fn add(&mut self, series: Vec<Series>) {
        for new in series {
            if let Some(mine) = self.series.iter_mut().find(|s| s.variant == new.variant) {
                mine.samples.extend(new.samples);
                mine.disturbed.extend(new.disturbed);
            }
        }
    }
}

impl Runtime {
    /// Judges the decisions for these workloads. One workload's memory at a time.
    pub fn regret(
        &self,
        workloads: &[Workload],
        progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<RegretReport, Error> {
        let mut report = RegretReport::default();
        let places = self.engine().places();
        let mut leave = Leave::new(workloads.len(), progress);
        let mut trials = Vec::new();
        for (i, w) in workloads.iter().enumerate() {
            if !leave.to(i) {
                break;
            }
            match self.try_one(w, &mut leave) {
                // What it was broken off in the middle of is not judged.
                Ok(_) if leave.is_broken() => break,
                Ok(trial) => trials.push(trial),
                Err(e) => report.skipped.push((w.named(&places).to_string(), e.to_string())),
            }
        }
        let until = Instant::now() + PATIENCE + PATIENCE_EACH * trials.len() as u32;
        if leave.to(workloads.len()) {
            self.look_again(&mut trials, until, &mut leave);
        }
        for trial in &trials {
            match self.verdict(trial) {
                Ok(row) => report.rows.push(row),
                Err(e) => report.skipped.push((trial.workload.named(&places).to_string(), e.to_string())),
            }
        }
        report.summarise();
        Ok(report)
    }

    /// Where the machine was disturbed, and where the chosen one seems to have lost.
    fn look_again(&self, trials: &mut [Trial<'_>], until: Instant, leave: &mut Leave<'_>) {
        for _ in 0..AGAIN {
            for trial in trials.iter_mut().filter(|t| !t.is_settled()) {
                if !leave.is_given() {
                    return;
                }
                if !self.as_decided(trial, until) {
                    // The machine is another now, and so may be the decision: both anew.
                    if let Ok(again) = self.try_one(trial.workload, leave)
                        && !leave.is_broken()
                    {
                        *trial = again;
                    }
                    continue;
                }
                let variants: Vec<Variant> = trial.series.iter().map(|s| s.variant).collect();
                if let Ok(series) = self.hold(trial.workload, &trial.decision, &variants, &HOW, leave) {
                    trial.add(series);
                }
            }
        }
        for trial in trials.iter_mut().filter(|t| t.is_disturbed()) {
            if !leave.is_given() {
                return;
            }
            let Some(rivals) = trial.rivals() else { continue };
            let mut pair = rivals.map(|(v, _)| v).to_vec();
            pair.dedup();
            if pair.iter().any(|v| v.params.threads > 1) && !self.as_decided(trial, until) {
                continue;
            }
            if let Ok(series) = self.hold(trial.workload, &trial.decision, &pair, &PATIENT, leave) {
                trial.add(series);
            }
        }
        for trial in trials.iter_mut() {
            trial.duel = trial.challenger().map(|best| (best, Duel::default()));
        }
        for _ in 0..DUELS {
            for trial in trials.iter_mut().filter(|t| t.duel.is_some()) {
                if !leave.is_given() {
                    return;
                }
                self.duel(trial, until, leave);
            }
        }
    }

    /// A contest that can be broken off, no longer than its runs allow.
    fn hold(
        &self,
        w: &Workload,
        decision: &Decision,
        variants: &[Variant],
        how: &Contest,
        leave: &mut Leave<'_>,
    ) -> Result<Vec<Series>, Error> {
        let how = bounded(how, decision.predicted().0);
        self.contest_while(w, variants, &how, &mut |_| leave.between_runs())
    }

    /// Waits until the machine is as it was when this was decided, but not for ever; whether it is.
    fn as_decided(&self, trial: &Trial<'_>, until: Instant) -> bool {
        if let Some(handoff) = trial.handoff {
            self.cpu().calm.settle(handoff);
        }
        self.rest(until.min(Instant::now() + RECUR))
    }

    /// Waits until the machine is quiet, but not for ever; whether it is.
    fn rest(&self, until: Instant) -> bool {
        let cpu = self.cpu();
        loop {
            match cpu.calm.now(&cpu.team) {
                true => return true,
                false if Instant::now() > until => return false,
                false => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn try_one<'a>(&self, w: &'a Workload, leave: &mut Leave<'_>) -> Result<Trial<'a>, Error> {
        self.inner.look_at_clock();
        // A decision is for how far apart cores lie now, and is judged by what runs take while they do.
        let cpu = self.cpu();
        let mut looks = [0; LOOKS].map(|_| cpu.handoff(Duration::ZERO));
        looks.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        let handoff = looks[LOOKS / 2];
        if let Some(handoff) = handoff {
            self.engine().set_handoff(self.inner.cpu_id, handoff);
            cpu.calm.settle(handoff);
        }
        let decision = self.engine().judge(w)?;
        // Also those that a decision does not weigh, because others are said to outdo them or moving alone was thought too
        // long; but for what is hopeless by far, which would take minutes to time.
        let mut all = self.engine().runnable(w);
        let best = all.iter().map(|c| c.estimate.high.0).fold(f64::INFINITY, f64::min);
        let weighed = self.engine().estimates(w);
        // Of those that are not weighed nothing was measured, and at its quickest anything could be quick.
        let least = |c: &Candidate| match weighed.iter().any(|x| x.variant == c.variant) {
            true => c.estimate.low.0,
            false => c.estimate.mean.0,
        };
        let quickest = all.iter().map(|c| c.estimate.mean.0).fold(f64::INFINITY, f64::min);
        let dear = |c: &Candidate| c.estimate.mean.0 > DEAR && c.estimate.mean.0 > CLEARLY * quickest;
        let bearable = |c: &Candidate| !dear(c) && (least(c) <= HOPELESS * best || least(c) <= TOO_LONG);
        let mut left_out = Vec::new();
        all.retain(|c| {
            let timed = bearable(c) || c.variant == decision.variant();
            if !timed {
                left_out.push((c.variant, c.estimate.mean.0));
            }
            timed
        });
        let variants: Vec<Variant> = all.iter().map(|c| c.variant).collect();
        let series = self.hold(w, &decision, &variants, &HOW, leave)?;
        Ok(Trial { workload: w, decision, handoff, series, left_out, duel: None })
    }

    /// Times the chosen one beside its challenger once more.
    fn duel(&self, trial: &mut Trial<'_>, until: Instant, leave: &mut Leave<'_>) {
        let Some((best, _)) = trial.duel else { return };
        let pair = [trial.decision.variant(), best];
        let parallel = pair.iter().any(|v| v.params.threads > 1);
        // On cores that lie otherwise than it was decided for neither of two that meet would show what it takes.
        if !self.as_decided(trial, until.max(Instant::now() + REST)) && parallel && trial.handoff.is_some() {
            return;
        }
        let Ok(series) = self.hold(trial.workload, &trial.decision, &pair, &DUEL, leave) else { return };
        if let (Some((_, duel)), [a, b]) = (&mut trial.duel, &series[..]) {
            duel.join(Duel::of(a, b));
        }
    }

    fn verdict(&self, trial: &Trial<'_>) -> Result<RegretRow, Error> {
        let (engine, decision, w) = (self.engine(), &trial.decision, trial.workload);
        let series = &trial.series;
        let failed =
            || Error::AllFailed { workload: w.to_string(), last: "no candidate gave a clean sample".into() };
        let (best, [chosen_s, best_s]) = trial.outcome().ok_or_else(failed)?;
        let name = |v: Variant| format!("{} {}", engine.name(v.kernel), v.params);
        let (low, high) = decision.interval();
        let time = |s: &Series| Some(Timed { candidate: name(s.variant), seconds: s.median()? });
        let mut timed: Vec<Timed> = series.iter().filter_map(time).collect();
        timed.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(RegretRow {
            workload: w.named(&engine.places()).to_string(),
            chosen: name(decision.variant()),
            chosen_s,
            best: name(best),
            best_s,
            regret: (chosen_s / best_s - 1.0).max(0.0),
            predicted_s: decision.predicted().0,
            low_s: low.0,
            high_s: high.0,
            worst_s: timed.last().map_or(0.0, |t| t.seconds),
            confidence: decision.confidence(),
            candidates: series.len(),
            timed,
            left_out: trial
                .left_out
                .iter()
                .map(|&(v, expected_s)| LeftOut { candidate: name(v), expected_s })
                .collect(),
            disturbed: trial.is_disturbed(),
        })
    }
}
