//! The default policy: quickest by the model, steady among equals, exploring within the ledger.

use super::{Choice, Exploration, Policy, Query, confidence};
use crate::cost::{Estimate, Source, normal_cdf};
use crate::log::ReasonCode;
use smallvec::SmallVec;

/// Quickest by the model; the incumbent stays inside the tie band.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adaptive;

impl Policy for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn choose(&self, q: &Query<'_>) -> Choice {
        let default = q.default();
        // A time that is only supposed is no reason to leave the default: trying it is exploring, and is
        // paid from the ledger. (Without this a kernel that says 1.2 and takes 12 was chosen for its word
        // as soon as the default was known to take 1.5.)
        let known = q.candidates[default].proven();
        let eligible = |i: usize| {
            let c = &q.candidates[i];
            // Beyond every size seen nothing is known, the default neither: any measurement then beats none.
            i == default || if known { c.proven() } else { c.estimate.evidence.source != Source::Prior }
        };
        // The quickest of many uncertain guesses is the one most likely guessed too low: what is less sure has
        // to promise more. (Without this the worst-fitted kernels won too often.)
        let cautious = |i: usize| {
            let e = &q.candidates[i].estimate;
            if eligible(i) { e.cautious().0 } else { f64::INFINITY }
        };
        let mean: SmallVec<[f64; 24]> = (0..q.candidates.len()).map(cautious).collect();
        let best = (0..mean.len()).min_by(|&i, &j| mean[i].total_cmp(&mean[j])).unwrap_or(default);
        let limit = mean[best] * (1.0 + q.tie_band);
        let held = q
            .candidates
            .iter()
            .position(|c| Some(c.variant) == q.incumbent)
            .filter(|&i| eligible(i) && holds(q, i, best))
            // Without an incumbent equals are settled by fewest threads, then by registration: the same
            // in every process, and kinder to whatever else runs.
            .or_else(|| {
                (0..q.candidates.len())
                    .filter(|&i| mean[i] <= limit)
                    .min_by_key(|&i| (q.candidates[i].variant.params.threads, i != best))
            });
        let index = held.unwrap_or(best);
        let evidence = q.candidates[index].estimate.evidence;
        let reason = match () {
            _ if q.candidates.len() == 1 => ReasonCode::OnlyCandidate,
            _ if index != best => ReasonCode::IncumbentTie,
            _ if evidence.source == Source::History => ReasonCode::History,
            _ if evidence.source == Source::Prior => ReasonCode::Prior,
            _ if evidence.extrapolated => ReasonCode::Extrapolated,
            _ => ReasonCode::Model,
        };
        Choice { index, reason, confidence: confidence(q.candidates, index, q.tie_band) }
    }

    fn explore(&self, q: &Query<'_>, e: &Exploration<'_>) -> Option<usize> {
        let chosen = &q.candidates[e.chosen].estimate;
        // Something measured looks better than the default says of itself: the default gets one run to
        // show what it takes. That loses nothing against running it always, so it needs no ledger.
        let default = q.default();
        let first = &q.candidates[default].estimate;
        if default != e.chosen && first.evidence.extrapolated && first.low < chosen.high {
            return Some(default);
        }
        let mut pick: Option<(usize, f64)> = None;
        let mut random = e.random;
        for (i, c) in q.candidates.iter().enumerate() {
            let t = &c.estimate;
            // Eliminated: even at its luckiest it would not win.
            if i == e.chosen || t.low >= chosen.high {
                continue;
            }
            let worst = (t.high.0 * 1.5 - chosen.mean.0).max(0.0);
            if !e.ledger.allows(worst) {
                continue;
            }
            let gain = expected_gain(chosen.mean.0, t.mean.0, t.spread);
            let loss = (t.mean.0 - chosen.mean.0).max(0.0);
            if gain * e.calls_to_come <= loss {
                continue;
            }
            // Thompson: draw a time for each survivor and try the one drawn quickest.
            random = random.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31) ^ 0x5DEE_CE66;
            let drawn = t.mean.0 * (t.spread * gaussian(random)).exp();
            if pick.is_none_or(|(_, best)| drawn < best) {
                pick = Some((i, drawn));
            }
        }
        pick.filter(|(_, drawn)| *drawn < chosen.mean.0).map(|(i, _)| i)
    }
}

/// Whether the incumbent stays: it is within the tie band of the best, or beyond it by less than the
/// means are uncertain. Means of 64 runs with 5% noise differ by 0.9% for no reason, and over 100,000
/// calls the luckiest of them would carry an equal out of the band three times.
fn holds(q: &Query<'_>, incumbent: usize, best: usize) -> bool {
    let (mine, other) = (&q.candidates[incumbent].estimate, &q.candidates[best].estimate);
    let doubt =
        |e: &Estimate| e.spread.powi(2) / e.evidence.exact.max(e.evidence.samples.min(8)).clamp(1, 64) as f64;
    let margin = (1.5 * (doubt(mine) + doubt(other)).sqrt()).min(1.5 * q.tie_band);
    mine.mean.0 <= other.mean.0 * (1.0 + q.tie_band + margin)
}

/// Expected saving per later call: E[max(0, now − t)] with ln t normal.
fn expected_gain(now: f64, mean: f64, spread: f64) -> f64 {
    let s = spread.max(1e-6);
    let d = (now / mean).ln() / s;
    (now * normal_cdf(d) - mean * normal_cdf(d - s)).max(0.0)
}

/// A standard normal deviate from one random word: the sum of four 16-bit uniforms.
fn gaussian(word: u64) -> f64 {
    let sum: f64 = (0..4).map(|i| ((word >> (16 * i)) & 0xffff) as f64 / 65536.0).sum();
    (sum - 2.0) * 3f64.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gain_is_zero_for_a_sure_loser_and_the_gap_for_a_sure_winner() {
        assert!(expected_gain(1.0, 2.0, 0.01) < 1e-9);
        assert!((expected_gain(2.0, 1.0, 0.01) - 1.0).abs() < 1e-3);
        assert!(expected_gain(1.0, 1.1, 0.5) > 0.05);
    }
}
