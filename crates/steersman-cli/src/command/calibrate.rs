//! `steer calibrate`: measure this machine and remember it.

use crate::exit::{Failure, Outcome};
use crate::progress::Bar;
use crate::screen::{Screen, note};
use crate::{interrupt, open};
use std::ops::ControlFlow;
use std::time::Duration;
use steersman::{Calibrate, CalibrationReport, Runtime};

pub fn run(screen: &Screen, quick: bool, refresh: bool, budget: Option<Duration>) -> Outcome {
    let runtime = open::runtime()?;
    let report = calibrate(&runtime, &Calibrate { quick, refresh, budget })?;
    let interrupted = report.interrupted;
    if screen.json {
        screen.data(&report)?;
    } else {
        screen.line(&summary(&report))?;
    }
    if interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Calibrates in front of the user. Ctrl-C ends it early; what was learned is saved either way.
pub fn calibrate(runtime: &Runtime, how: &Calibrate) -> Result<CalibrationReport, Failure> {
    interrupt::listen();
    let mut bar = Bar::new();
    let report = runtime.calibrate(how, &mut |step| {
        bar.show(step.done, Some(step.left), &step.phase);
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.clear();
    runtime.save().map_err(Failure::failed)?;
    for notice in runtime.notices() {
        note("warning", &notice.to_string());
    }
    for (kernel, why) in &report.quarantined {
        note("warning", &format!("{kernel} is put into quarantine: {why}"));
    }
    Ok(report)
}
