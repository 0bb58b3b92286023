//! What could not be timed undisturbed. On a machine whose cores are shared for all of a calibration hardly any run on several
//! threads is. The quickest of what it took then counts in the end, for little, rather than that nothing is known of it. (Five
//! transposes that take half as long on two threads had been left to one.)

use crate::cost::Variant;
use crate::engine::Engine;
use crate::measure::Series;
use crate::workload::Workload;
use std::collections::HashMap;

/// What such a time counts, where an undisturbed one counts 1. (A calibration of a Zen 5 whose cores were shared was left with 5,427
/// undisturbed times and 2,489 others; replayed, and judged by 460 shapes timed in a quiet hour: mean regret 2.3% with 0.3, 1.3% with
/// 0.1, 1.4% without. Five others, with 155 to 1,062 such times, differ by 0.2 at most, either way.)
const WEIGHT: f64 = 0.1;

/// The quickest of what was disturbed, where there was nothing else.
#[derive(Default)]
pub(super) struct Disturbed {
    all: HashMap<(Workload, Variant), f64>,
}

impl Disturbed {
    /// Notes what was timed of a workload: the quickest of what was only ever disturbed; what was not is known.
    pub(super) fn note(&mut self, w: &Workload, series: &[Series]) {
        for s in series {
            let key = (w.clone(), s.variant);
            if !s.samples.is_empty() {
                self.all.remove(&key);
            } else if let Some(took) = s.disturbed.iter().copied().min_by(f64::total_cmp) {
                let best = self.all.entry(key).or_insert(took);
                *best = best.min(took);
            }
        }
    }

    /// Has the model know what is left.
    pub(super) fn learn(self, engine: &Engine) {
        let mut all: Vec<_> = self.all.into_iter().collect();
        all.sort_by_cached_key(|((w, variant), _)| (w.to_string(), *variant));
        for ((w, variant), took) in all {
            engine.learn(variant, &w, took, WEIGHT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Params;
    use crate::tune::fixtures::Plain;
    use std::sync::Arc;

    #[test]
    fn the_quickest_disturbed_time_counts_where_there_is_no_other() {
        let engine = Engine::default();
        let kernel = engine.register(Arc::new(Plain { seconds: 1e-6, winners: None })).unwrap();
        let variant = Variant { kernel, params: Params::SERIAL };
        let series = |samples: &[f64], disturbed: &[f64]| {
            let mut s = Series::new(variant);
            (s.samples, s.disturbed) = (samples.to_vec(), disturbed.to_vec());
            vec![s]
        };
        let workload = |n: usize| -> Workload { format!("exp f32 {n}").parse().unwrap() };
        let mut disturbed = Disturbed::default();
        for n in [10, 20, 40] {
            disturbed.note(&workload(n), &series(&[], &[9e-5, 5e-5]));
            disturbed.note(&workload(n), &series(&[], &[7e-5]));
        }
        disturbed.note(&workload(20), &series(&[4e-5], &[]));
        let mut left: Vec<(String, f64)> =
            disturbed.all.iter().map(|((w, _), took)| (w.to_string(), *took)).collect();
        left.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(left, [("exp f32 10".to_string(), 5e-5), ("exp f32 40".to_string(), 5e-5)]);
        let mean = |engine: &Engine| engine.estimates(&workload(10))[0].estimate.mean.0;
        let before = mean(&engine);
        disturbed.learn(&engine);
        assert!(mean(&engine) > 5.0 * before, "{} after {before}", mean(&engine));
    }
}
