//! `steer bench start`: from nothing to a runtime that is ready to decide.

use super::percentile;
use crate::exit::Outcome;
use crate::open;
use crate::screen::Screen;
use serde::Serialize;
use std::time::Instant;
use steersman_core::Seconds;

const STARTS: usize = 30;

#[derive(Debug, Serialize)]
struct Report {
    /// Until it decides and runs, the first time in this process: its memory and its code are touched for the first time.
    first_start_s: f64,
    /// The same, further times.
    start_s_p50: f64,
    start_s_p99: f64,
    /// Until devices whose drivers start beside that are there as well.
    devices_s_p50: f64,
    /// Whether there was wisdom of this machine to load.
    calibrated: bool,
}

pub fn run(screen: &Screen) -> Outcome {
    let started = Instant::now();
    let first = open::starting_runtime()?;
    let first_start_s = started.elapsed().as_secs_f64();
    first.wait_for_devices();
    // Once aloud, so that notices about the wisdom file are heard once.
    open::tell_notices(&first, 0);
    let calibrated = first.calibrated();
    drop(first);
    let (mut ready, mut complete) = (Vec::with_capacity(STARTS), Vec::with_capacity(STARTS));
    for _ in 0..STARTS {
        let started = Instant::now();
        let runtime = open::starting_runtime()?;
        ready.push(started.elapsed().as_secs_f64());
        runtime.wait_for_devices();
        complete.push(started.elapsed().as_secs_f64());
        drop(runtime);
    }
    let report = Report {
        first_start_s,
        start_s_p50: percentile(&ready, 0.5)?,
        start_s_p99: percentile(&ready, 0.99)?,
        devices_s_p50: percentile(&complete, 0.5)?,
        calibrated,
    };
    if screen.json {
        return screen.data(&report);
    }
    let wisdom = if calibrated { "with this machine's wisdom" } else { "with nothing known" };
    let [first, p50, p99, all] =
        [report.first_start_s, report.start_s_p50, report.start_s_p99, report.devices_s_p50].map(Seconds);
    screen.line(&format!(
        "ready in {p50} (p99 {p99}), the first time in a process {first}, {wisdom}; with all devices in {all}"
    ))
}
