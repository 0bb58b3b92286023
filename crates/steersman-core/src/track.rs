//! What ran how often, and how well its time was foretold.
//!
//! Bounded: the least recently used are dropped. Called for observed runs only, so a lock is cheap enough.
//! ```
//! use steersman_core::track::{Tracker, Use};
//! use steersman_core::Params;
//! let tracker = Tracker::new();
//! let at = Use { device: 7, kernel: "cpu/scalar", params: Params::SERIAL, op: "add" };
//! tracker.ran(at, 32, 32e-6);
//! tracker.failed(at);
//! let top = &tracker.most_used(1)[0];
//! assert_eq!((top.runs, top.failures), (33, 1));
//! ```

mod accuracy;

pub use accuracy::Accuracy;

use crate::kernel::Params;
use crate::log::unix_time;
use crate::wisdom::UsageRow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most keys kept.
pub const MAX_KEYS: usize = 4096;

/// What ran.
#[derive(Clone, Copy, Debug)]
pub struct Use<'a> {
    /// The device's fingerprint.
    pub device: u64,
    /// The kernel's name.
    pub kernel: &'a str,
    /// Its parameters.
    pub params: Params,
    /// The op's name.
    pub op: &'a str,
}

impl UsageRow {
    /// The share of runs that did not fail; `None` before the first.
    pub fn success_rate(&self) -> Option<f64> {
        (self.runs > 0).then(|| 1.0 - self.failures as f64 / self.runs as f64)
    }
}

type Key = (u64, String, Params, String);

#[derive(Debug, Default)]
struct Count {
    runs: u64,
    failures: u64,
    total_s: f64,
}

impl Count {
    fn add(&mut self, runs: u64, failures: u64, seconds: f64) {
        self.runs += runs;
        self.failures += failures;
        self.total_s += seconds;
    }

    fn row(&self, key: &Key, last_used: f64) -> UsageRow {
        UsageRow {
            device: key.0,
            kernel: key.1.clone(),
            threads: key.2.threads,
            variant: key.2.variant,
            op: key.3.clone(),
            runs: self.runs,
            failures: self.failures,
            total_s: self.total_s,
            last_used,
        }
    }
}

#[derive(Debug, Default)]
struct Track {
    all: Count,
    /// The part of `all` that is not in wisdom yet.
    unsaved: Count,
    last_used: f64,
    /// Position in the order of use, which the clock is too coarse for.
    tick: u64,
}

#[derive(Debug, Default)]
struct Tracks {
    by_key: HashMap<Key, Track>,
    /// Unsaved counts of dropped keys.
    leaving: Vec<UsageRow>,
    ticks: u64,
    overall: Accuracy,
    by_kernel: HashMap<String, Accuracy>,
}

impl Tracks {
    fn touch(&mut self, key: Key) -> &mut Track {
        if self.by_key.len() >= MAX_KEYS && !self.by_key.contains_key(&key) {
            self.drop_oldest();
        }
        self.ticks += 1;
        let track = self.by_key.entry(key).or_default();
        track.tick = self.ticks;
        track
    }

    /// An eighth at a time, so that a full tracker does not search on every new key.
    fn drop_oldest(&mut self) {
        let mut ticks: Vec<u64> = self.by_key.values().map(|t| t.tick).collect();
        let (_, &mut limit, _) = ticks.select_nth_unstable(MAX_KEYS / 8);
        let leaving = &mut self.leaving;
        self.by_key.retain(|key, track| {
            if track.tick >= limit {
                return true;
            }
            if track.unsaved.runs > 0 && leaving.len() < MAX_KEYS {
                leaving.push(track.unsaved.row(key, track.last_used));
            }
            false
        });
    }
}

/// Counts of every kernel, parameters and op, and the accuracy of predictions.
#[derive(Debug, Default)]
pub struct Tracker {
    tracks: Mutex<Tracks>,
}

impl Tracker {
    /// An empty one.
    pub fn new() -> Tracker {
        Tracker::default()
    }

    /// It ran `runs` times, in `seconds` together.
    pub fn ran(&self, at: Use<'_>, runs: u64, seconds: f64) {
        self.count(at, runs, 0, seconds);
    }

    /// It ran once and failed.
    pub fn failed(&self, at: Use<'_>) {
        self.count(at, 1, 1, 0.0);
    }

    fn count(&self, at: Use<'_>, runs: u64, failures: u64, seconds: f64) {
        let seconds = if seconds.is_finite() { seconds } else { 0.0 };
        let mut tracks = self.lock();
        let track = tracks.touch((at.device, at.kernel.to_string(), at.params, at.op.to_string()));
        track.all.add(runs, failures, seconds);
        track.unsaved.add(runs, failures, seconds);
        track.last_used = unix_time();
    }

    /// A kernel's run was thought to take `predicted` seconds, between `low` and `high`, and took `measured`.
    pub fn foretold(&self, kernel: &str, predicted: f64, low: f64, high: f64, measured: f64) {
        let mut tracks = self.lock();
        tracks.overall.add(predicted, low, high, measured);
        if tracks.by_kernel.len() < MAX_KEYS || tracks.by_kernel.contains_key(kernel) {
            tracks.by_kernel.entry(kernel.to_string()).or_default().add(predicted, low, high, measured);
        }
    }

    /// How good predictions were, over all kernels.
    pub fn accuracy(&self) -> Accuracy {
        self.lock().overall
    }

    /// How good they were for each kernel, by name.
    pub fn accuracy_by_kernel(&self) -> Vec<(String, Accuracy)> {
        let mut list: Vec<_> = self.lock().by_kernel.iter().map(|(k, a)| (k.clone(), *a)).collect();
        list.sort_by(|a, b| a.0.cmp(&b.0));
        list
    }

    /// The `n` with the most runs, most first.
    pub fn most_used(&self, n: usize) -> Vec<UsageRow> {
        let tracks = self.lock();
        let mut rows: Vec<UsageRow> = tracks.by_key.iter().map(|(k, t)| t.all.row(k, t.last_used)).collect();
        rows.sort_by(|a, b| {
            let name = |r: &UsageRow| (r.kernel.clone(), r.op.clone(), r.threads, r.variant);
            b.runs.cmp(&a.runs).then_with(|| name(a).cmp(&name(b)))
        });
        rows.truncate(n);
        rows
    }

    /// Takes over what wisdom knows.
    pub fn restore(&self, rows: &[UsageRow]) {
        let mut tracks = self.lock();
        let mut rows: Vec<&UsageRow> = rows.iter().collect();
        rows.sort_by(|a, b| a.last_used.total_cmp(&b.last_used));
        for r in rows {
            let params = Params { threads: r.threads, variant: r.variant };
            let track = tracks.touch((r.device, r.kernel.clone(), params, r.op.clone()));
            track.all.add(r.runs, r.failures, r.total_s);
            track.last_used = track.last_used.max(r.last_used);
        }
    }

    /// What is new since the last call: rows for [`crate::wisdom::Batch::usage`].
    pub fn take_unsaved(&self) -> Vec<UsageRow> {
        let mut tracks = self.lock();
        let mut rows = std::mem::take(&mut tracks.leaving);
        for (key, track) in tracks.by_key.iter_mut().filter(|(_, t)| t.unsaved.runs > 0) {
            rows.push(std::mem::take(&mut track.unsaved).row(key, track.last_used));
        }
        rows
    }

    /// How many keys it holds.
    pub fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    /// Whether nothing ran yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts are whole after every statement, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, Tracks> {
        self.tracks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
