//! A predicted cost with its interval and the evidence behind it.

use crate::units::Seconds;

/// Where an estimate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Only probed or assumed rates.
    Prior,
    /// Other ops of the same kernel.
    Pool,
    /// Samples of this kernel on this op.
    Model,
    /// Mostly runs of exactly this workload.
    History,
}

/// What an estimate rests on.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Evidence {
    /// Where the estimate comes from.
    pub source: Source,
    /// Samples of this kernel, parameters, op and element type.
    pub samples: u64,
    /// Runs of exactly this workload among them.
    pub exact: u64,
    /// Whether the workload lies outside the sizes seen.
    pub extrapolated: bool,
    /// Transfers behind the links it needs (of many, 65,535), 0 if they are only supposed; none if nothing is moved.
    pub transfers: Option<u16>,
}

/// A predicted cost.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// Expected time.
    pub mean: Seconds,
    /// Lower end of the central 90%.
    pub low: Seconds,
    /// Upper end of the central 90%.
    pub high: Seconds,
    /// Part of the mean that is launch.
    pub launch: Seconds,
    /// Part of the mean that is moving operands and result.
    pub moves: Seconds,
    /// Part of the mean that is the work itself.
    pub work: Seconds,
    /// What has to pass first, once, before it can run at all: compiling. Of it, what falls to one call is in the
    /// mean when a call is decided.
    pub setup: Seconds,
    /// Relative standard deviation of one run.
    pub spread: f64,
    /// Bytes needed beyond operands and result.
    pub scratch: u64,
    /// What it rests on.
    pub evidence: Evidence,
}

/// Correlation of the errors of two candidates for one workload: what a size or a moment does to one it mostly
/// does to the other.
const SHARED: f64 = 0.8;

/// Share of its relative spread that a candidate's time is raised by when choosing. (Six calibrations on 684 shapes: mean
/// regret 1.29% with none of it, 1.30 with a tenth, 1.33 with a third, 1.44 with half, 1.59 with 0.8.)
const CAUTION: f64 = 0.1;

/// Relative deviation of a transfer's time, by whether its link was ever measured, and how far the central 90% reach.
const MEASURED_MOVE: (f64, f64) = (0.1, 1.2);
const SUPPOSED_MOVE: (f64, f64) = (0.7, 4.0);

impl Estimate {
    /// The mean, raised by what is not known: what is less sure has to promise more.
    pub fn cautious(&self) -> Seconds {
        self.mean * (1.0 + CAUTION * self.spread)
    }

    /// With so much time for moves, which rests on so many transfers.
    pub fn with_moves(self, seconds: Seconds, transfers: u32) -> Estimate {
        let (deviation, factor) = if transfers == 0 { SUPPOSED_MOVE } else { MEASURED_MOVE };
        let mean = self.mean + seconds;
        Estimate {
            mean,
            low: self.low + seconds * (1.0 / factor),
            high: self.high + seconds * factor,
            moves: seconds,
            spread: (self.spread * self.mean.0).hypot(deviation * seconds.0) / mean.0.max(f64::MIN_POSITIVE),
            evidence: Evidence { transfers: Some(transfers.min(u16::MAX.into()) as u16), ..self.evidence },
            ..self
        }
    }

    /// With so much more (less, if negative) to begin and end with.
    pub fn later(self, seconds: f64) -> Estimate {
        // Half of what it takes is never saved that way.
        let moved = |t: Seconds| Seconds((t.0 + seconds).max(0.5 * t.0));
        let (mean, launch) = (moved(self.mean), Seconds((self.launch.0 + seconds).max(0.0)));
        let spread = self.spread * (self.mean.0 / mean.0.max(f64::MIN_POSITIVE));
        Estimate { mean, low: moved(self.low), high: moved(self.high), launch, spread, ..self }
    }

    /// With something to make ready first that takes so long, for as many calls to come.
    pub fn with_setup(self, seconds: Seconds, calls: f64) -> Estimate {
        let share = seconds * (1.0 / calls.max(1.0));
        let (mean, low, high) = (self.mean + share, self.low + share, self.high + share);
        Estimate { mean, low, high, setup: seconds, spread: self.spread * (self.mean.0 / mean.0), ..self }
    }

    /// By how many standard deviations this one is thought quicker than the other, their logs taken as normal;
    /// far ahead is all the same.
    pub fn lead(&self, other: &Estimate) -> f64 {
        // Four deviations apart are not worth a logarithm: e^x ≤ 1 + x + x² up to 1.79.
        let far = 4.0 * (self.spread + other.spread);
        if far < 1.5 && other.mean.0 > self.mean.0 * (1.0 + far + far * far) {
            return f64::INFINITY;
        }
        let gap = (other.mean.0 / self.mean.0).ln();
        let (a, b) = (self.spread, other.spread);
        gap / (a * a + b * b - 2.0 * SHARED * a * b).max(0.0).sqrt().max(1e-3)
    }
}

/// Standard normal distribution function (Abramowitz and Stegun 26.2.17 form, error < 1e-7).
pub fn normal_cdf(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let poly = t
        * (0.319_381_530
            + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * poly;
    if z >= 0.0 { 1.0 - tail } else { tail }
}
