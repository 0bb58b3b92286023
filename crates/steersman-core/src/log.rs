//! The decision log: what was chosen, why, what it was thought to cost and what it did cost.
//!
//! A bounded ring. Only observed decisions come here, so a lock is cheap enough.
//! ```
//! use steersman_core::log::{DecisionLog, Entry, ReasonCode};
//! let log = DecisionLog::new(2);
//! for n in 1..=3 {
//!     let workload = format!("add f32 {n}");
//!     log.push(Entry { workload, kernel: "cpu/scalar".into(), reason: ReasonCode::Prior, ..Entry::default() });
//! }
//! let kept: Vec<u64> = log.entries().iter().map(|e| e.seq).collect();
//! assert_eq!(kept, [2, 3]);
//! ```

mod export;

pub use export::{to_chrome_trace, to_csv, to_json};

use crate::kernel::Params;
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Why a candidate was chosen. The names are stable: they are stored and exported.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// Nothing measured yet: by the probed rates alone.
    #[default]
    Prior,
    /// By the learned model.
    Model,
    /// By measurements of this very workload.
    History,
    /// As good as the best within the tie band, and already in use.
    IncumbentTie,
    /// To learn how fast it is.
    Explore,
    /// A knob or the caller said so.
    Forced,
    /// As if no knob had named a kernel, since the one it names cannot run this.
    NotForced,
    /// From stored wisdom in frozen mode.
    Frozen,
    /// Nothing else was legal.
    OnlyCandidate,
    /// A better one failed.
    FallbackAfterFailure,
    /// By the threshold policy.
    Threshold,
    /// Too small for more than one thread, by the knob that says so.
    SmallBatch,
    /// Outside what was measured: the prior, with a wide interval.
    Extrapolated,
}

impl ReasonCode {
    /// Every reason there is.
    pub const ALL: [ReasonCode; 13] = [
        ReasonCode::Prior,
        ReasonCode::Model,
        ReasonCode::History,
        ReasonCode::IncumbentTie,
        ReasonCode::Explore,
        ReasonCode::Forced,
        ReasonCode::Frozen,
        ReasonCode::OnlyCandidate,
        ReasonCode::FallbackAfterFailure,
        ReasonCode::Threshold,
        ReasonCode::SmallBatch,
        ReasonCode::Extrapolated,
        ReasonCode::NotForced,
    ];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            ReasonCode::Prior => "prior",
            ReasonCode::Model => "model",
            ReasonCode::History => "history",
            ReasonCode::IncumbentTie => "incumbent_tie",
            ReasonCode::Explore => "explore",
            ReasonCode::Forced => "forced",
            ReasonCode::NotForced => "not_forced",
            ReasonCode::Frozen => "frozen",
            ReasonCode::OnlyCandidate => "only_candidate",
            ReasonCode::FallbackAfterFailure => "fallback_after_failure",
            ReasonCode::Threshold => "threshold",
            ReasonCode::SmallBatch => "small_batch",
            ReasonCode::Extrapolated => "extrapolated",
        }
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ReasonCode {
    type Err = ();
    fn from_str(s: &str) -> Result<ReasonCode, ()> {
        ReasonCode::ALL.into_iter().find(|r| r.name() == s).ok_or(())
    }
}

/// One decision.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// Position in the log, from 1; [`DecisionLog::push`] gives it.
    pub seq: u64,
    /// Seconds since 1970; [`DecisionLog::push`] fills it in if it is 0.
    pub time: f64,
    /// What was asked, in the text form.
    pub workload: String,
    /// What was chosen.
    pub kernel: String,
    /// With these parameters.
    pub params: Params,
    /// Why.
    pub reason: ReasonCode,
    /// The time it was thought to take, in seconds.
    #[serde(deserialize_with = "number_or_unknown")]
    pub predicted_s: f64,
    /// Lower end of the 90% interval.
    #[serde(deserialize_with = "number_or_unknown")]
    pub low_s: f64,
    /// Upper end of the 90% interval.
    #[serde(deserialize_with = "number_or_unknown")]
    pub high_s: f64,
    /// The time it took, if it was timed.
    pub measured_s: Option<f64>,
    /// Belief that it is the best, 0 to 1.
    #[serde(deserialize_with = "number_or_unknown")]
    pub confidence: f64,
    /// Anything else a reader should know.
    pub note: Option<String>,
}

/// JSON has no infinity or NaN: they are written as null, and come back as NaN.
fn number_or_unknown<'de, D: serde::Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    let number: Option<f64> = serde::Deserialize::deserialize(d)?;
    Ok(number.unwrap_or(f64::NAN))
}

impl Default for Entry {
    fn default() -> Entry {
        Entry {
            seq: 0,
            time: 0.0,
            workload: String::new(),
            kernel: String::new(),
            params: Params::SERIAL,
            reason: ReasonCode::Prior,
            predicted_s: 0.0,
            low_s: 0.0,
            high_s: 0.0,
            measured_s: None,
            confidence: 0.0,
            note: None,
        }
    }
}

/// The last decisions of this process.
#[derive(Debug)]
pub struct DecisionLog {
    capacity: usize,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<Entry>,
    pushed: u64,
    /// The last number handed out by [`DecisionLog::take_new`].
    taken: u64,
}

impl DecisionLog {
    /// Keeps the last `capacity` decisions, at least one.
    pub fn new(capacity: usize) -> DecisionLog {
        DecisionLog { capacity: capacity.max(1), ring: Mutex::default() }
    }

    /// Adds one, dropping the oldest if full; returns its number.
    pub fn push(&self, mut entry: Entry) -> u64 {
        if entry.time == 0.0 {
            entry.time = unix_time();
        }
        let mut ring = self.lock();
        ring.pushed += 1;
        entry.seq = ring.pushed;
        if ring.entries.len() == self.capacity {
            ring.entries.pop_front();
        }
        ring.entries.push_back(entry);
        ring.pushed
    }

    /// What it holds, oldest first.
    pub fn entries(&self) -> Vec<Entry> {
        self.lock().entries.iter().cloned().collect()
    }

    /// Those added since the last call, oldest first: what is still to be stored in wisdom.
    pub fn take_new(&self) -> Vec<Entry> {
        let mut ring = self.lock();
        let taken = ring.taken;
        ring.taken = ring.pushed;
        let new = ring.entries.iter().rev().take_while(|e| e.seq > taken).count();
        ring.entries.iter().skip(ring.entries.len() - new).cloned().collect()
    }

    /// How many it holds.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many were ever added.
    pub fn pushed(&self) -> u64 {
        self.lock().pushed
    }

    /// Forgets all; numbers go on.
    pub fn reset(&self) {
        self.lock().entries.clear();
    }

    /// A panic elsewhere cannot leave the ring half-changed in a way that matters, so poison is ignored.
    fn lock(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds since 1970 by the system's clock.
pub(crate) fn unix_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

#[cfg(test)]
mod tests;
