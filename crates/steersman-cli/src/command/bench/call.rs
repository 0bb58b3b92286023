//! `steer bench call`: a whole call through the runtime, from the caller's data to the result in its memory.

use super::percentile;
use crate::count::allocations;
use crate::exit::{Failure, Outcome};
use crate::open;
use crate::screen::Screen;
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;
use steersman::{Runtime, View, ViewMut};
use steersman_core::{BinaryOp, Op, Seconds};

/// So few that the addition itself takes a few nanoseconds and the rest is overhead.
const ELEMENTS: usize = 16;
const BATCH: usize = 64;
const BATCHES: usize = 20_000;

#[derive(Debug, Serialize)]
struct Report {
    workload: String,
    call_ns_p50: f64,
    call_ns_p99: f64,
    /// Calls that are due for timing are logged, which allocates; the others allocate nothing.
    allocations_per_call: f64,
}

pub fn run(screen: &Screen) -> Outcome {
    let runtime = open::runtime()?;
    let report = measure(&runtime)?;
    if screen.json {
        return screen.data(&report);
    }
    screen.line(&format!(
        "{} through the runtime: {} a call (p99 {}), {:.4} allocations a call",
        report.workload,
        Seconds::nanos(report.call_ns_p50),
        Seconds::nanos(report.call_ns_p99),
        report.allocations_per_call
    ))
}

fn measure(runtime: &Runtime) -> Result<Report, Failure> {
    let (a, b, mut c) = ([1.0f32; ELEMENTS], [2.0f32; ELEMENTS], [0.0f32; ELEMENTS]);
    let mut call = || -> Result<(), Failure> {
        let inputs = [View::new(black_box(&a)), View::new(black_box(&b))];
        runtime.eval_into(Op::Binary(BinaryOp::Add), &inputs, ViewMut::new(black_box(&mut c)))?;
        Ok(())
    };
    for _ in 0..1000 {
        call()?;
    }
    let before = allocations();
    let mut times = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let started = Instant::now();
        for _ in 0..BATCH {
            call()?;
        }
        times.push(started.elapsed().as_nanos() as f64 / BATCH as f64);
    }
    let allocated = allocations() - before;
    if c != [3.0; ELEMENTS] {
        return Err(Failure::failed(format!("1 + 2 came out as {c:?}")));
    }
    Ok(Report {
        workload: format!("add f32 {ELEMENTS} {ELEMENTS}"),
        call_ns_p50: percentile(&times, 0.5)?,
        call_ns_p99: percentile(&times, 0.99)?,
        // Less the list of times itself.
        allocations_per_call: allocated.saturating_sub(1) as f64 / (BATCHES * BATCH) as f64,
    })
}
