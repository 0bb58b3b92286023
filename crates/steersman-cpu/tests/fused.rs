//! Fused groups give what their steps give one by one: any expression, shape, layout and thread count.

#[path = "conformance/element.rs"]
mod element;
#[path = "conformance/layout.rs"]
mod layout;
#[path = "conformance/memory.rs"]
mod memory;

use element::{distance, show, value};
use layout::{Lie, lie, shape};
use memory::{Memory, Random};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use steersman_core::expr::{Dist, Expr, Output, Step, Value};
use steersman_core::{
    Address, Axes, BinaryOp, DType, DeviceId, Io, Kernel, NumericClass, Op, Operand, Params, ReduceOp,
    TernaryOp, UnaryOp, Workload,
};
use steersman_cpu::context::Context;
use steersman_cpu::host::Host;
use steersman_cpu::isa::Level;
use steersman_cpu::threads::Team;
use steersman_cpu::{fused, map, random, reduce};

static CONTEXT: LazyLock<Context> = LazyLock::new(|| Context {
    device: DeviceId(0),
    team: Arc::new(Team::new(3)),
    host: Arc::new(Host::detect()),
});
/// Those for groups without a matrix product.
static FUSED: LazyLock<Vec<Arc<dyn Kernel>>> = LazyLock::new(|| {
    fused::kernels(&CONTEXT).into_iter().filter(|k| !k.name().ends_with("+fused")).collect()
});
static MAP: LazyLock<Vec<Arc<dyn Kernel>>> = LazyLock::new(|| map::kernels(&CONTEXT));
static REDUCE: LazyLock<Vec<Arc<dyn Kernel>>> = LazyLock::new(|| reduce::kernels(&CONTEXT));

/// Runs a kernel into memory of its own, checking that it writes nowhere else.
fn run(kernel: &dyn Kernel, w: &Workload, p: Params, data: &[Memory], scalars: &[u64]) -> Vec<Memory> {
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
fn inputs(w: &Workload, random: &mut Random) -> Vec<Memory> {
    w.inputs().iter().map(|o| Memory::random(o, random)).collect()
}

fn contiguous(dtype: DType, dims: &[usize]) -> Operand {
    Operand::new(dtype, dims).expect("a small operand")
}

/// The value of every step, in contiguous arrays, by element-wise kernels of this name.
fn step_by_step(w: &Workload, kernel: &str, level: Level, data: &[Memory], scalars: &[u64]) -> Vec<Memory> {
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
    run(&*FUSED[0], &one.expect("the same shapes"), Params::SERIAL, &memory, scalars).remove(0)
}

/// A random expression, deep and with values used more than once. `exact` leaves out what instruction sets may
/// round differently.
fn expression(random: &mut Random, exact: bool, most: usize) -> Expr {
    let any = |random: &mut Random| DType::ALL[random.below(DType::ALL.len())];
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
        let fine = |op: Op| !exact || inexact(op, d).is_none();
        let made = match random.below(12) {
            0 => b.cast(any(random), x),
            1 if !exact && random.below(4) == 0 => b.random(Dist::Normal, DType::F32, 9),
            1 => b.random(Dist::Uniform, if random.below(2) == 0 { DType::F32 } else { DType::F64 }, 9),
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

/// Whether instruction sets may round this differently.
fn inexact(op: Op, d: DType) -> Option<()> {
    let name = op.name();
    let exact = [
        "neg", "abs", "sign", "sqrt", "recip", "relu", "floor", "ceil", "round", "trunc", "not", "add",
        "sub", "mul", "div", "rem", "min", "max", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor",
        "where", "clamp",
    ];
    (d.is_float() && !exact.contains(&name)).then_some(())
}

fn scalars(random: &mut Random, expr: &Expr) -> Vec<u64> {
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
fn workload(expr: Expr, dims: &[usize], lies: &[Lie]) -> Workload {
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

/// Whether every fused kernel's arrays are, to the bit, what element-wise kernels of its own kind give.
fn agree(w: &Workload, data: &[Memory], scalars: &[u64]) -> Result<(), String> {
    let expr = w.expr().expect("a fused group");
    for kernel in FUSED.iter().filter(|k| k.supports(w).is_ok()) {
        let isa = kernel.name().trim_start_matches("cpu/fused-");
        let level = Level::present().find(|l| l.name() == isa).unwrap_or(Level::Baseline);
        let values = step_by_step(w, &format!("cpu/map-{isa}"), level, data, scalars);
        for p in kernel.params(w) {
            let outs = run(&**kernel, w, p, data, scalars);
            for ((o, out), got) in w.outputs().iter().zip(expr.outputs()).zip(&outs) {
                let Output::Array(v) = *out else { continue };
                let own = contiguous(expr.dtype_of(v), w.dims());
                let want = values[v.index()].elements(&own);
                for (i, (e, g)) in want.zip(got.elements(o)).enumerate() {
                    if distance(o.dtype, e, g) > 0.0 {
                        let (g, e) = (show(o.dtype, g), show(o.dtype, e));
                        return Err(format!(
                            "{} {p} on {w} of {expr}: element {i} is {g}, not {e}",
                            kernel.name()
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_expression_gives_what_its_steps_give(
        seed in any::<u64>(),
        dims in shape(),
        lies in prop::collection::vec(lie(), 5),
    ) {
        let mut random = Random::new(seed);
        let w = workload(expression(&mut random, false, 14), &dims, &lies);
        let data = inputs(&w, &mut random);
        let scalars = scalars(&mut random, w.expr().expect("a fused group"));
        agree(&w, &data, &scalars).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn exact_expressions_are_the_same_bits_on_every_instruction_set(
        seed in any::<u64>(),
        dims in shape(),
        lies in prop::collection::vec(lie(), 5),
    ) {
        let mut random = Random::new(seed);
        let w = workload(expression(&mut random, true, 14), &dims, &lies);
        let data = inputs(&w, &mut random);
        let scalars = scalars(&mut random, w.expr().expect("a fused group"));
        let want = run(&*FUSED[0], &w, Params::SERIAL, &data, &scalars);
        for kernel in &FUSED[1..] {
            prop_assert_eq!(kernel.numerics(&w), NumericClass::Exact);
            for p in kernel.params(&w) {
                let got = run(&**kernel, &w, p, &data, &scalars);
                for ((o, want), got) in w.outputs().iter().zip(&want).zip(&got) {
                    for (i, (e, g)) in want.elements(o).zip(got.elements(o)).enumerate() {
                        prop_assert!(
                            distance(o.dtype, e, g) == 0.0,
                            "{} {p} on {w} of {}: element {i} is {}, not {}",
                            kernel.name(), w.expr().expect("fused"), show(o.dtype, g), show(o.dtype, e)
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn reductions_agree_with_the_reference(
        seed in any::<u64>(),
        dims in shape(),
        lies in prop::collection::vec(lie(), 5),
        kind in prop::sample::select(ReduceOp::ALL),
        dtype in prop::sample::select(DType::ALL.to_vec()),
        split in 0..5usize,
        leading in any::<bool>(),
        wild in any::<bool>(),
    ) {
        let split = split.min(dims.len());
        let axes: Vec<usize> = if leading { (0..split).collect() } else { (split..dims.len()).collect() };
        check_reduction(kind, dtype, &dims, &axes, &lies, seed, wild).map_err(TestCaseError::fail)?;
    }
}

/// A value and its reductions, by every kernel: over `axes` twice, over all, and as an array.
fn check_reduction(
    kind: ReduceOp,
    dtype: DType,
    dims: &[usize],
    axes: &[usize],
    lies: &[Lie],
    seed: u64,
    wild: bool,
) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut b = Expr::builder([dtype, dtype]);
    let (x, y) = (b.input(0).expect("declared"), b.input(1).expect("declared"));
    let v = match dtype {
        // Numbers that do not overflow when added up, unless wanted.
        DType::F32 | DType::F64 if !wild => {
            let u = b.random(Dist::Uniform, dtype, 0).expect("a float");
            let c = b.random(Dist::Uniform, dtype, 1).expect("a float");
            b.binary(BinaryOp::Sub, u, c).expect("one type")
        }
        _ => b
            .binary(if dtype == DType::Bool { BinaryOp::And } else { BinaryOp::Min }, x, y)
            .expect("one type"),
    };
    let axes = Axes::from_list(axes).expect("each once");
    if !kind.takes(dtype) {
        return Ok(());
    }
    b.reduce(kind, axes, v).expect("it takes this type");
    if random.below(2) == 0 {
        b.reduce(kind, Axes::NONE, v).expect("it takes this type");
    }
    if random.below(2) == 0 {
        b.output(v).expect("a value");
    }
    b.reduce(if kind == ReduceOp::Any { ReduceOp::All } else { ReduceOp::Any }, axes, v).expect("takes all");
    let expr = Arc::new(b.finish().expect("outputs"));
    let operands = (0..2).map(|k| lies[k].operand(dtype, dims, true));
    // What has no value over no elements is refused before it comes here.
    let Ok(w) = Workload::fused(&expr, dims, operands) else { return Ok(()) };
    let data = inputs(&w, &mut random);
    let keys = [random.next(), random.next()];
    let values = step_by_step(&w, "cpu/map-scalar", Level::Baseline, &data, &keys);
    let own = contiguous(dtype, dims);
    for kernel in &*FUSED {
        if let Err(why) = kernel.supports(&w) {
            return Err(format!("{} refuses {w}: {why}", kernel.name()));
        }
        for p in kernel.params(&w) {
            let outs = run(&**kernel, &w, p, &data, &keys);
            for ((o, out), got) in w.outputs().iter().zip(expr.outputs()).zip(&outs) {
                let Output::Reduce { kind, axes, .. } = *out else { continue };
                let plain = Workload::new(Op::Reduce { kind, axes }, [own.clone()]).expect("as before");
                let value = std::slice::from_ref(&values[v.index()]);
                let want = run(&*REDUCE[0], &plain, Params::SERIAL, value, &[]).remove(0);
                let terms = magnitude(kind, &own, &value[0]);
                let who = format!("{} {p} {} of {w}", kernel.name(), kind.name());
                close(&who, kind, o, &want, got, terms)?;
            }
        }
    }
    Ok(())
}

/// Σ|x| over everything: no sum's rounding errors are beyond a multiple of it. Of a product, how far its
/// parts may stray from 1 on the way, either way: beyond what a float holds, the order decides the result.
fn magnitude(kind: ReduceOp, o: &Operand, m: &Memory) -> f64 {
    let sizes: Vec<f64> = m.elements(o).map(|b| value(o.dtype, b).abs()).collect();
    match kind {
        ReduceOp::Prod => {
            let above: f64 = sizes.iter().map(|x| x.max(1.0)).product();
            let below: f64 = sizes.iter().filter(|x| **x > 0.0).map(|x| x.recip().max(1.0)).product();
            above.max(below)
        }
        ReduceOp::Norm => sizes.iter().sum::<f64>().powi(2),
        _ => sizes.iter().sum(),
    }
}

fn close(
    who: &str,
    kind: ReduceOp,
    o: &Operand,
    want: &Memory,
    got: &Memory,
    terms: f64,
) -> Result<(), String> {
    let exact = !o.dtype.is_float() || matches!(kind, ReduceOp::Min | ReduceOp::Max);
    let epsilon = match o.dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        _ => f32::EPSILON.into(),
    };
    let smallest_square = match o.dtype {
        DType::F64 => (f64::MIN_POSITIVE / epsilon).sqrt(),
        _ => (f64::from(f32::MIN_POSITIVE) / epsilon).sqrt(),
    };
    for (i, (e, g)) in want.elements(o).zip(got.elements(o)).enumerate() {
        let (we, wg) = (value(o.dtype, e), value(o.dtype, g));
        let apart = (we - wg).abs();
        let fine = match () {
            _ if distance(o.dtype, e, g) == 0.0 => true,
            _ if exact => false,
            // Parts may overflow, or vanish, in another order.
            _ if !terms.is_finite() || terms > 1e30 => true,
            // Squares of what is smaller vanish: a norm keeps no digits of it.
            _ if kind == ReduceOp::Norm && we.abs().max(wg.abs()) < smallest_square => true,
            _ if kind == ReduceOp::Prod => apart <= 1000.0 * epsilon * we.abs(),
            _ => {
                apart <= 64.0 * epsilon * terms.max(we.abs()).max(1e-30)
                    || apart <= 1000.0 * epsilon * we.abs()
            }
        };
        if !fine {
            return Err(format!("{who}: result {i} is {wg:e}, not {we:e}"));
        }
    }
    Ok(())
}

/// Contiguous operands.
fn straight() -> Vec<Lie> {
    let lie =
        Lie { order: vec![0, 1, 2, 3], gaps: vec![0; 4], backwards: vec![false; 4], repeats: vec![false; 4] };
    vec![lie; 5]
}

#[test]
fn reductions_of_every_kind_agree_at_sizes_that_take_every_way() {
    // Few columns, many columns (more than one block), rows longer than a tile, few long rows.
    let shapes: [(&[usize], &[usize]); 9] = [
        (&[5000, 3], &[0]),
        (&[5000, 3], &[1]),
        (&[40, 1700], &[0]),
        (&[7, 9000], &[1]),
        (&[2, 30_001], &[1]),
        (&[30_001], &[0]),
        (&[3, 70, 600], &[0, 1]),
        (&[3, 70, 600], &[1, 2]),
        (&[1000, 1], &[1]),
    ];
    for &kind in ReduceOp::ALL {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::I32, DType::U8, DType::Bool] {
            for (i, (dims, axes)) in shapes.into_iter().enumerate() {
                check_reduction(kind, dtype, dims, axes, &straight(), i as u64, false)
                    .unwrap_or_else(|e| panic!("{e}"));
            }
        }
    }
}

/// x·a + b, again and again.
fn long_chain(steps: usize) -> Expr {
    let mut b = Expr::builder([DType::F32]);
    let mut v = b.input(0).expect("declared");
    let s = [b.scalar(0, DType::F32).expect("new"), b.scalar(1, DType::F32).expect("new")];
    for i in 0..steps {
        let op = if i % 2 == 0 { BinaryOp::Mul } else { BinaryOp::Add };
        v = b.binary(op, v, s[i % 2]).expect("one type");
    }
    b.output(v).expect("a value");
    b.finish().expect("an output")
}

#[test]
fn programs_of_thousands_of_steps_run() {
    let w = workload(long_chain(3000), &[5000], &straight());
    let data = inputs(&w, &mut Random::new(4));
    let scalars = [u64::from(1.0001f32.to_bits()), u64::from(0.5f32.to_bits())];
    agree(&w, &data, &scalars).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn large_groups_agree_on_several_threads_and_past_the_cache() {
    for seed in 0..6 {
        let mut random = Random::new(seed + 77);
        let w = workload(expression(&mut random, true, 6), &[700, 601], &straight());
        let data = inputs(&w, &mut random);
        let scalars = scalars(&mut random, w.expr().expect("a fused group"));
        agree(&w, &data, &scalars).unwrap_or_else(|e| panic!("{e}"));
    }
    let w = workload(long_chain(10), &[700, 601], &straight());
    let offered = |past: bool| FUSED[1].params(&w).iter().any(|p| (p.variant == 1) == past && p.threads == 2);
    assert!(offered(true) && offered(false), "both ways of storing are offered for large outputs");
}

#[test]
fn a_group_may_replace_its_operands() {
    // Two operands, both replaced: sums in one, differences in the other, which each step still needs.
    let mut b = Expr::builder([DType::F32, DType::F32]);
    let (x, y) = (b.input(0).expect("declared"), b.input(1).expect("declared"));
    let sum = b.binary(BinaryOp::Add, x, y).expect("one type");
    let difference = b.binary(BinaryOp::Sub, x, y).expect("one type");
    b.output(sum).expect("a value");
    b.output(difference).expect("a value");
    let expr = Arc::new(b.finish().expect("outputs"));
    for strides in [[29isize, 1], [1, 137], [-90, 3]] {
        let own = Operand::strided(DType::F32, &[137, 29], steersman_core::Strides::from_slice(&strides));
        let own = own.expect("a small operand");
        let w = Workload::fused(&expr, &[137, 29], [own.clone(), own.clone()]).expect("two operands");
        let w =
            w.with_output(own.clone()).and_then(|w| w.with_nth_output(1, own.clone())).expect("one shape");
        let data = inputs(&w, &mut Random::new(5));
        let want = run(&*FUSED[0], &w, Params::SERIAL, &data, &[]);
        for kernel in &*FUSED {
            for p in kernel.params(&w) {
                let mut memory = data.clone();
                let at: Vec<Address> = memory.iter_mut().map(|m| m.address_mut()).collect();
                let io = Io { inputs: &at, output: at[0], more: &at[1..], scalars: &[] };
                // SAFETY: memory was made for these operands.
                unsafe { kernel.run(&w, p, io) }.expect("it was offered");
                for (want, got) in want.iter().zip(&memory) {
                    let apart = want
                        .elements(&own)
                        .zip(got.elements(&own))
                        .any(|(e, g)| distance(DType::F32, e, g) > 0.0);
                    assert!(!apart, "{} {p} in place on {w}", kernel.name());
                }
            }
        }
    }
}

#[test]
fn random_numbers_do_not_depend_on_who_draws_them() {
    let mut b = Expr::builder([]);
    for (dist, dtype) in [
        (Dist::Uniform, DType::F32),
        (Dist::Uniform, DType::F64),
        (Dist::Normal, DType::F32),
        (Dist::Normal, DType::F64),
    ] {
        let v = b.random(dist, dtype, 0).expect("a float");
        b.output(v).expect("a value");
    }
    let expr = Arc::new(b.finish().expect("outputs"));
    let key = [0x1234_5678_9abc_def0u64];
    let (flat, square) = (Workload::fused(&expr, &[7007], []), Workload::fused(&expr, &[77, 91], []));
    let (flat, square) = (flat.expect("no operands"), square.expect("no operands"));
    for kernel in &*FUSED {
        let isa = kernel.name().trim_start_matches("cpu/fused-");
        let level = Level::present().find(|l| l.name() == isa).unwrap_or(Level::Baseline);
        let mut want = (vec![0f32; 7007], vec![0f64; 7007], vec![0f32; 7007], vec![0f64; 7007]);
        // Uniform ones are those of any instruction set, normal ones of the kernel's own.
        random::uniform_f32(Level::best(), key[0], 0, &mut want.0);
        random::uniform_f64(Level::best(), key[0], 0, &mut want.1);
        random::normal_f32(level, key[0], 0, &mut want.2);
        random::normal_f64(level, key[0], 0, &mut want.3);
        for w in [&flat, &square] {
            for p in kernel.params(w) {
                let outs = run(&**kernel, w, p, &[], &key);
                let bits = |i: usize| outs[i].elements(&w.outputs()[i]).collect::<Vec<u64>>();
                assert_eq!(bits(0), want.0.iter().map(|x| x.to_bits().into()).collect::<Vec<u64>>());
                assert_eq!(bits(1), want.1.iter().map(|x| x.to_bits()).collect::<Vec<u64>>());
                assert_eq!(bits(2), want.2.iter().map(|x| x.to_bits().into()).collect::<Vec<u64>>());
                assert_eq!(bits(3), want.3.iter().map(|x| x.to_bits()).collect::<Vec<u64>>());
            }
        }
    }
}

#[test]
fn refusals_say_why() {
    let refusal = |axes: &[&[usize]]| {
        let mut b = Expr::builder([DType::F32]);
        let x = b.input(0).expect("declared");
        for a in axes {
            b.reduce(ReduceOp::Sum, Axes::from_list(a).expect("each once"), x).expect("a float");
        }
        let expr = Arc::new(b.finish().expect("an output"));
        let w =
            Workload::fused(&expr, &[3, 4, 5], [contiguous(DType::F32, &[3, 4, 5])]).expect("one operand");
        FUSED[1].supports(&w).map_err(|r| r.to_string())
    };
    assert!(refusal(&[&[1]]).unwrap_err().contains("leading or the trailing axes"));
    assert!(refusal(&[&[0], &[2]]).unwrap_err().contains("different axes"));
    assert_eq!(refusal(&[&[2], &[2], &[]]), Ok(()));
    let plain: Workload = "add f32 3 3".parse().expect("a workload");
    assert!(FUSED[1].supports(&plain).unwrap_err().to_string().contains("fused"));
}
