//! Every kernel of the device for convolutions gives what the definition gives; see `conformance/bodies/conv.rs` of the CPU's
//! tests.

#[path = "../../steersman-cpu/tests/conformance/bodies/conv.rs"]
mod bodies;
#[path = "../../steersman-cpu/tests/conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;
mod hosted;

use conformance::Kernels;
use std::sync::LazyLock;
use steersman_core::DType;

static KERNELS: Kernels = LazyLock::new(|| hosted::with_reference(Vec::new(), 64));

static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    kernels: &KERNELS,
    least: |dtype| if dtype == DType::F64 { 0 } else { 5 },
    cases: 60,
};
