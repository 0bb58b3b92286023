//! What to run: a hit in the table, or everything estimated and the policy asked.

use super::{Engine, EngineError, lock, read};
use crate::candidate::{Candidate, Candidates};
use crate::cost::Variant;
use crate::decision::Decision;
use crate::explore::at_risk;
use crate::kernel::Kernel;
use crate::log::ReasonCode;
use crate::policy::{Choice, Exploration, Policy, Query};
use crate::workload::{Key, Workload};
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// What is remembered of one workload.
pub(super) struct Known {
    pub(super) workload: Workload,
    incumbent: Variant,
    pub(super) observed: u64,
    /// Times it was decided at length.
    asked: u64,
}

/// An answer that nobody has measured yet is given at length this many times before it becomes a hit: a
/// supposed time says nothing about when to measure next (one that is 10 times too short was believed
/// for 800 calls). A caller that never measures has hits after that.
const ASKED_BEFORE_HIT: u64 = 8;

/// Runs of exactly one workload up to which another one is news.
const NEWS: u64 = 3;

/// A generation that never is: generations start at one.
const STALE: u32 = 0;

/// Workloads whose incumbents are remembered at most.
const KNOWN_CAPACITY: usize = 8192;

thread_local! {
    /// Engine, and the least run time this thread has had since it last asked for a measurement. Several,
    /// so that engines that take turns on a thread do not keep each other from ever asking.
    static UNOBSERVED: [Cell<(u64, f64)>; 4] = const { [const { Cell::new((0, 0.0)) }; 4] };
}

/// Run time of this engine on this thread since it last asked for a measurement.
#[inline]
fn unobserved(engine: u64) -> f64 {
    UNOBSERVED.with(|slots| match slots[engine as usize % slots.len()].get() {
        (id, seconds) if id == engine => seconds,
        _ => 0.0,
    })
}

#[inline]
fn set_unobserved(engine: u64, seconds: f64) {
    UNOBSERVED.with(|slots| slots[engine as usize % slots.len()].set((engine, seconds)));
}

impl Engine {
    /// What to run. Nanoseconds for a workload decided before.
    #[inline]
    pub fn decide(&self, w: &Workload) -> Result<Decision, EngineError> {
        let key = w.key();
        if let Some(payload) = self.hits.get(&key) {
            let (decision, generation) = Decision::unpack(payload, key.hash64());
            if generation == self.generation.load(Ordering::Acquire)
                && self
                    .registry
                    .get(decision.variant.kernel)
                    .is_some_and(|k| k.legality_is_fixed() || k.supports(w).is_ok())
            {
                let low = unobserved(self.id) + decision.low as f64;
                let bound = f64::from_bits(self.observe_every.load(Ordering::Relaxed));
                if low < bound || self.frozen.load(Ordering::Relaxed) {
                    set_unobserved(self.id, low);
                    return Ok(decision);
                }
                return self.decide_slow(w, key, low - decision.low as f64);
            }
        }
        self.decide_slow(w, key, 0.0)
    }

    /// Estimates everything, asks the policy, remembers the answer.
    fn decide_slow(&self, w: &Workload, key: Key, unbooked: f64) -> Result<Decision, EngineError> {
        let hash = key.hash64();
        // Read before estimating: a change in between makes the stored answer stale, as it should.
        let generation = self.generation.load(Ordering::Acquire);
        let frozen = self.frozen.load(Ordering::Acquire);
        let mut candidates = self.candidates(w, hash);
        if candidates.is_empty() {
            return Err(self.no_candidate(w, hash));
        }
        let (incumbent, observed) = match lock(&self.known).get(&hash) {
            Some(k) if !frozen && k.workload == *w => (Some(k.incumbent), k.observed),
            _ => (None, 0),
        };
        // What this process has compiled must not change what is a function of wisdom.
        if !frozen {
            self.charge_setup(w, &mut candidates, (observed + 1) as f64);
        }
        let query = Query {
            workload: w,
            candidates: &candidates,
            incumbent,
            tie_band: read(&self.settings).tie_band,
        };
        let policy = read(&self.policy).clone();
        let choice = self.choose(&*policy, &query);
        let decision = make_decision(&candidates[choice.index], hash, choice, frozen);
        let keep = |generation: u32| self.hits.put(&key, decision.pack(generation));
        if frozen {
            keep(generation);
            // As the hits to come: the share of moves is for those who measure.
            return Ok(Decision { moves: 0.0, ..decision });
        }
        let asked = self.remember(w, hash, decision.variant);
        set_unobserved(self.id, 0.0);
        if choice.reason != ReasonCode::Forced {
            let ledger = self.ledger();
            let e =
                Exploration { chosen: choice.index, observed, ledger: &ledger, random: self.random_word() };
            if let Some(other) = policy.explore(&query, &e) {
                let (tried, chosen) = (&candidates[other].estimate, &candidates[choice.index].estimate);
                let evidence = tried.evidence;
                let trial = evidence.extrapolated && other == query.default();
                let at_risk = if trial { 0.0 } else { at_risk(tried, chosen) };
                // Others may have set aside what was left since the policy looked.
                let paid = trial || lock(&self.ledger).set_aside(at_risk);
                // What a first run shows may change the choice: the next call asks again, rather than find
                // an answer from before it. (Calls of 1 µs among calls of 20 µs were not asked about again
                // for 1,200 calls.) Equals that are known well may wait for the next measurement.
                // A caller who never reports must not be asked for ever either.
                let news = evidence.exact < NEWS && asked < ASKED_BEFORE_HIT;
                if paid {
                    keep(if news { STALE } else { generation });
                    let reason = if trial { ReasonCode::Prior } else { ReasonCode::Explore };
                    let choice = Choice { index: other, reason, ..choice };
                    let tried = make_decision(&candidates[other], hash, choice, false);
                    let (instead, explores) = (decision.predicted, !trial);
                    return Ok(Decision { due: true, unbooked, instead, at_risk, explores, ..tried });
                }
            }
        }
        if candidates[choice.index].proven() || asked >= ASKED_BEFORE_HIT {
            keep(generation);
        }
        Ok(Decision { due: true, unbooked, ..decision })
    }

    fn random_word(&self) -> u64 {
        let x = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^ (x >> 31)
    }

    /// Notes what was chosen; returns how often this workload has been decided at length.
    fn remember(&self, w: &Workload, hash: u64, variant: Variant) -> u64 {
        let mut known = lock(&self.known);
        if known.len() >= KNOWN_CAPACITY && !known.contains_key(&hash) {
            let mut n = 0;
            known.retain(|_, _| {
                n += 1;
                n % 2 == 0
            });
        }
        match known.get_mut(&hash) {
            Some(k) if k.workload == *w => {
                k.incumbent = variant;
                k.asked += 1;
                k.asked
            }
            _ => {
                known.insert(hash, Known { workload: w.clone(), incumbent: variant, observed: 0, asked: 1 });
                1
            }
        }
    }

    /// What the policy chooses, unless a knob says otherwise.
    fn choose(&self, policy: &dyn Policy, q: &Query<'_>) -> Choice {
        let settings = read(&self.settings);
        let chosen = |reason| Choice { reason, ..policy.choose(q) };
        match settings.force.as_deref() {
            Some(name) => self.named(name, q.candidates).unwrap_or_else(|| chosen(ReasonCode::NotForced)),
            None if settings.is_small(q.workload) => chosen(ReasonCode::SmallBatch),
            None => policy.choose(q),
        }
    }

    /// The quickest way to run the kernel of this name, where it is legal.
    fn named(&self, name: &str, candidates: &[Candidate]) -> Option<Choice> {
        let best =
            |i: &usize, j: &usize| candidates[*i].estimate.mean.0.total_cmp(&candidates[*j].estimate.mean.0);
        let index = (0..candidates.len())
            .filter(|&i| self.registry.get(candidates[i].variant.kernel).is_some_and(|k| k.name() == name))
            .min_by(best)?;
        Some(Choice { index, reason: ReasonCode::Forced, confidence: 1.0 })
    }

    /// The decision as it would be now if all were ready to run, with learning, exploring and caching off.
    pub fn judge(&self, w: &Workload) -> Result<Decision, EngineError> {
        let hash = w.key().hash64();
        self.settle(w, hash, &self.candidates(w, hash))
    }

    /// The same for so many calls, which bear all that has to be made ready for them.
    pub fn judge_for(&self, w: &Workload, calls: u32) -> Result<Decision, EngineError> {
        let hash = w.key().hash64();
        let mut candidates = self.candidates(w, hash);
        if !self.frozen.load(Ordering::Acquire) {
            self.charge_setup(w, &mut candidates, f64::from(calls.max(1)));
        }
        self.settle(w, hash, &candidates)
    }

    /// The same, among the kernels for which `allowed` says yes.
    pub fn judge_among(
        &self,
        w: &Workload,
        allowed: impl Fn(&dyn Kernel) -> bool,
    ) -> Result<Decision, EngineError> {
        let hash = w.key().hash64();
        let mut candidates = self.legal_candidates(w, hash);
        candidates.retain(|c| self.registry.get(c.variant.kernel).is_some_and(|k| allowed(&**k)));
        self.settle(w, hash, &candidates)
    }

    /// The decision for this variant, because someone said so, with what it is expected to take.
    pub fn judge_as(&self, w: &Workload, variant: Variant) -> Result<Decision, EngineError> {
        let hash = w.key().hash64();
        let mut candidates = self.runnable(w);
        candidates.retain(|c| c.variant == variant);
        Ok(self.settle(w, hash, &candidates)?.as_forced())
    }

    fn settle(&self, w: &Workload, hash: u64, candidates: &Candidates) -> Result<Decision, EngineError> {
        if candidates.is_empty() {
            return Err(self.no_candidate(w, hash));
        }
        let query =
            Query { workload: w, candidates, incumbent: None, tie_band: read(&self.settings).tie_band };
        let policy = read(&self.policy).clone();
        let choice = self.choose(&*policy, &query);
        Ok(make_decision(&candidates[choice.index], hash, choice, self.frozen.load(Ordering::Acquire)))
    }
}

fn make_decision(c: &Candidate, hash: u64, choice: Choice, frozen: bool) -> Decision {
    Decision {
        away: c.away,
        moves: c.estimate.moves.0 as f32,
        variant: c.variant,
        hash,
        predicted: c.estimate.mean.0,
        low: c.estimate.low.0 as f32,
        high: c.estimate.high.0 as f32,
        confidence: choice.confidence as f32,
        reason: match choice.reason {
            ReasonCode::Forced | ReasonCode::NotForced => choice.reason,
            _ if frozen => ReasonCode::Frozen,
            reason => reason,
        },
        due: false,
        unbooked: 0.0,
        instead: 0.0,
        at_risk: 0.0,
        explores: false,
    }
}
