//! What to time next: the workload that teaches most for the time it costs, and which of its candidates.

use super::Wanted;
use crate::candidate::{Candidate, Candidates};
use crate::cost::Variant;
use crate::engine::Engine;
use crate::measure::UNMOVED;
use crate::workload::Workload;

/// Workloads looked at to find the next: enough to find a good one, few enough to cost nothing.
const LOOK: usize = 16;

/// Short runs cost nothing to time, so that everyone is timed there: seconds.
const SHORT: f64 = 1e-6;

/// Runs this long (seconds) cost so much that only those likely to win are timed.
const LONG: f64 = 100e-6;
/// How far behind the best a candidate may be thought and still be likely to win a long run.
const LIKELY: f64 = 2.5;

/// Whether every run of it is so long that it hardly matters how far apart cores are.
pub(super) fn is_long(engine: &Engine, w: &Workload) -> bool {
    unmoved(engine, w).iter().all(|c| c.estimate.mean.0 > UNMOVED)
}

/// Candidates for which nothing has to be moved: work is learned here, not links.
fn unmoved(engine: &Engine, w: &Workload) -> Candidates {
    let mut all = engine.estimates(w);
    all.retain(|c| !c.is_moved());
    all
}

/// Times that a workload is put off at most.
const PUT_OFF: u8 = 4;

/// A workload still to be measured.
pub(super) struct Pending {
    pub(super) wanted: Wanted,
    /// The variants that are left, if not all of them.
    left: Option<Vec<Variant>>,
    /// Times that it was put off because the machine was disturbed.
    put_off: u8,
}

impl Pending {
    fn lacks(&self, v: Variant) -> bool {
        self.left.as_ref().is_none_or(|left| left.contains(&v))
    }

    /// Whether only parallel variants are left.
    pub(super) fn is_parallel(&self) -> bool {
        self.left.as_ref().is_some_and(|left| left.iter().all(|v| v.params.threads > 1))
    }

    /// Candidates worth timing: those that may win, and where it costs nothing everyone.
    pub(super) fn contenders(&self, engine: &Engine) -> Vec<Variant> {
        let all = unmoved(engine, &self.wanted.workload);
        let mut wanted: Vec<Variant> = likely(&all).map(|c| c.variant).collect();
        let cheap = |c: &&Candidate| {
            c.estimate.mean.0 < SHORT || c.estimate.mean.0 < LONG && c.estimate.evidence.samples < 3
        };
        wanted.extend(all.iter().filter(cheap).map(|c| c.variant));
        wanted.retain(|v| self.lacks(*v));
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// Summed variance of the candidates that may win, for each second that timing them takes.
    fn score(&self, engine: &Engine) -> f64 {
        let all = unmoved(engine, &self.wanted.workload);
        let (mut doubt, mut cost) = (0.0, 300e-6);
        for c in likely(&all).filter(|c| self.lacks(c.variant)) {
            doubt += c.estimate.spread.min(1.0).powi(2);
            cost += 4.0 * c.estimate.mean.0.max(30e-6);
        }
        self.wanted.importance * doubt / cost
    }
}

/// The workloads still to be measured.
pub(super) struct Queue {
    pending: Vec<Pending>,
    /// Those that wait for the machine to be quiet.
    waiting: Vec<Pending>,
    cursor: usize,
}

impl Queue {
    pub(super) fn new(wanted: Vec<Wanted>) -> Queue {
        let pending = wanted.into_iter().map(|wanted| Pending { wanted, left: None, put_off: 0 }).collect();
        Queue { pending, waiting: Vec::new(), cursor: 0 }
    }

    /// Takes out the workload with the most doubt per second, among a window of them, unless that is little enough.
    pub(super) fn next(&mut self, engine: &Engine, enough: f64) -> Option<Pending> {
        if self.pending.is_empty() {
            self.resume();
        }
        let n = self.pending.len();
        let window = (0..LOOK.min(n)).map(|i| (self.cursor + i * 7919) % n);
        let scored = window.map(|i| (i, self.pending[i].score(engine)));
        let (at, score) = scored.max_by(|a, b| a.1.total_cmp(&b.1))?;
        self.cursor = self.cursor.wrapping_add(LOOK);
        (score >= enough || n > LOOK).then(|| self.pending.swap_remove(at))
    }

    /// The machine is quiet: what waited for that may be next.
    pub(super) fn resume(&mut self) {
        self.pending.append(&mut self.waiting);
    }

    /// Has it wait as it is.
    pub(super) fn wait(&mut self, p: Pending) {
        self.waiting.push(p);
    }

    /// Has these variants of it wait, unless there are none or it was put off often enough.
    pub(super) fn put_off(&mut self, p: &Pending, left: Vec<Variant>) {
        if !left.is_empty() && p.put_off < PUT_OFF {
            self.waiting.push(Pending { wanted: p.wanted.clone(), left: Some(left), put_off: p.put_off + 1 });
        }
    }
}

/// Candidates that may win.
fn likely(all: &Candidates) -> impl Iterator<Item = &Candidate> {
    let least = |time: fn(&Candidate) -> f64| all.iter().map(time).fold(f64::INFINITY, f64::min);
    let (best, best_high) = (least(|c| c.estimate.mean.0), least(|c| c.estimate.high.0));
    all.iter().filter(move |c| {
        let e = &c.estimate;
        e.low.0 <= best_high && (best < LONG || e.mean.0 <= LIKELY * best)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Params;

    #[test]
    fn what_is_put_off_is_only_about_what_is_left_and_not_for_ever() {
        let [serial, parallel] = [1, 2].map(|t| Variant { kernel: 0, params: Params::threads(t) });
        let workload: Workload = "exp f32 100".parse().unwrap();
        let mut queue = Queue::new(vec![Wanted { workload, importance: 1.0 }]);
        let mut p = queue.pending.pop().unwrap();
        assert!(p.lacks(serial) && p.lacks(parallel) && !p.is_parallel());
        queue.put_off(&p, Vec::new());
        assert!(queue.waiting.is_empty(), "nothing is left");
        for _ in 0..PUT_OFF {
            queue.put_off(&p, vec![parallel]);
            assert!(queue.pending.is_empty(), "it waits");
            queue.resume();
            p = queue.pending.pop().unwrap();
            assert!(!p.lacks(serial) && p.lacks(parallel) && p.is_parallel());
        }
        queue.put_off(&p, vec![parallel]);
        assert!(queue.waiting.is_empty());
    }
}
