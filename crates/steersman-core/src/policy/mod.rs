//! Turns estimates into a choice.
//!
//! A policy sees legal candidates only. [`Adaptive`] is the default; [`Threshold`] is the rule most
//! programs have today, kept to compare with.

mod adaptive;
mod threshold;

pub use adaptive::Adaptive;
pub use threshold::Threshold;

use crate::candidate::Candidate;
use crate::cost::{Variant, normal_cdf};
use crate::explore::Ledger;
use crate::log::ReasonCode;
use crate::workload::Workload;

/// What a policy is asked.
pub struct Query<'a> {
    /// What to run.
    pub workload: &'a Workload,
    /// The legal ways to run it; never empty.
    pub candidates: &'a [Candidate],
    /// What ran last time, if this workload ran before.
    pub incumbent: Option<Variant>,
    /// Relative band inside which two candidates are equals.
    pub tie_band: f64,
}

impl Query<'_> {
    /// Index of the untuned default: what the kernels' own words alone would choose.
    pub fn default(&self) -> usize {
        let prior = |i: usize| self.candidates[i].prior.0;
        (0..self.candidates.len()).min_by(|&i, &j| prior(i).total_cmp(&prior(j))).unwrap_or(0)
    }
}

/// What a policy answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Index into the candidates.
    pub index: usize,
    /// Why.
    pub reason: ReasonCode,
    /// Probability that no other candidate is quicker (by more than the tie band).
    pub confidence: f64,
}

/// What exploring is asked: the choice so far, the calls there have been, what may be lost.
pub struct Exploration<'a> {
    /// Index of the choice so far.
    pub chosen: usize,
    /// Calls of this workload that were measured.
    pub observed: u64,
    /// What exploring may cost.
    pub ledger: &'a Ledger,
    /// A uniformly random word.
    pub random: u64,
}

/// Turns estimates into a choice.
pub trait Policy: Send + Sync {
    /// Its name: `adaptive`.
    fn name(&self) -> &'static str;

    /// Chooses among the candidates.
    fn choose(&self, q: &Query<'_>) -> Choice;

    /// A candidate worth trying instead of the choice, to learn. Trying costs the ledger what it loses
    /// against the choice; trying the default costs it nothing.
    fn explore(&self, _q: &Query<'_>, _e: &Exploration<'_>) -> Option<usize> {
        None
    }
}

/// Probability that the candidate at `index` is the quickest, up to the tie band: that it beats the most dangerous
/// of the others. Multiplying over all of them would take their errors for independent, which they are not: on 290
/// judged decisions the product said 51% on average where 84% were right, this says 76% (docs/decisions/confidence.md).
pub fn confidence(candidates: &[Candidate], index: usize, tie_band: f64) -> f64 {
    let mut mine = candidates[index].estimate;
    mine.mean = mine.mean * (1.0 - tie_band);
    let near = |i: usize, c: &Candidate| i != index && c.estimate.low < mine.high;
    let others = candidates.iter().enumerate().filter(|(i, c)| near(*i, c));
    match others.map(|(_, c)| mine.lead(&c.estimate)).fold(f64::INFINITY, f64::min) {
        f64::INFINITY => 1.0,
        lead => normal_cdf(lead),
    }
}
