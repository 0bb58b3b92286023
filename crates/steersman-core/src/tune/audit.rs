//! What was learned is looked through at the end: a time far beyond what everything else lets expect of it is taken again.
//!
//! Neighbours on a shared machine come for milliseconds to seconds, and all samples of a workload can lie in one stay:
//! the slower they made one kernel look, the more shapes around are left to another. What only ever adds time is told by
//! what the same kernel took on other shapes at other times.

use super::watchdog::{Timed, Watchdog};
use super::{Bench, Calibration, Report};
use crate::cost::Variant;
use crate::engine::Engine;
use crate::measure::{Contest, Series};
use crate::workload::Workload;
use std::time::Instant;

/// How far beyond what is expected a time is doubted.
const DOUBTED: f64 = 1.12;
/// How much more it matters where it would be the quickest, or nearly, if it took what is expected.
const MATTERS: f64 = 4.0;
const NEARLY: f64 = 1.2;
/// Times that all is looked through, each with what the one before has mended, and workloads timed again in each.
const ROUNDS: usize = 4;
const AT_ONCE: usize = 100;
/// Share of its old time that a new one must be below to replace it.
const BETTER: f64 = 0.98;

/// One time that was learned, as the model has it.
struct Learned {
    variant: Variant,
    seconds: f64,
    /// Whether it was taken again.
    again: bool,
}

/// Everything that a calibration learned.
#[derive(Default)]
pub(super) struct Audit {
    all: Vec<(Workload, Vec<Learned>)>,
}

impl Audit {
    /// Notes what was learned of a workload.
    pub(super) fn note(&mut self, w: &Workload, learned: impl IntoIterator<Item = (Variant, f64)>) {
        let all = learned.into_iter().map(|(variant, seconds)| Learned { variant, seconds, again: false });
        let all: Vec<Learned> = all.collect();
        if !all.is_empty() {
            self.all.push((w.clone(), all));
        }
    }

    /// Takes again what is doubted, the worst first, and has the model know the better of two.
    pub(super) fn look(
        mut self,
        engine: &Engine,
        bench: &dyn Bench,
        how: &Calibration,
        watchdog: &mut Watchdog,
        until: Instant,
        report: &mut Report,
    ) {
        let contest = Contest { rounds: how.contest.least, ..how.contest.clone() };
        for _ in 0..ROUNDS {
            if Instant::now() >= until {
                return;
            }
            engine.with_model_mut(|m| m.draft());
            for (at, variants) in self.doubted(engine) {
                if Instant::now() >= until {
                    return;
                }
                let (w, learned) = &mut self.all[at];
                learned.iter_mut().filter(|l| variants.contains(&l.variant)).for_each(|l| l.again = true);
                let Ok(rig) = bench.rig(w) else { continue };
                let timed = watchdog.contest(rig, variants, Vec::new(), contest.clone(), how.timeout);
                let Timed::Done { series, .. } = timed else { continue };
                for s in series {
                    let Some(l) = learned.iter_mut().find(|l| l.variant == s.variant) else { continue };
                    let new = Series::typical(&s).map(|t| engine.undisturbed(s.variant, t));
                    if let Some(new) = new.filter(|t| *t < l.seconds * BETTER) {
                        engine.replace(l.variant, w, l.seconds, new);
                        l.seconds = new;
                        report.samples += s.samples.len();
                    }
                }
            }
        }
    }

    /// Workloads with what is doubted of them, the worst first.
    fn doubted(&self, engine: &Engine) -> Vec<(usize, Vec<Variant>)> {
        let mut found: Vec<(f64, usize, Vec<Variant>)> = Vec::new();
        for (at, (w, learned)) in self.all.iter().enumerate() {
            let best = learned.iter().map(|l| l.seconds).fold(f64::INFINITY, f64::min);
            let (mut score, mut variants) = (0.0, Vec::new());
            for l in learned.iter().filter(|l| !l.again) {
                let Some(expected) = engine.without(l.variant, w, l.seconds) else { continue };
                let beyond = l.seconds / expected;
                if beyond < DOUBTED {
                    continue;
                }
                let matters = if expected < NEARLY * best { MATTERS } else { 1.0 };
                score += matters * beyond.ln();
                variants.push(l.variant);
            }
            if !variants.is_empty() {
                found.push((score, at, variants));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.truncate(AT_ONCE);
        found.into_iter().map(|(_, at, variants)| (at, variants)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Machine, Terms};
    use crate::device::DeviceId;
    use crate::kernel::{Kernel, KernelError, Params, Ran, Refusal};
    use crate::measure::Rig;
    use crate::op::Op;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    struct Even;
    impl Kernel for Even {
        fn name(&self) -> &str {
            "test/even"
        }
        fn device(&self) -> DeviceId {
            DeviceId(0)
        }
        fn handles(&self, _: Op) -> bool {
            true
        }
        fn supports(&self, _: &Workload) -> Result<(), Refusal> {
            Ok(())
        }
        fn terms(&self, _: &Workload, _: Params, _: &Machine) -> Terms {
            Terms::launch(2e-3)
        }
    }

    /// Takes two milliseconds, and notes of what it was asked for.
    #[derive(Clone, Default)]
    struct Asked(Arc<Mutex<Vec<String>>>);
    impl Rig for Asked {
        fn run(&mut self, _: Variant) -> Result<Ran, KernelError> {
            std::thread::sleep(Duration::from_millis(2));
            Ok(Ran::Clean)
        }
        fn check(&mut self, _: Variant) -> Result<(), String> {
            Ok(())
        }
    }
    impl Bench for Asked {
        fn rig(&self, w: &Workload) -> Result<Box<dyn Rig>, String> {
            self.0.lock().unwrap().push(w.to_string());
            Ok(Box::new(self.clone()))
        }
    }

    #[test]
    fn what_took_far_longer_than_all_the_rest_lets_expect_is_taken_again_and_nothing_else() {
        let engine = Engine::default();
        let kernel = engine.register(Arc::new(Even)).unwrap();
        let variant = Variant { kernel, params: Params::SERIAL };
        let mut audit = Audit::default();
        let workload = |n: usize| -> Workload { format!("exp f32 {n}").parse().unwrap() };
        for n in [10, 20, 45, 90, 200, 400, 900, 2000, 4000] {
            // What is off by half is half of what is said of its own place.
            let seconds = match n {
                200 => 80e-3,
                4000 => 3.2e-3,
                _ => 2.2e-3,
            };
            engine.learn(variant, &workload(n), seconds, 1.0);
            audit.note(&workload(n), [(variant, seconds)]);
        }
        let rig = Asked::default();
        let until = Instant::now() + Duration::from_secs(60);
        let how = Calibration::default();
        audit.look(&engine, &rig, &how, &mut Watchdog::new(), until, &mut Report::default());
        engine.with_model_mut(|m| m.refit());
        assert_eq!(*rig.0.lock().unwrap(), ["exp f32 200", "exp f32 4000"]);
        let now = engine.estimates(&workload(201))[0].estimate.mean.0;
        assert!((1e-3..20e-3).contains(&now), "{now}");
    }
}
