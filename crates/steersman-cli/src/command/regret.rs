//! `steer regret`: how close to the best the choices for a file of workloads come.

use crate::company::Watch;
use crate::exit::{Failure, Outcome};
use crate::paint::Ink;
use crate::progress::Bar;
use crate::screen::{Screen, note};
use crate::table::{
    Column::{Left, Right},
    Table,
};
use crate::{interrupt, open};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};
use steersman::{RegretReport, Runtime};
use steersman_core::units::count;
use steersman_core::workload::parse_file;
use steersman_core::{NumericClass, Seconds, Workload};

pub fn run(screen: &Screen, file: &Path, numerics: Option<NumericClass>) -> Outcome {
    let text = open::text(file)?;
    let runtime = open::runtime()?;
    let workloads = parse(file, &text, numerics, &runtime)?;
    open::mention_calibration(&runtime);
    interrupt::listen();
    let watch = Watch::start(&runtime);
    let started = Instant::now();
    let mut bar = Bar::new();
    let report = runtime.regret(&workloads, &mut |i, n| {
        let done = i as f64 / n.max(1) as f64;
        let used = started.elapsed().as_secs_f64();
        let left = (i > 0).then(|| Duration::from_secs_f64(used * (1.0 - done) / done));
        bar.show(done, left, &workloads.get(i).map_or(String::new(), |w| open::text_of(&runtime, w)));
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    bar.clear();
    watch.end();
    for (workload, why) in &report.skipped {
        note("warning", &format!("'{workload}' was not judged: {why}"));
    }
    if screen.json {
        screen.data(&report)?;
    } else {
        show(screen, &report)?;
    }
    if interrupt::asked() {
        note(
            "note",
            &format!("interrupted: {} of {} workloads were judged", report.workloads, workloads.len()),
        );
        return Err(Failure::Interrupted);
    }
    if report.workloads == 0 { Err(Failure::failed("not one workload could be judged")) } else { Ok(()) }
}

fn parse(
    file: &Path,
    text: &str,
    numerics: Option<NumericClass>,
    runtime: &Runtime,
) -> Result<Vec<Workload>, Failure> {
    let all = parse_file(text, &runtime.engine().places())
        .map_err(|e| Failure::input(format!("{}: {e}", file.display())))?;
    if all.is_empty() {
        let file = file.display();
        return Err(Failure::input(format!(
            "{file} holds no workloads; write one a line, like 'add f32 1000 1000'"
        )));
    }
    let own: Vec<&str> =
        text.lines().map(|l| l.split('#').next().unwrap_or("")).filter(|l| !l.trim().is_empty()).collect();
    let pairs = all.into_iter().zip(own);
    Ok(pairs.map(|(w, line)| open::with_numerics(w, line, numerics, runtime.knobs())).collect())
}

fn show(screen: &Screen, report: &RegretReport) -> Outcome {
    if report.rows.is_empty() {
        return screen.line("nothing was judged, so that there is no regret to show");
    }
    let mut table = Table::new(&[
        Left("workload"),
        Left("chose"),
        Right("time"),
        Right("predicted"),
        Left("best"),
        Right("time"),
        Right("regret"),
        Right("of"),
    ]);
    for r in &report.rows {
        table.inked(
            ink(r.regret),
            [
                r.workload.clone(),
                r.chosen.clone(),
                Seconds(r.chosen_s).to_string(),
                Seconds(r.predicted_s).to_string(),
                r.best.clone(),
                Seconds(r.best_s).to_string(),
                percent(r.regret),
                r.candidates.to_string(),
            ],
        );
    }
    screen.print(&table.show(&screen.paint))?;
    screen.line(&format!(
        "\n{}: regret mean {}, median {}, p99 {}, worst {}; best choice or within 2% of it in {}",
        count(report.workloads, "workload"),
        share(report.mean_regret, 1),
        share(report.p50_regret, 1),
        share(report.p99_regret, 1),
        share(report.worst_regret, 1),
        share(report.top1_rate, 0),
    ))?;
    screen.line(&format!(
        "predictions: off by {} on average, {} of times inside their 90% interval; confidence {} on average",
        share(report.mape, 1),
        share(report.coverage90, 0),
        share(report.mean_confidence, 0),
    ))?;
    let left_out: Vec<usize> = report.rows.iter().map(|r| r.left_out.len()).filter(|n| *n > 0).collect();
    if !left_out.is_empty() {
        screen.line(&format!(
            "not timed: {} of {}, each expected to take many times longer than the best",
            count(left_out.iter().sum(), "candidate"),
            count(left_out.len(), "workload"),
        ))?;
    }
    match report.rows.iter().filter(|r| r.disturbed).count() {
        0 => Ok(()),
        n => screen.line(&format!(
            "{n} of them could only be timed while the machine was disturbed: repeat when it is quiet"
        )),
    }
}

/// `3.1%` with one decimal; of nothing there is no share.
fn share(share: Option<f64>, decimals: usize) -> String {
    share.map_or("unknown".to_string(), |s| format!("{:.decimals$}%", s * 100.0))
}

/// `3.1%`.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Green within the tie band, yellow up to the bound a p99 must keep, red beyond.
pub fn ink(regret: f64) -> Ink {
    match regret {
        r if r <= 0.02 => Ink::Green,
        r if r <= 0.2 => Ink::Yellow,
        _ => Ink::Red,
    }
}
