//! The verdicts, one by one and all together.

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
    /// What each of them took, the quickest first.
    pub timed: Vec<Timed>,
    /// Legal candidates that were not timed, because they are expected to take many times longer than the best, and long.
    pub left_out: Vec<LeftOut>,
    /// Whether hardly any undisturbed samples could be had of the chosen one or the best: the row counts, but may say
    /// little, of the prediction least.
    pub disturbed: bool,
}

/// One candidate's time.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Timed {
    /// Kernel and parameters.
    pub candidate: String,
    /// Median of its samples.
    pub seconds: f64,
}

/// One candidate that was not timed.
#[derive(Clone, Debug, serde::Serialize)]
pub struct LeftOut {
    /// Kernel and parameters.
    pub candidate: String,
    /// What it is expected to take.
    pub expected_s: f64,
}

/// All verdicts together. Of no verdicts there is no mean, nor any other number.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct RegretReport {
    /// Workloads judged.
    pub workloads: usize,
    /// Mean of the regrets.
    pub mean_regret: Option<f64>,
    /// Median.
    pub p50_regret: Option<f64>,
    /// 99th percentile.
    pub p99_regret: Option<f64>,
    /// Worst.
    pub worst_regret: Option<f64>,
    /// Share of workloads on which the chosen one was the quickest, or within 2% of it.
    pub top1_rate: Option<f64>,
    /// Mean absolute error of the prediction, relative.
    pub mape: Option<f64>,
    /// Share of times inside their 90% interval.
    pub coverage90: Option<f64>,
    /// Mean of the confidences: beside `top1_rate` it says whether they are deserved.
    pub mean_confidence: Option<f64>,
    /// One row a workload.
    pub rows: Vec<RegretRow>,
    /// Workloads that could not be judged, with why.
    pub skipped: Vec<(String, String)>,
}

impl RegretReport {
    pub(super) fn summarise(&mut self) {
        let n = self.rows.len();
        self.workloads = n;
        if n == 0 {
            return;
        }
        let mut sorted: Vec<f64> = self.rows.iter().map(|r| r.regret).collect();
        sorted.sort_by(f64::total_cmp);
        // Nearest rank, so that a percentile is always one of the regrets.
        let rank = |p: f64| sorted[((p * n as f64).ceil() as usize).clamp(1, n) - 1];
        let mean = |of: &dyn Fn(&RegretRow) -> f64| self.rows.iter().map(of).sum::<f64>() / n as f64;
        let share = |hit: &dyn Fn(&RegretRow) -> bool| mean(&|r| f64::from(u8::from(hit(r))));
        self.mean_regret = Some(mean(&|r| r.regret));
        self.p50_regret = Some(rank(0.5));
        self.p99_regret = Some(rank(0.99));
        self.worst_regret = Some(sorted[n - 1]);
        self.top1_rate = Some(share(&|r| r.chosen == r.best || r.regret <= 0.02));
        self.mape = Some(mean(&|r| (r.predicted_s / r.chosen_s - 1.0).abs()));
        self.mean_confidence = Some(mean(&|r| r.confidence));
        self.coverage90 = Some(share(&|r| (r.low_s..=r.high_s).contains(&r.chosen_s)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_no_verdicts_there_are_no_numbers_but_every_key() {
        let mut report = RegretReport::default();
        report.summarise();
        let json = serde_json::to_value(&report).unwrap();
        for key in
            ["mean_regret", "p50_regret", "p99_regret", "worst_regret", "top1_rate", "mape", "coverage90"]
        {
            assert_eq!(json.get(key), Some(&serde_json::Value::Null), "{key}");
        }
        assert_eq!(json["workloads"], 0);
    }
}
