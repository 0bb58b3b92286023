//! The learned model: one regression per (kernel, parameters, op, element type, layout), each leaning
//! on a pool shared by the kernel's other ops, corrected locally, blended with the history of exact workloads.
//!
//! Structure first, then detail: a calibration's samples settle the regressions ([`Model::refit`]); from then
//! on a regression stays, and every sample refines the local corrections around it. What no calibration gets to is
//! settled when programs have measured it often enough ([`Model::settle_often_seen`]).

mod cells;
mod settle;

use super::estimate::{Estimate, Evidence, Source};
use super::history::History;
use super::key::{CellKey, Subject, Variant};
use super::knowledge::Knowledge;
use super::local::{Corners, Local};
use super::mix::Mix;
use super::regress::{Belief, Fit, Stats, t90};
use super::terms::Terms;
use crate::op::OpClass;
use crate::units::Seconds;
use crate::workload::Workload;
use cells::Cells;
use settle::Sample;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::OnceLock;

/// Fitted when first asked for: a remembered machine has thousands of cells and needs a few.
#[derive(Debug, Default)]
struct Cell {
    stats: Stats,
    fit: OnceLock<Fitted>,
    /// Whether the regression is settled; samples then go to `local`.
    settled: bool,
    /// Whether `local` says what the samples have left unexplained so far, though the regression is not settled.
    drafted: bool,
    local: Local,
    /// Samples that came since it was last settled.
    kept: Vec<Sample>,
}

impl Cell {
    fn of(knowledge: &Knowledge) -> Cell {
        let (stats, local, settled) = knowledge.read();
        Cell { stats, settled, local, ..Cell::default() }
    }

    fn knowledge(&self) -> Knowledge {
        Knowledge::of(&self.stats, &self.local, self.settled)
    }

    fn corrects(&self) -> bool {
        self.settled || self.drafted
    }
}

/// A posterior, and what every estimate needs that depends on nothing else.
#[derive(Debug)]
struct Fitted {
    fit: Fit,
    /// Prior seconds between which a workload is near something seen: half an e-fold beyond it.
    near: Option<(f64, f64)>,
    t90: f64,
}

impl Fitted {
    fn new(fit: Fit, range: Option<(f64, f64)>) -> Fitted {
        let near = range.map(|(a, b)| ((a - 0.5).exp(), (b + 0.5).exp()));
        Fitted { t90: t90(fit.dof()), near, fit }
    }

    fn is_near(&self, prior: f64) -> bool {
        self.near.is_some_and(|(a, b)| (a..=b).contains(&prior))
    }
}

/// Samples kept of a calibration until it is settled; later ones only reach the regressions.
const SAMPLES: usize = 200_000;
/// A prediction is never surer than 1.5%: runs of one process differ from those of the next by that much.
const FLOOR: f64 = 2.25e-4;
/// What an interval has beside a spread: where a process happens to lie in memory makes the shortest runs a few
/// nanoseconds longer, which a calibration, being one process, cannot see. (Without it 63% of 46 times that were thought
/// known within 10% were inside their interval, most of them of runs below 100 ns. With 3 ns, of 734 runs below 60 ns on a Zen 5, 98%
/// were inside; with this they would have been in 95.5%.)
const PROCESS: f64 = 1.5e-9;
/// Spreads up to which errors are as noise is, and from which on they have long tails: most are small, and the few that make the
/// spread are far off, so that nine in ten lie within less of it than of noise's. (Of 920 times on a Zen 5 those with a spread up to 8%
/// were inside their interval in 86%, of 8 to 17% in 97, beyond in 98; with this all together would have been in 92.7, where 96.3 were.)
const LONG_TAILED: (f64, f64) = (0.1, 0.2);
/// Share of the spread's interval that holds nine in ten then.
const CENTRAL: f64 = 0.7;
/// Share of what work takes at probed rates that it takes at least, where nothing of its size was seen.
const LEAST: f64 = 0.25;

/// Samples of a kernel from which one of them can be judged by the others.
const ENOUGH: u64 = 5;

/// A spread of e³ either way says "unknown"; more would say the same.
const WIDEST: f64 = 3.0;

/// How far behind a regression puts what is out, whatever its corrections. Near what was seen it is supposed to be off by
/// less than this (not measured); elsewhere no estimate is wider than [`WIDEST`].
const HOPELESS_NEAR: f64 = 6.0;
const HOPELESS: f64 = 20.0;

/// Exact workloads remembered at most; the oldest half goes when it is full.
const HISTORY_CAPACITY: usize = 16_384;

/// Share of the interval of noise with this spread that holds nine in ten of what is foretold from other sizes.
fn central(spread: f64) -> f64 {
    let (from, to) = LONG_TAILED;
    1.0 - (1.0 - CENTRAL) * ((spread - from) / (to - from)).clamp(0.0, 1.0)
}

/// The history of one exact workload in one variant.
struct Exact {
    history: History,
    /// When it last changed, to tell which are the oldest.
    at: u64,
    /// [`Model::changes`] at its last measurement; 0 if it is as it was remembered.
    measured: u64,
}

/// What was taken out of a model.
#[derive(Default)]
pub struct Taken {
    cells: Vec<(CellKey, Knowledge)>,
    history: Vec<((u64, Variant), Exact)>,
}

/// Everything learned about costs.
#[derive(Default)]
pub struct Model {
    cells: Cells,
    history: HashMap<(u64, Variant), Exact, BuildHasherDefault<Mix>>,
    /// Workloads with a history: one look for all candidates of a workload that has none.
    seen: HashSet<u64, BuildHasherDefault<Mix>>,
    clock: u64,
    changes: u64,
    /// Samples kept in all cells together.
    kept: usize,
    /// Calibrations under way.
    calibrations: u32,
}

impl Model {
    /// Predicts the run of `variant` whose counted work is `terms`. `speed` is the device's shared slow-down
    /// (1: as learned). `None` for one that takes far more than `limit`, which is seen before the rest is
    /// worked out.
    pub fn estimate(
        &self,
        variant: Variant,
        subject: &Subject,
        terms: &Terms,
        speed: f64,
        scratch: u64,
        limit: f64,
    ) -> Option<Estimate> {
        let key = subject.cell(variant);
        let at = &*subject.by(terms.way());
        let own = self.fit(&key);
        let size = terms.total();
        if let Some((f, _)) = own
            && f.fit.seconds(terms) * speed > limit * if f.is_near(size) { HOPELESS_NEAR } else { HOPELESS }
        {
            return None;
        }
        // An op with no samples of its own is foretold by what its kernel's other ops have shown, if there are any.
        let alone = matches!(key.class, OpClass::MatMul | OpClass::Conv);
        let pool = if own.is_none() { self.fit(&key.pool()) } else { None };
        let (p, cell, source) = match (own, pool) {
            (Some((fitted, cell)), _) => (fitted.fit.predict(terms), Some((fitted, cell)), Source::Model),
            (None, Some((fitted, cell))) => {
                (fitted.fit.unseen().predict(terms), Some((fitted, cell)), Source::Pool)
            }
            (None, None) => (prior_fit().fit.predict(terms), None, Source::Prior),
        };
        let samples = if source == Source::Model { cell.map_or(0, |(_, c)| c.stats.samples) } else { 0 };
        let extrapolated = cell.is_none_or(|(f, _)| !f.is_near(size));
        let (mut mean, mut spread) = (p.seconds, p.spread.min(WIDEST));
        let t90 = if source == Source::Pool { t90(p.dof) } else { cell.map_or(prior_fit(), |(f, _)| f).t90 };
        if let Some((_, cell)) = cell.filter(|(_, c)| c.corrects()) {
            let c = cell.local.at(at, spread * spread);
            mean *= exp(c.mean);
            spread = (c.variance + FLOOR).sqrt();
        }
        let mut evidence = Evidence { source, samples, exact: 0, extrapolated, transfers: None };
        // Beyond its own sizes, but not beyond those of its kernel's other ops: they know what size does. (Four samples
        // of `sub f64` below 2 million said 1.2 ms of 6 million, of which `add f64` knew that they take 2.7.)
        if source == Source::Model
            && extrapolated
            && !alone
            && let Some((fitted, cell)) =
                self.fit(&key.pool()).filter(|(f, c)| c.corrects() && f.is_near(size))
        {
            let others = fitted.fit.unseen().predict(terms);
            let c = cell.local.at(at, others.spread.powi(2));
            let apart = (others.seconds / mean).ln() + c.mean;
            // A line through few small ones fits them well, and says nothing of what comes after.
            let (mine, theirs) = (spread * spread + apart * apart, c.variance + FLOOR);
            mean *= exp(apart * mine / (mine + theirs));
            spread = (mine * theirs / (mine + theirs)).sqrt();
            if theirs < mine {
                evidence = Evidence { source: Source::Pool, extrapolated: false, ..evidence };
            }
        }
        // Nothing runs many times faster than the machine was probed to: a rate held just above zero, since the sizes that
        // were seen hardly had it, would say so of all sizes beyond. (`mean` of 5.9 MB was thought to take 4.9 µs, where
        // one core reads 32 GB/s.)
        if evidence.extrapolated && key.class != OpClass::Custom {
            mean = mean.max(LEAST * size);
        }
        if subject.seen
            && let Some(Exact { history: h, .. }) = self.history.get(&(subject.hash, variant))
        {
            let (vm, vh) = (spread * spread, h.variance());
            mean = ((mean.ln() / vm + h.mean / vh) / (1.0 / vm + 1.0 / vh)).exp();
            let one_run = if h.n > 1 { h.m2 / (h.n.min(64) as f64 - 1.0) } else { 0.0 };
            spread = (1.0 / (1.0 / vm + 1.0 / vh) + one_run.min(0.04)).sqrt();
            evidence.exact = h.n;
            if vh < vm {
                evidence.source = Source::History;
                evidence.extrapolated = false;
            }
        }
        let mean = mean * speed;
        let process = PROCESS / mean.max(f64::MIN_POSITIVE);
        let tails = match evidence.source {
            Source::Model if evidence.exact == 0 => central(spread),
            _ => 1.0,
        };
        let factor = exp((tails * t90 * (spread * spread + process * process).sqrt()).min(WIDEST));
        let launch = (p.launch / p.seconds).min(1.0) * mean;
        Some(Estimate {
            mean: Seconds(mean),
            low: Seconds(mean / factor),
            high: Seconds(mean * factor),
            launch: Seconds(launch),
            moves: Seconds::ZERO,
            work: Seconds(mean - launch),
            setup: Seconds(0.0),
            spread,
            scratch,
            evidence,
        })
    }

    /// Takes in a measured time. `weight` below 1 for a doubtful one. Says whether so many were kept now that its cell may
    /// be settled.
    pub fn observe(
        &mut self,
        variant: Variant,
        w: &Workload,
        hash: u64,
        terms: &Terms,
        seconds: f64,
        weight: f64,
    ) -> bool {
        if !(seconds > 0.0 && seconds.is_finite() && terms.is_work()) {
            return false;
        }
        let subject = Subject::of(w, hash);
        let (key, at) = (subject.cell(variant), subject.by(terms.way()));
        if !w.op().stops_early() {
            self.add(key.pool(), &at, terms, seconds, weight);
        }
        let often = self.add(key, &at, terms, seconds, weight) && self.calibrations == 0;
        if weight >= 1.0 {
            self.clock += 1;
            let clock = self.clock;
            let new = Exact { history: History::default(), at: 0, measured: 0 };
            let entry = self.history.entry((hash, variant)).or_insert(new);
            (entry.at, entry.measured) = (clock, self.changes);
            entry.history.add(seconds.ln());
            self.seen.insert(hash);
            if self.history.len() > HISTORY_CAPACITY {
                let newest = clock;
                self.history.retain(|_, e| newest - e.at < HISTORY_CAPACITY as u64 / 2);
                self.seen = self.history.keys().map(|(hash, _)| *hash).collect();
            }
        }
        often
    }

    /// What a run would be expected to take, had this time not been learned of it. `None` where its kernel was seen too
    /// little otherwise.
    pub fn without(&self, variant: Variant, w: &Workload, terms: &Terms, seconds: f64) -> Option<f64> {
        let subject = Subject::of(w, 0);
        let (fitted, cell) = self.fit(&subject.cell(variant))?;
        if !cell.drafted || cell.stats.samples < ENOUGH {
            return None;
        }
        let expected = fitted.fit.seconds(terms);
        let residual = (seconds / expected).ln();
        Some(expected * cell.local.without(&subject.by(terms.way()), residual).exp())
    }

    /// Takes a time that was learned out again, as far as its cells are not settled.
    pub fn take_back(&mut self, variant: Variant, w: &Workload, hash: u64, seconds: f64) {
        let key = Subject::of(w, hash).cell(variant);
        for key in [key, key.pool()] {
            let same = |s: &Sample| s.seconds == seconds && s.weight == 1.0;
            if let Some(cell) = self.cells.get_mut(&key).filter(|c| !c.settled)
                && let Some(at) = cell.kept.iter().rposition(same)
            {
                let s = cell.kept.remove(at);
                self.kept = self.kept.saturating_sub(1);
                cell.stats.take_back(&s.terms, seconds);
                cell.fit = OnceLock::new();
            }
        }
        self.history.remove(&(hash, variant));
    }

    /// What the model needs of a workload whose key hashes to this, worked out once for all its candidates.
    pub fn subject(&self, w: &Workload, hash: u64) -> Subject {
        let mut subject = Subject::of(w, hash);
        subject.seen = self.seen.contains(&hash);
        subject
    }

    /// How often anything was learned: to tell whether there is something to save.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether the cell has samples enough now to be settled.
    fn add(&mut self, key: CellKey, at: &Corners, terms: &Terms, seconds: f64, weight: f64) -> bool {
        self.changes += 1;
        if let Some((fitted, cell)) = self.fit(&key)
            && cell.settled
        {
            let residual = (seconds / fitted.fit.predict(terms).seconds).ln();
            if let Some(cell) = self.cells.get_mut(&key) {
                cell.local.add(at, residual, weight);
                cell.stats.samples += 1;
            }
            return false;
        }
        let cell = self.cells.get_or_new(key);
        if key.class == OpClass::Custom {
            cell.stats.rebase(terms, seconds);
        }
        cell.stats.add(terms, seconds, weight);
        cell.fit = OnceLock::new();
        if self.kept < SAMPLES {
            cell.kept.push(Sample { at: at.clone(), terms: *terms, seconds, weight });
            self.kept += 1;
        }
        cell.kept.len() >= settle::OFTEN
    }

    fn fit(&self, key: &CellKey) -> Option<(&Fitted, &Cell)> {
        let cell = self.cells.get(key)?;
        let fit = cell.fit.get_or_init(|| {
            let belief = match key.op.and_then(|_| self.fit(&key.pool())) {
                Some((pool, _)) => Belief::from_pool(&pool.fit),
                None if key.class == OpClass::Custom => Belief::unknown(),
                None => Belief::prior(),
            };
            Fitted::new(Fit::new(&cell.stats, &belief), cell.stats.range)
        });
        Some((fit, cell))
    }

    /// Whether anything was learned or remembered of a cell.
    pub fn knows(&self, key: &CellKey) -> bool {
        self.cells.contains(key)
    }

    /// Puts remembered knowledge in: replaces what is there, if anything is.
    pub fn restore(&mut self, key: CellKey, knowledge: Knowledge) {
        self.cells.put_back(key, knowledge);
    }

    /// Puts remembered history of one exact workload in.
    pub fn restore_history(&mut self, hash: u64, variant: Variant, history: History) {
        self.clock += 1;
        self.seen.insert(hash);
        self.history.insert((hash, variant), Exact { history, at: self.clock, measured: 0 });
    }

    /// Everything known, cell by cell, to be written down.
    pub fn cells(&self) -> impl Iterator<Item = (CellKey, Knowledge)> {
        self.cells.write_down()
    }

    /// Samples behind one cell, settled or not.
    pub fn samples(&self, key: &CellKey) -> u64 {
        self.cells.get(key).map_or(0, |c| c.stats.samples)
    }

    /// The history of every exact workload that was measured since there were so many changes, by key hash.
    pub fn histories_since(&self, changes: u64) -> impl Iterator<Item = (u64, Variant, &History)> {
        let new = self.history.iter().filter(move |(_, e)| e.measured > changes);
        new.map(|((hash, v), e)| (*hash, *v, &e.history))
    }

    /// Forgets the history of exact workloads, so that only the regression speaks.
    pub fn forget_history(&mut self) {
        self.history.clear();
        self.seen.clear();
    }

    /// Takes all that is known of some variants out, to be learned anew.
    pub fn take_out(&mut self, of: impl Fn(Variant) -> bool) -> Taken {
        self.changes += 1;
        let cells = self.cells.take_out(|key| of(key.variant));
        self.kept = self.cells.kept();
        let history = self.history.extract_if(|(_, variant), _| of(*variant)).collect();
        self.seen = self.history.keys().map(|(hash, _)| *hash).collect();
        Taken { cells, history }
    }

    /// Puts what was taken out of some variants back, where nothing was learned since.
    pub fn put_back(&mut self, taken: Taken, of: impl Fn(Variant) -> bool) {
        for (key, knowledge) in taken.cells {
            if of(key.variant) && !self.cells.contains(&key) {
                self.cells.put_back(key, knowledge);
            }
        }
        for ((hash, variant), known) in taken.history {
            if of(variant) {
                self.seen.insert(hash);
                self.history.entry((hash, variant)).or_insert(known);
            }
        }
    }

    /// Forgets some cells, and says which there were. Exact workloads keep their histories.
    pub fn forget(&mut self, of: impl Fn(&CellKey) -> bool) -> Vec<CellKey> {
        self.changes += 1;
        let forgotten = self.cells.take_out(of);
        self.kept = self.cells.kept();
        forgotten.into_iter().map(|(key, _)| key).collect()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.changes += 1;
        self.kept = 0;
        self.cells.clear();
        self.history.clear();
        self.seen.clear();
    }
}

/// eˣ, quicker where corrections and intervals mostly lie: within 2e-5 up to 1 either way, which is nothing beside
/// what an estimate is worth.
#[inline(always)]
fn exp(x: f64) -> f64 {
    if x.abs() > 1.0 {
        return x.exp();
    }
    let (even, odd) = (120.0 + 12.0 * x * x, x * (60.0 + x * x));
    (even + odd) / (even - odd)
}

fn prior_fit() -> &'static Fitted {
    static FIT: OnceLock<Fitted> = OnceLock::new();
    FIT.get_or_init(|| Fitted::new(Fit::new(&Stats::default(), &Belief::prior()), None))
}

#[cfg(test)]
mod tests;
