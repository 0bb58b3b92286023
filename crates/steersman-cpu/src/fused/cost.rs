//! What fused groups count: a call, steps of tiles, elements at each memory level, gathered elements.

use super::program::Program;
use crate::isa::Level;
use crate::map;
use steersman_core::cost::{Machine, Terms, Traffic};
use steersman_core::expr::Dist;
use steersman_core::{DType, Layout, Op, Workload};

/// Seconds of a run before its first tile.
const CALL: f64 = 80e-9;
/// Seconds of a step of a tile beside its elements.
const STEP: f64 = 3e-9;
/// Elements of a tile, for counting them before a run has chosen.
const TILE: f64 = 1024.0;
/// Seconds to bring one element of a strided operand through a buffer.
const GATHERED: f64 = 0.8e-9;

/// Seconds to draw a number where the instruction set has the peak assumed of it, measured on a Zen 4. Counted in
/// operations at peak a normal number was supposed to take 0.38 ns with AVX-512 and took 0.9: the generator's wide
/// multiplications do not go by the peak of additions and multiplications.
fn draw((dist, wide): (Dist, bool), level: Level) -> f64 {
    let nanoseconds = match (level, wide) {
        (Level::Baseline, false) => [1.2, 2.5],
        (Level::Baseline, true) => [2.5, 6.9],
        (Level::Avx2, false) => [0.75, 1.3],
        (Level::Avx2, true) => [1.5, 3.1],
        (Level::Avx512, false) => [0.75, 0.9],
        (Level::Avx512, true) => [1.1, 2.1],
    };
    1e-9 * nanoseconds[usize::from(dist == Dist::Normal)]
}

/// Seconds of all steps for one element whose operands are in the nearest cache.
fn element(program: &Program, machine: &Machine, rates: &str, level: Level, dtype: DType) -> f64 {
    let nominal =
        |flops: f64, d: DType| flops / machine.peak(level.name(), d.size().max(4), level.assumed_peak());
    let each = |&(op, d, times): &(Op, DType, f64)| {
        let flops = match op {
            Op::Reduce { kind, .. } => kind.flops(),
            op => map::flops(op),
        };
        times * machine.rate(rates, op, d).unwrap_or_else(|| nominal(flops, d))
    };
    let assumed = level.assumed_peak();
    let pace = assumed / machine.peak(level.name(), 4, assumed);
    let draws: f64 = program.counts.draws.iter().map(|&d| draw(d, level) * pace).sum();
    program.counts.ops.iter().map(each).sum::<f64>() + draws + nominal(program.counts.other_flops, dtype)
}

/// A run, steps of tiles, elements by memory level (L1, L2, L3, main), gathered elements.
pub fn terms(
    w: &Workload,
    program: &Program,
    threads: usize,
    machine: &Machine,
    (rates, level): (&str, Level),
    stream: bool,
) -> Terms {
    let n = w.dims().iter().product::<usize>() as f64;
    let tiles = (n / TILE / threads as f64).ceil();
    let work = n * element(program, machine, rates, level, w.dtype()) / threads as f64;
    let bytes = w.bytes();
    let traffic = match () {
        _ if stream => Traffic::Stream,
        _ if w.outputs().iter().all(|o| o.elements() < w.dims().iter().product()) => Traffic::Read,
        _ => Traffic::Copy,
    };
    let mut terms =
        Terms::launch(CALL + machine.handoff(threads)).and(tiles * program.instrs.len() as f64 * STEP);
    for (i, weight) in machine.spread(bytes, threads).into_iter().enumerate() {
        let moving = bytes / machine.bandwidth(i, traffic, threads);
        terms = terms.and(weight * work.max(moving));
    }
    let strided = if w.layout() == Layout::Strided { n * GATHERED / threads as f64 } else { 0.0 };
    terms.and(strided)
}

/// Seconds of what follows a product whose block is in cache: its steps, and the other operands from where they are.
pub fn behind_product(
    w: &Workload,
    program: &Program,
    threads: usize,
    machine: &Machine,
    (rates, level): (&str, Level),
) -> f64 {
    let n = w.dims().iter().product::<usize>() as f64;
    let steps = (n / TILE / threads as f64).ceil() * program.instrs.len() as f64 * STEP;
    let work = n * element(program, machine, rates, level, w.dtype()) / threads as f64;
    // The product and the result that takes its place are the product's to count.
    let apart = 2.0 * w.inputs()[0].bytes() as f64;
    let bytes = (w.bytes() - apart).max(0.0);
    let moving: f64 =
        machine.streams(bytes, Traffic::Read, threads).iter().map(|(share, rate)| bytes * share / rate).sum();
    CALL + steps + work.max(moving)
}
