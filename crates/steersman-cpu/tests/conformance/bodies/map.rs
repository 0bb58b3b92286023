//! Every element-wise kernel gives what the scalar reference gives: every op, element type and layout, every
//! way to cut the work, in place too.

use crate::UNDER_TEST;
use crate::conformance::{
    Allowed, Kernels, Memory, Random, check, check_in_place, inputs, lie, shape, value,
};
use proptest::prelude::*;
use std::sync::LazyLock;
use steersman_core::{BinaryOp, DType, Op, Operand, Strides, TernaryOp, UnaryOp, Workload};

/// What a test file says of its device.
pub struct UnderTest {
    pub kernels: &'static Kernels,
    /// Units in the last place that a result may be off.
    pub ulps: fn(&Workload) -> f64,
    /// Whether f32 below the normal numbers may be flushed: an error of the smallest of those is none.
    pub flushes: bool,
    /// Whether that may be also of operands, and of the f32 in between of bf16, which has the same normal numbers.
    pub flushes_anywhere: fn() -> bool,
    /// Lengths at which every op is tried.
    pub lengths: &'static [usize],
    /// Whether the pair of this index is among those tried at every length.
    pub tried: fn(usize, DType) -> bool,
    /// Of all pairs, one in so many with operands that repeat, and in place.
    pub one_in: usize,
    /// Bytes of an operand that is large.
    pub large: usize,
    /// Random layouts, of one pair in so many.
    pub cases: u32,
    pub layouts_one_in: usize,
}

/// Whether a workload's kernels agree, in place if so asked; for `fma` also within the bound of its terms.
fn agree(w: &Workload, data: &[Memory], in_place: bool) -> Result<(), String> {
    let Some(kernels) = &**UNDER_TEST.kernels else { return Ok(()) };
    let least = f64::from(f32::MIN_POSITIVE);
    let anywhere = (UNDER_TEST.flushes_anywhere)();
    let smallest = match w.output().dtype {
        DType::F32 if UNDER_TEST.flushes => least / f64::from(f32::EPSILON),
        DType::BF16 if anywhere => least / f64::from(f32::EPSILON),
        _ => 0.0,
    };
    let terms = |i: usize| {
        let x = |k: usize| value(w.dtype(), data[k].element(&w.inputs()[k], i)).abs();
        // One that is flushed before it is multiplied may make anything: a number that is not one of an infinity.
        if anywhere
            && w.dtype() == DType::BF16
            && (0..data.len()).any(|k| (f64::MIN_POSITIVE..least).contains(&x(k)))
        {
            return f64::INFINITY;
        }
        smallest + if w.op() == Op::Ternary(TernaryOp::Fma) { x(0) * x(1) + x(2) } else { 0.0 }
    };
    let allowed = Allowed { ulps: (UNDER_TEST.ulps)(w), terms: &terms };
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

/// A workload whose operands have these shapes (the last repeats for further operands).
fn workload(op: Op, d: DType, shapes: &[&[usize]]) -> Workload {
    let operand =
        |k: usize| Operand::new(dtype(op, d, k), shapes[k.min(shapes.len() - 1)]).expect("a small operand");
    Workload::new(op, (0..op.arity()).map(operand)).expect("an op that takes this type")
}

fn outcome(w: &Workload, seed: u64) -> Result<(), String> {
    agree(w, &inputs(w, &mut Random::new(seed)), false)
}

#[test]
fn every_op_on_every_type_agrees_with_the_reference() {
    let mut wrong = Vec::new();
    for (i, &(op, d)) in EVERYTHING.iter().enumerate().filter(|(i, (_, d))| (UNDER_TEST.tried)(*i, *d)) {
        for n in UNDER_TEST.lengths {
            wrong.extend(outcome(&workload(op, d, &[&[*n]]), (i * 10_000 + n) as u64).err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn operands_that_repeat_agree_with_the_reference() {
    let several = EVERYTHING.iter().enumerate().filter(|(_, (op, _))| op.arity() > 1);
    for (i, &(op, d)) in several.step_by(UNDER_TEST.one_in) {
        let shapes: [&[&[usize]]; 7] = [
            &[&[300], &[1]],
            &[&[1], &[300]],
            &[&[700, 3], &[3]],
            &[&[7, 90], &[90]],
            &[&[7, 90], &[7, 1]],
            &[&[90], &[7, 90], &[7, 1]],
            &[&[1], &[1], &[5, 1, 33]],
        ];
        for (j, shapes) in shapes.into_iter().enumerate() {
            outcome(&workload(op, d, shapes), (i * 100 + j) as u64).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn large_operands_agree_in_every_way_to_cut_the_work() {
    for (name, d) in [
        ("add", DType::F32),
        ("sin", DType::F32),
        ("exp", DType::F64),
        ("lt", DType::F64),
        ("mul", DType::F16),
        ("tanh", DType::BF16),
        ("where", DType::I32),
        ("max", DType::U32),
        ("clamp", DType::U8),
    ] {
        let op = Op::from_name(name).expect("an op");
        let n = UNDER_TEST.large / d.size() + 37;
        for (seed, shapes) in [(1, &[&[n][..]][..]), (2, &[&[n / 257, 257], &[257]])] {
            outcome(&workload(op, d, shapes), seed).unwrap_or_else(|e| panic!("{e}"));
        }
    }
    for text in [
        "add f32 70001 70001",
        "exp f32 70001",
        "lt f32 70001 1",
        "add f16 70001 70001",
        "mul i32 300x300 300",
        "div u32 300x300 300",
    ] {
        outcome(&text.parse().expect("a workload"), 9).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn results_may_replace_the_first_operand() {
    for (i, &(op, d)) in EVERYTHING.iter().enumerate().step_by(UNDER_TEST.one_in) {
        let w = workload(op, d, &[&[37, 29]]);
        if w.output().dtype != w.inputs()[0].dtype {
            continue;
        }
        // Contiguous, transposed, and with gaps; the other operands lie as they like.
        for (j, strides) in [[29, 1], [1, 37], [-90, 3]].into_iter().enumerate() {
            let own = Operand::strided(d, &[37, 29], Strides::from_slice(&strides)).expect("a small operand");
            let mut operands = w.inputs().to_vec();
            operands[0] = own.clone();
            let w = Workload::new(op, operands).and_then(|w| w.with_output(own)).expect("the same shapes");
            let data = inputs(&w, &mut Random::new((i * 10 + j) as u64));
            agree(&w, &data, true).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn large_results_may_replace_the_first_operand() {
    for op in ["sin", "exp", "neg"] {
        let w: Workload = format!("{op} f32 90000").parse().expect("a workload");
        let data = inputs(&w, &mut Random::new(3));
        agree(&w, &data, true).unwrap_or_else(|e| panic!("{e}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: UNDER_TEST.cases, ..ProptestConfig::default() })]
    #[test]
    fn any_layout_agrees_with_the_reference(
        which in any::<prop::sample::Index>(),
        dims in shape(),
        lies in prop::collection::vec(lie(), 4),
        seed in any::<u64>(),
    ) {
        let some: Vec<_> = EVERYTHING.iter().skip(3).step_by(UNDER_TEST.layouts_one_in).collect();
        let some = if UNDER_TEST.layouts_one_in == 1 { EVERYTHING.iter().collect() } else { some };
        let &(op, d) = some[which.index(some.len())];
        let operands = (0..op.arity()).map(|k| lies[k].operand(dtype(op, d, k), &dims, true));
        let w = Workload::new(op, operands).expect("an op that takes this type");
        let out = lies[3].operand(w.output().dtype, &dims, false);
        let w = w.with_output(out).expect("the same shape");
        outcome(&w, seed).map_err(TestCaseError::fail)?;
    }
}
