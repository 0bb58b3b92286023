//! The chosen candidate and why; small enough to copy, so that a hit allocates nothing.

use crate::candidate::Candidate;
use crate::cost::{Estimate, Variant};
use crate::hits::PAYLOAD;
use crate::kernel::{Params, Refusal};
use crate::log::ReasonCode;
use crate::units::Seconds;

/// What was decided for one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    pub(crate) variant: Variant,
    pub(crate) hash: u64,
    pub(crate) predicted: f64,
    pub(crate) low: f32,
    pub(crate) high: f32,
    pub(crate) confidence: f32,
    pub(crate) reason: ReasonCode,
    /// Whether a measurement of this call is wanted.
    pub(crate) due: bool,
    /// Whether its kernel is not on the host, or something has to be carried.
    pub(crate) away: bool,
    /// Part of the expected time that is moves; only of decisions whose measurement is wanted.
    pub(crate) moves: f32,
    /// Seconds of unobserved runs on this thread that the ledger has not seen yet (a lower bound).
    pub(crate) unbooked: f64,
    /// What the incumbent would have taken, when this call explores.
    pub(crate) instead: f64,
    /// What the ledger set aside for that.
    pub(crate) at_risk: f64,
    /// Whether the ledger pays for this call.
    pub(crate) explores: bool,
}

impl Decision {
    /// Index of the kernel, in order of registration.
    pub fn kernel(&self) -> usize {
        self.variant.kernel as usize
    }

    /// Kernel and parameters.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// Parameters to run it with.
    pub fn params(&self) -> Params {
        self.variant.params
    }

    /// Expected time.
    pub fn predicted(&self) -> Seconds {
        Seconds(self.predicted)
    }

    /// Part of it that is moving operands and results; known where a measurement is wanted.
    pub fn moves(&self) -> Seconds {
        Seconds(self.moves as f64)
    }

    /// Central 90% interval of the expected time.
    pub fn interval(&self) -> (Seconds, Seconds) {
        (Seconds(self.low as f64), Seconds(self.high as f64))
    }

    /// Probability that no candidate is quicker by more than the tie band.
    pub fn confidence(&self) -> f64 {
        self.confidence as f64
    }

    /// Why.
    pub fn reason(&self) -> ReasonCode {
        self.reason
    }

    /// Whether the engine would learn from timing this call. Timing others does no harm, and no good.
    pub fn wants_timing(&self) -> bool {
        self.due
    }

    /// Whether this call tries something, so that the engine is to hear what it took however it ends
    /// ([`Engine::book`](crate::Engine::book)).
    pub fn explores(&self) -> bool {
        self.explores
    }

    /// Whether more than the host's memory has part in it: its kernel runs elsewhere, or operands or results live
    /// elsewhere.
    #[inline]
    pub fn is_away(&self) -> bool {
        self.away
    }

    /// The same decision, because someone said so.
    pub(crate) fn as_forced(self) -> Decision {
        Decision { reason: ReasonCode::Forced, ..self }
    }

    /// The same decision, made because the one before it failed.
    pub fn as_fallback(self) -> Decision {
        Decision { reason: ReasonCode::FallbackAfterFailure, ..self }
    }

    pub(crate) fn pack(&self, generation: u32) -> [u64; PAYLOAD] {
        let v = self.variant;
        [
            v.kernel as u64
                | (v.params.threads as u64) << 16
                | (v.params.variant as u64) << 32
                | (reason_index(self.reason) as u64) << 48
                | (self.away as u64) << 63,
            self.predicted.to_bits(),
            self.low.to_bits() as u64 | (self.high.to_bits() as u64) << 32,
            self.confidence.to_bits() as u64 | (generation as u64) << 32,
        ]
    }

    #[inline]
    pub(crate) fn unpack(p: [u64; PAYLOAD], hash: u64) -> (Decision, u32) {
        let params = Params { threads: (p[0] >> 16) as u16, variant: (p[0] >> 32) as u16 };
        let decision = Decision {
            variant: Variant { kernel: p[0] as u16, params },
            hash,
            predicted: f64::from_bits(p[1]),
            low: f32::from_bits(p[2] as u32),
            high: f32::from_bits((p[2] >> 32) as u32),
            confidence: f32::from_bits(p[3] as u32),
            reason: ReasonCode::ALL[(p[0] >> 48 & 0x7fff) as usize % ReasonCode::ALL.len()],
            due: false,
            away: p[0] >> 63 == 1,
            moves: 0.0,
            unbooked: 0.0,
            instead: 0.0,
            at_risk: 0.0,
            explores: false,
        };
        (decision, (p[3] >> 32) as u32)
    }
}

fn reason_index(r: ReasonCode) -> usize {
    ReasonCode::ALL.iter().position(|x| *x == r).unwrap_or(0)
}

/// Everything behind a decision, for people.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The decision, once all that takes part is ready to run.
    pub decision: Decision,
    /// The decision for a single call now, which would have to wait for what is not compiled yet.
    pub once: Decision,
    /// Legal candidates, quickest first.
    pub candidates: Vec<Candidate>,
    /// Kernels about this op that were refused, with why.
    pub refused: Vec<(u16, Refusal)>,
    /// From which size another candidate would win, if any does.
    pub crossovers: Vec<Crossover>,
    /// Which policy chose.
    pub policy: &'static str,
}

/// A counterfactual: grown or shrunk along one dimension, another candidate wins.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossover {
    /// What is varied: `n`, `m`, `k`, ...
    pub dimension: String,
    /// The value at which the winner changes.
    pub at: usize,
    /// Whether that is above the asked size (else below).
    pub above: bool,
    /// Who wins there.
    pub winner: Variant,
}

impl Candidate {
    /// Its estimate's mean.
    pub fn mean(&self) -> Seconds {
        let e: &Estimate = &self.estimate;
        e.mean
    }
}
