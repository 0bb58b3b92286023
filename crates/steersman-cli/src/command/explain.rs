//! `steer explain`: every candidate, what each would cost and why one is chosen.

use crate::exit::Outcome;
use crate::open;
use crate::paint::Ink;
use crate::screen::Screen;
use crate::table::{
    Column::{Left, Right},
    Table,
};
use serde_json::json;
use steersman::Runtime;
use steersman_core::candidate::{Move, Moved};
use steersman_core::cost::{Estimate, Source};
use steersman_core::units::{count, si};
use steersman_core::{Bytes, Candidate, Crossover, Explanation, NumericClass, Seconds, Workload};

pub fn run(screen: &Screen, words: &[String], numerics: Option<NumericClass>) -> Outcome {
    let runtime = open::runtime()?;
    let w = open::workload(words, numerics, &runtime)?;
    let explanation = runtime.engine().explain(&w)?;
    open::mention_calibration(&runtime);
    open::mention_force(&runtime, &explanation);
    open::mention_memory(&runtime, &w);
    if screen.json {
        screen.data(&as_json(&runtime, &w, &explanation))
    } else {
        screen.print(&as_text(screen, &runtime, &w, &explanation))
    }
}

/// Calls until a run is timed again: each thread asks for a measurement after so much expected run time.
fn next_check(runtime: &Runtime, e: &Explanation) -> u64 {
    let every = runtime.engine().settings().observe_every.0;
    (every / e.decision.interval().0.0.max(1e-12)).ceil().clamp(1.0, 1e12) as u64
}

fn as_json(runtime: &Runtime, w: &Workload, e: &Explanation) -> serde_json::Value {
    let name = |kernel: u16| runtime.engine().name(kernel);
    let d = &e.decision;
    let candidates: Vec<_> = e
        .candidates
        .iter()
        .map(|c| {
            let x = &c.estimate;
            json!({
                "id": open::name(runtime, c.variant),
                "kernel": name(c.variant.kernel),
                "threads": c.variant.params.threads,
                "variant": c.variant.params.variant,
                "chosen": c.variant == d.variant(),
                "mean_s": x.mean, "low_s": x.low, "high_s": x.high,
                "launch_s": x.launch, "move_s": x.moves, "work_s": x.work, "setup_s": x.setup,
                "move_bytes": c.moved.0, "moves": moves(runtime, w, c),
                "spread": x.spread,
                "scratch_bytes": x.scratch,
                "evidence": x.evidence,
            })
        })
        .collect();
    let refused: Vec<_> =
        e.refused.iter().map(|(k, why)| json!({ "kernel": name(*k), "reason": why.to_string() })).collect();
    let crossovers: Vec<_> = e
        .crossovers
        .iter()
        .map(|c| {
            json!({
                "dimension": c.dimension, "at": c.at, "above": c.above,
                "winner": open::name(runtime, c.winner),
            })
        })
        .collect();
    json!({
        "workload": open::text_of(runtime, w),
        "flops": w.flops(), "bytes": w.bytes(), "intensity": w.intensity(),
        "numerics": w.numerics().to_string(),
        "chosen": open::name(runtime, d.variant()),
        "chosen_once": open::name(runtime, e.once.variant()),
        "kernel": name(d.variant().kernel),
        "threads": d.params().threads,
        "variant": d.params().variant,
        "predicted_s": d.predicted(), "low_s": d.interval().0, "high_s": d.interval().1,
        "confidence": d.confidence(),
        "reason": d.reason(),
        "policy": e.policy,
        "calibrated": runtime.calibrated(),
        "candidates": candidates,
        "refused": refused,
        "crossovers": crossovers,
        "next_check_calls": next_check(runtime, e),
    })
}

/// What has to be carried for a candidate, one by one.
fn moves(runtime: &Runtime, w: &Workload, c: &Candidate) -> Vec<serde_json::Value> {
    let places = runtime.engine().places();
    let all = runtime.engine().moves(w, c.variant.kernel).unwrap_or_default();
    let one = |m: &Move| {
        let operand = match m.operand {
            Moved::Input(i) => format!("in{i}"),
            Moved::Output(i) => format!("out{i}"),
        };
        json!({
            "operand": operand, "bytes": m.bytes.0, "seconds": m.seconds,
            "from": places.name(m.from), "to": places.name(m.to), "transfers_seen": m.samples,
            "lent": m.lent,
        })
    };
    all.iter().map(one).collect()
}

fn as_text(screen: &Screen, runtime: &Runtime, w: &Workload, e: &Explanation) -> String {
    let paint = &screen.paint;
    let mut out = format!(
        "{}      {}   {}   {:.2} flop/B\n\n",
        paint.ink(&open::text_of(runtime, w), Ink::Bold),
        si(w.flops(), "flop"),
        Bytes(w.bytes() as u64),
        w.intensity()
    );
    out += &candidates(screen, runtime, w, e);
    if !e.refused.is_empty() {
        out += "\n";
        let mut table = Table::new(&[Left(""), Left("")]);
        for (kernel, why) in &e.refused {
            table
                .inked(Ink::Dim, [format!("  refused: {}", runtime.engine().name(*kernel)), why.to_string()]);
        }
        out += &table.show(paint);
    }
    let d = &e.decision;
    out += &format!("\nchosen with {:.0}% confidence", d.confidence() * 100.0);
    out += &format!(" ({} by the {} policy)", open::words(d.reason()), e.policy);
    if e.once.variant() != d.variant() {
        let other = open::name(runtime, e.once.variant());
        out += &format!("; a single call now would take {other} rather than wait for the compiler");
    }
    for c in &e.crossovers {
        out += &format!("; {}", counterfactual(runtime, c));
    }
    if e.crossovers.is_empty() {
        out += "; no other would win at any size";
    }
    if !runtime.knobs().frozen {
        let calls = match next_check(runtime, e) {
            1 => "on every call".to_string(),
            n => format!("after {n} calls"),
        };
        out += &format!("; timed again {calls}");
    }
    out + "\n"
}

fn candidates(screen: &Screen, runtime: &Runtime, w: &Workload, e: &Explanation) -> String {
    let moves = e.candidates.iter().any(|c| c.is_moved());
    let variants = e.candidates.iter().any(|c| c.variant.params.variant != 0);
    let mut columns = vec![Left(""), Left("kernel"), Right("threads")];
    columns.extend(variants.then_some(Right("variant")));
    columns.extend([Right("estimate"), Left(""), Right("launch")]);
    columns.extend(moves.then_some(Right("move")));
    columns.extend([Right("work"), Left("evidence")]);
    let mut table = Table::new(&columns);
    for c in &e.candidates {
        let chosen = c.variant == e.decision.variant();
        let x = &c.estimate;
        let mut cells =
            vec![if chosen { "▸" } else { "" }.to_string(), runtime.engine().name(c.variant.kernel)];
        cells.push(c.variant.params.threads.to_string());
        cells.extend(variants.then(|| c.variant.params.variant.to_string()));
        cells.extend([x.mean.to_string(), margin(x), x.launch.to_string()]);
        cells.extend(moves.then(|| match (c.moved.0, all_lent(runtime, w, c)) {
            (0, _) => String::new(),
            (_, false) => format!("{} for {}", x.moves, c.moved),
            (_, true) => format!("{} to lend {}", x.moves, c.moved),
        }));
        cells.extend([x.work.to_string(), evidence(c)]);
        table.inked(if chosen { Ink::Green } else { Ink::Plain }, cells);
    }
    table.show(&screen.paint)
}

/// Whether nothing is copied for a candidate, since it works on all that lives elsewhere where that is.
fn all_lent(runtime: &Runtime, w: &Workload, c: &Candidate) -> bool {
    runtime.engine().moves(w, c.variant.kernel).is_ok_and(|all| all.iter().all(|m| m.lent))
}

/// `± 4%`; a skewed wide interval as its ends.
fn margin(x: &Estimate) -> String {
    let half = (x.high.0 - x.low.0) / 2.0 / x.mean.0.max(1e-12);
    if half < 1.0 {
        format!("± {:.0}%", half * 100.0)
    } else {
        format!("{} to {}", Seconds(x.low.0), x.high)
    }
}

fn evidence(c: &Candidate) -> String {
    let e = &c.estimate.evidence;
    let text = match e.source {
        Source::Prior => "none: from the machine's rates".to_string(),
        Source::Pool => "other ops of this kernel".to_string(),
        Source::Model => format!("{} near", count(e.samples as usize, "sample")),
        Source::History => {
            let (runs, near) = (count(e.exact as usize, "run"), count(e.samples as usize, "sample"));
            format!("{runs} of exactly this, {near} near")
        }
    };
    let text = if e.extrapolated { text + ", extrapolated" } else { text };
    let text = match c.estimate.setup {
        s if s.0 > 0.0 => text + &format!("; to be compiled first: {s}"),
        _ => text,
    };
    match e.transfers {
        Some(0) => text + "; the link is supposed",
        Some(n) => text + &format!("; {}", count(n as usize, "transfer")),
        None => text,
    }
}

fn counterfactual(runtime: &Runtime, c: &Crossover) -> String {
    let sign = if c.above { '≥' } else { '≤' };
    format!("{} would win from {} {sign} {}", open::name(runtime, c.winner), c.dimension, c.at)
}
