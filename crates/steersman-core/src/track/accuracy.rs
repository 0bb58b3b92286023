//! Running accuracy of predictions, in constant memory.

/// Predicted against measured seconds, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Accuracy {
    n: u64,
    absolute: f64,
    squared: f64,
    relative: f64,
    inside: u64,
    seconds: Spread,
    ln: Spread,
    squared_ln: f64,
}

/// Welford's running mean and summed squared distance from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Spread {
    mean: f64,
    m2: f64,
}

impl Spread {
    fn add(&mut self, n: f64, x: f64) {
        let before = x - self.mean;
        self.mean += before / n;
        self.m2 += before * (x - self.mean);
    }
}

impl Accuracy {
    /// Adds one. Times that are not positive and finite say nothing and are left out.
    pub fn add(&mut self, predicted: f64, low: f64, high: f64, measured: f64) {
        let sane = |t: f64| t.is_finite() && t > 0.0;
        if !sane(predicted) || !sane(measured) {
            return;
        }
        self.n += 1;
        let error = predicted - measured;
        self.absolute += error.abs();
        self.squared += error * error;
        self.relative += error.abs() / measured;
        self.inside += u64::from((low..=high).contains(&measured));
        self.seconds.add(self.n as f64, measured);
        self.ln.add(self.n as f64, measured.ln());
        self.squared_ln += (predicted.ln() - measured.ln()).powi(2);
    }

    /// How many were added.
    pub fn samples(&self) -> u64 {
        self.n
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.n > 0).then(|| sum / self.n as f64)
    }

    /// Mean absolute error in seconds.
    pub fn mae(&self) -> Option<f64> {
        self.mean(self.absolute)
    }

    /// Root of the mean squared error, in seconds.
    pub fn rmse(&self) -> Option<f64> {
        self.mean(self.squared).map(f64::sqrt)
    }

    /// Mean absolute error as a share of the measured time.
    pub fn mape(&self) -> Option<f64> {
        self.mean(self.relative)
    }

    /// Share of measurements inside their interval.
    pub fn coverage(&self) -> Option<f64> {
        self.mean(self.inside as f64)
    }

    /// Share of the variance of seconds that was foretold: dominated by the longest runs. `None` while all
    /// measurements are alike.
    pub fn r2(&self) -> Option<f64> {
        (self.seconds.m2 > 0.0).then(|| 1.0 - self.squared / self.seconds.m2)
    }

    /// The same of ln seconds, the scale the model works on: every decade counts alike.
    pub fn r2_ln(&self) -> Option<f64> {
        (self.ln.m2 > 0.0).then(|| 1.0 - self.squared_ln / self.ln.m2)
    }
}
