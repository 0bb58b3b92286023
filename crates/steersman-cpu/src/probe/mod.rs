//! The limits of this machine, measured in half a second.
//!
//! ```no_run
//! use steersman_cpu::{host::Host, probe, threads::Team};
//!
//! let host = Host::detect();
//! let team = Team::new(host.cores);
//! let probes = probe::run(&host, &team, probe::DEFAULT_BUDGET, &mut |what, done| {
//!     eprintln!("{:3.0}% {what}", done * 100.0);
//!     true // and go on
//! });
//! if let Some(peak) = probes.iter().flat_map(|p| &p.peaks).last() {
//!     println!("{}: {:.0} Gflop/s per core", peak.isa, peak.f32_flops / 1e9);
//! }
//! ```
//!
//! Figures are limits, so each is the best of several samples: noise only ever adds time. The
//! exceptions are waking a thread, fresh memory, and main memory (which a cache may help): there
//! the usual cost is what matters, a median or a total. What could not be measured is `None` or
//! left out of its list.

mod arena;
mod bandwidth;
mod fma;
mod handoff;
mod sample;
mod stream;

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::isa::Level;
use crate::threads::Team;

pub use bandwidth::{Bandwidth, Store};
pub use fma::{Peak, halves_pay};
pub use handoff::Handoff;

/// How long a run takes unless told otherwise; a run stays within 1.3 times its budget.
pub const DEFAULT_BUDGET: Duration = Duration::from_millis(450);

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Probes {
    /// Arithmetic of one core, one entry for each instruction set present, narrowest first.
    pub peaks: Vec<Peak>,
    /// How quickly data flows, for each place it can be in and several numbers of threads.
    pub bandwidths: Vec<Bandwidth>,
    /// Bytes of the last cache that one thread really has.
    pub reach: Option<usize>,
    /// Whether each thread has as much when all are at work.
    pub apart: Option<bool>,
    /// Bytes a second when fresh memory is written for the first time.
    pub first_touch: Option<f64>,
    /// What it costs to give work to a worker; absent if there are no workers.
    pub handoff: Option<Handoff>,
    /// Seconds to read the clock.
    pub clock: Option<f64>,
    /// Seconds the probing took.
    pub took: f64,
}

impl Probes {
    /// The bandwidth of a store with exactly `threads` threads, if it was measured.
    pub fn bandwidth(&self, store: Store, threads: usize) -> Option<&Bandwidth> {
        self.bandwidths.iter().find(|found| found.store == store && found.threads == threads)
    }

    /// The arithmetic peak of one core with an instruction set, if it was measured.
    pub fn peak(&self, level: Level) -> Option<&Peak> {
        self.peaks.iter().find(|found| found.isa == level.name())
    }
}

/// Measures within about `budget`, telling `progress` what comes next and which share is done. `None` once it says that
/// this is enough.
///
/// The caller's thread works throughout; measure on a quiet machine or the figures are too low.
pub fn run(
    host: &Host,
    team: &Team,
    budget: Duration,
    progress: &mut dyn FnMut(&str, f64) -> bool,
) -> Option<Probes> {
    let started = Instant::now();
    let mut probes = Probes::default();
    let mut next = |what: &str, done: f64| progress(what, done).then_some(());
    next("clock", 0.0)?;
    probes.clock = sample::clock(budget.mul_f64(0.01));
    next("arithmetic", 0.01)?;
    probes.peaks = fma::peaks(budget.mul_f64(0.12));
    next("handing work to threads", 0.13)?;
    probes.handoff = handoff::measure(team, budget.mul_f64(0.10));
    next("fresh memory", 0.23)?;
    let memory = arena::Arena::touch(host, team, budget.mul_f64(0.22));
    if let Some((mut arena, rate)) = memory {
        probes.first_touch = Some(rate);
        let mut go_on = || next("bandwidth", 0.45).is_some();
        (probes.bandwidths, probes.reach, probes.apart) =
            bandwidth::measure(host, team, &mut arena, budget.mul_f64(0.50), &mut go_on)?;
    }
    probes.took = started.elapsed().as_secs_f64();
    next("done", 1.0)?;
    Some(probes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quick() -> (Host, Probes) {
        let host = Host::detect();
        let team = Team::new(2);
        (
            host.clone(),
            run(&host, &team, Duration::from_millis(40), &mut |_, _| true).expect("nobody stops it"),
        )
    }

    #[test]
    fn every_instruction_set_present_has_a_peak() {
        let (_, probes) = quick();
        assert_eq!(probes.peaks.len(), Level::present().count());
        for level in Level::present() {
            let peak = probes.peak(level).expect("present");
            assert!(peak.f32_flops > 0.0 && peak.f32_flops.is_finite());
            assert!(peak.f64_flops > 0.0 && peak.f64_flops.is_finite());
        }
    }

    #[test]
    fn rates_are_positive_and_belong_to_caches_the_host_has() {
        let (host, probes) = quick();
        assert!(!probes.bandwidths.is_empty());
        for found in &probes.bandwidths {
            assert!(found.read > 0.0 && found.copy > 0.0 && found.triad > 0.0, "{found:?}");
            if let Store::Cache(level) = found.store {
                let cache = host.cache(level).expect("a cache the host has");
                assert!(found.bytes_per_thread < cache.bytes);
            }
        }
        assert!(probes.reach.is_none_or(|bytes| bytes <= host.caches.last().expect("it has one").bytes));
        assert!(probes.first_touch.is_some_and(|rate| rate > 0.0));
        assert!(probes.clock.is_some_and(|seconds| seconds > 0.0));
    }

    #[test]
    fn a_team_of_one_has_no_handoff_and_one_thread() {
        let probes = run(&Host::detect(), &Team::new(1), Duration::from_millis(20), &mut |_, _| true);
        let probes = probes.expect("nobody stops it");
        assert_eq!((probes.handoff, probes.apart), (None, None));
        assert!(probes.bandwidths.iter().all(|found| found.threads == 1));
    }

    #[test]
    fn progress_only_grows_and_ends_at_one() {
        let mut seen = Vec::new();
        let mut note = |_: &str, done| {
            seen.push(done);
            true
        };
        run(&Host::detect(), &Team::new(1), Duration::from_millis(20), &mut note).expect("nobody stops it");
        assert!(seen.is_sorted());
        assert_eq!(seen.last(), Some(&1.0));
    }

    #[test]
    fn whoever_has_enough_is_not_told_of_a_next_part() {
        for parts in 1..8 {
            let mut told = 0;
            let mut stop = |_: &str, _| {
                told += 1;
                told < parts
            };
            let probes = run(&Host::detect(), &Team::new(1), Duration::from_millis(20), &mut stop);
            assert_eq!((probes, told), (None, parts));
        }
    }
}
