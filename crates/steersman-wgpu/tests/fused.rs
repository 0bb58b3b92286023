//! Fused groups give what their steps give one by one on the CPU.

#[path = "../../steersman-cpu/tests/conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the CPU's tests")]
mod conformance;
mod hosted;

use conformance::{Memory, Random, lie, shape, value};
use hosted::{encode, put};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use steersman_core::expr::{Dist, Expr, ExprError, Output, Value};
use steersman_core::{
    Address, Axes, BinaryOp, DType, DeviceId, Io, Kernel, NumericClass, Operand, Params, ReduceOp, TernaryOp,
    UnaryOp, Workload,
};
use steersman_cpu::fused;
use steersman_wgpu::DeviceOptions;

static KERNELS: LazyLock<Option<Vec<Arc<dyn Kernel>>>> =
    LazyLock::new(|| hosted::with_reference(fused::kernels(&hosted::cpu()), 64));

fn run(
    kernel: &dyn Kernel,
    w: &Workload,
    p: Params,
    data: &[Memory],
    scalars: &[u64],
) -> Result<Vec<Memory>, String> {
    let mut outs: Vec<Memory> = w.outputs().iter().map(Memory::marked).collect();
    let inputs: Vec<Address> = data.iter().map(Memory::address).collect();
    let outputs: Vec<Address> = outs.iter_mut().map(|o| o.address_mut()).collect();
    let io = Io { inputs: &inputs, output: outputs[0], more: &outputs[1..], scalars };
    // SAFETY: memory was made for these operands.
    unsafe { kernel.run(w, p, io) }.map_err(|e| format!("{} {p} on {w}: {e}", kernel.name()))?;
    for (o, m) in w.outputs().iter().zip(&outs) {
        if m.gaps_touched(o) {
            return Err(format!("{} {p} on {w} wrote outside its output", kernel.name()));
        }
    }
    Ok(outs)
}

/// Every kernel that takes the group agrees with the reference: bit for bit if it says so, else within
/// `share` of max(1, |x|). How many runs were compared.
fn check(w: &Workload, data: &[Memory], scalars: &[u64], share: f64) -> Result<usize, String> {
    let Some(kernels) = &*KERNELS else { return Ok(99) };
    let want = run(&*kernels[0], w, Params::SERIAL, data, scalars)?;
    let mut compared = 0;
    for k in kernels[1..].iter().filter(|k| k.supports(w).is_ok()) {
        for p in k.space(w) {
            let got = run(&**k, w, p, data, scalars)?;
            compared += 1;
            for ((o, e), g) in w.outputs().iter().zip(&want).zip(&got) {
                for (i, (e, g)) in e.elements(o).zip(g.elements(o)).enumerate() {
                    let (x, y) = (value(o.dtype, e), value(o.dtype, g));
                    let same =
                        e == g || x == y && k.numerics(w) != NumericClass::Exact || x.is_nan() && y.is_nan();
                    let near = o.dtype.is_float()
                        && k.numerics(w) != NumericClass::Exact
                        && (x - y).abs() <= share * x.abs().max(1.0);
                    if !same && !near {
                        return Err(format!("{} {p} on {w}, element {i}: {y:e} is not {x:e}", k.name()));
                    }
                }
            }
        }
    }
    Ok(compared)
}

/// Operands of ordinary numbers.
fn plain(w: &Workload, seed: u64) -> Vec<Memory> {
    let mut random = Random::new(seed);
    let of = |o: &Operand| {
        let mut memory = Memory::marked(o);
        put(o, memory.address_mut(), |_| {
            encode(o.dtype, (random.next() >> 40) as f64 / f64::from(1 << 24) * 4.0 - 2.0)
        });
        memory
    };
    w.inputs().iter().map(of).collect()
}

fn bits(x: f32) -> u64 {
    x.to_bits().into()
}

/// Ten steps on two operands and a scalar, two arrays out.
fn chain() -> Result<Arc<Expr>, ExprError> {
    let mut b = Expr::builder([DType::F32, DType::F32]);
    let (x, y, s) = (b.input(0)?, b.input(1)?, b.scalar(0, DType::F32)?);
    let t = b.binary(BinaryOp::Mul, x, s)?;
    let t = b.binary(BinaryOp::Add, t, y)?;
    let t = b.unary(UnaryOp::Tanh, t)?;
    let c = b.binary(BinaryOp::Gt, t, x)?;
    let t = b.ternary(TernaryOp::Where, c, t, y)?;
    let t = b.unary(UnaryOp::Exp, t)?;
    let t = b.binary(BinaryOp::Sub, t, s)?;
    let u = b.unary(UnaryOp::Abs, t)?;
    let u = b.unary(UnaryOp::Sqrt, u)?;
    let u = b.binary(BinaryOp::Max, u, x)?;
    b.output(u)?;
    b.output(c)?;
    Ok(Arc::new(b.finish()?))
}

#[test]
fn a_chain_of_ten_is_one_dispatch_with_two_results() {
    let expr = chain().expect("an expression");
    for shapes in
        [[vec![1000], vec![1000]], [vec![40, 25], vec![25]], [vec![1], vec![7, 3]], [vec![0], vec![1]]]
    {
        let operands = shapes.iter().map(|s| Operand::new(DType::F32, s).expect("small"));
        let dims = match shapes[1].len() {
            2 => vec![7, 3],
            _ => shapes[0].clone(),
        };
        let w = Workload::fused(&expr, &dims, operands).expect("a group");
        let compared = check(&w, &plain(&w, 1), &[bits(0.75)], 2e-6).unwrap_or_else(|e| panic!("{e}"));
        assert!(compared >= 1);
    }
    let Some(gpu) = hosted::open(DeviceOptions::default()) else { return };
    let w = Workload::fused(&expr, &[64], [0, 1].map(|_| Operand::new(DType::F32, &[64]).expect("small")))
        .expect("a group");
    let kernel = gpu.kernels(DeviceId(1)).into_iter().find(|k| k.supports(&w).is_ok()).expect("a kernel");
    let before = gpu.counts().dispatches;
    let hosted = hosted::Hosted { gpu: gpu.clone(), kernel, margin: 64 };
    run(&hosted, &w, Params::SERIAL, &plain(&w, 1), &[bits(0.75)]).expect("a run");
    assert_eq!(gpu.counts().dispatches, before + 1);
}

#[test]
fn casts_are_those_of_the_reference() {
    for from in DType::ALL {
        for to in DType::ALL {
            let mut b = Expr::builder([from]);
            let v = b.input(0).and_then(|x| b.cast(to, x)).expect("a cast");
            b.output(v).expect("an output");
            let expr = Arc::new(b.finish().expect("an expression"));
            let w = Workload::fused(&expr, &[301], [Operand::new(from, &[301]).expect("small")])
                .expect("a group");
            let data = vec![Memory::random(&w.inputs()[0], &mut Random::new(2))];
            check(&w, &data, &[], 2e-6).unwrap_or_else(|e| panic!("{from} to {to}: {e}"));
        }
    }
}

#[test]
fn random_numbers_and_positions_are_those_of_the_cpu() {
    for dist in [Dist::Uniform, Dist::Normal] {
        let mut b = Expr::builder([]);
        let r = b.random(dist, DType::F32, 0).expect("numbers");
        let i = b.index(DType::I32).expect("positions");
        b.output(r).expect("an output");
        b.output(i).expect("an output");
        b.reduce(ReduceOp::Mean, Axes::from_list(&[0]).expect("an axis"), r).expect("a reduction");
        let expr = Arc::new(b.finish().expect("an expression"));
        let w = Workload::fused(&expr, &[70, 33], []).expect("a group");
        let share = if dist == Dist::Uniform { 2e-7 } else { 2e-6 };
        let compared = check(&w, &[], &[0x0123_4567_89ab_cdef], share).unwrap_or_else(|e| panic!("{e}"));
        assert!(compared >= 2);
    }
}

#[test]
fn groups_end_in_reductions_of_every_kind() {
    for kind in ReduceOp::ALL {
        let mut b = Expr::builder([DType::F32, DType::F32]);
        let (x, y) = (b.input(0).expect("one"), b.input(1).expect("two"));
        let t = b.binary(BinaryOp::Mul, x, y).expect("a product");
        b.reduce(*kind, Axes::from_list(&[1]).expect("an axis"), t).expect("a reduction");
        b.output(t).expect("an array");
        let expr = Arc::new(b.finish().expect("an expression"));
        let operands = [[30usize, 41].as_slice(), &[41]].map(|d| Operand::new(DType::F32, d).expect("small"));
        let w = Workload::fused(&expr, &[30, 41], operands).expect("a group");
        check(&w, &plain(&w, 4), &[], 1e-4).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn long_sums_of_groups_are_shared() {
    let mut b = Expr::builder([DType::F32]);
    let x = b.input(0).expect("one");
    let y = b.unary(UnaryOp::Sin, x).expect("a sine");
    b.reduce(ReduceOp::Sum, Axes::NONE, y).expect("a sum");
    b.reduce(ReduceOp::Max, Axes::NONE, x).expect("a maximum");
    let expr = Arc::new(b.finish().expect("an expression"));
    let w = Workload::fused(&expr, &[50_000], [Operand::new(DType::F32, &[50_000]).expect("small")])
        .expect("a group");
    let compared = check(&w, &plain(&w, 4), &[], 1e-4).unwrap_or_else(|e| panic!("{e}"));
    assert!(compared >= 3);
}

#[test]
fn an_operand_less_itself_is_no_zero_where_it_is_infinite() {
    let mut b = Expr::builder([DType::F32]);
    let x = b.input(0).expect("one");
    for op in [BinaryOp::Sub, BinaryOp::Div] {
        let v = b.binary(op, x, x).expect("a value");
        b.output(v).expect("an output");
    }
    let expr = Arc::new(b.finish().expect("an expression"));
    let w = Workload::fused(&expr, &[4], [Operand::new(DType::F32, &[4]).expect("small")]).expect("a group");
    let mut memory = Memory::marked(&w.inputs()[0]);
    let of = [f64::INFINITY, f64::NAN, 0.0, 3.0];
    put(&w.inputs()[0], memory.address_mut(), |i| encode(DType::F32, of[i]));
    check(&w, &[memory], &[], 1e-6).unwrap_or_else(|e| panic!("{e}"));
}

/// A random expression of steps whose results do not depend on rounding.
fn exact_expression(random: &mut Random) -> Expr {
    const TYPES: [DType; 5] = [DType::F32, DType::I32, DType::U8, DType::Bool, DType::F16];
    let types: Vec<DType> = (0..1 + random.below(3)).map(|_| TYPES[random.below(5)]).collect();
    let mut b = Expr::builder(types.clone());
    let mut values: Vec<Value> = (0..types.len()).map(|k| b.input(k as u16).expect("declared")).collect();
    for _ in 0..2 + random.below(8) {
        let mut pick = || values[random.below(values.len())];
        let (x, y, z) = (pick(), pick(), pick());
        let unary = [UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Relu, UnaryOp::Floor, UnaryOp::Not];
        let binary = [BinaryOp::Min, BinaryOp::Max, BinaryOp::Lt, BinaryOp::Eq, BinaryOp::Xor, BinaryOp::Rem];
        let made = match random.below(4) {
            0 => b.unary(unary[random.below(5)], x),
            1 => b.binary(binary[random.below(6)], x, y),
            2 => b.ternary(TernaryOp::Where, x, y, z),
            _ => b.cast(TYPES[random.below(4)], x),
        };
        values.extend(made.ok());
    }
    let last = values[values.len() - 1];
    b.output(last).expect("an output");
    if random.below(2) == 0 {
        b.output(values[random.below(values.len())]).expect("an output");
    }
    b.finish().expect("an expression")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn any_expression_and_layout_agrees(
        dims in shape(),
        lies in prop::collection::vec(lie(), 5),
        seed in any::<u64>(),
    ) {
        let mut random = Random::new(seed);
        let expr = Arc::new(exact_expression(&mut random));
        let operands = expr.inputs().iter().zip(&lies).map(|(d, l)| l.operand(*d, &dims, true));
        let mut w = Workload::fused(&expr, &dims, operands).expect("a group");
        for (n, output) in expr.outputs().iter().enumerate() {
            let Output::Array(v) = output else { continue };
            let out = lies[3 + n].operand(expr.dtype_of(*v), &dims, false);
            w = w.with_nth_output(n, out).expect("the same shape");
        }
        let data: Vec<Memory> = w.inputs().iter().map(|o| Memory::random(o, &mut random)).collect();
        check(&w, &data, &[], 1e-5).map_err(TestCaseError::fail)?;
    }
}
