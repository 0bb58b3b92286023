//! Every product kernel agrees with the definition; see `conformance/bodies/matmul.rs`.

mod blocks;
#[path = "../conformance/bodies/matmul.rs"]
mod bodies;
#[path = "../conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;

use conformance::Kernels;
use std::sync::{Arc, LazyLock};
use steersman_core::{DType, DeviceId};
use steersman_cpu::{context::Context, host::Host, matmul, threads::Team};

static KERNELS: Kernels = LazyLock::new(|| {
    let ctx = Context { device: DeviceId(0), team: Arc::new(Team::new(3)), host: Arc::new(Host::detect()) };
    let all = matmul::candidates::kernels(&ctx, None);
    // What rounds its operands to bf16 is of a looser class.
    Some(all.into_iter().filter(|k| !k.name().starts_with("cpu/amx")).collect())
});

static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    kernels: &KERNELS,
    // Several ways for floats, two for what is narrow or whole.
    least: |d| if matches!(d, DType::F32 | DType::F64) { 4 } else { 2 },
    types: &[DType::F32, DType::F32, DType::F64, DType::I32, DType::U32, DType::I64, DType::F16, DType::BF16],
    any_output: false,
    most: 70,
    cases: 200,
};
