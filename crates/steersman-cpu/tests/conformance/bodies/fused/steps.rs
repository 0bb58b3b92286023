//! Random expressions, and what each of their steps gives alone.

use crate::UNDER_TEST;
use crate::conformance::{Lie, Memory, Random};
use std::sync::{Arc, LazyLock};
use steersman_core::expr::{Dist, Expr, Output, Step, Value};
use steersman_core::{
    Address, BinaryOp, DType, DeviceId, Io, Kernel, Op, Operand, Params, TernaryOp, UnaryOp, Workload,
};
use steersman_cpu::isa::Level;
use steersman_cpu::{context::Context, host::Host, map, random, threads::Team};

/// The CPU, whose kernels for single steps are the reference everywhere. Where nothing is known of caches they are taken to be
/// small, and small results are streamed past them.
pub static CPU: LazyLock<Context> = LazyLock::new(|| Context {
    device: DeviceId(0),
    team: Arc::new(Team::new(3)),
    host: Arc::new(Host { caches: Vec::new(), ..Host::detect() }),
});
static MAP: LazyLock<Vec<Arc<dyn Kernel>>> = LazyLock::new(|| map::kernels(&CPU));

/// The kernels under test, the scalar reference first; none: no such device here.
pub fn kernels() -> &'static [Arc<dyn Kernel>] {
    UNDER_TEST.kernels.as_deref().unwrap_or_default()
}

/// Contiguous operands.
pub fn straight() -> Vec<Lie> {
    let lie =
        Lie { order: vec![0, 1, 2, 3], gaps: vec![0; 4], backwards: vec![false; 4], repeats: vec![false; 4] };
    vec![lie; 5]
}

/// What expressions are made of.
pub struct Menu {
    pub types: &'static [DType],
    /// Whether an op on a type may be a step.
    pub takes: fn(Op, DType) -> bool,
    /// Whether normal numbers may be drawn.
    pub normal: bool,
}

/// Runs a kernel into memory of its own, checking that it writes nowhere else.
pub fn run(kernel: &dyn Kernel, w: &Workload, p: Params, data: &[Memory], scalars: &[u64]) -> Vec<Memory> {
    let mut outs: Vec<Memory> = w.outputs().iter().map(Memory::marked).collect();
    let inputs: Vec<Address> = data.iter().map(Memory::address).collect();
    let outputs: Vec<Address> = outs.iter_mut().map(|o| o.address_mut()).collect();
    let io = Io { inputs: &inputs, output: outputs[0], more: &outputs[1..], scalars };
    // SAFETY: memory was made for these operands.
    unsafe { kernel.run(w, p, io) }.unwrap_or_else(|e| panic!("{} {p} on {w}: {e}", kernel.name()));
    for (o, m) in w.outputs().iter().zip(&outs) {
        assert!(!m.gaps_touched(o), "{} {p} on {w} wrote outside its output", kernel.name());
    }
    outs
}

/// Random operands for every input.
pub fn inputs(w: &Workload, random: &mut Random) -> Vec<Memory> {
    w.inputs().iter().map(|o| Memory::random(o, random)).collect()
}

pub fn contiguous(dtype: DType, dims: &[usize]) -> Operand {
    Operand::new(dtype, dims).expect("a small operand")
}

/// The value of every step, in contiguous arrays, by element-wise kernels of this name.
pub fn step_by_step(
    w: &Workload,
    kernel: &str,
    level: Level,
    data: &[Memory],
    scalars: &[u64],
) -> Vec<Memory> {
    let expr = w.expr().expect("a fused group");
    let dims = w.dims();
    let mut values: Vec<Memory> = Vec::new();
    for (i, step) in expr.steps().iter().enumerate() {
        let dtype = expr.dtype_of(Value(i as u32));
        let out = contiguous(dtype, dims);
        let by_map = |op: Op| {
            let args: Vec<Operand> = step.arguments().map(|v| contiguous(expr.dtype_of(v), dims)).collect();
            let w = Workload::new(op, args).expect("builders check types");
            let kernel = MAP.iter().find(|k| k.name() == kernel).expect("such a kernel");
            let memory: Vec<Memory> = step.arguments().map(|v| values[v.index()].clone()).collect();
            run(&**kernel, &w, Params::SERIAL, &memory, &[]).remove(0)
        };
        values.push(match *step {
            Step::Unary(u, _) => by_map(Op::Unary(u)),
            Step::Binary(b, ..) => by_map(Op::Binary(b)),
            Step::Ternary(t, ..) => by_map(Op::Ternary(t)),
            Step::Random { dist: Dist::Normal, key, .. } => {
                let mut memory = Memory::marked(&out);
                let (at, n, key) = (memory.address_mut(), out.elements(), scalars[key as usize]);
                // SAFETY: memory was made for this operand.
                unsafe {
                    if dtype == DType::F32 {
                        random::normal_f32(level, key, 0, std::slice::from_raw_parts_mut(at.as_mut_ptr(), n));
                    } else {
                        random::normal_f64(level, key, 0, std::slice::from_raw_parts_mut(at.as_mut_ptr(), n));
                    }
                }
                memory
            }
            _ => alone(w, step, dtype, &values, data, scalars),
        });
    }
    values
}

/// One step by the scalar reference, as a group of its own.
fn alone(
    w: &Workload,
    step: &Step,
    dtype: DType,
    values: &[Memory],
    data: &[Memory],
    scalars: &[u64],
) -> Memory {
    let expr = w.expr().expect("a fused group");
    let of: Vec<Value> = step.arguments().collect();
    let (types, memory, operands): (Vec<DType>, Vec<Memory>, Vec<Operand>) = match *step {
        Step::Input(k) => {
            let k = k as usize;
            (vec![dtype], vec![data[k].clone()], vec![w.inputs()[k].clone()])
        }
        _ => (
            of.iter().map(|v| expr.dtype_of(*v)).collect(),
            of.iter().map(|v| values[v.index()].clone()).collect(),
            of.iter().map(|v| contiguous(expr.dtype_of(*v), w.dims())).collect(),
        ),
    };
    let mut b = Expr::builder(types);
    let v = match *step {
        Step::Input(_) => b.input(0),
        Step::Scalar(k, d) => b.scalar(k, d),
        Step::Cast(to, _) => b.input(0).and_then(|x| b.cast(to, x)),
        Step::Index(d) => b.index(d),
        Step::Random { dist, dtype, key } => b.random(dist, dtype, key),
        _ => unreachable!("element-wise ops have kernels of their own"),
    };
    b.output(v.expect("it was checked before")).expect("a value");
    let one = Workload::fused(&Arc::new(b.finish().expect("an output")), w.dims(), operands);
    run(&*kernels()[0], &one.expect("the same shapes"), Params::SERIAL, &memory, scalars).remove(0)
}

/// A random expression from a menu, deep and with values used more than once.
pub fn expression(random: &mut Random, menu: &Menu, most: usize) -> Expr {
    let any = |random: &mut Random| menu.types[random.below(menu.types.len())];
    let types: Vec<DType> = (0..1 + random.below(3)).map(|_| any(random)).collect();
    let mut b = Expr::builder(types.clone());
    let mut values: Vec<Value> = (0..types.len()).map(|k| b.input(k as u16).expect("declared")).collect();
    for i in 0..random.below(3) as u16 {
        values.push(b.scalar(i, any(random)).expect("a new scalar"));
    }
    for _ in 0..1 + random.below(most) {
        let pick = |random: &mut Random, values: &[Value]| {
            // Mostly recent ones, so that chains grow.
            let from = if random.below(3) > 0 { values.len().saturating_sub(3) } else { 0 };
            values[from + random.below(values.len() - from)]
        };
        let (x, y, z) = (pick(random, &values), pick(random, &values), pick(random, &values));
        let d = b.dtype_of(x).expect("a value");
        let same = |v: Value, b: &mut steersman_core::expr::Builder| {
            if b.dtype_of(v) == Ok(d) { Ok(v) } else { b.cast(d, v) }
        };
        let unary = UnaryOp::ALL[random.below(UnaryOp::ALL.len())];
        let binary = BinaryOp::ALL[random.below(BinaryOp::ALL.len())];
        let ternary = TernaryOp::ALL[random.below(TernaryOp::ALL.len())];
        let fine = |op: Op| (menu.takes)(op, d);
        let made = match random.below(12) {
            0 => b.cast(any(random), x),
            1 if menu.normal && random.below(4) == 0 => b.random(Dist::Normal, DType::F32, 9),
            1 => {
                let d = if random.below(2) == 0 { DType::F32 } else { DType::F64 };
                if !menu.types.contains(&d) {
                    continue;
                }
                b.random(Dist::Uniform, d, 9)
            }
            2 => b.index(any(random)),
            3..5 if fine(Op::Unary(unary)) => b.unary(unary, x),
            5..10 if fine(Op::Binary(binary)) => same(y, &mut b).and_then(|y| b.binary(binary, x, y)),
            10 if fine(Op::Ternary(ternary)) => {
                let (y, z) = (same(y, &mut b), same(z, &mut b));
                y.and_then(|y| {
                    let first = if ternary == TernaryOp::Where { b.cast(DType::Bool, z?)? } else { z? };
                    b.ternary(ternary, first, x, y)
                })
            }
            _ => continue,
        };
        // What a type does not take is left out.
        values.extend(made);
    }
    let last = *values.last().expect("inputs at least");
    b.output(last).expect("a value");
    for _ in 0..random.below(3) {
        b.output(values[random.below(values.len())]).expect("a value");
    }
    b.finish().expect("an output")
}

/// A random value for each scalar and key.
pub fn scalars(random: &mut Random, expr: &Expr) -> Vec<u64> {
    let bits = |d: &Option<DType>, random: &mut Random| match d {
        Some(d) => {
            let one = contiguous(*d, &[]);
            Memory::random(&one, random).element(&one, 0)
        }
        None => random.next(),
    };
    expr.scalars().iter().map(|d| bits(d, random)).collect()
}

/// The workload of an expression on operands that lie as they like.
pub fn workload(expr: Expr, dims: &[usize], lies: &[Lie]) -> Workload {
    let expr = Arc::new(expr);
    let operands = expr.inputs().iter().enumerate().map(|(k, &d)| lies[k].operand(d, dims, true));
    let mut w = Workload::fused(&expr, dims, operands).expect("operands of this shape");
    for o in 0..w.outputs().len() {
        if matches!(expr.outputs()[o], Output::Array(_)) {
            let own = lies[3 + o % 2].operand(w.outputs()[o].dtype, dims, false);
            w = w.with_nth_output(o, own).expect("the same shape");
        }
    }
    w
}
