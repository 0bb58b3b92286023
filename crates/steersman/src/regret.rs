//! The honest judge: how much slower the chosen candidate is than the best in hindsight.
//!
//! For each workload the decision is taken first, with learning off. Then every legal candidate is timed, in
//! turns. The best is picked on the even samples and everything is judged on the odd ones, so that luck is
//! not taken for speed.

use crate::error::Error;
use crate::runtime::Runtime;
use std::ops::ControlFlow;
use std::time::Duration;
use steersman_core::measure::Contest;
use steersman_core::{Variant, Workload};

/// One workload's verdict. Times in seconds.
#[derive(Clone, Debug, serde::Serialize)]
pub struct RegretRow {
    /// The workload.
    pub workload: String,
    /// What was chosen: kernel and parameters.
    pub chosen: String,
    /// How long that took.
    pub chosen_s: f64,
    /// What was quickest.
    pub best: String,
    /// How long that took.
    pub best_s: f64,
    /// `chosen_s / best_s − 1`, not below 0.
    pub regret: f64,
    /// What the chosen one was expected to take.
    pub predicted_s: f64,
    /// Lower end of the 90% interval.
    pub low_s: f64,
    /// Upper end of it.
    pub high_s: f64,
    /// Slowest candidate's time: what a wrong choice would have cost.
    pub worst_s: f64,
    /// How sure the decision was.
    pub confidence: f64,
    /// Legal candidates timed.
    pub candidates: usize,
}

/// All verdicts together.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct RegretReport {
    /// Workloads judged.
    pub workloads: usize,
    /// Mean of the regrets.
    pub mean_regret: f64,
    /// Median.
    pub p50_regret: f64,
    /// 99th percentile.
    pub p99_regret: f64,
    /// Worst.
    pub worst_regret: f64,
    /// Share of workloads on which the chosen one was the quickest, or within 2% of it.
    pub top1_rate: f64,
    /// Mean absolute error of the prediction, relative.
    pub mape: f64,
    /// Share of times inside their 90% interval.
    pub coverage90: f64,
    /// One row a workload.
    pub rows: Vec<RegretRow>,
    /// Workloads that could not be judged, with why.
    pub skipped: Vec<(String, String)>,
}

/// Six samples of each at least, so that each half has three; then as many as a third of a second allows.
const HOW: Contest = Contest {
    rounds: 15,
    least: 6,
    batch: Duration::from_micros(100),
    limit: Duration::from_millis(300),
    give_up: 1.5,
};

impl Runtime {
    /// Judges the decisions for these workloads. One workload's memory at a time.
    pub fn regret(
        &self,
        workloads: &[Workload],
        progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<RegretReport, Error> {
        let mut report = RegretReport::default();
        for (i, w) in workloads.iter().enumerate() {
            if progress(i, workloads.len()).is_break() {
                break;
            }
            match self.judge_one(w) {
                Ok(row) => report.rows.push(row),
                Err(e) => report.skipped.push((w.to_string(), e.to_string())),
            }
        }
        report.summarise();
        Ok(report)
    }

    fn judge_one(&self, w: &Workload) -> Result<RegretRow, Error> {
        let engine = self.engine();
        let decision = engine.judge(w)?;
        let variants: Vec<Variant> = engine.estimates(w).iter().map(|c| c.variant).collect();
        let series = self.contest(w, &variants, &HOW)?;
        let failed =
            || Error::AllFailed { workload: w.to_string(), last: "no candidate gave a clean sample".into() };
        let best = series
            .iter()
            .filter(|s| s.half(1).is_some())
            .min_by(|a, b| a.half(0).unwrap_or(f64::INFINITY).total_cmp(&b.half(0).unwrap_or(f64::INFINITY)))
            .ok_or_else(failed)?;
        let chosen = series.iter().find(|s| s.variant == decision.variant()).ok_or_else(failed)?;
        let (best_s, chosen_s) = (best.half(1).ok_or_else(failed)?, chosen.half(1).ok_or_else(failed)?);
        let name = |v: Variant| format!("{} {}", engine.name(v.kernel), v.params);
        let (low, high) = decision.interval();
        Ok(RegretRow {
            workload: w.to_string(),
            chosen: name(chosen.variant),
            chosen_s,
            best: name(best.variant),
            best_s,
            regret: (chosen_s / best_s - 1.0).max(0.0),
            predicted_s: decision.predicted().0,
            low_s: low.0,
            high_s: high.0,
            worst_s: series.iter().filter_map(|s| s.median()).fold(0.0, f64::max),
            confidence: decision.confidence(),
            candidates: series.len(),
        })
    }
}

impl RegretReport {
    fn summarise(&mut self) {
        let n = self.rows.len();
        self.workloads = n;
        if n == 0 {
            return;
        }
        let mut sorted: Vec<f64> = self.rows.iter().map(|r| r.regret).collect();
        sorted.sort_by(f64::total_cmp);
        // Nearest rank, so that a percentile is always one of the regrets.
        let rank = |p: f64| sorted[((p * n as f64).ceil() as usize).clamp(1, n) - 1];
        let share =
            |hit: &dyn Fn(&RegretRow) -> bool| self.rows.iter().filter(|r| hit(r)).count() as f64 / n as f64;
        self.mean_regret = sorted.iter().sum::<f64>() / n as f64;
        self.p50_regret = rank(0.5);
        self.p99_regret = rank(0.99);
        self.worst_regret = sorted[n - 1];
        self.top1_rate = share(&|r| r.chosen == r.best || r.regret <= 0.02);
        self.mape =
            self.rows.iter().map(|r| (r.predicted_s / r.chosen_s - 1.0).abs()).sum::<f64>() / n as f64;
        self.coverage90 = share(&|r| (r.low_s..=r.high_s).contains(&r.chosen_s));
    }
}
