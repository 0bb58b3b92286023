//! Every product kernel of the device agrees with the definition; see `conformance/bodies/matmul.rs` of the
//! CPU's tests.

#[path = "../../steersman-cpu/tests/conformance/bodies/matmul.rs"]
mod bodies;
#[path = "../../steersman-cpu/tests/conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;
mod hosted;

use conformance::Kernels;
use std::sync::LazyLock;
use steersman_core::{DType, Op, Workload};

static KERNELS: Kernels = LazyLock::new(|| hosted::with_reference(Vec::new(), 64));

static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    kernels: &KERNELS,
    least: |_| 3,
    types: &[DType::F32, DType::F32, DType::I32, DType::U32, DType::F16],
    any_output: true,
    most: 40,
    cases: 60,
};

#[test]
fn four_at_a_time_is_only_for_what_comes_in_fours() {
    let Some(kernels) = &*KERNELS else { return };
    let vec4 = kernels.iter().find(|k| k.name().ends_with("matmul-vec4")).expect("such a kernel");
    let takes = |text: &str| vec4.supports(&text.parse().expect("a workload")).is_ok();
    assert!(takes("matmul f32 5x7 7x8"));
    assert!(!takes("matmul f32 5x7 7x9"));
    assert!(!takes("matmul f32 5x7 7x8:1,7"));
    assert!(!takes("matmul i32 5x7 7x8"));
}

#[test]
fn i64_is_refused_with_a_reason() {
    let Some(kernels) = &*KERNELS else { return };
    let w: Workload = "matmul i64 5x7 7x8".parse().expect("a workload");
    for k in kernels.iter().filter(|k| k.handles(Op::MatMul)) {
        assert!(k.supports(&w).expect_err("no such type").0.contains("64-bit"), "{}", k.name());
    }
}
