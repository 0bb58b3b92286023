//! Second looks. A spell in which threads do not come together lasts milliseconds, and all the samples of a workload
//! can lie in it: they agree with each other, and a hole of a factor of five stays in the model. (One 25 µs for 3.4
//! made the wrong choice for every shape around.) So parallel runs that lost to serial ones are timed again, later, and so
//! is what took far longer than what is known of the kernel lets expect. (`silu` of 37 f32 was learned at 400 ns with
//! AVX-512, at 225 with AVX2, and takes 80.)

use super::course::Course;
use crate::candidate::Candidate;
use crate::cost::{Source, Variant};
use crate::engine::Engine;
use crate::measure::Series;
use crate::workload::Workload;
use std::time::Instant;

/// How far behind a serial run a parallel one is doubted: where more threads are offered, each has enough to do.
const BEHIND: f64 = 1.15;

/// How far beyond the interval of what was expected a time is doubted.
const BEYOND: f64 = 1.25;

/// Seconds beyond which each of these is doubted, by what is known of their kernels.
pub(super) fn limits(engine: &Engine, w: &Workload) -> Vec<(Variant, f64)> {
    let known = |c: &Candidate| c.estimate.evidence.source != Source::Prior;
    let limit = |c: &Candidate| (c.variant, c.estimate.high.0 * BEYOND);
    engine.estimates(w).iter().filter(|c| known(c)).map(limit).collect()
}

/// What is doubted, with what it took.
#[derive(Default)]
pub(super) struct Again {
    doubted: Vec<(Workload, Vec<(Variant, f64)>)>,
}

impl Again {
    /// Keeps back what is doubted of these samples, by what was expected among other things; the others are to be learned.
    pub(super) fn keep_back(&mut self, w: &Workload, series: &mut Vec<Series>, limits: &[(Variant, f64)]) {
        let serial = series.iter().filter(|s| s.variant.params.threads == 1).filter_map(Series::typical);
        let serial = serial.min_by(f64::total_cmp).unwrap_or(f64::INFINITY);
        let limit = |v: Variant| limits.iter().find(|l| l.0 == v).map_or(f64::INFINITY, |l| l.1);
        let mut doubted = Vec::new();
        series.retain(|s| {
            let behind = if s.variant.params.threads > 1 { serial * BEHIND } else { f64::INFINITY };
            match s.typical() {
                Some(took) if took > behind.min(limit(s.variant)) => {
                    doubted.push((s.variant, took));
                    false
                }
                _ => true,
            }
        });
        if !doubted.is_empty() {
            self.doubted.push((w.clone(), doubted));
        }
    }

    /// Times what is doubted once more and learns the better of two; what there is no time for is learned as it was.
    pub(super) fn look(self, course: &mut Course<'_>, until: Instant) {
        let (engine, how) = (course.engine, course.how);
        for (w, doubted) in self.doubted {
            let rig = if course.is_over(until) { None } else { course.lay_out(&w) };
            let series = rig.map_or_else(Vec::new, |rig| {
                course.time(rig, &w, doubted.iter().map(|d| d.0).collect(), Vec::new(), &how.contest)
            });
            for (variant, took) in doubted {
                let again = series.iter().find(|s| s.variant == variant);
                let better = again.and_then(Series::typical).map_or(took, |t| t.min(took));
                engine.learn(variant, &w, better, 1.0);
                course.report.samples += again.map_or(1, |s| s.samples.len());
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
        again.keep_back(&w, &mut all, &[]);
        let left: Vec<_> = all.iter().map(|s| (s.variant.kernel, s.variant.params.threads)).collect();
        assert_eq!(left, [(0, 1), (1, 1), (1, 2)]);
        assert_eq!(again.doubted.len(), 1);
        assert_eq!(again.doubted[0].1, [(Variant { kernel: 0, params: Params::threads(2) }, 2e-5)]);
    }

    #[test]
    fn what_takes_longer_than_can_be_expected_is_kept_back() {
        let w: Workload = "silu f32 37".parse().unwrap();
        let mut all = vec![series(0, 1, 4e-7), series(1, 1, 1e-7), series(2, 1, 4e-7)];
        let limits = [(all[0].variant, 1e-7), (all[1].variant, 1e-7)];
        let mut again = Again::default();
        again.keep_back(&w, &mut all, &limits);
        let left: Vec<_> = all.iter().map(|s| s.variant.kernel).collect();
        assert_eq!(left, [1, 2], "as expected, and nothing expected");
        assert_eq!(again.doubted[0].1, [(Variant { kernel: 0, params: Params::SERIAL }, 4e-7)]);
    }
}
