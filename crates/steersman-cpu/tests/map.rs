//! Every element-wise kernel gives what the scalar reference gives: every op, element type, layout and
//! thread count, in place too.

mod conformance;

use conformance::{Allowed, Memory, Random, check, check_in_place, inputs, lie, shape, value};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use steersman_core::{BinaryOp, DType, DeviceId, Kernel, Op, Operand, Strides, TernaryOp, UnaryOp, Workload};
use steersman_cpu::context::Context;
use steersman_cpu::host::Host;
use steersman_cpu::map;
use steersman_cpu::math::bounds::{Float, ulp_bound};
use steersman_cpu::threads::Team;

static KERNELS: LazyLock<Vec<Arc<dyn Kernel>>> = LazyLock::new(|| {
    map::kernels(&Context {
        device: DeviceId(0),
        team: Arc::new(Team::new(3)),
        host: Arc::new(Host::detect()),
    })
});

/// Whether a workload's kernels agree, in place if so asked: within the stated bound and what the library's
/// own function may be off, and for `fma` also within that of its terms.
fn agree(w: &Workload, data: &[Memory], in_place: bool) -> Result<(), String> {
    let float = if w.dtype() == DType::F64 { Float::F64 } else { Float::F32 };
    let terms = |i: usize| {
        let x = |k: usize| value(w.dtype(), data[k].element(&w.inputs()[k], i)).abs();
        if w.op() == Op::Ternary(TernaryOp::Fma) { x(0) * x(1) + x(2) } else { 0.0 }
    };
    let allowed = Allowed { ulps: ulp_bound(w.op().name(), float).unwrap_or(0.5) + 2.0, terms: &terms };
    if in_place { check_in_place(&KERNELS, w, data, &allowed) } else { check(&KERNELS, w, data, &allowed) }
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

fn assert_agree(w: &Workload, seed: u64) {
    let data = inputs(w, &mut Random::new(seed));
    agree(w, &data, false).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn every_op_on_every_type_agrees_with_the_reference() {
    for (i, &(op, d)) in EVERYTHING.iter().enumerate() {
        // Whole blocks, ends of every length, more than one piece.
        for n in [0, 1, 5, 16, 100, 1733] {
            assert_agree(&workload(op, d, &[&[n]]), (i * 10_000 + n) as u64);
        }
    }
}

#[test]
fn operands_that_repeat_agree_with_the_reference() {
    for (i, &(op, d)) in EVERYTHING.iter().enumerate().filter(|(_, (op, _))| op.arity() > 1) {
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
            assert_agree(&workload(op, d, shapes), (i * 100 + j) as u64);
        }
    }
}

#[test]
fn large_operands_agree_on_several_threads_and_past_the_cache() {
    let of = |name: &str| Op::from_name(name).expect("an op");
    for (op, d) in [
        (of("add"), DType::F32),
        (of("sin"), DType::F32),
        (of("exp"), DType::F64),
        (of("lt"), DType::F64),
        (of("mul"), DType::F16),
        (of("tanh"), DType::BF16),
        (of("where"), DType::I32),
        (of("clamp"), DType::U8),
    ] {
        let n = (1100 << 10) / d.size() + 37;
        assert_agree(&workload(op, d, &[&[n]]), 1);
        assert_agree(&workload(op, d, &[&[n / 257, 257], &[257]]), 2);
    }
    let streaming = KERNELS.iter().find(|k| k.name().contains("stream"));
    if let Some(kernel) = streaming {
        let refused = |text: &str| kernel.supports(&text.parse().expect("a workload")).is_err();
        assert!(refused("neg f32 1000") && !refused("neg f32 300000"));
    }
}

#[test]
fn every_op_works_in_place() {
    for (i, &(op, d)) in EVERYTHING.iter().enumerate() {
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
            let mut random = Random::new((i * 10 + j) as u64);
            let data: Vec<Memory> = inputs(&w, &mut random);
            agree(&w, &data, true).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn in_place_on_several_threads_and_large_enough_to_stream() {
    for op in ["sin", "exp", "neg"] {
        let w: Workload = format!("{op} f32 90000").parse().expect("a workload");
        let data = inputs(&w, &mut Random::new(3));
        agree(&w, &data, true).unwrap_or_else(|e| panic!("{e}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]
    #[test]
    fn any_layout_agrees_with_the_reference(
        which in any::<prop::sample::Index>(),
        dims in shape(),
        lies in prop::collection::vec(lie(), 4),
        seed in any::<u64>(),
    ) {
        let (op, d) = EVERYTHING[which.index(EVERYTHING.len())];
        let operands = (0..op.arity()).map(|k| lies[k].operand(dtype(op, d, k), &dims, true));
        let w = Workload::new(op, operands).expect("an op that takes this type");
        let out = lies[3].operand(w.output().dtype, &dims, false);
        let w = w.with_output(out).expect("the same shape");
        let data = inputs(&w, &mut Random::new(seed));
        agree(&w, &data, false).map_err(TestCaseError::fail)?;
    }
}
