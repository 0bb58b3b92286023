//! The workloads of the tour, decided and then timed with every candidate.

use crate::exit::Failure;
use crate::open;
use crate::screen::note;
use serde::Serialize;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use steersman::Runtime;
use steersman_core::measure::{Contest, Series};
use steersman_core::{OpClass, Variant, Workload};

const WORKLOADS: [&str; 15] = [
    "matmul f32 8x8 8x8",
    "matmul f32 64x64 64x64",
    "matmul f32 333x333 333x333",
    "matmul f32 1000x1000 1000x1000",
    "matmul f32 2000x16 16x2000",
    "matmul f32 2048x2048 2048x1",
    "add f32 100 100",
    "add f32 100000 100000",
    "add f32 10000000 10000000",
    "exp f32 1000",
    "exp f32 1000000",
    "sum f32 1000x1000 axis=0",
    "sum f32 4000000",
    "transpose f32 64x64",
    "transpose f32 2000x2000",
];

/// Times a workload is timed again when other work held the threads it was to run on.
const TRIES: usize = 4;

/// One workload and what came of it.
#[derive(Debug, Serialize)]
pub struct Stop {
    pub workload: String,
    pub chosen: String,
    pub chosen_s: f64,
    /// The quickest candidate: what one would fix for this workload, knowing all.
    pub best: String,
    pub best_s: f64,
    /// The slowest that is no folly: a kernel that is the quickest for another workload of its class.
    pub worst: String,
    pub worst_s: f64,
    pub regret: f64,
    /// Candidates that were timed; those thought to be over 20 times slower are not, if they take long.
    pub timed: usize,
}

/// Told how far the tour is; says whether to go on.
pub type Tell<'a> = &'a mut dyn FnMut(f64, Option<Duration>, &str) -> bool;

/// Decides and times every workload, until told to stop.
pub fn visit(runtime: &Runtime, tell: Tell<'_>) -> Result<Vec<Stop>, Failure> {
    let started = Instant::now();
    let mut timed = Vec::new();
    for (i, text) in WORKLOADS.iter().enumerate() {
        let done = i as f64 / WORKLOADS.len() as f64;
        let left = (i > 0).then(|| started.elapsed().mul_f64((1.0 - done) / done));
        if !tell(done, left, text) {
            break;
        }
        let w: Workload = text.parse().map_err(Failure::failed)?;
        let chosen = match runtime.engine().judge(&w) {
            Ok(decision) => decision.variant(),
            // Knobs may have switched off all that could run it; the rest of the tour is still worth having.
            Err(why) => {
                note("warning", &why.to_string());
                continue;
            }
        };
        let series = time(runtime, &w, chosen)?;
        timed.push((w, chosen, series));
    }
    let winners: HashSet<(OpClass, u16)> =
        timed.iter().filter_map(|(w, _, s)| Some((w.class(), quickest(s)?.variant.kernel))).collect();
    let judged = timed.iter().filter_map(|(w, chosen, series)| {
        let stop = stop(runtime, w, *chosen, series, &winners);
        if stop.is_none() {
            note("warning", &format!("'{w}' was not judged: what was chosen was disturbed in every sample"));
        }
        stop
    });
    Ok(judged.collect())
}

/// Times every candidate that may be of interest in turns; again if the chosen one was disturbed throughout.
fn time(runtime: &Runtime, w: &Workload, chosen: Variant) -> Result<Vec<Series>, Failure> {
    let all = runtime.engine().estimates(w);
    let best = all.iter().map(|c| c.estimate.mean.0).fold(f64::INFINITY, f64::min);
    // A scalar product of large matrices takes seconds, and nobody doubts how it would end.
    let hopeless = |s: f64| s > 20.0 * best && s > 2e-3;
    let variants: Vec<Variant> = all
        .iter()
        .filter(|c| c.variant == chosen || !hopeless(c.estimate.mean.0))
        .map(|c| c.variant)
        .collect();
    let how = Contest {
        rounds: 11,
        least: 4,
        limit: Duration::from_millis(350),
        give_up: 2.0,
        ..Contest::default()
    };
    let mut series = Vec::new();
    for _ in 0..TRIES {
        series = runtime.contest(w, &variants, &how)?;
        if series.iter().any(|s| s.variant == chosen && s.half(1).is_some()) {
            break;
        }
    }
    Ok(series)
}

fn quickest(series: &[Series]) -> Option<&Series> {
    let by_even = |s: &&Series| s.half(1).and(s.half(0));
    series
        .iter()
        .filter(|s| by_even(s).is_some())
        .min_by(|a, b| by_even(a).unwrap_or(f64::INFINITY).total_cmp(&by_even(b).unwrap_or(f64::INFINITY)))
}

/// The best is picked on the even samples; times are those of the odd ones, so that luck is not speed.
fn stop(
    runtime: &Runtime,
    w: &Workload,
    chosen: Variant,
    series: &[Series],
    winners: &HashSet<(OpClass, u16)>,
) -> Option<Stop> {
    let quickest = quickest(series)?;
    let mine = series.iter().find(|s| s.variant == chosen)?;
    // Ahead on the even samples but not on the odd ones: it was luck, and the chosen one is the best.
    let best = if mine.half(1) <= quickest.half(1) { mine } else { quickest };
    let sensible = series.iter().filter(|s| winners.contains(&(w.class(), s.variant.kernel))).chain([best]);
    let worst = sensible.max_by(|a, b| a.half(1).unwrap_or(0.0).total_cmp(&b.half(1).unwrap_or(0.0)))?;
    let (chosen_s, best_s, worst_s) = (mine.half(1)?, best.half(1)?, worst.half(1)?);
    Some(Stop {
        workload: w.to_string(),
        chosen: open::name(runtime, chosen),
        chosen_s,
        best: open::name(runtime, best.variant),
        best_s,
        worst: open::name(runtime, worst.variant),
        worst_s,
        regret: (chosen_s / best_s - 1.0).max(0.0),
        timed: series.len(),
    })
}
