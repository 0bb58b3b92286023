//! Fused groups of the device give what their steps give one by one on the CPU; see
//! `conformance/bodies/fused` of the CPU's tests.

#[path = "../../steersman-cpu/tests/conformance/bodies/fused/mod.rs"]
mod bodies;
#[path = "../../steersman-cpu/tests/conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;
mod hosted;

use bodies::groups::chain;
use bodies::steps::{Menu, contiguous, inputs, run};
use conformance::{Kernels, Random, encode};
use std::sync::{Arc, LazyLock};
use steersman_core::expr::Expr;
use steersman_core::{DType, DeviceId, Op, Params, Workload};
use steersman_cpu::fused;
use steersman_wgpu::DeviceOptions;

static KERNELS: Kernels = LazyLock::new(|| hosted::with_reference(fused::kernels(&hosted::cpu()), 64));

/// Every random group is a shader of its own: fewer of them.
static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    kernels: &KERNELS,
    exact: Menu {
        types: &[DType::F32, DType::I32, DType::U32, DType::U8, DType::Bool, DType::F16],
        takes: exact,
        normal: false,
    },
    all_exact: false,
    share: 1e-5,
    cases: 60,
    most: 10,
    long: 300,
    large: [300, 101],
    reduction_cases: 10,
    reduced: &[DType::F32, DType::F32, DType::I32, DType::U32, DType::Bool, DType::F16],
    wild: false,
    takes_every_reduction: false,
    long_types: &[DType::F32],
    long_shapes: &[(&[7, 9000], &[1])],
};

/// What no adapter rounds or flushes.
fn exact(op: Op, d: DType) -> bool {
    let names = [
        "neg", "abs", "sign", "relu", "floor", "ceil", "round", "trunc", "not", "rem", "min", "max", "eq",
        "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "where", "clamp",
    ];
    !d.is_float() || names.contains(&op.name())
}

#[test]
fn a_chain_of_ten_is_one_dispatch() {
    let Some(gpu) = hosted::open(DeviceOptions::default()) else { return };
    let expr = chain().expect("an expression");
    let w = Workload::fused(&expr, &[64], [0, 1].map(|_| contiguous(DType::F32, &[64]))).expect("a group");
    let kernel = gpu.kernels(DeviceId(1)).into_iter().find(|k| k.supports(&w).is_ok()).expect("a kernel");
    let before = gpu.counts().dispatches;
    let hosted = hosted::Hosted { gpu: gpu.clone(), kernel, margin: 64 };
    run(&hosted, &w, Params::SERIAL, &inputs(&w, &mut Random::new(1)), &[encode(DType::F32, 0.75)]);
    assert_eq!(gpu.counts().dispatches, before + 1);
}

#[test]
fn a_group_with_a_matrix_product_is_refused_with_a_reason() {
    let Some(gpu) = hosted::gpu() else { return };
    let mut b = Expr::builder([DType::F32, DType::F32]);
    let product = b.product(0, 1).expect("a product");
    b.output(product).expect("an output");
    let expr = Arc::new(b.finish().expect("an expression"));
    let w =
        Workload::fused(&expr, &[8, 8], [0, 1].map(|_| contiguous(DType::F32, &[8, 8]))).expect("a group");
    for k in gpu.kernels(DeviceId(1)).into_iter().filter(|k| k.handles(w.op())) {
        let why = k.supports(&w).expect_err("there is no such kernel");
        assert!(why.0.contains("matrix product"), "{}: {why}", k.name());
    }
}
