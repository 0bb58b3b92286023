//! Every kernel of the device for moves writes what the definition says; see `conformance/bodies/moves.rs` of
//! the CPU's tests.

#[path = "../../steersman-cpu/tests/conformance/bodies/moves.rs"]
mod bodies;
#[path = "../../steersman-cpu/tests/conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;
mod hosted;

use conformance::Kernels;
use std::sync::LazyLock;
use steersman_core::{DType, Workload};

static KERNELS: Kernels = LazyLock::new(|| hosted::with_reference(Vec::new(), 64));

static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    kernels: &KERNELS,
    large: &["transpose f32 1024x512", "transpose u8 600x1001", "copy f32 700001"],
    types: &[DType::F32, DType::F64, DType::F16, DType::U32, DType::Bool],
    cases: 80,
};

#[test]
fn large_matrices_and_batches_are_transposed_in_tiles() {
    let Some(kernels) = &*KERNELS else { return };
    let tiled = kernels.iter().find(|k| k.name().ends_with("tiled")).expect("such a kernel");
    for text in [
        "transpose f32 300x211",
        "transpose f64 130x70",
        "transpose f32 3x65x67 perm=0,2,1",
        "transpose f32 9x20x31 perm=2,1,0",
    ] {
        let w: Workload = text.parse().expect("a workload");
        assert!(tiled.supports(&w).is_ok(), "{text}");
    }
}
