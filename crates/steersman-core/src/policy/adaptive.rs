//! The default policy: quickest by the model, steady among equals, exploring within the ledger.

use super::{Choice, Exploration, Policy, Query, confidence};
use crate::candidate::Candidate;
use crate::cost::{Estimate, Source, normal_cdf};
use crate::explore::at_risk;
use crate::log::ReasonCode;
use smallvec::SmallVec;

/// Deviations by which a time learned elsewhere must be ahead of a measured one: seven chances in ten. One run shows
/// whether it is; not running it is found out by exploring only, after a hundred times what a run may lose.
const SURE: f64 = 0.5;

/// Measured calls among which the default may get its run. Runs in a disturbed spell prove nothing, and every call
/// of one would be another try.
const TRIALS: u64 = 3;

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
        let (known, first) = (q.candidates[default].proven(), &q.candidates[default].estimate);
        let eligible = |i: usize| {
            let c = &q.candidates[i];
            i == default
                || c.proven()
                || match c.estimate.evidence.source {
                    Source::Prior => false,
                    // Beyond every size seen nothing is known, the default neither: any measurement then beats none.
                    _ if !known => true,
                    // What was learned from smaller ones must be clear. (A chain of 1,283 ops stayed on a kernel
                    // measured at 64 ms while another's samples said 43, give or take a quarter: it takes 42.)
                    Source::Model => c.estimate.lead(first) >= SURE,
                    _ => false,
                }
        };
        // The quickest of many uncertain guesses is the one most likely guessed too low: what is less sure has
        // to promise more. (Without this the worst-fitted kernels won too often.)
        let cautious = |i: usize| {
            let e = &q.candidates[i].estimate;
            if eligible(i) { e.cautious().0 } else { f64::INFINITY }
        };
        let supposed: SmallVec<[f64; 24]> = (0..q.candidates.len()).map(cautious).collect();
        // Who would step back for the same in wider vectors anyhow is not what others are compared with. (A row of 31 f64 on two
        // threads was thought to take 2.55 µs in narrow vectors and 3.29 in wide ones, which then ran, where one thread was thought
        // to take 2.67.)
        let stays = |i: usize| if wider(q, i, &supposed).is_some() { f64::INFINITY } else { supposed[i] };
        let mean: SmallVec<[f64; 24]> = (0..supposed.len()).map(stays).collect();
        let best = (0..mean.len()).min_by(|&i, &j| mean[i].total_cmp(&mean[j])).unwrap_or(default);
        let limit = mean[best] * (1.0 + q.tie_band);
        let held = q
            .candidates
            .iter()
            .position(|c| Some(c.variant) == q.incumbent)
            .filter(|&i| eligible(i) && holds(q, i, best));
        // Without an incumbent equals are settled by fewest threads, then by registration: the same in every process, and
        // kinder to whatever else runs.
        let settled = (0..q.candidates.len())
            .filter(|&i| mean[i] <= limit)
            .min_by_key(|&i| (q.candidates[i].variant.params.threads, i != best))
            .unwrap_or(best);
        let index = held.unwrap_or(settled);
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
        // show what it takes. That loses nothing against running it always, so it needs no ledger, but one who wants nothing
        // tried.
        let default = q.default();
        let first = &q.candidates[default].estimate;
        let untried = first.evidence.extrapolated && e.observed < TRIALS && e.ledger.budget > 0.0;
        if default != e.chosen && untried && first.low < chosen.high {
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
            if !e.ledger.allows(at_risk(t, chosen)) {
                continue;
            }
            let gain = expected_gain(chosen.mean.0, t.mean.0, t.spread);
            let loss = (t.mean.0 - chosen.mean.0).max(0.0);
            // As many calls are to come as there have been: the best guess without knowing the program.
            if gain * (e.observed + 1) as f64 <= loss {
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

/// How far behind a kernel in narrower vectors the same in wider ones may be thought and still run, where neither was
/// measured on this very workload: they are about as quick on most, and which was lucky in a calibration would decide.
/// (Four calibrations on 681 shapes: mean regret 1.75% with 15%, 1.74% with 25 and with 50%; two of them chose differently, by
/// more than 2%, in 30, 21 and 16 cases. On a Zen 4, whose wide vectors are two narrow ones and in some loops much slower, three
/// on 460: 0.91% with 5%, 0.99 with 20, 1.22 with 50; 30, 26 and 28 cases.)
const SIBLINGS: f64 = 0.2;

/// The same as the candidate at this index in wider vectors, if that is about as quick; `mean` is what each is thought to take.
fn wider(q: &Query<'_>, index: usize, mean: &[f64]) -> Option<usize> {
    let mine = &q.candidates[index];
    let kernel = mine.wider?;
    let same = |c: &Candidate| c.variant.kernel == kernel && c.variant.params == mine.variant.params;
    let other = q.candidates.iter().position(same)?;
    let measured = [index, other].iter().all(|&i| q.candidates[i].estimate.evidence.exact > 0);
    let band = if measured { q.tie_band } else { SIBLINGS.max(q.tie_band) };
    (mean[other].is_finite() && mean[other] <= mean[index] * (1.0 + band)).then_some(other)
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
    use crate::Params;
    use crate::cost::{Evidence, Variant};
    use crate::explore::Ledger;
    use crate::units::{Bytes, Seconds};

    /// A candidate whose kernel says `prior`, expected at `mean` give or take `spread`.
    fn candidate(kernel: u16, prior: f64, mean: f64, spread: f64, source: Source) -> Candidate {
        let evidence = Evidence {
            source,
            samples: 100,
            exact: u64::from(source == Source::History),
            extrapolated: source != Source::History,
            transfers: None,
        };
        let s = Seconds;
        let (low, high) = (s(mean * (-1.65 * spread).exp()), s(mean * (1.65 * spread).exp()));
        let (launch, moves, setup) = (s(0.0), s(0.0), s(0.0));
        let (mean, work) = (s(mean), s(mean));
        let estimate = Estimate { mean, low, high, launch, moves, work, setup, spread, scratch: 0, evidence };
        let variant = Variant { kernel, params: Params { threads: 1, variant: 0 } };
        let wider = None;
        Candidate { variant, estimate, prior: s(prior), moved: Bytes(0), wider, away: false }
    }

    fn asked(candidates: &[Candidate], then: impl FnOnce(&Query<'_>)) {
        let Ok(workload) = "exp f32 1000".parse() else { panic!("a workload") };
        then(&Query { workload: &workload, candidates, incumbent: None, tie_band: 0.02 });
    }

    #[test]
    fn a_time_learned_on_smaller_ones_wins_against_a_measured_one_when_it_is_clear() {
        let measured = candidate(0, 44e-3, 64e-3, 0.04, Source::History);
        let chosen = |other: Candidate| {
            let mut index = 0;
            asked(&[measured, other], |q| index = Adaptive.choose(q).index);
            index
        };
        assert_eq!(chosen(candidate(1, 51e-3, 43e-3, 0.26, Source::Model)), 1);
        assert_eq!(chosen(candidate(1, 51e-3, 58e-3, 0.26, Source::Model)), 0, "not clear enough");
        assert_eq!(chosen(candidate(1, 51e-3, 43e-3, 0.26, Source::Pool)), 0, "learned from other ops");
        assert_eq!(chosen(candidate(1, 51e-3, 43e-3, 0.26, Source::Prior)), 0, "only supposed");
    }

    #[test]
    fn of_two_widths_the_wider_runs_unless_it_is_far_behind_or_both_were_measured_here() {
        let chosen = |wide: f64, source| {
            let mut narrow = candidate(0, 1e-6, 1e-6, 0.05, source);
            narrow.wider = Some(1);
            let mut index = 9;
            asked(&[narrow, candidate(1, 1e-6, wide, 0.05, source)], |q| index = Adaptive.choose(q).index);
            index
        };
        assert_eq!(chosen(1.15e-6, Source::Model), 1);
        assert_eq!(chosen(1.25e-6, Source::Model), 0, "that is far behind");
        assert_eq!(chosen(1.06e-6, Source::History), 0, "both are known");
    }

    #[test]
    fn who_steps_back_for_wider_vectors_wins_nothing_for_them() {
        let on = |threads: u8, mut c: Candidate| {
            c.variant.params.threads = threads.into();
            c
        };
        let narrow = |mean| Candidate { wider: Some(1), ..candidate(0, mean, mean, 0.05, Source::Model) };
        let wide = |mean| candidate(1, mean, mean, 0.05, Source::Model);
        let all = [on(1, narrow(2.65e-6)), on(1, wide(2.67e-6)), on(2, narrow(2.55e-6)), on(2, wide(3.0e-6))];
        asked(&all, |q| assert_eq!(Adaptive.choose(q).index, 1));
    }

    #[test]
    fn the_default_is_tried_in_the_first_calls_only_and_not_where_nothing_is_to_be_tried() {
        let default = candidate(0, 44e-3, 61e-3, 0.1, Source::Model);
        let better = candidate(1, 51e-3, 43e-3, 0.26, Source::Model);
        asked(&[default, better], |q| {
            let tried = |observed, budget| {
                let e = Exploration { chosen: 1, observed, ledger: &Ledger::new(budget), random: 7 };
                Adaptive.explore(q, &e)
            };
            assert_eq!(tried(0, 0.01), Some(0));
            assert_eq!(tried(TRIALS, 0.01), None);
            assert_eq!(tried(0, 0.0), None);
        });
    }

    #[test]
    fn gain_is_zero_for_a_sure_loser_and_the_gap_for_a_sure_winner() {
        assert!(expected_gain(1.0, 2.0, 0.01) < 1e-9);
        assert!((expected_gain(2.0, 1.0, 0.01) - 1.0).abs() < 1e-3);
        assert!(expected_gain(1.0, 1.1, 0.5) > 0.05);
    }
}
