//! Settling parameters: kernels with large spaces are searched on a few workloads, and what won is what
//! decisions weigh from then on.

use super::search::{Finding, search};
use super::winners::Winners;
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
/// is left alone, and so is what would take longer than there is time. The time is shared by importance; what one does
/// not use the others have. `told` hears of each workload and may say that this is enough. Returns how many kernels
/// were settled.
pub fn settle(
    engine: &Engine,
    bench: &dyn Bench,
    workloads: &[Wanted],
    budget: Duration,
    told: &mut dyn FnMut(&Workload) -> bool,
) -> usize {
    let started = Instant::now();
    let mut settled = 0;
    for (i, wanted) in workloads.iter().enumerate() {
        let w = &wanted.workload;
        let left = budget.saturating_sub(started.elapsed());
        let to_come: f64 = workloads[i..].iter().map(|w| w.importance).sum();
        let share = left.mul_f64((wanted.importance / to_come).clamp(0.0, 1.0));
        let size = Winners::size(w);
        let (usual, quickest) = open(engine, w, size);
        if usual.is_empty() || quickest * RUNS * usual.len() as f64 > share.as_secs_f64() {
            continue;
        }
        if !told(w) {
            break;
        }
        let Ok(mut rig) = bench.rig(w) else { continue };
        let begun = Instant::now();
        let mut found = search(&mut *rig, &usual, share.mul_f64(FIRST));
        let points = promising(engine, w, &found);
        found.extend(search(&mut *rig, &points, share.saturating_sub(begun.elapsed())));
        settled += keep(engine, w, size, found);
    }
    engine.invalidate();
    settled
}

/// The point that decisions weigh now, of every kernel at the workload's place that was not searched at this size,
/// those thought quickest first; and what the first is thought to take.
fn open(engine: &Engine, w: &Workload, size: u8) -> (Vec<Variant>, f64) {
    let mut all = engine.estimates(w);
    all.retain(|c| {
        let kernel = engine.registry().get(c.variant.kernel);
        let open = kernel.and_then(|k| k.winners()).is_some_and(|winners| !winners.covers(size));
        open && engine.place_of(c.variant.kernel) == Some(w.output().place)
    });
    all.sort_by(|a, b| a.estimate.mean.0.total_cmp(&b.estimate.mean.0));
    let quickest = all.first().map_or(f64::INFINITY, |c| c.estimate.mean.0);
    (all.iter().map(|c| c.variant).collect(), quickest)
}

/// Every point of the kernels that are not far behind, those of the quickest first.
fn promising(engine: &Engine, w: &Workload, found: &[Finding]) -> Vec<Variant> {
    let time = |f: &Finding| f.best.or(f.cold).map(|s| s.0);
    let best = found.iter().filter_map(time).fold(f64::INFINITY, f64::min);
    let near = found.iter().filter(|f| f.failed.is_none() && time(f).is_some_and(|t| t <= FAR * best));
    let mut points = Vec::new();
    for f in near {
        let Some(k) = engine.registry().get(f.variant.kernel) else { continue };
        points.push(f.variant);
        let others = k.space(w).into_iter().map(|params| Variant { params, ..f.variant });
        points.extend(others.filter(|v| *v != f.variant));
    }
    points
}

/// Has each kernel keep its quickest point; how many did.
fn keep(engine: &Engine, w: &Workload, size: u8, mut found: Vec<Finding>) -> usize {
    let time = |f: &Finding| f.best.map_or(f64::INFINITY, |s| s.0);
    found.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let mut done: Vec<u16> = Vec::new();
    for (f, best) in found.iter().filter_map(|f| Some((f, f.best?))) {
        let Some(kernel) = engine.registry().get(f.variant.kernel) else { continue };
        engine.learn(f.variant, w, best.0, 1.0);
        if let Some(cold) = f.cold.filter(|_| f.compiled) {
            engine.learn_setup(kernel.device(), cold - best);
        }
        // Quickest first: the first of a kernel is its winner.
        if let Some(winners) = kernel.winners().filter(|_| !done.contains(&f.variant.kernel)) {
            winners.set(size, f.variant.params);
            done.push(f.variant.kernel);
        }
    }
    done.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Machine, Terms};
    use crate::device::DeviceId;
    use crate::kernel::{Kernel, KernelError, Params, Ran, Refusal};
    use crate::measure::Rig;
    use crate::op::Op;
    use std::sync::Arc;

    /// Takes as many milliseconds as its variant is away from the third.
    struct Tuned(Winners);

    impl Kernel for Tuned {
        fn name(&self) -> &str {
            "test/tuned"
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
        fn space(&self, _: &Workload) -> Vec<Params> {
            (0..5).map(|variant| Params { threads: 1, variant }).collect()
        }
        fn winners(&self) -> Option<&Winners> {
            Some(&self.0)
        }
        fn terms(&self, _: &Workload, _: Params, _: &Machine) -> Terms {
            Terms::launch(1e-4)
        }
    }

    struct Sleeps;
    impl Rig for Sleeps {
        fn run(&mut self, v: Variant) -> Result<Ran, KernelError> {
            std::thread::sleep(Duration::from_millis(1 + 4 * u64::from(v.params.variant.abs_diff(3))));
            Ok(Ran::Clean)
        }
        fn check(&mut self, _: Variant) -> Result<(), String> {
            Ok(())
        }
    }
    impl Bench for Sleeps {
        fn rig(&self, _: &Workload) -> Result<Box<dyn Rig>, String> {
            Ok(Box::new(Sleeps))
        }
    }

    fn wanted(w: &Workload) -> Wanted {
        Wanted { workload: w.clone(), importance: 1.0 }
    }

    #[test]
    fn the_quickest_point_is_kept_and_not_searched_for_again() {
        let engine = Engine::default();
        let kernel = Arc::new(Tuned(Winners::default()));
        engine.register(kernel.clone()).unwrap();
        let w: Workload = "add f32 1000 1000".parse().unwrap();
        let budget = Duration::from_millis(600);
        let searched = |w: &Workload| {
            let mut told = 0;
            let n = settle(&engine, &Sleeps, &[wanted(w)], budget, &mut |_| {
                told += 1;
                true
            });
            (n, told)
        };
        assert_eq!(searched(&w), (1, 1));
        assert_eq!(kernel.0.near(Winners::size(&w)).map(|p| p.variant), Some(3));
        assert_eq!(searched(&w), (0, 0), "known already");
        kernel.0.restore(&[]);
        assert_eq!(settle(&engine, &Sleeps, &[wanted(&w)], budget, &mut |_| false), 0, "told to stop");
    }

    #[test]
    fn what_would_take_longer_than_there_is_time_is_passed_over() {
        let engine = Engine::default();
        engine.register(Arc::new(Tuned(Winners::default()))).unwrap();
        let w: Workload = "add f32 1000 1000".parse().unwrap();
        assert_eq!(settle(&engine, &Sleeps, &[wanted(&w)], Duration::from_micros(10), &mut |_| true), 0);
    }
}
