//! Seconds per element of each op in each kernel, with operands in the nearest cache: the one number that
//! tells ops of a kernel apart. Everything else they share.

use crate::device::Cpu;
use crate::rig::CpuRig;
use std::sync::Arc;
use std::time::Instant;
use steersman_core::cost::Machine;
use steersman_core::measure::Rig;
use steersman_core::{
    Axes, BinaryOp, DType, Engine, NumericClass, Op, Operand, Params, Place, ReduceOp, TernaryOp, UnaryOp,
    Variant, Workload,
};

/// Two sizes, both in the nearest cache: their difference is free of what a call costs.
const FEW: usize = 256;
const MANY: usize = 2048;

/// Measures the rates of every element-wise op and reduction. About 60 µs each.
pub fn probe(
    cpu: &Cpu,
    engine: &Arc<Engine>,
    machine: &mut Machine,
    quick: bool,
    progress: &mut dyn FnMut(f64) -> bool,
) {
    let dtypes = if quick { &DType::ALL[..2] } else { &DType::ALL[..] };
    let ops: Vec<Op> = UnaryOp::ALL
        .iter()
        .map(|&u| Op::Unary(u))
        .chain(BinaryOp::ALL.iter().map(|&b| Op::Binary(b)))
        .chain(TernaryOp::ALL.iter().map(|&t| Op::Ternary(t)))
        .chain(ReduceOp::ALL.iter().map(|&kind| Op::Reduce { kind, axes: Axes::NONE }))
        .collect();
    for (i, &op) in ops.iter().enumerate() {
        if !progress(i as f64 / ops.len() as f64) {
            return;
        }
        for &dtype in dtypes {
            one(cpu, engine, machine, op, dtype);
        }
    }
}

fn workload(op: Op, dtype: DType, n: usize) -> Option<Workload> {
    let operand = |d| Operand::new(d, &[n]).ok();
    let mut operands = vec![operand(dtype)?; op.arity()];
    if op == Op::Ternary(TernaryOp::Where) {
        operands[0] = operand(DType::Bool)?;
    }
    Some(Workload::new(op, operands).ok()?.with_numerics(NumericClass::Relaxed))
}

fn one(cpu: &Cpu, engine: &Arc<Engine>, machine: &mut Machine, op: Op, dtype: DType) {
    let (Some(few), Some(many)) = (workload(op, dtype, FEW), workload(op, dtype, MANY)) else { return };
    let (Ok(mut small), Ok(mut large)) = (CpuRig::new(cpu, engine, &few), CpuRig::new(cpu, engine, &many))
    else {
        return;
    };
    for (index, kernel) in engine.registry().about(op) {
        let here = engine.place_of(index) == Some(Place::Host);
        if !here || kernel.supports(&few).is_err() || kernel.supports(&many).is_err() {
            continue;
        }
        let v = Variant { kernel: index, params: Params::SERIAL };
        if let (Some(a), Some(b)) = (quickest(&mut small, v), quickest(&mut large, v)) {
            let rate = ((b - a) / (MANY - FEW) as f64).max(b / MANY as f64 * 0.2);
            machine.rates.insert(Machine::rate_key(kernel.name(), op, dtype), rate);
        }
    }
}

/// Best of three short batches.
fn quickest(rig: &mut CpuRig, v: Variant) -> Option<f64> {
    let mut best = f64::INFINITY;
    let mut n = 4;
    for _ in 0..3 {
        let started = Instant::now();
        for _ in 0..n {
            rig.run(v).ok()?;
        }
        let each = started.elapsed().as_secs_f64() / f64::from(n);
        best = best.min(each);
        n = ((8e-6 / each) as u32).clamp(1, 200);
    }
    Some(best)
}
