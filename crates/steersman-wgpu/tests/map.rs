//! Every element-wise kernel of the device gives what the scalar reference of the CPU gives; see
//! `conformance/bodies/map.rs` of the CPU's tests.

#[path = "../../steersman-cpu/tests/conformance/bodies/map.rs"]
mod bodies;
#[path = "../../steersman-cpu/tests/conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;
mod hosted;

use conformance::Kernels;
use std::sync::LazyLock;
use steersman_core::{BinaryOp, DType, Op, UnaryOp, Workload};
use steersman_cpu::map;

static KERNELS: Kernels = LazyLock::new(|| hosted::with_reference(map::kernels(&hosted::cpu()), 64));

/// Compiling takes the time here: fewer lengths, and a part of the pairs for each layout.
static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    kernels: &KERNELS,
    ulps,
    flushes: true,
    flushes_anywhere: hosted::flushes_anywhere,
    lengths: &[0, 1, 1003],
    // Types of 16 bits are f32 in between: a part of the ops will do.
    tried: |i, d| !matches!(d, DType::F16 | DType::BF16) || i.is_multiple_of(5),
    one_in: 7,
    large: 70_000,
    cases: 60,
    layouts_one_in: 17,
};

/// Quotients have two and a half by the language's own rules, roots are made of quotients.
fn ulps(w: &Workload) -> f64 {
    match w.op() {
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
