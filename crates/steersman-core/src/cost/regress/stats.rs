//! What the samples say, in a form that takes in one more without the others.

use super::linear::{Matrix, Vector};
use crate::cost::terms::{MAX_TERMS, Terms};

/// Sufficient statistics of the samples seen.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Stats {
    pub(super) gram: Matrix,
    pub(super) moment: Vector,
    pub(super) weight: f64,
    /// Samples ever seen; `weight` forgets, this does not.
    pub samples: u64,
    /// Smallest and largest ln(prior seconds) seen.
    pub range: Option<(f64, f64)>,
    /// What prior times are multiplied by before anything else, if not by one.
    #[serde(default)]
    pub(super) unit: Option<f64>,
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

    pub(super) fn unit(&self) -> f64 {
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

    /// Takes a full sample that was added out again. What had faded since stays faded.
    pub fn take_back(&mut self, terms: &Terms, seconds: f64) {
        if !(seconds > 0.0 && self.weight >= 1.0) {
            return;
        }
        let unit = self.unit();
        let z = |x: f64| x * unit / seconds;
        let x = terms.seconds();
        for (i, &xi) in x.iter().enumerate() {
            let zi = z(xi);
            self.moment[i] -= zi;
            for (j, &xj) in x.iter().enumerate() {
                self.gram[i][j] -= zi * z(xj);
            }
            self.gram[i][i] = self.gram[i][i].max(0.0);
        }
        self.weight -= 1.0;
        self.samples -= self.samples.min(1);
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
        // Who writes it down again has not measured as much as whoever measured it.
        self.samples = (self.samples as f64 * keep).ceil() as u64;
        self
    }
}
