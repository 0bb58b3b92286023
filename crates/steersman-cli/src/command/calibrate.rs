//! `steer calibrate`: measure this machine and remember it.

use crate::company::Watch;
use crate::exit::{Failure, Outcome};
use crate::progress::Bar;
use crate::screen::{Screen, note};
use crate::{interrupt, keep, open};
use std::ops::ControlFlow;
use std::time::Duration;
use steersman::{Calibrate, CalibrationReport, Runtime};
use steersman_core::Seconds;
use steersman_core::units::count;

pub fn run(screen: &Screen, quick: bool, refresh: bool, budget: Option<Duration>) -> Outcome {
    let runtime = open::runtime()?;
    if runtime.knobs().frozen {
        return Err(Failure::input(
            "the knob frozen forbids learning; unset STEERSMAN_FROZEN (`steer knobs` says who set it) to calibrate",
        ));
    }
    let report = calibrate(&runtime, &Calibrate { quick, refresh, budget })?;
    let kept = keep::kept(&runtime, "what was learned is");
    if screen.json {
        let mut data = serde_json::to_value(&report).map_err(Failure::failed)?;
        data["kept"] = kept.is_ok().into();
        screen.data(&data)?;
    } else {
        screen.line(&summary(&runtime, &report, kept.is_ok()))?;
    }
    kept?;
    match &report {
        r if r.interrupted => Err(Failure::Interrupted),
        r if r.samples == 0 => Err(Failure::failed(nothing(&runtime, r))),
        _ => Ok(()),
    }
}

/// Why nothing was measured.
fn nothing(runtime: &Runtime, r: &CalibrationReport) -> String {
    let off = |name: &str| !runtime.knobs().allows(name);
    let why = match r.skipped.first() {
        _ if runtime.engine().registry().iter().all(|(_, k)| off(k.name())) => {
            let patterns = runtime.knobs().disable.join(",");
            format!("disable={patterns} leaves no kernel to measure")
        }
        Some((workload, why)) => format!("every workload was passed over, such as '{workload}': {why}"),
        None => {
            "finding out what the machine can do took all the time; that is known now, so calibrate again, \
                 or with a larger --budget"
                .to_string()
        }
    };
    format!("nothing was measured: {why}")
}

/// From this share of the time on, a disturbed calibration is worth a word.
const DISTURBED: f64 = 0.3;

/// Calibrates in front of the user. Ctrl-C ends it early; what was learned is saved either way.
pub fn calibrate(runtime: &Runtime, how: &Calibrate) -> Result<CalibrationReport, Failure> {
    interrupt::listen();
    let watch = Watch::start(runtime);
    let heard = runtime.notices().len();
    let mut bar = Bar::new();
    let report = runtime.calibrate(how, &mut |step| {
        bar.show(step.done, Some(step.left), &step.phase);
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.clear();
    watch.end();
    open::tell_notices(runtime, heard);
    let report = report?;
    for (kernel, why) in &report.quarantined {
        note("warning", &format!("{kernel} is put into quarantine: {why}"));
    }
    if report.disturbed >= DISTURBED {
        let share = report.disturbed * 100.0;
        let text = "of the time the machine was disturbed, so that little was learned of kernels on several threads; \
                    another `steer calibrate` at a quieter time adds to what is known";
        note("note", &format!("{share:.0}% {text}"));
    }
    Ok(report)
}

fn summary(runtime: &Runtime, r: &CalibrationReport, kept: bool) -> String {
    let how = if r.interrupted { "interrupted after" } else { "calibrated in" };
    let kept = match runtime.wisdom().path() {
        _ if !kept => "not kept".to_string(),
        Some(path) => format!("kept in {}", path.display()),
        None => "kept in memory only, until this command ends".to_string(),
    };
    let skipped = match r.skipped.len() {
        0 => String::new(),
        n => format!(", {} passed over", count(n, "workload")),
    };
    format!(
        "{how} {}: {} of {}{skipped}, {kept}",
        Seconds(r.seconds),
        count(r.samples, "sample"),
        count(r.workloads, "workload")
    )
}
