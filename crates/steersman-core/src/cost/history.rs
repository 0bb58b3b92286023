//! What was measured of one exact workload.

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

/// Runs that an earlier process's history counts for at most: it was measured on the same machine on another day.
pub(crate) const REMEMBERED: u64 = 16;

impl History {
    /// As a later process takes it: the same mean and scatter, of fewer runs. `None` if these are no measurements.
    pub fn remembered(self) -> Option<History> {
        let sane = self.n > 0 && self.mean.is_finite() && self.m2 >= 0.0 && self.m2.is_finite();
        let (n, had) = (self.n.min(REMEMBERED), self.n.min(64));
        let scale = if had > 1 { (n - 1) as f64 / (had - 1) as f64 } else { 0.0 };
        sane.then_some(History { n, mean: self.mean, m2: self.m2 * scale })
    }

    pub(super) fn add(&mut self, ln: f64) {
        // A sliding memory of 64 runs: rates drift.
        self.n += 1;
        let n = self.n.min(64) as f64;
        let delta = ln - self.mean;
        self.mean += delta / n;
        self.m2 = self.m2 * if self.n > 64 { 63.0 / 64.0 } else { 1.0 } + delta * (ln - self.mean);
    }

    /// Variance of the mean, with a floor: 1.5% between runs of one process is never averaged away. A single run may
    /// have been the first, with cold caches and untouched pages: it says little, and nothing of the machine.
    pub(super) fn variance(&self) -> f64 {
        let n = self.n.min(64) as f64;
        let one = if self.n > 1 { (self.m2 / (n - 1.0)).max(4e-4) } else { 0.1 };
        one / n + 2.25e-4
    }
}
