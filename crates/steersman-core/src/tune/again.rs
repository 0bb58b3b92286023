//! Second looks. A spell in which threads do not come together lasts milliseconds, and all the samples of a workload
//! can lie in it: they agree with each other, and a hole of a factor of five stays in the model. (One 25 µs for 3.4
//! made the wrong choice for every shape around.) So parallel runs that lost to serial ones are timed again, later.

use super::watchdog::{Timed, Watchdog};
use super::{Bench, Calibration, Report};
use crate::cost::Variant;
use crate::engine::Engine;
use crate::measure::Series;
use crate::workload::Workload;
use std::time::{Duration, Instant};

/// How far behind a serial run a parallel one is doubted: where more threads are offered, each has enough to do.
const BEHIND: f64 = 1.15;

/// What is doubted, with what it took.
#[derive(Default)]
pub(super) struct Again {
    doubted: Vec<(Workload, Vec<(Variant, f64)>)>,
}

impl Again {
    /// Keeps back what is doubted of these samples; the others are to be learned.
    pub(super) fn keep_back(&mut self, w: &Workload, series: &mut Vec<Series>) {
        let serial = series.iter().filter(|s| s.variant.params.threads == 1).filter_map(Series::typical);
        let Some(serial) = serial.min_by(f64::total_cmp) else { return };
        let mut doubted = Vec::new();
        series.retain(|s| match s.typical() {
            Some(took) if s.failed.is_none() && s.variant.params.threads > 1 && took > serial * BEHIND => {
                doubted.push((s.variant, took));
                false
            }
            _ => true,
        });
        if !doubted.is_empty() {
            self.doubted.push((w.clone(), doubted));
        }
    }

    /// Times what is doubted once more and learns the better of two; what there is no time for is learned as it was.
    pub(super) fn look(
        self,
        engine: &Engine,
        bench: &dyn Bench,
        how: &Calibration,
        watchdog: &mut Watchdog,
        budget: Duration,
        report: &mut Report,
    ) {
        let started = Instant::now();
        for (w, doubted) in self.doubted {
            let mut series = Vec::new();
            if started.elapsed() < budget
                && let Ok(rig) = bench.rig(&w)
            {
                let variants = doubted.iter().map(|d| d.0).collect();
                let timed = watchdog.contest(rig, variants, Vec::new(), how.contest.clone(), how.timeout);
                if let Timed::Done { series: again, .. } = timed {
                    series = again;
                }
            }
            for (variant, took) in doubted {
                let again = series.iter().find(|s| s.variant == variant);
                let better = again.and_then(Series::typical).map_or(took, |t| t.min(took));
                engine.learn(variant, &w, better, 1.0);
                report.samples += again.map_or(1, |s| s.samples.len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Params;

    fn series(kernel: u16, threads: usize, seconds: f64) -> Series {
        let variant = Variant { kernel, params: Params::threads(threads) };
        let mut s = Series::new(variant);
        s.samples = vec![seconds; 3];
        s
    }

    #[test]
    fn only_parallel_runs_that_lost_are_kept_back() {
        let w: Workload = "exp f32 100000".parse().unwrap();
        let mut all = vec![series(0, 1, 5e-6), series(1, 1, 9e-6), series(0, 2, 2e-5), series(1, 2, 3e-6)];
        let mut again = Again::default();
        again.keep_back(&w, &mut all);
        let left: Vec<_> = all.iter().map(|s| (s.variant.kernel, s.variant.params.threads)).collect();
        assert_eq!(left, [(0, 1), (1, 1), (1, 2)]);
        assert_eq!(again.doubted.len(), 1);
        assert_eq!(again.doubted[0].1, [(Variant { kernel: 0, params: Params::threads(2) }, 2e-5)]);
    }
}
