//! The default policy: quickest by the model, steady among equals, exploring within the ledger.

use super::{Choice, Exploration, Policy, Query, confidence};
use crate::cost::{Source, normal_cdf};
use crate::log::ReasonCode;

/// Quickest by the model; the incumbent stays inside the tie band.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adaptive;

impl Policy for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn choose(&self, q: &Query<'_>) -> Choice {
        let mut best = 0;
        for (i, c) in q.candidates.iter().enumerate() {
            if c.estimate.mean < q.candidates[best].estimate.mean {
                best = i;
            }
        }
        let limit = q.candidates[best].estimate.mean.0 * (1.0 + q.tie_band);
        let held = q
            .candidates
            .iter()
            .position(|c| Some(c.variant) == q.incumbent && c.estimate.mean.0 <= limit)
            // Without an incumbent equals are settled by fewest threads, then by registration: the same
            // in every process, and kinder to whatever else runs.
            .or_else(|| {
                (0..q.candidates.len())
                    .filter(|&i| q.candidates[i].estimate.mean.0 <= limit)
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
