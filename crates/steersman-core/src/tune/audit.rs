//! What was learned is looked through at the end: a time far beyond what everything else lets expect of it is taken again.
//!
//! Neighbours on a shared machine come for milliseconds to seconds, and all samples of a workload can lie in one stay:
//! the slower they made one kernel look, the more shapes around are left to another. What only ever adds time is told by
//! what the same kernel took on other shapes at other times.

use super::course::Course;
use crate::cost::Variant;
use crate::engine::Engine;
use crate::measure::Contest;
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
    pub(super) fn look(mut self, course: &mut Course<'_>, until: Instant) {
        let (engine, how) = (course.engine, course.how);
        let contest = Contest { rounds: how.contest.least, ..how.contest.clone() };
        for _ in 0..ROUNDS {
            if course.is_over(until) {
                return;
            }
            engine.with_model_mut(|m| m.draft());
            for (at, variants) in self.doubted(engine) {
                if course.is_over(until) {
                    return;
                }
                let (w, learned) = &mut self.all[at];
                learned.iter_mut().filter(|l| variants.contains(&l.variant)).for_each(|l| l.again = true);
                let Some(rig) = course.lay_out(w) else { continue };
                for s in course.time(rig, w, variants, Vec::new(), &contest) {
                    let Some(l) = learned.iter_mut().find(|l| l.variant == s.variant) else { continue };
                    let new = s.typical().map(|t| engine.undisturbed(s.variant, t));
                    if let Some(new) = new.filter(|t| *t < l.seconds * BETTER) {
                        engine.replace(l.variant, w, l.seconds, new);
                        l.seconds = new;
                        course.report.samples += s.samples.len();
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
    use crate::kernel::{Params, Ran};
    use crate::tune::Calibration;
    use crate::tune::fixtures::{Plain, Script};
    use std::ops::ControlFlow;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    #[test]
    fn what_took_far_longer_than_all_the_rest_lets_expect_is_taken_again_and_nothing_else() {
        let engine = Engine::default();
        let kernel = engine.register(Arc::new(Plain { seconds: 2e-3, winners: None })).unwrap();
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
        let asked = Arc::new(Mutex::new(Vec::new()));
        let note = asked.clone();
        let bench = Script(move |w: &Workload, _| {
            note.lock().unwrap().push(w.to_string());
            std::thread::sleep(Duration::from_millis(2));
            Ok(Ran::Clean)
        });
        let how = Calibration::default();
        let mut progress = |_: crate::tune::Progress<'_>| ControlFlow::Continue(());
        let mut course = Course::start(&engine, &bench, &how, &mut progress);
        audit.look(&mut course, Instant::now() + Duration::from_secs(60));
        engine.with_model_mut(|m| m.refit());
        asked.lock().unwrap().dedup();
        assert_eq!(*asked.lock().unwrap(), ["exp f32 200", "exp f32 4000"]);
        let now = engine.estimates(&workload(201))[0].estimate.mean.0;
        assert!((1e-3..20e-3).contains(&now), "{now}");
    }
}
