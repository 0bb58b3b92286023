//! Every kernel for convolutions gives what the definition gives; see `conformance/bodies/conv.rs`.

#[path = "conformance/bodies/conv.rs"]
mod bodies;
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;

use conformance::Kernels;
use std::sync::{Arc, LazyLock};
use steersman_core::{DType, DeviceId};
use steersman_cpu::{context::Context, conv, host::Host, threads::Team};

static KERNELS: Kernels = LazyLock::new(|| {
    let team = Arc::new(Team::new(3));
    Some(conv::kernels(&Context { device: DeviceId(0), team, host: Arc::new(Host::detect()) }))
});

static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    kernels: &KERNELS,
    least: |dtype| if matches!(dtype, DType::F32 | DType::F64) { 6 } else { 1 },
    cases: 200,
};
