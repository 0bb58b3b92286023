//! Bayesian linear regression on counted work, with relative noise.
//!
//! A measured time is `Σ bᵢ·xᵢ` where `xᵢ` is what term `i` takes at its prior rate and `bᵢ` how far
//! that rate is off (1: not at all). Dividing by the measured time makes the noise relative, so a
//! microsecond counts as much as a second. The Normal-inverse-gamma posterior gives Student-t intervals
//! and a rank-1 update.
//!
//! Terms never exercised keep their prior and its width: that is what makes extrapolation fall back
//! and widen by itself.

mod belief;
mod linear;
mod stats;

pub use belief::Belief;
pub use linear::t90;
pub use stats::Stats;

use super::terms::{MAX_TERMS, Terms};
use belief::NOISE;
use linear::{Matrix, Vector, dot, invert, multiply, sum};

/// A posterior, ready to predict.
#[derive(Clone, Debug)]
pub struct Fit {
    mean: Vector,
    covariance: Matrix,
    shape: f64,
    scale: f64,
    lowest: f64,
    unit: f64,
}

/// A predicted time: mean, and relative standard deviation of its Student-t with `dof` degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Seconds.
    pub seconds: f64,
    /// Of which the launch terms.
    pub launch: f64,
    /// Relative scale of one future measurement.
    pub spread: f64,
    /// Degrees of freedom behind that.
    pub dof: f64,
}

impl Fit {
    /// The posterior of `stats` under `belief`.
    pub fn new(stats: &Stats, belief: &Belief) -> Fit {
        let unit = if stats.samples > 0 { stats.unit() } else { belief.unit };
        let believed: Vector = belief.mean.map(|m| m * belief.unit / unit);
        let lowest = belief.lowest;
        let mut fixed = [false; MAX_TERMS];
        let (mut mean, mut inverse);
        loop {
            let mut precision = stats.gram;
            let mut right = stats.moment;
            for i in 0..MAX_TERMS {
                // A rate that wants to go negative is held just above zero and the others solved again.
                let (p, m) = if fixed[i] {
                    (1e9 * (1.0 + stats.gram[i][i]), lowest)
                } else {
                    (belief.precision[i], believed[i])
                };
                precision[i][i] += p;
                right[i] += p * m;
            }
            inverse = invert(precision);
            mean = multiply(&inverse, &right);
            match (0..MAX_TERMS).find(|&i| mean[i] < lowest * 0.99 && !fixed[i]) {
                Some(i) => fixed[i] = true,
                None => break,
            }
        }
        // Residual sum of squares of the targets (all 1), plus the pull of the prior.
        let fitted: f64 = (0..MAX_TERMS)
            .map(|i| mean[i] * (0..MAX_TERMS).map(|j| stats.gram[i][j] * mean[j]).sum::<f64>())
            .sum();
        let cross: f64 = (0..MAX_TERMS).map(|i| mean[i] * stats.moment[i]).sum();
        let pull: f64 = (0..MAX_TERMS).map(|i| (mean[i] - believed[i]).powi(2) * belief.precision[i]).sum();
        let rss = (stats.weight - 2.0 * cross + fitted).max(0.0) + pull;
        Fit {
            mean,
            covariance: inverse,
            shape: belief.shape + stats.weight / 2.0,
            scale: belief.scale + rss / 2.0,
            lowest,
            unit,
        }
    }

    /// What this pool's fit says of an op of which nothing was seen: the same rates, less surely.
    pub fn unseen(&self) -> Fit {
        let belief = Belief::from_pool(self);
        let mut covariance = [[0.0; MAX_TERMS]; MAX_TERMS];
        (0..MAX_TERMS).for_each(|i| covariance[i][i] = 1.0 / belief.precision[i]);
        Fit {
            mean: belief.mean,
            covariance,
            shape: belief.shape,
            scale: belief.scale,
            lowest: belief.lowest,
            unit: belief.unit,
        }
    }

    /// Degrees of freedom behind the noise.
    pub fn dof(&self) -> f64 {
        2.0 * self.shape
    }

    /// Relative noise variance.
    pub fn noise2(&self) -> f64 {
        self.scale / self.shape
    }

    /// The expected time alone.
    #[inline(always)]
    pub fn seconds(&self, terms: &Terms) -> f64 {
        dot(&self.mean, terms.all()) * self.unit
    }

    /// Predicts a run of this work. Inlined: handing the answer over through memory took a tenth of a miss.
    #[inline(always)]
    pub fn predict(&self, terms: &Terms) -> Prediction {
        // All terms, though most are of other memory levels and zero here: eight at a time without a branch take
        // half as long as picking out the five that are not.
        let x = terms.all();
        let each: Vector = std::array::from_fn(|i| self.mean[i] * x[i]);
        let launch = (0..terms.launch_terms()).map(|i| each[i]).sum::<f64>() * self.unit;
        let seconds = (sum(&each) * self.unit).max(1e-10);
        let mut spread = [0.0; MAX_TERMS];
        for (row, x) in self.covariance.iter().zip(x) {
            (0..MAX_TERMS).for_each(|j| spread[j] += x * row[j]);
        }
        let relative = self.unit / seconds;
        let doubt = dot(&spread, x) * relative * relative;
        // Doubt about rates is in units of the noise assumed beforehand: quiet samples of one size say
        // nothing about a term they did not exercise.
        let noise = self.noise2();
        Prediction {
            seconds,
            launch,
            spread: (noise + noise.max(NOISE * NOISE) * doubt).sqrt(),
            dof: self.dof(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(n: f64) -> Terms {
        Terms::launch(50e-9).and(n * 1e-9)
    }

    #[test]
    fn it_learns_an_overhead_and_a_rate_from_a_few_sizes() {
        let mut s = Stats::default();
        for n in [1.0, 100.0, 10_000.0, 1e6] {
            s.add(&terms(n), 200e-9 + n * 0.3e-9, 1.0);
        }
        let fit = Fit::new(&s, &Belief::prior());
        for n in [10.0, 700.0, 50_000.0] {
            let p = fit.predict(&terms(n));
            let truth = 200e-9 + n * 0.3e-9;
            assert!((p.seconds / truth - 1.0).abs() < 0.05, "{n}: {} for {truth}", p.seconds);
        }
    }

    #[test]
    fn without_samples_the_prior_answers_with_a_wide_interval() {
        let p = Fit::new(&Stats::default(), &Belief::prior()).predict(&terms(1e6));
        assert!((p.seconds / 1.00005e-3 - 1.0).abs() < 1e-3);
        assert!(p.spread > 0.5);
    }

    #[test]
    fn a_term_never_exercised_stays_uncertain() {
        let mut s = Stats::default();
        for _ in 0..50 {
            s.add(&terms(1.0), 60e-9, 1.0);
        }
        let fit = Fit::new(&s, &Belief::prior());
        assert!(fit.predict(&terms(1.0)).spread < 0.1);
        assert!(fit.predict(&terms(1e6)).spread > 0.5);
    }

    #[test]
    fn statistics_survive_being_written_down_and_nonsense_does_not() {
        let mut s = Stats::default();
        s.add(&terms(100.0), 1e-6, 1.0);
        s.add(&terms(7.0), 2e-7, 0.5);
        let bytes = s.to_bytes();
        assert_eq!(Stats::from_bytes(&bytes), Some(s));
        assert_eq!(Stats::from_bytes(&bytes[1..]), None);
        assert_eq!(Stats::from_bytes(&[]), None);
        let mut bad = bytes.clone();
        bad[1..9].copy_from_slice(&f64::NAN.to_le_bytes());
        assert_eq!(Stats::from_bytes(&bad), None);
    }

    #[test]
    fn rates_never_go_negative() {
        let mut s = Stats::default();
        // A cost that falls with n cannot be; the fit must stay positive everywhere.
        for (n, t) in [(1.0, 1e-6), (1000.0, 0.5e-6), (2000.0, 0.4e-6)] {
            for _ in 0..20 {
                s.add(&terms(n), t, 1.0);
            }
        }
        assert!(Fit::new(&s, &Belief::prior()).predict(&terms(1e7)).seconds > 0.0);
    }

    /// User code: a call, n, n·log n.
    fn unknown(n: f64) -> Terms {
        Terms::launch(50e-9).and(n * 1e-9).and(n * n.max(1.0).log2() * 1e-10)
    }

    #[test]
    fn user_code_is_learned_whatever_its_priors_said() {
        let laws: [fn(f64) -> f64; 4] =
            [|n| 1e-6 + n * 1e-3, |_| 40e-9, |n| 1e-3 + n * 1e-9, |n| 20e-9 + n * n.max(1.0).log2() * 3e-9];
        for (i, law) in laws.into_iter().enumerate() {
            for sizes in [[1e2, 1e3, 1e4, 1e6], [1e6, 1e4, 1e3, 1e2]] {
                let mut s = Stats::default();
                s.rebase(&unknown(sizes[0]), law(sizes[0]));
                sizes.iter().for_each(|&n| (0..3).for_each(|_| s.add(&unknown(n), law(n), 1.0)));
                let fit = Fit::new(&s, &Belief::unknown());
                for n in [3e2, 5e3, 2e5] {
                    let p = fit.predict(&unknown(n)).seconds;
                    assert!((p / law(n)).ln().abs() < 0.1, "law {i} at {n}: {p} for {}", law(n));
                }
            }
        }
    }

    #[test]
    fn the_t_quantile_matches_known_values() {
        for (dof, want) in [(4.0, 2.132), (10.0, 1.812), (30.0, 1.697), (1e6, 1.645)] {
            assert!((t90(dof) / want - 1.0).abs() < 0.02, "{dof}: {}", t90(dof));
        }
    }
}
