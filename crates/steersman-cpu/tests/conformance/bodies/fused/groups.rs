//! Whole groups: any expression, long ones, large ones, in place.

use super::steps::{contiguous, expression, inputs, kernels, run, scalars, step_by_step, straight, workload};
use crate::UNDER_TEST;
use crate::conformance::{Memory, Random, distance, encode, lie, shape, show, value};
use proptest::prelude::*;
use std::sync::Arc;
use steersman_core::expr::{Dist, Expr, ExprError, Output};
use steersman_core::{
    Address, Axes, BinaryOp, DType, Io, Kernel, NumericClass, Operand, Params, ReduceOp, Strides, TernaryOp,
    UnaryOp, Workload,
};
use steersman_cpu::isa::Level;
use steersman_cpu::random::uniform_f32;

/// One output is the other: to the bit if the kernel says so, else within `share` of max(1, |x|).
fn same(
    kernel: &dyn Kernel,
    w: &Workload,
    (o, got): (&Operand, &Memory),
    want: impl Iterator<Item = u64>,
    share: f64,
) -> Result<(), String> {
    let exact = kernel.numerics(w) == NumericClass::Exact;
    for (i, (e, g)) in want.zip(got.elements(o)).enumerate() {
        let (x, y) = (value(o.dtype, e), value(o.dtype, g));
        let near = o.dtype.is_float() && (x == y || (x - y).abs() <= share * x.abs().max(1.0));
        if distance(o.dtype, e, g) > 0.0 && (exact || !near) {
            let (g, e) = (show(o.dtype, g), show(o.dtype, e));
            return Err(format!("{} on {w}: element {i} is {g}, not {e}", kernel.name()));
        }
    }
    Ok(())
}

/// Every kernel that takes the group agrees with the first; how many runs were compared.
fn check(w: &Workload, data: &[Memory], scalars: &[u64], share: f64) -> Result<usize, String> {
    let Some((scalar, others)) = kernels().split_first() else { return Ok(usize::MAX) };
    let want = run(&**scalar, w, Params::SERIAL, data, scalars);
    let mut compared = 0;
    for k in others.iter().filter(|k| k.supports(w).is_ok()) {
        for p in k.space(w) {
            let got = run(&**k, w, p, data, scalars);
            for ((o, e), g) in w.outputs().iter().zip(&want).zip(&got) {
                same(&**k, w, (o, g), e.elements(o), share).map_err(|e| format!("{p}: {e}"))?;
            }
            compared += 1;
        }
    }
    Ok(compared)
}

/// Every kernel gives the bits that scalar kernels for single steps give.
fn check_exact(w: &Workload, random: &mut Random) -> Result<(), String> {
    if kernels().is_empty() {
        return Ok(());
    }
    let expr = w.expr().expect("a fused group");
    let (data, scalars) = (inputs(w, random), scalars(random, expr));
    let values = step_by_step(w, "cpu/map-scalar", Level::Baseline, &data, &scalars);
    for kernel in kernels() {
        if UNDER_TEST.all_exact && kernel.numerics(w) != NumericClass::Exact {
            return Err(format!("{} is not exact on {w}", kernel.name()));
        }
        match kernel.supports(w) {
            Err(why) if UNDER_TEST.all_exact => return Err(format!("{} refuses {w}: {why}", kernel.name())),
            Err(_) => continue,
            Ok(()) => (),
        }
        for p in kernel.space(w) {
            let outs = run(&**kernel, w, p, &data, &scalars);
            for ((o, out), got) in w.outputs().iter().zip(expr.outputs()).zip(&outs) {
                let Output::Array(v) = *out else { continue };
                let own = contiguous(expr.dtype_of(v), w.dims());
                let want = values[v.index()].elements(&own);
                same(&**kernel, w, (o, got), want, UNDER_TEST.share)
                    .map_err(|e| format!("{p}: {e} of {expr}"))?;
            }
        }
    }
    Ok(())
}

/// Operands of ordinary numbers.
fn plain(w: &Workload, seed: u64) -> Vec<Memory> {
    let mut random = Random::new(seed);
    let mut number = || (random.next() >> 40) as f64 / f64::from(1 << 24) * 4.0 - 2.0;
    w.inputs().iter().map(|o| Memory::filled(o, || encode(o.dtype, number()))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: UNDER_TEST.cases, ..ProptestConfig::default() })]

    #[test]
    fn exact_expressions_are_the_bits_of_their_steps(
        seed in any::<u64>(),
        dims in shape(),
        lies in prop::collection::vec(lie(), 5),
    ) {
        let mut random = Random::new(seed);
        let w = workload(expression(&mut random, &UNDER_TEST.exact, UNDER_TEST.most), &dims, &lies);
        check_exact(&w, &mut random).map_err(TestCaseError::fail)?;
    }
}

/// x·a + b, again and again.
pub fn long_chain(steps: usize) -> Expr {
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
fn long_programs_run() {
    let w = workload(long_chain(UNDER_TEST.long), &[5000], &straight());
    let scalars = [1.0001, 0.5].map(|x| encode(DType::F32, x));
    for data in [plain(&w, 4), inputs(&w, &mut Random::new(4))] {
        let compared = check(&w, &data, &scalars, 1e-4).unwrap_or_else(|e| panic!("{e}"));
        assert!(compared > 0, "nobody takes {} steps", UNDER_TEST.long);
    }
}

#[test]
fn large_groups_agree_in_every_way_to_cut_the_work() {
    for seed in 0..6 {
        let mut random = Random::new(seed + 77);
        let w = workload(expression(&mut random, &UNDER_TEST.exact, 6), &UNDER_TEST.large, &straight());
        check_exact(&w, &mut random).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn a_group_may_replace_its_operands() {
    // Two operands, both replaced: sums in one, differences in the other, which each step still needs.
    let mut b = Expr::builder([DType::F32, DType::F32]);
    let (x, y) = (b.input(0).expect("declared"), b.input(1).expect("declared"));
    for op in [BinaryOp::Add, BinaryOp::Sub] {
        let v = b.binary(op, x, y).expect("one type");
        b.output(v).expect("a value");
    }
    let expr = Arc::new(b.finish().expect("outputs"));
    for strides in [[29isize, 1], [1, 137], [-90, 3]] {
        let own = Operand::strided(DType::F32, &[137, 29], Strides::from_slice(&strides)).expect("small");
        let w = Workload::fused(&expr, &[137, 29], [own.clone(), own.clone()]).expect("two operands");
        let w =
            w.with_output(own.clone()).and_then(|w| w.with_nth_output(1, own.clone())).expect("one shape");
        let data = inputs(&w, &mut Random::new(5));
        for kernel in kernels().iter().filter(|k| k.supports(&w).is_ok()) {
            let want = run(&*kernels()[0], &w, Params::SERIAL, &data, &[]);
            for p in kernel.space(&w) {
                let mut memory = data.clone();
                let at: Vec<Address> = memory.iter_mut().map(|m| m.address_mut()).collect();
                let io = Io { inputs: &at, output: at[0], more: &at[1..], scalars: &[] };
                // SAFETY: memory was made for these operands.
                unsafe { kernel.run(&w, p, io) }.expect("it was offered");
                for (want, got) in want.iter().zip(&memory) {
                    same(&**kernel, &w, (&own, got), want.elements(&own), UNDER_TEST.share)
                        .unwrap_or_else(|e| panic!("in place {p}: {e}"));
                }
            }
        }
    }
}

#[test]
fn what_is_reduced_as_it_was_may_be_replaced_by_a_chain() {
    let mut random = Random::new(8);
    for (dims, axes) in
        [(&[2usize, 4][..], &[0usize][..]), (&[40, 33], &[0]), (&[40, 33], &[1]), (&[3001], &[0])]
    {
        let mut b = Expr::builder([DType::F32]);
        let x = b.input(0).expect("declared");
        let (plus, times) =
            (b.scalar(0, DType::F32).expect("a number"), b.scalar(1, DType::F32).expect("a number"));
        let v = b.binary(BinaryOp::Add, x, plus).expect("one type");
        let v = b.binary(BinaryOp::Mul, v, times).expect("one type");
        b.output(v).expect("a value");
        b.reduce(ReduceOp::Max, Axes::from_list(axes).expect("each once"), x).expect("it takes this type");
        let w = workload(b.finish().expect("outputs"), dims, &straight());
        let numbers = [2.5f32, -3.0].map(|x| u64::from(x.to_bits()));
        let data = inputs(&w, &mut random);
        for kernel in kernels().iter().filter(|k| k.supports(&w).is_ok()) {
            let want = run(&*kernels()[0], &w, Params::SERIAL, &data, &numbers);
            for p in kernel.space(&w) {
                let (mut replaced, mut reduced) = (data[0].clone(), Memory::marked(&w.outputs()[1]));
                let at = replaced.address_mut();
                let io = Io { inputs: &[at], output: at, more: &[reduced.address_mut()], scalars: &numbers };
                // SAFETY: memory was made for these operands.
                unsafe { kernel.run(&w, p, io) }.expect("it was offered");
                for ((o, want), got) in w.outputs().iter().zip(&want).zip([&replaced, &reduced]) {
                    same(&**kernel, &w, (o, got), want.elements(o), UNDER_TEST.share)
                        .unwrap_or_else(|e| panic!("in place {p}: {e}"));
                }
            }
        }
    }
}

#[test]
fn every_function_is_itself_within_a_chain() {
    for op in UnaryOp::ALL.iter().filter(|op| op.takes(DType::F32)) {
        let mut b = Expr::builder([DType::F32, DType::F32]);
        let (x, y) = (b.input(0).expect("declared"), b.input(1).expect("declared"));
        let v = b.binary(BinaryOp::Max, x, y).expect("one type");
        let v = b.unary(*op, v).expect("it takes this type");
        if b.dtype_of(v) == Ok(DType::F32) {
            let v = b.binary(BinaryOp::Min, v, y).expect("one type");
            b.output(v).expect("a value");
        }
        b.output(v).expect("a value");
        let w = workload(b.finish().expect("an output"), &[1003], &straight());
        check(&w, &plain(&w, 6), &[], 1e-5).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// Ten steps on two operands and a scalar, two arrays out.
pub fn chain() -> Result<Arc<Expr>, ExprError> {
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
fn a_chain_of_ten_has_two_results() {
    let expr = chain().expect("an expression");
    let shapes: [(&[usize], [&[usize]; 2]); 4] = [
        (&[1000], [&[1000], &[1000]]),
        (&[40, 25], [&[40, 25], &[25]]),
        (&[7, 3], [&[1], &[7, 3]]),
        (&[0], [&[0], &[1]]),
    ];
    for (dims, operands) in shapes {
        let operands = operands.map(|s| contiguous(DType::F32, s));
        let w = Workload::fused(&expr, dims, operands).expect("a group");
        let scalars = [encode(DType::F32, 0.75)];
        let compared = check(&w, &plain(&w, 1), &scalars, 2e-6).unwrap_or_else(|e| panic!("{e}"));
        assert!(compared >= 1);
    }
}

/// Numbers about the ends of what `i32` and `u32` hold.
const BEYOND_I32: [f64; 8] =
    [3e9, 2_147_483_648.0, 4_294_967_040.0, 4_294_967_295.0, 4_294_967_296.0, -0.75, -3e9, f64::NAN];

#[test]
fn casts_are_those_of_the_reference() {
    for (from, to) in DType::ALL.into_iter().flat_map(|from| DType::ALL.map(|to| (from, to))) {
        let mut b = Expr::builder([from]);
        let v = b.input(0).and_then(|x| b.cast(to, x)).expect("a cast");
        b.output(v).expect("an output");
        let w = workload(b.finish().expect("an expression"), &[301], &straight());
        let data = inputs(&w, &mut Random::new(2));
        check(&w, &data, &[], 2e-6).unwrap_or_else(|e| panic!("{from} to {to}: {e}"));
        if from.is_float() {
            let mut beyond = BEYOND_I32.into_iter().cycle();
            let data = Memory::filled(&w.inputs()[0], || encode(from, beyond.next().expect("a cycle")));
            check(&w, &[data], &[], 2e-6).unwrap_or_else(|e| panic!("{from} to {to}: {e}"));
        }
    }
}

#[test]
fn random_numbers_and_positions_do_not_depend_on_who_draws_them() {
    let key = 0x0123_4567_89ab_cdef;
    for dist in [Dist::Uniform, Dist::Normal] {
        let mut b = Expr::builder([]);
        let r = b.random(dist, DType::F32, 0).expect("numbers");
        let i = b.index(DType::I32).expect("positions");
        b.output(r).expect("an output");
        b.output(i).expect("an output");
        let arrays = Arc::new(b.clone().finish().expect("an expression"));
        b.reduce(ReduceOp::Mean, Axes::from_list(&[0]).expect("an axis"), r).expect("a reduction");
        let reduced = Arc::new(b.finish().expect("an expression"));
        for expr in [arrays, reduced] {
            let w = Workload::fused(&expr, &[70, 33], []).expect("a group");
            let share = if dist == Dist::Uniform { 2e-7 } else { 2e-6 };
            let compared = check(&w, &[], &[key], share).unwrap_or_else(|e| panic!("{e}"));
            assert!(compared >= 2, "{w}: {compared} runs");
            let mut words = vec![0f32; 70 * 33];
            uniform_f32(Level::Baseline, key, 0, &mut words);
            for k in kernels().iter().filter(|k| dist == Dist::Uniform && k.supports(&w).is_ok()) {
                let drawn = run(&**k, &w, Params::SERIAL, &[], &[key]).remove(0);
                let bits = words.iter().map(|x| u64::from(x.to_bits()));
                assert!(drawn.elements(&w.outputs()[0]).eq(bits), "{}", k.name());
            }
        }
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
        let operands = [[30usize, 41].as_slice(), &[41]].map(|d| contiguous(DType::F32, d));
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
    let w = workload(b.finish().expect("an expression"), &[50_000], &straight());
    let compared = check(&w, &plain(&w, 4), &[], 1e-4).unwrap_or_else(|e| panic!("{e}"));
    assert!(compared >= 3, "{compared} runs");
}

#[test]
fn an_operand_less_itself_is_no_zero_where_it_is_infinite() {
    let mut b = Expr::builder([DType::F32]);
    let x = b.input(0).expect("one");
    for op in [BinaryOp::Sub, BinaryOp::Div] {
        let v = b.binary(op, x, x).expect("a value");
        b.output(v).expect("an output");
    }
    let w = workload(b.finish().expect("an expression"), &[4], &straight());
    let mut of = [f64::INFINITY, f64::NAN, 0.0, 3.0].into_iter();
    let data = Memory::filled(&w.inputs()[0], || encode(DType::F32, of.next().expect("four numbers")));
    check(&w, &[data], &[], 1e-6).unwrap_or_else(|e| panic!("{e}"));
}
