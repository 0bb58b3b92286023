//! The learned model: one regression per (kernel, parameters, op, element type, layout), each leaning
//! on a pool shared by the kernel's other ops, blended with the history of exact workloads.

use super::estimate::{Estimate, Evidence, Source};
use super::regress::{Belief, Fit, Stats, t90};
use super::terms::Terms;
use crate::dtype::DType;
use crate::kernel::Params;
use crate::op::OpClass;
use crate::units::Seconds;
use crate::workload::{Layout, Workload};
use std::collections::HashMap;
use std::sync::OnceLock;

/// One kernel with one parameter point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variant {
    /// Kernel by registry index.
    pub kernel: u16,
    /// Its parameters.
    pub params: Params,
}

/// Which regression a workload's samples go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CellKey {
    /// Kernel and parameters.
    pub variant: Variant,
    /// The op by name (attributes aside), or `None` for the pool of a class.
    pub op: Option<&'static str>,
    /// The op's class.
    pub class: OpClass,
    /// Element type.
    pub dtype: DType,
    /// Layout of the operands.
    pub layout: Layout,
}

impl CellKey {
    /// The cell of this variant for this workload.
    pub fn of(variant: Variant, w: &Workload) -> CellKey {
        CellKey { variant, op: Some(w.op().name()), class: w.class(), dtype: w.dtype(), layout: w.layout() }
    }

    fn pool(self) -> CellKey {
        CellKey { op: None, ..self }
    }
}

/// Fitted when first asked for: a remembered machine has thousands of cells and needs a few.
#[derive(Debug, Default)]
struct Cell {
    stats: Stats,
    fit: OnceLock<Fit>,
}

/// Running mean and variance of ln t for one exact workload and variant.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct History {
    /// Runs seen.
    pub n: u64,
    /// Mean of ln seconds.
    pub mean: f64,
    /// Sum of squared deviations.
    pub m2: f64,
}

impl History {
    fn add(&mut self, ln: f64) {
        // A sliding memory of 64 runs: rates drift.
        self.n += 1;
        let n = self.n.min(64) as f64;
        let delta = ln - self.mean;
        self.mean += delta / n;
        self.m2 = self.m2 * if self.n > 64 { 63.0 / 64.0 } else { 1.0 } + delta * (ln - self.mean);
    }

    /// Variance of the mean, with a floor: 1.5% between runs of one process is never averaged away.
    fn variance(&self) -> f64 {
        let n = self.n.min(64) as f64;
        let one = if self.n > 1 { (self.m2 / (n - 1.0)).max(4e-4) } else { 0.01 };
        one / n + 2.25e-4
    }
}

/// Exact workloads remembered at most; the oldest half goes when it is full.
const HISTORY_CAPACITY: usize = 16_384;

/// Everything learned about costs.
#[derive(Default)]
pub struct Model {
    cells: HashMap<CellKey, Cell>,
    history: HashMap<(u64, Variant), (u64, History)>,
    clock: u64,
    changes: u64,
}

impl Model {
    /// Predicts the run of `variant` whose counted work is `terms`. `speed` is the device's shared slow-down
    /// (1: as learned).
    pub fn estimate(&self, variant: Variant, w: &Workload, hash: u64, terms: &Terms, speed: f64, scratch: u64) -> Estimate {
        let key = CellKey::of(variant, w);
        let (p, samples, source, range) = if let Some((fit, stats)) = self.fit(&key) {
            (fit.predict(terms), stats.samples, Source::Model, stats.range)
        } else if let Some((fit, stats)) = self.fit(&key.pool()) {
            (fit.unseen().predict(terms), 0, Source::Pool, stats.range)
        } else {
            (prior_fit().predict(terms), 0, Source::Prior, None)
        };
        let at = terms.total().max(1e-12).ln();
        // Half an e-fold beyond the sizes seen is still near; further is said to be extrapolation.
        let extrapolated = range.is_none_or(|(a, b)| at < a - 0.5 || at > b + 0.5);
        let (mut ln, mut spread, dof) = (p.seconds.ln(), p.spread, p.dof);
        let mut evidence = Evidence { source, samples, exact: 0, extrapolated };
        if let Some((_, h)) = self.history.get(&(hash, variant)) {
            let (vm, vh) = (spread * spread, h.variance());
            ln = (ln / vm + h.mean / vh) / (1.0 / vm + 1.0 / vh);
            let one_run = if h.n > 1 { h.m2 / (h.n.min(64) as f64 - 1.0) } else { 0.0 };
            spread = (1.0 / (1.0 / vm + 1.0 / vh) + one_run.min(0.04)).sqrt();
            evidence.exact = h.n;
            if vh < vm {
                evidence.source = Source::History;
                evidence.extrapolated = false;
            }
        }
        let mean = ln.exp() * speed;
        let half = (t90(dof) * spread).min(3.0);
        let launch = (p.launch / p.seconds).min(1.0) * mean;
        Estimate {
            mean: Seconds(mean),
            low: Seconds(mean * (-half).exp()),
            high: Seconds(mean * half.exp()),
            launch: Seconds(launch),
            moves: Seconds::ZERO,
            work: Seconds(mean - launch),
            spread,
            scratch,
            evidence,
        }
    }

    /// Takes in a measured time. `weight` below 1 for a doubtful one.
    pub fn observe(&mut self, variant: Variant, w: &Workload, hash: u64, terms: &Terms, seconds: f64, weight: f64) {
        if !(seconds > 0.0 && seconds.is_finite()) {
            return;
        }
        let key = CellKey::of(variant, w);
        self.add(key.pool(), terms, seconds, weight);
        self.add(key, terms, seconds, weight);
        if weight >= 1.0 {
            self.clock += 1;
            let clock = self.clock;
            let entry = self.history.entry((hash, variant)).or_default();
            entry.0 = clock;
            entry.1.add(seconds.ln());
            if self.history.len() > HISTORY_CAPACITY {
                let newest = clock;
                self.history.retain(|_, (at, _)| newest - *at < HISTORY_CAPACITY as u64 / 2);
            }
        }
    }

    /// How often anything was learned: to tell whether there is something to save.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    fn add(&mut self, key: CellKey, terms: &Terms, seconds: f64, weight: f64) {
        self.changes += 1;
        let cell = self.cells.entry(key).or_default();
        cell.stats.add(terms, seconds, weight);
        cell.fit = OnceLock::new();
    }

    fn fit(&self, key: &CellKey) -> Option<(&Fit, &Stats)> {
        let cell = self.cells.get(key)?;
        let fit = cell.fit.get_or_init(|| {
            let belief = match key.op.and_then(|_| self.fit(&key.pool())) {
                Some((pool, _)) => Belief::from_pool(pool),
                None => Belief::prior(),
            };
            Fit::new(&cell.stats, &belief)
        });
        Some((fit, &cell.stats))
    }

    /// Refits every cell to its pool as it stands now: after calibration, when pools have settled.
    pub fn refit(&mut self) {
        self.cells.values_mut().for_each(|c| c.fit = OnceLock::new());
    }

    /// Puts remembered statistics in, on top of what is there.
    pub fn restore(&mut self, key: CellKey, stats: &Stats) {
        let cell = self.cells.entry(key).or_default();
        cell.stats.merge(stats);
        cell.fit = OnceLock::new();
    }

    /// Puts remembered history of one exact workload in.
    pub fn restore_history(&mut self, hash: u64, variant: Variant, history: History) {
        self.clock += 1;
        self.history.insert((hash, variant), (self.clock, history));
    }

    /// Every regression's statistics.
    pub fn cells(&self) -> impl Iterator<Item = (CellKey, &Stats)> {
        self.cells.iter().map(|(k, c)| (*k, &c.stats))
    }

    /// Samples behind one cell.
    pub fn samples(&self, key: &CellKey) -> u64 {
        self.cells.get(key).map_or(0, |c| c.stats.samples)
    }

    /// Every exact workload's history, by key hash.
    pub fn histories(&self) -> impl Iterator<Item = (u64, Variant, &History)> {
        self.history.iter().map(|((hash, v), (_, h))| (*hash, *v, h))
    }

    /// Forgets the history of exact workloads, so that only the regression speaks.
    pub fn forget_history(&mut self) {
        self.history.clear();
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.changes += 1;
        self.cells.clear();
        self.history.clear();
    }
}

fn prior_fit() -> &'static Fit {
    static FIT: OnceLock<Fit> = OnceLock::new();
    FIT.get_or_init(|| Fit::new(&Stats::default(), &Belief::prior()))
}
