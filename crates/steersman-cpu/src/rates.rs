//! Seconds per element of each op in each kernel, with operands in the nearest cache: the one number that
//! tells ops of a kernel apart. Everything else they share, but for what a row takes that is reduced.

use crate::device::Cpu;
use crate::reduce::{ROW, SHORT, SHORT_CALL, TURNED};
use crate::rig::CpuRig;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steersman_core::cost::Machine;
use steersman_core::measure::Rig;
use steersman_core::{
    Axes, BinaryOp, DType, Engine, Kernel, NumericClass, Op, Operand, Params, Place, ReduceOp, TernaryOp,
    UnaryOp, Variant, Workload,
};

/// Two sizes, both in the nearest cache: their difference is free of what a call costs.
const FEW: usize = 256;
const MANY: usize = 2048;

/// How often an op is timed again whose core was shared: after all others, when the neighbour may have gone. (`tanh` had
/// been taken for one and a half times as slow as it is.)
const ROUNDS: usize = 3;

/// Every element-wise op and reduction with every element type; with the two that most work is done in, if quick.
pub fn all(quick: bool) -> Vec<(Op, DType)> {
    let dtypes = if quick { &DType::ALL[..2] } else { &DType::ALL[..] };
    let ops: Vec<Op> = UnaryOp::ALL
        .iter()
        .map(|&u| Op::Unary(u))
        .chain(BinaryOp::ALL.iter().map(|&b| Op::Binary(b)))
        .chain(TernaryOp::ALL.iter().map(|&t| Op::Ternary(t)))
        .chain(ReduceOp::ALL.iter().map(|&kind| Op::Reduce { kind, axes: Axes::NONE }))
        .collect();
    ops.iter().flat_map(|&op| dtypes.iter().map(move |&d| (op, d))).collect()
}

/// Kernels that run this op on this type and have no rate of it yet: it was never probed, or not to the end.
pub fn unknown(engine: &Engine, machine: &Machine, op: Op, dtype: DType) -> Vec<u16> {
    let lacks = |name: &str| !machine.rates.contains_key(&Machine::rate_key(name, op, dtype));
    let shapes = match op {
        Op::Reduce { .. } => vec![[vec![FEW], vec![MANY]], LINES.map(|n| vec![n, COLUMNS])],
        _ => vec![[vec![FEW], vec![MANY]]],
    };
    let mut found = Vec::new();
    for pair in &shapes {
        let of = |shape: &Vec<usize>| match op {
            Op::Reduce { kind, .. } => workload(reduce(kind, &[0][..shape.len() - 1]), dtype, shape),
            _ => workload(op, dtype, shape),
        };
        if let [Some(few), Some(many)] = pair.each_ref().map(of) {
            let all = serial(engine, [&few, &many]).into_iter();
            found.extend(all.filter(|(_, name)| lacks(name)).map(|(v, _)| v.kernel));
        }
    }
    found
}

/// Measures the rates of these. About 60 µs each.
pub fn probe(
    cpu: &Cpu,
    engine: &Arc<Engine>,
    machine: &mut Machine,
    mut due: Vec<(Op, DType)>,
    go_on: &mut dyn FnMut() -> bool,
) {
    for _ in 0..ROUNDS {
        due.retain(|&(op, dtype)| {
            let mut timer = Timer { shared: false };
            match op {
                _ if !go_on() => {}
                Op::Reduce { kind, .. } => reduction(cpu, engine, machine, &mut timer, kind, dtype),
                _ => elementwise(cpu, engine, machine, &mut timer, op, dtype),
            }
            timer.shared
        });
    }
}

/// A workload of this op on operands of one shape.
fn workload(op: Op, dtype: DType, shape: &[usize]) -> Option<Workload> {
    let operand = |d| Operand::new(d, shape).ok();
    let mut operands = vec![operand(dtype)?; op.arity()];
    if op == Op::Ternary(TernaryOp::Where) {
        operands[0] = operand(DType::Bool)?;
    }
    Some(Workload::new(op, operands).ok()?.with_numerics(NumericClass::Relaxed))
}

/// The same laid out.
fn laid_out(cpu: &Cpu, engine: &Arc<Engine>, op: Op, dtype: DType, shape: &[usize]) -> Option<CpuRig> {
    CpuRig::new(cpu, engine, &workload(op, dtype, shape)?).ok()
}

fn reduce(kind: ReduceOp, axes: &[usize]) -> Op {
    Op::Reduce { kind, axes: Axes::from_list(axes).unwrap_or_default() }
}

/// Every kernel of the host that takes both and may be chosen, by name.
fn serial(engine: &Engine, [a, b]: [&Workload; 2]) -> Vec<(Variant, String)> {
    let here = |index: u16| engine.place_of(index) == Some(Place::Host);
    let all = engine.registry().about(a.op());
    let takes = |k: &dyn Kernel| k.outdone(a).is_none() && k.supports(a).is_ok() && k.supports(b).is_ok();
    let takes = all.filter(|(i, k)| here(*i) && takes(&***k));
    takes.map(|(kernel, k)| (Variant { kernel, params: Params::SERIAL }, k.name().to_string())).collect()
}

/// Seconds per element, from the times of few and many.
fn slope(few: f64, many: f64, more: usize, all: usize) -> f64 {
    ((many - few) / more as f64).max(many / all as f64 * 0.2)
}

fn elementwise(
    cpu: &Cpu,
    engine: &Arc<Engine>,
    machine: &mut Machine,
    timer: &mut Timer,
    op: Op,
    dtype: DType,
) {
    let rig = |n| laid_out(cpu, engine, op, dtype, &[n]);
    let (Some(mut few), Some(mut many)) = (rig(FEW), rig(MANY)) else { return };
    for (v, name) in serial(engine, [few.workload(), many.workload()]) {
        if let (Some(a), Some(b)) = (timer.quickest(&mut few, v), timer.quickest(&mut many, v)) {
            machine.rates.insert(Machine::rate_key(&name, op, dtype), slope(a, b, MANY - FEW, MANY));
        }
    }
}

/// Rows, and elements of one that is folded by itself, of one that is turned over with others, and of the shortest; lines of few
/// and of many, and their columns.
const ROWS: usize = 64;
const ROW_OF: usize = 56;
const TURNED_ROW: usize = 16;
const SHORTEST_ROWS: [usize; 2] = [2, 7];
const LINES: [usize; 2] = [8, 56];
const COLUMNS: usize = 80;

/// Elements of one row, what a row itself takes, and elements of columns.
fn reduction(
    cpu: &Cpu,
    engine: &Arc<Engine>,
    machine: &mut Machine,
    timer: &mut Timer,
    kind: ReduceOp,
    dtype: DType,
) {
    let rig = |shape: &[usize], axes: &[usize]| laid_out(cpu, engine, reduce(kind, axes), dtype, shape);
    let key = |name: &str, part: &str| Machine::rate_key(name, reduce(kind, &[]), dtype) + part;
    // Who reduces rows has its rate from them.
    let mut of_rows = Vec::new();
    if let (Some(mut few), Some(mut many)) = (rig(&[FEW], &[]), rig(&[MANY], &[])) {
        let [mut alone, mut turned] = [ROW_OF, TURNED_ROW].map(|n| rig(&[ROWS, n], &[1]));
        let mut shortest = SHORTEST_ROWS.map(|n| rig(&[ROWS, n], &[1]));
        for (v, name) in serial(engine, [few.workload(), many.workload()]) {
            let (Some(a), Some(b)) = (timer.quickest(&mut few, v), timer.quickest(&mut many, v)) else {
                continue;
            };
            let each = slope(a, b, MANY - FEW, MANY);
            machine.rates.insert(key(&name, ""), each);
            of_rows.push(v);
            let mut time = |rig: &mut Option<CpuRig>| timer.quickest(rig.as_mut()?, v);
            let (Some(c), Some(t)) = (time(&mut alone), time(&mut turned)) else { continue };
            let [Some(d), Some(e)] = shortest.each_mut().map(&mut time) else { continue };
            let more = (ROWS * ROW_OF - FEW) as f64;
            let row = ((c - a - more * each) / (ROWS - 1) as f64).max(LEAST_ROW);
            let call = (a - FEW as f64 * each - row).max(0.0);
            let [two, seven] = SHORTEST_ROWS.map(|n| n as f64);
            let of_short = ((e - d) / ROWS as f64 / (seven - two)).max(0.0);
            let short_row = ((d - call) / ROWS as f64 - two * of_short).max(LEAST_ROW);
            machine.rates.insert(key(&name, ROW), row);
            machine.rates.insert(key(&name, SHORT_CALL), short_row);
            machine.rates.insert(key(&name, SHORT), of_short);
            let of_turned = (t - call) / (ROWS * TURNED_ROW) as f64 - each;
            machine.rates.insert(key(&name, TURNED), of_turned.max(0.0));
        }
    }
    let lines = LINES.map(|n| rig(&[n, COLUMNS], &[0]));
    if let [Some(mut few), Some(mut many)] = lines {
        let kernels = serial(engine, [few.workload(), many.workload()]);
        for (v, name) in kernels.into_iter().filter(|(v, _)| !of_rows.contains(v)) {
            if let (Some(a), Some(b)) = (timer.quickest(&mut few, v), timer.quickest(&mut many, v)) {
                let each = slope(a, b, (LINES[1] - LINES[0]) * COLUMNS, LINES[1] * COLUMNS);
                machine.rates.insert(key(&name, ""), each);
            }
        }
    }
}

/// Seconds of a row at least: a difference of two times may come out as nothing.
const LEAST_ROW: f64 = 0.3e-9;

/// Times kernels, and notices when they did not have their core to themselves.
struct Timer {
    shared: bool,
}

impl Timer {
    /// Best of three short batches.
    fn quickest(&mut self, rig: &mut CpuRig, v: Variant) -> Option<f64> {
        let mut best = f64::INFINITY;
        let mut n = 4;
        let mut whole = false;
        for _ in 0..3 {
            let started = Instant::now();
            for _ in 0..n {
                rig.run(v).ok()?;
            }
            let each = started.elapsed().as_secs_f64() / f64::from(n);
            best = best.min(each);
            n = ((8e-6 / each) as u32).clamp(1, 200);
            whole |= rig.whole(1, Duration::ZERO);
        }
        self.shared |= !whole;
        Some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_probed_to_the_end_is_still_unknown_and_probed_later() {
        let cpu = Cpu::new(Some(1), 1 << 20);
        let engine = Arc::new(Engine::new(Default::default()));
        let device = engine.add_device(cpu.device());
        cpu.kernels(device, None).into_iter().for_each(|k| drop(engine.register(k)));
        let missing = |m: &Machine| -> Vec<(Op, DType)> {
            all(false).into_iter().filter(|&(op, d)| !unknown(&engine, m, op, d).is_empty()).collect()
        };
        let mut machine = Machine::default();
        let before = missing(&machine);
        let both = [DType::F32, DType::F64].map(|d| (Op::Unary(UnaryOp::Exp), d));
        assert!(both.iter().all(|pair| before.contains(pair)));
        assert!(before.iter().any(|(op, d)| matches!(op, Op::Reduce { .. }) && *d == DType::F32));
        // Broken off after the first.
        let mut asked = 0;
        let mut once = || {
            asked += 1;
            asked == 1
        };
        probe(&cpu, &engine, &mut machine, before.clone(), &mut once);
        let after = missing(&machine);
        assert_eq!(after, before[1..]);
        let reduction: Vec<_> =
            after.iter().copied().filter(|(op, _)| matches!(op, Op::Reduce { .. })).take(1).collect();
        probe(&cpu, &engine, &mut machine, reduction.clone(), &mut || true);
        assert!(!missing(&machine).contains(&reduction[0]), "its rows and columns are known");
        assert_eq!(missing(&machine).len(), before.len() - 2);
    }

    #[test]
    fn a_reduction_has_rates_of_elements_rows_and_columns() {
        let cpu = Cpu::new(Some(1), 1 << 20);
        let engine = Arc::new(Engine::new(Default::default()));
        let device = engine.add_device(cpu.device());
        cpu.kernels(device, None).into_iter().for_each(|k| drop(engine.register(k)));
        let mut machine = Machine::default();
        reduction(&cpu, &engine, &mut machine, &mut Timer { shared: false }, ReduceOp::Var, DType::F32);
        let op = Op::Reduce { kind: ReduceOp::Var, axes: Axes::NONE };
        let best = crate::isa::Level::best().name();
        let (rows, columns) = (format!("cpu/reduce-rows-{best}"), format!("cpu/reduce-columns-{best}"));
        for kernel in [&rows, &columns] {
            assert!(machine.rate(kernel, op, DType::F32).is_some_and(|rate| rate > 0.0), "{kernel}");
        }
        for part in [ROW, SHORT_CALL] {
            assert!(machine.part(&rows, op, DType::F32, part).is_some_and(|row| row >= LEAST_ROW), "{part}");
        }
        assert_eq!(machine.part(&columns, op, DType::F32, ROW), None);
        // Timed again, because a core was shared, all of them are new.
        machine.rates.values_mut().for_each(|rate| *rate = 7.0);
        reduction(&cpu, &engine, &mut machine, &mut Timer { shared: false }, ReduceOp::Var, DType::F32);
        assert!(machine.rates.values().all(|rate| *rate < 1.0), "{:?}", machine.rates);
    }
}
