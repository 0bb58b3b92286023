//! Fused groups give what their steps give one by one: by `conformance/bodies/fused`, and to the bit on every
//! instruction set here.

#[path = "../conformance/bodies/fused/mod.rs"]
mod bodies;
#[path = "../conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;
mod groups;

use bodies::steps::{CPU, Menu};
use conformance::Kernels;
use std::sync::LazyLock;
use steersman_core::{DType, Op};
use steersman_cpu::fused;

/// Those for groups without a matrix product.
static KERNELS: Kernels = LazyLock::new(|| {
    Some(fused::kernels(&CPU).into_iter().filter(|k| !k.name().ends_with("+fused")).collect())
});

static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    kernels: &KERNELS,
    exact: Menu { types: &DType::ALL, takes: exact, normal: false },
    all_exact: true,
    share: 0.0,
    cases: 400,
    most: 14,
    long: 3000,
    large: [700, 601],
    reduction_cases: 400,
    reduced: &DType::ALL,
    wild: true,
    takes_every_reduction: true,
    long_types: &[DType::F32, DType::F64, DType::F16, DType::I32, DType::U32, DType::U8, DType::Bool],
    // Few columns, many columns (more than one block), rows longer than a tile, few long rows.
    long_shapes: &[
        (&[5000, 3], &[0]),
        (&[5000, 3], &[1]),
        (&[40, 1700], &[0]),
        (&[7, 9000], &[1]),
        (&[2, 30_001], &[1]),
        (&[30_001], &[0]),
        (&[3, 70, 600], &[0, 1]),
        (&[3, 70, 600], &[1, 2]),
        (&[1000, 1], &[1]),
    ],
};

/// What every instruction set rounds alike.
fn exact(op: Op, d: DType) -> bool {
    let names = [
        "neg", "abs", "sign", "sqrt", "recip", "relu", "floor", "ceil", "round", "trunc", "not", "add",
        "sub", "mul", "div", "rem", "min", "max", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor",
        "where", "clamp",
    ];
    !d.is_float() || names.contains(&op.name())
}
