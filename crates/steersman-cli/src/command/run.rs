//! `steer run`: run a workload and time it, on given operands if there are any.

mod files;

use crate::args::RunArgs;
use crate::company::Watch;
use crate::exit::{Failure, Outcome};
use crate::open;
use crate::screen::{Screen, note};
use serde_json::json;
use std::time::Duration;
use steersman::Runtime;
use steersman_core::log::Entry;
use steersman_core::measure::{Contest, Series};
use steersman_core::units::{count, si};
use steersman_core::{
    Candidate, Decision, EngineError, NumericClass, ReasonCode, Seconds, Variant, Workload,
};

/// Times a run is tried again when its samples were disturbed.
const TRIES: usize = 20;

pub fn run(screen: &Screen, args: &RunArgs, numerics: Option<NumericClass>) -> Outcome {
    let runtime = open::runtime()?;
    let w = open::workload(&args.workload, numerics, &runtime)?;
    let (w, operands) = files::operands(w, args)?;
    let forced = forced(&runtime, &w, args)?;
    let watch = Watch::start(&runtime);
    let mut decision = match forced {
        Some(v) => runtime.engine().judge_as(&w, v)?,
        // What would be compiled first has so many calls to pay for it.
        None => runtime.engine().judge_for(&w, args.repeat)?,
    };
    if let Some(operands) = &operands {
        decision = files::compute(&runtime, &w, operands, forced, args)?;
    }
    let mut series = time(&runtime, &w, decision.variant(), args.repeat)?;
    watch.end();
    // What a caller would have had too, if there is nothing better; but nothing to learn from.
    let disturbed = series.samples.is_empty() && !series.disturbed.is_empty();
    if disturbed {
        series.samples = std::mem::take(&mut series.disturbed);
        note("warning", "the machine was disturbed in every sample (its cores are shared or far apart now)");
    }
    let median = series.median().ok_or_else(|| no_sample(&runtime, &series))?;
    if !runtime.knobs().frozen {
        if !disturbed {
            learn(&runtime, &w, &decision, forced.is_some(), operands.is_some(), median);
        }
        if operands.is_none() {
            log(&runtime, &w, &decision, forced.is_some(), median);
        }
        let heard = runtime.notices().len();
        runtime.save()?;
        open::tell_notices(&runtime, heard);
    }
    if screen.json {
        let mut data = as_json(&runtime, &w, &decision, forced.is_some(), &series, args);
        data["disturbed"] = disturbed.into();
        return screen.data(&data);
    }
    screen.print(&as_text(&runtime, &w, &decision, &series, median, args))
}

/// The variant that `--kernel` and `--threads` name, if they are given.
fn forced(runtime: &Runtime, w: &Workload, args: &RunArgs) -> Result<Option<Variant>, Failure> {
    if args.kernel.is_none() && args.threads.is_none() {
        return Ok(None);
    }
    let engine = runtime.engine();
    // `cpu/gemm t2`, as the tables print it, names the parameters too.
    let (kernel, params) = match args.kernel.as_deref().map(|k| k.split_once(' ').unwrap_or((k, ""))) {
        Some((kernel, params)) => (Some(kernel), params.trim()),
        None => (None, ""),
    };
    let index = match kernel {
        Some(name) => {
            let unknown = || Failure::input(EngineError::UnknownKernel(name.to_string()));
            Some(engine.registry().find(name).ok_or_else(unknown)?)
        }
        None => None,
    };
    // By name any that is legal; else those that are weighed, since of the others nothing may be known.
    let all = if index.is_some() { engine.runnable(w) } else { engine.estimates(w) };
    let mut of_kernel: Vec<&Candidate> =
        all.iter().filter(|c| index.is_none_or(|i| c.variant.kernel == i)).collect();
    of_kernel.sort_by(|a, b| a.estimate.mean.0.total_cmp(&b.estimate.mean.0));
    let of_kernel: Vec<Variant> = of_kernel.into_iter().map(|c| c.variant).collect();
    if of_kernel.is_empty() {
        let refused = engine.explain(w)?.refused;
        if let Some(i) = index {
            let why = refused.iter().find(|(k, _)| *k == i).map(|(_, why)| why.to_string());
            let why = why.unwrap_or_else(|| format!("it is not about {}", w.op().name()));
            return Err(Failure::input(format!("{} cannot run '{w}': {why}", engine.name(i))));
        }
    }
    let fits = |v: &&Variant| {
        args.threads.is_none_or(|t| v.params.threads == t)
            && (params.is_empty() || v.params.to_string() == params)
    };
    match of_kernel.iter().find(fits) {
        Some(v) => Ok(Some(*v)),
        None => {
            let offered: Vec<String> = of_kernel.iter().map(|v| open::name(runtime, *v)).collect();
            Err(Failure::input(format!("'{w}' is not offered that way; there is {}", offered.join(", "))))
        }
    }
}

/// Times one variant alone. Samples taken while other work held its threads do not count, so on a busy
/// machine it takes a few tries.
fn time(runtime: &Runtime, w: &Workload, v: Variant, repeat: u32) -> Result<Series, Failure> {
    let rounds = repeat as usize;
    let batch = Duration::from_micros(100);
    let how = Contest { rounds, least: rounds, batch, give_up: f64::INFINITY, ..Contest::default() };
    let mut all: Option<Series> = None;
    for _ in 0..TRIES {
        let missing = rounds - all.as_ref().map_or(0, |s| s.samples.len());
        let how = Contest { rounds: missing, least: missing, ..how.clone() };
        for s in runtime.contest(w, &[v], &how)? {
            match &mut all {
                Some(sum) => {
                    sum.samples.extend(s.samples);
                    sum.disturbed.extend(s.disturbed);
                    sum.failed = s.failed;
                }
                None => all = Some(s),
            }
        }
        if all.as_ref().is_some_and(|s| s.samples.len() >= rounds || s.failed.is_some()) {
            break;
        }
    }
    all.ok_or_else(|| Failure::failed("nothing was timed"))
}

fn no_sample(runtime: &Runtime, s: &Series) -> Failure {
    let why = s.failed.as_deref().unwrap_or("it gave no sample");
    Failure::failed(format!("{} failed: {why}", open::name(runtime, s.variant)))
}

/// The engine learns from the median.
fn learn(runtime: &Runtime, w: &Workload, d: &Decision, forced: bool, logged: bool, median: f64) {
    let engine = runtime.engine();
    // What was timed includes what was moved, which is no kernel's time.
    let moved = engine.moves(w, d.variant().kernel).is_ok_and(|m| !m.is_empty());
    if forced && !moved {
        engine.learn(d.variant(), w, median, 1.0);
    } else if !logged && !moved {
        engine.observe(d, Seconds(median));
    }
}

/// The log says what ran.
fn log(runtime: &Runtime, w: &Workload, d: &Decision, forced: bool, median: f64) {
    let (low, high) = d.interval();
    runtime.log().push(Entry {
        workload: open::text_of(runtime, w),
        kernel: runtime.engine().name(d.variant().kernel),
        params: d.params(),
        reason: if forced { ReasonCode::Forced } else { d.reason() },
        predicted_s: d.predicted().0,
        low_s: low.0,
        high_s: high.0,
        measured_s: Some(median),
        confidence: d.confidence(),
        note: Some("timed by `steer run`".to_string()),
        ..Entry::default()
    });
}

fn as_json(
    runtime: &Runtime,
    w: &Workload,
    d: &Decision,
    forced: bool,
    s: &Series,
    args: &RunArgs,
) -> serde_json::Value {
    let median = s.median().unwrap_or(f64::NAN);
    json!({
        "workload": open::text_of(runtime, w),
        "id": open::name(runtime, d.variant()),
        "kernel": runtime.engine().name(d.variant().kernel),
        "threads": d.params().threads,
        "variant": d.params().variant,
        "forced": forced,
        "reason": if forced { ReasonCode::Forced } else { d.reason() },
        "predicted_s": d.predicted(), "low_s": d.interval().0, "high_s": d.interval().1,
        "median_s": median,
        "best_s": s.best(),
        "deviation": s.deviation(),
        "samples_s": s.samples,
        "runs_per_sample": s.batch,
        "flops_per_s": w.flops() / median,
        "bytes_per_s": w.bytes() / median,
        "output": args.output,
    })
}

fn as_text(runtime: &Runtime, w: &Workload, d: &Decision, s: &Series, median: f64, args: &RunArgs) -> String {
    let (low, high) = d.interval();
    let best = s.best().map_or("unknown".into(), |b| Seconds(b).to_string());
    let mut out = format!(
        "{}\n  {} took {} (median of {} of {}; best {best})\n  predicted {} ({low} to {high})\n",
        open::text_of(runtime, w),
        open::name(runtime, d.variant()),
        Seconds(median),
        count(s.samples.len(), "sample"),
        count(s.batch as usize, "run"),
        d.predicted(),
    );
    let flops =
        if w.flops() > 0.0 { format!("{}, ", si(w.flops() / median, "flop/s")) } else { String::new() };
    out += &format!("  {flops}{}\n", si(w.bytes() / median, "B/s"));
    if let Some(path) = &args.output {
        out += &format!("  result written to {}\n", path.display());
    }
    if d.reason() == ReasonCode::FallbackAfterFailure {
        note("warning", "a better kernel failed and was put into quarantine; `steer log` says why");
    }
    out
}
