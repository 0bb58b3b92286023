//! Bayesian linear regression on counted work, with relative noise.
//!
//! A measured time is `Σ bᵢ·xᵢ` where `xᵢ` is what term `i` takes at its prior rate and `bᵢ` how far
//! that rate is off (1: not at all). Dividing by the measured time makes the noise relative, so a
//! microsecond counts as much as a second. The Normal-inverse-gamma posterior gives Student-t intervals
//! and a rank-1 update.
//!
//! Terms never exercised keep their prior and its width: that is what makes extrapolation fall back
//! and widen by itself.

use super::terms::{MAX_TERMS, Terms};

type Matrix = [[f64; MAX_TERMS]; MAX_TERMS];
type Vector = [f64; MAX_TERMS];

/// Sufficient statistics of the samples seen.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Stats {
    gram: Matrix,
    moment: Vector,
    weight: f64,
    /// Samples ever seen; `weight` forgets, this does not.
    pub samples: u64,
    /// Smallest and largest ln(prior seconds) seen.
    pub range: Option<(f64, f64)>,
    /// What prior times are multiplied by before anything else, if not by one.
    #[serde(default)]
    unit: Option<f64>,
}

/// Beyond this many samples old ones fade: rates drift, and a model that cannot move is wrong for ever.
const MEMORY: f64 = 256.0;

impl Stats {
    /// Takes the first sample as the measure of all prior rates: for code whose priors only rank. Without
    /// it a rate a thousand times its prior would take as many samples to be believed.
    pub fn rebase(&mut self, terms: &Terms, seconds: f64) {
        if self.samples == 0 && terms.total() > 0.0 && seconds > 0.0 && seconds.is_finite() {
            self.unit = Some(seconds / terms.total());
        }
    }

    fn unit(&self) -> f64 {
        self.unit.unwrap_or(1.0)
    }

    /// Takes in one measured time with this weight (1 for a full sample).
    pub fn add(&mut self, terms: &Terms, seconds: f64, weight: f64) {
        if !(seconds > 0.0 && seconds.is_finite() && weight > 0.0) {
            return;
        }
        if self.weight + weight > MEMORY {
            let keep = MEMORY / (self.weight + weight);
            self.gram.iter_mut().flatten().for_each(|g| *g *= keep);
            self.moment.iter_mut().for_each(|m| *m *= keep);
            self.weight *= keep;
        }
        let unit = self.unit();
        let z = |x: f64| x * unit / seconds;
        let x = terms.seconds();
        for (i, &xi) in x.iter().enumerate() {
            let zi = z(xi);
            self.moment[i] += weight * zi;
            for (j, &xj) in x.iter().enumerate() {
                self.gram[i][j] += weight * zi * z(xj);
            }
        }
        self.weight += weight;
        self.samples += 1;
        let at = terms.total().max(1e-12).ln();
        self.range = Some(self.range.map_or((at, at), |(a, b)| (a.min(at), b.max(at))));
    }

    /// As bytes: the terms in use only, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let used = (0..MAX_TERMS).rev().find(|&i| self.gram[i][i] != 0.0).map_or(0, |i| i + 1);
        let (low, high) = self.range.unwrap_or((f64::NAN, f64::NAN));
        let mut out = vec![used as u8];
        let mut put = |v: f64| out.extend(v.to_le_bytes());
        [self.weight, self.samples as f64, low, high, self.unit.unwrap_or(f64::NAN)]
            .into_iter()
            .for_each(&mut put);
        self.moment[..used].iter().copied().for_each(&mut put);
        for i in 0..used {
            self.gram[i][..=i].iter().copied().for_each(&mut put);
        }
        out
    }

    /// From [`Stats::to_bytes`]; `None` if the bytes are not that, or hold something no samples could give.
    pub fn from_bytes(bytes: &[u8]) -> Option<Stats> {
        let (&used, rest) = bytes.split_first()?;
        let used = used as usize;
        if used > MAX_TERMS || rest.len() != 8 * (5 + used + used * (used + 1) / 2) {
            return None;
        }
        let mut values = rest.chunks_exact(8).map(|c| f64::from_le_bytes(c.try_into().unwrap_or_default()));
        let mut take = || values.next().unwrap_or(f64::NAN);
        let mut s = Stats { weight: take(), samples: take() as u64, ..Stats::default() };
        let range = (take(), take());
        s.range = (range.0 <= range.1).then_some(range);
        s.unit = Some(take()).filter(|u| *u > 0.0);
        s.moment[..used].iter_mut().for_each(|m| *m = take());
        for i in 0..used {
            for j in 0..=i {
                let v = take();
                (s.gram[i][j], s.gram[j][i]) = (v, v);
            }
        }
        let sane = s.weight >= 0.0
            && s.weight.is_finite()
            && s.moment.iter().all(|m| m.is_finite())
            && s.gram.iter().flatten().all(|g| g.is_finite());
        sane.then_some(s)
    }

    /// The same knowledge with less say, for data of an older driver or kernel revision.
    pub fn faded(mut self, keep: f64) -> Stats {
        self.gram.iter_mut().flatten().for_each(|g| *g *= keep);
        self.moment.iter_mut().for_each(|m| *m *= keep);
        self.weight *= keep;
        self
    }
}

/// What is believed before samples: rates are about right, within a factor.
#[derive(Clone, Debug)]
pub struct Belief {
    mean: Vector,
    /// Precision of each rate in units of the noise variance.
    precision: Vector,
    shape: f64,
    scale: f64,
    /// A rate may turn out far lower than its prior (a term that hardly matters), but never negative.
    lowest: f64,
    unit: f64,
}

/// Relative noise of one sample before any was seen, and the degrees of freedom behind that guess.
const NOISE: f64 = 0.06;
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

/// The sum of eight, in pairs: no addition waits for more than two others.
#[inline(always)]
fn sum(v: &Vector) -> f64 {
    ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))
}

#[inline(always)]
fn dot(a: &Vector, b: &Vector) -> f64 {
    sum(&std::array::from_fn(|i| a[i] * b[i]))
}

/// Inverse of a symmetric positive definite matrix by Cholesky. The added precision keeps it definite, and
/// where rounding eats that, the last digits of the diagonal do.
fn invert(a: Matrix) -> Matrix {
    let mut l = [[0.0; MAX_TERMS]; MAX_TERMS];
    for i in 0..MAX_TERMS {
        for j in 0..=i {
            let sum = a[i][j] - (0..j).map(|k| l[i][k] * l[j][k]).sum::<f64>();
            l[i][j] = if i == j { sum.max(a[i][i] * 1e-13).sqrt() } else { sum / l[j][j] };
        }
    }
    let mut out = [[0.0; MAX_TERMS]; MAX_TERMS];
    // The inverse is symmetric: its columns are solved for and stored as rows.
    for (c, row) in out.iter_mut().enumerate() {
        let mut y = [0.0; MAX_TERMS];
        for i in 0..MAX_TERMS {
            let b = f64::from(i == c);
            y[i] = (b - (0..i).map(|k| l[i][k] * y[k]).sum::<f64>()) / l[i][i];
        }
        for i in (0..MAX_TERMS).rev() {
            row[i] = (y[i] - (i + 1..MAX_TERMS).map(|k| l[k][i] * row[k]).sum::<f64>()) / l[i][i];
        }
    }
    out
}

fn multiply(m: &Matrix, v: &Vector) -> Vector {
    std::array::from_fn(|i| (0..MAX_TERMS).map(|j| m[i][j] * v[j]).sum())
}

/// Half-width, in standard scales, of the central 90% of a Student-t.
pub fn t90(dof: f64) -> f64 {
    // Cornish-Fisher expansion around the normal 95% point; within 2% from 4 degrees up.
    const Z: f64 = 1.644_853_626_951;
    let n = dof.max(1.0);
    let z3 = Z.powi(3);
    let z5 = Z.powi(5);
    Z + (z3 + Z) / (4.0 * n) + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * n * n)
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
