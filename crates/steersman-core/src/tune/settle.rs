//! Settling parameters: kernels with large spaces are searched on a few workloads, and what won is what
//! decisions weigh from then on.

use super::search::{Finding, search};
use super::winners::{Kind, Winner};
use super::{Bench, Wanted};
use crate::cost::Variant;
use crate::engine::Engine;
use crate::workload::Workload;
use std::time::{Duration, Instant};

/// Times that every kernel is run in a search that ends: once to warm up, and a few times more.
const RUNS: f64 = 4.0;

/// Share of a search that goes to comparing kernels as they are.
const FIRST: f64 = 0.25;

/// A kernel so many times slower than the quickest does not catch up by its parameters: it keeps the point it has.
const FAR: f64 = 3.0;

/// Searches the kernels that run where these workloads live, for about `budget` in all; what was searched before
/// is left alone, what was cut short goes on where it was, and what would take longer than there is time is passed
/// over. The time is shared by importance; what one does not use the others have. `told` hears of each workload before
/// each run on it and may say that this is enough. Returns how many kernels were settled: none in a frozen engine.
pub fn settle(
    engine: &Engine,
    bench: &dyn Bench,
    workloads: &[Wanted],
    budget: Duration,
    told: &mut dyn FnMut(&Workload) -> bool,
) -> usize {
    if engine.is_frozen() {
        return 0;
    }
    let started = Instant::now();
    let mut settled = 0;
    for (i, wanted) in workloads.iter().enumerate() {
        let w = &wanted.workload;
        let left = budget.saturating_sub(started.elapsed());
        let to_come: f64 = workloads[i..].iter().map(|w| w.importance).sum();
        let share = left.mul_f64((wanted.importance / to_come).clamp(0.0, 1.0));
        let kind = Kind::of(w);
        let (usual, quickest) = open(engine, w, kind);
        if usual.is_empty() || quickest * RUNS * usual.len() as f64 > share.as_secs_f64() {
            continue;
        }
        if !told(w) {
            break;
        }
        let Ok(mut rig) = bench.rig(w) else { continue };
        // Not on this one's time: a clock that slept takes most of a second to rise.
        rig.rouse(usual[0]);
        let begun = Instant::now();
        let mut stopped = false;
        let mut go_on = || {
            stopped = stopped || !told(w);
            !stopped
        };
        let mut found = search(&mut *rig, &usual, share.mul_f64(FIRST), &mut go_on);
        let points = promising(engine, w, kind, &found);
        found.extend(search(&mut *rig, &points, share.saturating_sub(begun.elapsed()), &mut go_on));
        settled += keep(engine, w, kind, &points, found);
        if stopped {
            break;
        }
    }
    engine.invalidate();
    settled
}

/// The point that decisions weigh now, of every kernel at the workload's place that was not searched to the end on
/// such work, those thought quickest first; and what the first is thought to take.
fn open(engine: &Engine, w: &Workload, kind: Kind) -> (Vec<Variant>, f64) {
    let mut all = engine.estimates(w);
    all.retain(|c| {
        let kernel = engine.registry().get(c.variant.kernel);
        let open = kernel.and_then(|k| k.winners()).is_some_and(|winners| !winners.covers(kind));
        open && engine.place_of(c.variant.kernel) == Some(w.output().place)
    });
    all.sort_by(|a, b| a.estimate.mean.0.total_cmp(&b.estimate.mean.0));
    let quickest = all.first().map_or(f64::INFINITY, |c| c.estimate.mean.0);
    (all.iter().map(|c| c.variant).collect(), quickest)
}

/// Every point that is left to try of the kernels that are not far behind, those of the quickest first.
fn promising(engine: &Engine, w: &Workload, kind: Kind, found: &[Finding]) -> Vec<Variant> {
    let time = |f: &Finding| f.best.or(f.cold).map(|s| s.0);
    let best = found.iter().filter_map(time).fold(f64::INFINITY, f64::min);
    let near = found.iter().filter(|f| f.failed.is_none() && time(f).is_some_and(|t| t <= FAR * best));
    let mut points = Vec::new();
    for f in near {
        let Some(k) = engine.registry().get(f.variant.kernel) else { continue };
        let begun = k.winners().and_then(|winners| winners.of(kind));
        let left = begun.map_or_else(|| k.space(w), |winner| winner.left);
        let others = left.into_iter().map(|params| Variant { params, ..f.variant });
        let mut others = others.filter(|v| *v != f.variant);
        // A new one first, which is tried however little time is left.
        points.extend(others.next());
        points.push(f.variant);
        points.extend(others);
    }
    points
}

/// Has each kernel keep its quickest point, and those of `points` that there was no time for; how many did.
fn keep(engine: &Engine, w: &Workload, kind: Kind, points: &[Variant], mut found: Vec<Finding>) -> usize {
    let time = |f: &Finding| f.best.map_or(f64::INFINITY, |s| s.0);
    found.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let tried =
        |v: &Variant| found.iter().any(|f| f.variant == *v && (f.best.is_some() || f.failed.is_some()));
    let left: Vec<&Variant> = points.iter().filter(|v| !tried(v)).collect();
    let mut done: Vec<u16> = Vec::new();
    for (f, best) in found.iter().filter_map(|f| Some((f, f.best?))) {
        let Some(kernel) = engine.registry().get(f.variant.kernel) else { continue };
        engine.learn(f.variant, w, best.0, 1.0);
        if let Some(cold) = f.cold.filter(|_| f.compiled) {
            engine.learn_setup(kernel.device(), cold - best);
        }
        // Quickest first: the first of a kernel is its winner.
        if let Some(winners) = kernel.winners().filter(|_| !done.contains(&f.variant.kernel)) {
            let of_it = left.iter().filter(|v| v.kernel == f.variant.kernel);
            winners.set(Winner { kind, params: f.variant.params, left: of_it.map(|v| v.params).collect() });
            done.push(f.variant.kernel);
        }
    }
    done.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{KernelError, Ran};
    use crate::tune::Winners;
    use crate::tune::fixtures::{Plain, Script};
    use std::sync::{Arc, Mutex};

    /// A kernel with five points, which takes as many milliseconds as its point is away from the third.
    fn tuned(engine: &Engine) -> Arc<Plain> {
        let kernel = Arc::new(Plain { seconds: 1e-4, winners: Some(Winners::default()) });
        engine.register(kernel.clone()).unwrap();
        kernel
    }

    fn winners(kernel: &Plain) -> &Winners {
        kernel.winners.as_ref().unwrap()
    }

    fn sleep(_: &Workload, v: Variant) -> Result<Ran, KernelError> {
        std::thread::sleep(Duration::from_millis(1 + 4 * u64::from(v.params.variant.abs_diff(3))));
        Ok(Ran::Clean)
    }

    fn wanted(w: &Workload) -> Wanted {
        Wanted { workload: w.clone(), importance: 1.0 }
    }

    #[test]
    fn the_quickest_point_is_kept_and_not_searched_for_again() {
        let engine = Engine::default();
        let kernel = tuned(&engine);
        let w: Workload = "add f32 1000 1000".parse().unwrap();
        let budget = Duration::from_millis(600);
        let searched = |w: &Workload| {
            let mut told = 0;
            let n = settle(&engine, &Script(sleep), &[wanted(w)], budget, &mut |_| {
                told += 1;
                true
            });
            (n, told > 0)
        };
        assert_eq!(searched(&w), (1, true));
        assert_eq!(winners(&kernel).near(Kind::of(&w)).map(|p| p.variant), Some(3));
        assert_eq!(searched(&w), (0, false), "known already");
        winners(&kernel).restore(&[]);
        assert_eq!(settle(&engine, &Script(sleep), &[wanted(&w)], budget, &mut |_| false), 0, "told to stop");
    }

    #[test]
    fn what_would_take_longer_than_there_is_time_is_passed_over() {
        let engine = Engine::default();
        tuned(&engine);
        let w: Workload = "add f32 1000 1000".parse().unwrap();
        assert_eq!(
            settle(&engine, &Script(sleep), &[wanted(&w)], Duration::from_micros(10), &mut |_| true),
            0
        );
    }

    /// Settles until so many runs were made, and says which points were tried.
    fn cut_short(engine: &Engine, w: &Workload, runs: usize) -> Vec<u16> {
        let ran = Arc::new(Mutex::new(Vec::new()));
        let note = ran.clone();
        let bench = Script(move |w: &Workload, v: Variant| {
            note.lock().unwrap().push(v.params.variant);
            sleep(w, v)
        });
        let count = || ran.lock().unwrap().len();
        settle(engine, &bench, &[wanted(w)], Duration::from_secs(600), &mut |_| count() < runs);
        let mut tried = ran.lock().unwrap().clone();
        tried.sort_unstable();
        tried.dedup();
        tried
    }

    #[test]
    fn a_search_cut_short_goes_on_with_what_it_did_not_get_to() {
        let engine = Engine::default();
        let kernel = tuned(&engine);
        let w: Workload = "add f32 1000 1000".parse().unwrap();
        let kind = Kind::of(&w);
        let of = |kind: Kind| winners(&kernel).of(kind).expect("something is known");
        // The point that is there is timed alone first, three times; then all run once, then all are timed.
        let tried = cut_short(&engine, &w, 3 + 5 + 2);
        assert_eq!(tried, [0, 1, 2, 3, 4]);
        let first = of(kind);
        assert!(!winners(&kernel).covers(kind) && first.left.len() == 3, "{first:?}");
        // A later process: what is left is tried beside what is best so far, and nothing else.
        let kept = winners(&kernel).list();
        winners(&kernel).restore(&kept);
        let tried = cut_short(&engine, &w, 1000);
        let mut want: Vec<u16> = first.left.iter().chain([&first.params]).map(|p| p.variant).collect();
        want.sort_unstable();
        assert_eq!(tried, want);
        assert!(winners(&kernel).covers(kind));
        assert_eq!(of(kind).params.variant, 3);
        assert!(cut_short(&engine, &w, 1000).is_empty(), "all is known");
    }

    #[test]
    fn with_next_to_no_time_each_search_tries_something_new() {
        let engine = Engine::default();
        let kernel = tuned(&engine);
        let w: Workload = "add f32 1000 1000".parse().unwrap();
        let left = || winners(&kernel).of(Kind::of(&w)).expect("something is known").left.len();
        // Enough by what the kernel is thought to take, not by what it takes.
        let budget = Duration::from_micros(500);
        let known: Vec<usize> = (0..4)
            .map(|_| {
                settle(&engine, &Script(sleep), &[wanted(&w)], budget, &mut |_| true);
                winners(&kernel).restore(&winners(&kernel).list());
                engine.with_model_mut(|m| m.clear());
                left()
            })
            .collect();
        assert_eq!(known, [3, 2, 1, 0]);
        assert_eq!(winners(&kernel).near(Kind::of(&w)).map(|p| p.variant), Some(3));
    }

    #[test]
    fn a_search_broken_off_before_anything_was_timed_is_as_if_it_had_not_been() {
        let engine = Engine::default();
        let kernel = tuned(&engine);
        let w: Workload = "add f32 1000 1000".parse().unwrap();
        cut_short(&engine, &w, 1);
        assert!(winners(&kernel).list().is_empty());
        assert_eq!(cut_short(&engine, &w, 1000), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_frozen_engine_learns_nothing() {
        let engine = Engine::default();
        let kernel = tuned(&engine);
        engine.configure(|s| s.frozen = true);
        let w: Workload = "add f32 1000 1000".parse().unwrap();
        assert!(cut_short(&engine, &w, 1000).is_empty() && winners(&kernel).list().is_empty());
        let how = crate::tune::Calibration { budget: Duration::from_secs(60), ..Default::default() };
        let mut progress = |_: crate::tune::Progress<'_>| std::ops::ControlFlow::Continue(());
        let report = crate::tune::calibrate(&engine, &Script(sleep), vec![wanted(&w)], &how, &mut progress);
        assert_eq!((report.workloads, report.samples), (0, 0));
        let variant = Variant { kernel: 0, params: crate::Params::SERIAL };
        engine.learn(variant, &w, 1.0, 1.0);
        assert_eq!(engine.samples(variant, &w), 0);
        engine.configure(|s| s.frozen = false);
        engine.learn(variant, &w, 1.0, 1.0);
        assert_eq!(engine.samples(variant, &w), 1);
    }
}
