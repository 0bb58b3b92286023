//! `steer bench decide`: what a decision costs.
//!
//! A hit is the decision of a workload decided before. Now and then such a call is due for timing and is
//! decided anew: that is a miss in all but name, so those calls are counted apart (`due_share`).

use super::percentile;
use crate::count::allocations;
use crate::exit::{Failure, Outcome};
use crate::open;
use crate::screen::Screen;
use crate::table::{
    Column::{Left, Right},
    Table,
};
use serde::Serialize;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use steersman::Runtime;
use steersman_core::{Engine, Seconds, Workload};

/// Passes over the workloads in one timed batch: 64 calls are 50 times the clock's own cost.
const PASSES: usize = 4;
const BATCHES: usize = 20_000;
const COUNTED: usize = 100_000;
const MISSES: usize = 2_000;
/// How long to wait for a core of one's own before each of them.
const WAIT: Duration = Duration::from_micros(300);

#[derive(Debug, Serialize)]
struct Report {
    hit_ns_p50: f64,
    hit_ns_p99: f64,
    miss_ns_p50: f64,
    miss_ns_p99: f64,
    /// Candidates of the workload the misses decide, those that others always outdo among them: about twenty, more where no
    /// workload has that few.
    candidates: usize,
    allocations_per_hit: f64,
    /// The workload the misses decide.
    miss_workload: String,
    /// The same of the workload with the most candidates that a decision weighs.
    most: Busiest,
    /// Share of repeated calls that were due for timing.
    due_share: f64,
    /// Threads that decided at once for `hit_ns_p50_threads`.
    threads: usize,
    hit_ns_p50_threads: f64,
}

/// Misses of the workload of which a decision weighs the most, which without those that others always outdo are fewer.
#[derive(Debug, Serialize)]
struct Busiest {
    workload: String,
    candidates: usize,
    miss_ns_p50: f64,
}

pub fn run(screen: &Screen) -> Outcome {
    let runtime = open::runtime()?;
    let report = measure(&runtime)?;
    if screen.json {
        return screen.data(&report);
    }
    let ns = |v: f64| Seconds::nanos(v).to_string();
    let mut table = Table::new(&[Left("decision"), Right("p50"), Right("p99"), Left("")]);
    let allocations = format!("{} allocations a hit", report.allocations_per_hit);
    table.row(["hit".to_string(), ns(report.hit_ns_p50), ns(report.hit_ns_p99), allocations]);
    let at_once = format!("on {} threads at once", report.threads);
    table.row(["hit".to_string(), ns(report.hit_ns_p50_threads), String::new(), at_once]);
    let candidates = format!("{} candidates of '{}', all weighed", report.candidates, report.miss_workload);
    table.row(["miss".to_string(), ns(report.miss_ns_p50), ns(report.miss_ns_p99), candidates]);
    let most = &report.most;
    let most = format!("{} candidates of '{}', the most that are weighed", most.candidates, most.workload);
    table.row(["miss".to_string(), ns(report.most.miss_ns_p50), String::new(), most]);
    screen.print(&table.show(&screen.paint))
}

fn measure(runtime: &Runtime) -> Result<Report, Failure> {
    let engine = runtime.engine();
    // Knobs may have switched off all that can run one of them.
    let workloads: Vec<Workload> = everyday()?.into_iter().filter(|w| engine.decide(w).is_ok()).collect();
    if workloads.is_empty() {
        return Err(Failure::failed("no kernel is left to decide about; see `steer knobs`, disable"));
    }
    let cpu = runtime.cpu();
    let whole = || {
        cpu.calm.whole.wait(&cpu.team, 1, WAIT);
    };
    let (hits, due) = hit_times(engine, &workloads, &whole)?;
    let threads = runtime.cpu().team.max();
    let (busiest, most) = most_candidates(engine)?;
    let most_misses = miss_times(engine, &busiest, &whole)?;
    // Twenty are more than most workloads have, unless those are weighed too that others always outdo.
    let weighed = engine.settings().weigh_all;
    engine.configure(|s| s.weigh_all = true);
    let (miss_workload, candidates) = about_twenty(engine)?;
    let misses = miss_times(engine, &miss_workload, &whole)?;
    engine.configure(|s| s.weigh_all = weighed);
    Ok(Report {
        hit_ns_p50: percentile(&hits, 0.5)?,
        hit_ns_p99: percentile(&hits, 0.99)?,
        miss_ns_p50: percentile(&misses, 0.5)?,
        miss_ns_p99: percentile(&misses, 0.99)?,
        candidates,
        allocations_per_hit: allocations_per_hit(engine, &workloads)?,
        miss_workload: miss_workload.to_string(),
        most: Busiest {
            workload: busiest.to_string(),
            candidates: most,
            miss_ns_p50: percentile(&most_misses, 0.5)?,
        },
        due_share: due,
        threads,
        hit_ns_p50_threads: at_once(engine, &workloads, threads)?,
    })
}

/// Sixteen small workloads of every class, since it is small ones whose decision must cost nothing.
fn everyday() -> Result<Vec<Workload>, Failure> {
    let texts = [
        "add f32 16 16",
        "add f32 100 100",
        "mul f32 64 64",
        "mul f64 32 32",
        "sub f32 10x10 10",
        "max f32 50 50",
        "exp f32 16",
        "tanh f32 20",
        "relu f32 100",
        "sqrt f64 64",
        "sum f32 100",
        "sum f32 10x10 axis=0",
        "matmul f32 4x4 4x4",
        "matmul f32 8x8 8x1",
        "transpose f32 8x8",
        "copy f32 64",
    ];
    texts.iter().map(|t| t.parse().map_err(Failure::failed)).collect()
}

/// Nanoseconds a call of each batch in which every call was a hit; and the share of calls that were none.
fn hit_times(engine: &Engine, workloads: &[Workload], whole: &dyn Fn()) -> Result<(Vec<f64>, f64), Failure> {
    let batch = PASSES * workloads.len();
    let mut times = Vec::with_capacity(BATCHES);
    let mut due = 0usize;
    for _ in 0..BATCHES {
        let mut due_here = 0;
        whole();
        let started = Instant::now();
        for _ in 0..PASSES {
            for w in workloads {
                due_here += usize::from(engine.decide(black_box(w))?.wants_timing());
            }
        }
        let took = started.elapsed();
        if due_here == 0 {
            times.push(took.as_nanos() as f64 / batch as f64);
        }
        due += due_here;
    }
    Ok((times, due as f64 / (BATCHES * batch) as f64))
}

/// The same on several threads at once: the median of their medians.
fn at_once(engine: &Engine, workloads: &[Workload], threads: usize) -> Result<f64, Failure> {
    let barrier = Barrier::new(threads);
    let medians: Vec<Result<f64, Failure>> = std::thread::scope(|scope| {
        let work = || {
            barrier.wait();
            percentile(&hit_times(engine, workloads, &|| ())?.0, 0.5)
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended = running.into_iter().map(|t| t.join());
        ended
            .map(|r| r.unwrap_or_else(|_| Err(Failure::failed("a thread of the benchmark panicked"))))
            .collect()
    });
    percentile(&medians.into_iter().collect::<Result<Vec<f64>, _>>()?, 0.5)
}

fn allocations_per_hit(engine: &Engine, workloads: &[Workload]) -> Result<f64, Failure> {
    let (mut hits, mut counted) = (0u64, 0u64);
    for i in 0..COUNTED {
        let before = allocations();
        let decision = engine.decide(&workloads[i % workloads.len()])?;
        if !decision.wants_timing() {
            hits += 1;
            counted += allocations() - before;
        }
    }
    if hits == 0 { Err(Failure::failed("no decision was a hit")) } else { Ok(counted as f64 / hits as f64) }
}

/// A workload with the number of its legal candidates.
type Counted = (Workload, usize);

/// Some workloads with many candidates.
fn busy(engine: &Engine) -> Result<Vec<Counted>, Failure> {
    let texts = [
        "matmul f32 64x64 64x64",
        "matmul f32 500x500 500x500",
        "matmul f32 1000x1000 1000x1",
        "add f32 4000000 4000000",
        "matmul f32 1000x1 1x1000",
        "matmul f64 300x300 300x300",
        "matmul f32 512x512 512x512 numerics=relaxed",
        "add f32 100000 100000",
        "sum f32 1000x1000 axis=0",
        "transpose f32 1000x1000",
    ];
    let count = |t: &&str| {
        let w: Workload = t.parse().ok()?;
        let n = engine.estimates(&w).len();
        (n > 0).then_some((w, n))
    };
    let mut counted: Vec<Counted> = texts.iter().filter_map(count).collect();
    counted.sort_by_key(|(_, n)| *n);
    if counted.is_empty() { Err(Failure::failed("no workload has a candidate")) } else { Ok(counted) }
}

/// The one of them that has the fewest from twenty on, else the most.
fn about_twenty(engine: &Engine) -> Result<Counted, Failure> {
    let all = busy(engine)?;
    let at = all.iter().position(|(_, n)| *n >= 20).unwrap_or(all.len() - 1);
    Ok(all[at].clone())
}

/// The one of them that has the most.
fn most_candidates(engine: &Engine) -> Result<Counted, Failure> {
    let all = busy(engine)?;
    Ok(all[all.len() - 1].clone())
}

fn miss_times(engine: &Engine, w: &Workload, whole: &dyn Fn()) -> Result<Vec<f64>, Failure> {
    let mut times = Vec::with_capacity(MISSES);
    for _ in 0..MISSES {
        engine.forget_incumbents();
        whole();
        let started = Instant::now();
        let decision = black_box(engine.decide(black_box(w)));
        times.push(started.elapsed().as_nanos() as f64);
        decision?;
    }
    Ok(times)
}
