//! What is believed before there are samples: of rates, and of how far samples scatter.

use super::Fit;
use super::linear::Vector;
use crate::cost::terms::MAX_TERMS;

/// What is believed before samples: rates are about right, within a factor.
#[derive(Clone, Debug)]
pub struct Belief {
    pub(super) mean: Vector,
    /// Precision of each rate in units of the noise variance.
    pub(super) precision: Vector,
    pub(super) shape: f64,
    pub(super) scale: f64,
    /// A rate may turn out far lower than its prior (a term that hardly matters), but never negative.
    pub(super) lowest: f64,
    pub(super) unit: f64,
}

/// Relative noise of one sample before any was seen, and the degrees of freedom behind that guess.
pub(super) const NOISE: f64 = 0.06;
const SHAPE: f64 = 2.0;
/// Uncertainty of a prior rate (often several-fold) and of one inherited from the kernel's other ops.
const PRIOR_SPREAD: f64 = 1.5;
const POOL_SPREAD: f64 = 0.25;
/// Uncertainty of a rate of user code, relative to what the first sample suggests.
const UNKNOWN_SPREAD: f64 = 1e5;
/// Lowest rates relative to their priors, where priors are probed and where they only rank.
const LOWEST_RATE: f64 = 0.02;
const LOWEST_UNKNOWN_RATE: f64 = 1e-6;

impl Belief {
    /// Rates as probed.
    pub fn prior() -> Belief {
        Belief {
            mean: [1.0; MAX_TERMS],
            precision: [(NOISE / PRIOR_SPREAD).powi(2); MAX_TERMS],
            shape: SHAPE,
            scale: SHAPE * NOISE * NOISE,
            lowest: LOWEST_RATE,
            unit: 1.0,
        }
    }

    /// Rates of which nothing is known.
    pub fn unknown() -> Belief {
        let precision = [(NOISE / UNKNOWN_SPREAD).powi(2); MAX_TERMS];
        Belief { precision, lowest: LOWEST_UNKNOWN_RATE, ..Belief::prior() }
    }

    /// Rates as other ops of the same kernel have shown them.
    pub fn from_pool(pool: &Fit) -> Belief {
        let noise = pool.noise2().clamp(0.02f64.powi(2), 0.2f64.powi(2));
        Belief {
            mean: pool.mean,
            // A term the pool has not exercised either is no better known for having a pool.
            precision: std::array::from_fn(|i| 1.0 / ((POOL_SPREAD / NOISE).powi(2) + pool.covariance[i][i])),
            shape: SHAPE,
            scale: SHAPE * noise,
            lowest: pool.lowest,
            unit: pool.unit,
        }
    }
}
