//! `steer` alone: the tour. What is chosen for a range of workloads, how good that was, where choices change.

mod crossovers;
mod stops;

use super::calibrate::calibrate;
use super::devices::heading;
use super::regret::{ink, percent};
use crate::company::Watch;
use crate::exit::{Failure, Outcome};
use crate::paint::Ink;
use crate::progress::Bar;
use crate::screen::{Screen, note};
use crate::table::{
    Column::{Left, Right},
    Table,
};
use crate::{interrupt, keep, open};
use serde_json::json;
use std::time::Instant;
use steersman::{Calibrate, Runtime};
use steersman_core::Seconds;
use steersman_core::units::count;
use stops::Stop;

pub fn run(screen: &Screen) -> Outcome {
    let started = Instant::now();
    let runtime = open::runtime()?;
    let ready = started.elapsed().as_secs_f64();
    if !screen.json {
        for d in runtime.engine().devices() {
            screen.line(&screen.paint.ink(&heading(&runtime, &d), Ink::Bold))?;
        }
    }
    let learned = learn(&runtime, ready)?;
    if !screen.json {
        screen.line(&screen.paint.ink(&format!("{learned}\n"), Ink::Dim))?;
    }
    interrupt::listen();
    let watch = Watch::start(&runtime);
    let mut bar = Bar::new();
    let stops = stops::visit(&runtime, &mut |done, left, what| {
        bar.show(done, left, what);
        !interrupt::asked()
    })?;
    bar.clear();
    watch.end();
    if interrupt::asked() {
        keep::kept(&runtime, "interrupted; what was learned is")?;
        note("note", "interrupted; what was learned is kept");
        return Err(Failure::Interrupted);
    }
    let ladders = crossovers::all(&runtime);
    if screen.json {
        let devices: Vec<_> = runtime.engine().devices().iter().map(|d| d.identity.clone()).collect();
        return screen.data(&json!({
            "devices": devices,
            "calibrated": runtime.calibrated(),
            "workloads": stops,
            "mean_regret": mean_regret(&stops),
            "crossovers": ladders,
        }));
    }
    show(screen, &stops)?;
    screen.line(&screen.paint.ink("\nwhere the choice changes on this machine", Ink::Bold))?;
    screen.print(&crossovers::show(&ladders, &screen.paint))?;
    screen.line(&screen.paint.ink("\nwhy: steer explain \"matmul f32 1000x1000 1000x1000\"", Ink::Dim))
}

/// Sees to it that this machine is known, and says how.
fn learn(runtime: &Runtime, ready: f64) -> Result<String, Failure> {
    if runtime.calibrated() || runtime.knobs().frozen {
        let path = runtime.wisdom().path().map_or("memory".to_string(), |p| p.display().to_string());
        return Ok(match runtime.calibrated() {
            true => format!("known from {path}, ready in {}", Seconds(ready)),
            false => "frozen, and not calibrated: estimates are guesses".to_string(),
        });
    }
    note("note", "first time on this machine: calibrating for a few seconds (Ctrl-C keeps what is learned)");
    let report = calibrate(runtime, &Calibrate::default())?;
    if report.interrupted {
        return Err(Failure::Interrupted);
    }
    Ok(format!(
        "calibrated in {}: {} of {}",
        Seconds(report.seconds),
        count(report.samples, "sample"),
        count(report.workloads, "workload")
    ))
}

/// Of no stops there is none.
fn mean_regret(stops: &[Stop]) -> Option<f64> {
    (!stops.is_empty()).then(|| stops.iter().map(|s| s.regret).sum::<f64>() / stops.len() as f64)
}

fn show(screen: &Screen, stops: &[Stop]) -> Outcome {
    let mut table = Table::new(&[
        Left("workload"),
        Left("chose"),
        Right("time"),
        Left("best fixed choice"),
        Right("time"),
        Left("worst sensible choice"),
        Right("slower by"),
        Right("regret"),
    ]);
    for s in stops {
        table.inked(
            ink(s.regret),
            [
                s.workload.clone(),
                s.chosen.clone(),
                Seconds(s.chosen_s).to_string(),
                if s.best == s.chosen { "the same".to_string() } else { s.best.clone() },
                Seconds(s.best_s).to_string(),
                s.worst.clone(),
                format!("{:.1}×", s.worst_s / s.best_s),
                percent(s.regret),
            ],
        );
    }
    let Some(mean) = mean_regret(stops) else {
        return screen.line("nothing was judged, so that there is no regret to show");
    };
    screen.print(&table.show(&screen.paint))?;
    let worst = stops.iter().map(|s| s.worst_s / s.best_s).fold(1.0, f64::max);
    screen.line(&format!(
        "\nregret {} on average; a kernel that is best elsewhere would have been up to {worst:.1}× slower",
        percent(mean)
    ))
}
