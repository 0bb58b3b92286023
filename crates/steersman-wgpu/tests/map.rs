//! Every element-wise kernel of the device gives what the scalar reference of the CPU gives: every op and
//! type it takes, every layout, in place too.

#[path = "../../steersman-cpu/tests/conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the CPU's tests")]
mod conformance;
mod hosted;

use conformance::{Allowed, Memory, Random, check, check_in_place, inputs, lie, shape, value};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use steersman_core::{BinaryOp, DType, Kernel, Op, Operand, TernaryOp, UnaryOp, Workload};
use steersman_cpu::map;

static KERNELS: LazyLock<Option<Vec<Arc<dyn Kernel>>>> =
    LazyLock::new(|| hosted::with_reference(map::kernels(&hosted::cpu()), 64));

/// Units in the last place that a function may be off. Quotients have two and a half by the language's own
/// rules, roots are made of quotients.
fn ulps(op: Op) -> f64 {
    match op {
        Op::Unary(u) => match u {
            UnaryOp::Sqrt | UnaryOp::Recip => 3.0,
            UnaryOp::Rsqrt => 5.0,
            UnaryOp::Tan | UnaryOp::Gelu => 9.0,
            UnaryOp::Sinh | UnaryOp::Silu | UnaryOp::Sigmoid | UnaryOp::Erf | UnaryOp::Acos => 6.0,
            _ => 5.0,
        },
        Op::Binary(BinaryOp::Div) => 3.0,
        Op::Binary(BinaryOp::Pow) => 12.0,
        Op::Binary(BinaryOp::Atan2) => 6.0,
        _ => 1.1,
    }
}

/// Whether a workload's kernels agree. An adapter may flush what is below the normal numbers: an error of the
/// smallest of those is none.
fn agree(w: &Workload, data: &[Memory], in_place: bool) -> Result<(), String> {
    let Some(kernels) = &*KERNELS else { return Ok(()) };
    let smallest = match w.output().dtype {
        DType::F32 => f64::from(f32::MIN_POSITIVE) / f64::from(f32::EPSILON),
        _ => 0.0,
    };
    let terms = |i: usize| {
        let x = |k: usize| value(w.dtype(), data[k].element(&w.inputs()[k], i)).abs();
        smallest + if w.op() == Op::Ternary(TernaryOp::Fma) { x(0) * x(1) + x(2) } else { 0.0 }
    };
    let allowed = Allowed { ulps: ulps(w.op()), terms: &terms };
    if in_place { check_in_place(kernels, w, data, &allowed) } else { check(kernels, w, data, &allowed) }
}

/// Every op with every element type it takes.
static EVERYTHING: LazyLock<Vec<(Op, DType)>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for d in DType::ALL {
        all.extend(UnaryOp::ALL.iter().filter(|u| u.takes(d)).map(|&u| (Op::Unary(u), d)));
        all.extend(BinaryOp::ALL.iter().filter(|b| b.takes(d)).map(|&b| (Op::Binary(b), d)));
        all.extend(TernaryOp::ALL.iter().filter(|t| t.takes(d)).map(|&t| (Op::Ternary(t), d)));
    }
    all
});

/// The element type of operand `k`.
fn dtype(op: Op, d: DType, k: usize) -> DType {
    if op == Op::Ternary(TernaryOp::Where) && k == 0 { DType::Bool } else { d }
}

fn workload(op: Op, d: DType, shapes: &[&[usize]]) -> Workload {
    let operand =
        |k: usize| Operand::new(dtype(op, d, k), shapes[k.min(shapes.len() - 1)]).expect("a small operand");
    Workload::new(op, (0..op.arity()).map(operand)).expect("an op that takes this type")
}

#[test]
fn every_op_on_every_type_agrees_with_the_reference() {
    let mut wrong = Vec::new();
    // Types of 16 bits are f32 in between: a part of the ops will do, and compiling takes the time here.
    let narrow = |d: DType| matches!(d, DType::F16 | DType::BF16);
    for (i, &(op, d)) in EVERYTHING.iter().enumerate().filter(|(i, (_, d))| !narrow(*d) || i % 5 == 0) {
        for n in [0, 1, 1003] {
            let w = workload(op, d, &[&[n]]);
            let data = inputs(&w, &mut Random::new((i * 10_000 + n) as u64));
            wrong.extend(agree(&w, &data, false).err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_way_to_cut_the_work_agrees_with_the_reference() {
    for text in [
        "add f32 70001 70001",
        "exp f32 70001",
        "lt f32 70001 1",
        "add f16 70001 70001",
        "mul i32 300x300 300",
    ] {
        let w: Workload = text.parse().expect("a workload");
        let data = inputs(&w, &mut Random::new(9));
        agree(&w, &data, false).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn results_may_replace_the_first_operand() {
    for (i, &(op, d)) in EVERYTHING.iter().enumerate().filter(|(i, _)| i % 11 == 0) {
        let w = workload(op, d, &[&[37, 5]]);
        if w.output().dtype == w.inputs()[0].dtype {
            let data = inputs(&w, &mut Random::new(i as u64));
            agree(&w, &data, true).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn what_cannot_be_right_is_refused_with_a_reason() {
    let Some(kernels) = &*KERNELS else { return };
    for (text, reason) in
        [("exp f64 10", "no exp of f64"), ("add i64 10 10", "no add of i64"), ("neg i64 3", "no neg of i64")]
    {
        let w: Workload = text.parse().expect("a workload");
        for k in kernels.iter().filter(|k| !k.name().starts_with("cpu/") && k.handles(w.op())) {
            let why = k.supports(&w).expect_err("there is no such function");
            assert!(why.0.contains(reason), "{}: {why}", k.name());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn any_layout_agrees_with_the_reference(
        which in any::<prop::sample::Index>(),
        dims in shape(),
        lies in prop::collection::vec(lie(), 4),
        seed in any::<u64>(),
    ) {
        // Some pairs: their shaders are compiled for many layouts.
        let some: Vec<_> = EVERYTHING.iter().skip(3).step_by(17).collect();
        let &(op, d) = some[which.index(some.len())];
        let operands = (0..op.arity()).map(|k| lies[k].operand(dtype(op, d, k), &dims, true));
        let w = Workload::new(op, operands).expect("an op that takes this type");
        let out = lies[3].operand(w.output().dtype, &dims, false);
        let w = w.with_output(out).expect("the same shape");
        let data = inputs(&w, &mut Random::new(seed));
        agree(&w, &data, false).map_err(TestCaseError::fail)?;
    }
}
