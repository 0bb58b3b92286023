//! Every element-wise kernel gives what the scalar reference gives; see `conformance/bodies/map.rs`.

#[path = "conformance/bodies/map.rs"]
mod bodies;
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;

use conformance::Kernels;
use std::sync::{Arc, LazyLock};
use steersman_core::{DType, DeviceId, Workload};
use steersman_cpu::math::bounds::{Float, ulp_bound};
use steersman_cpu::{context::Context, host::Host, map, threads::Team};

static KERNELS: Kernels = LazyLock::new(|| {
    let team = Arc::new(Team::new(3));
    // Where nothing is known of caches they are taken to be small, and small results are streamed past them.
    let host = Arc::new(Host { caches: Vec::new(), ..Host::detect() });
    Some(map::kernels(&Context { device: DeviceId(0), team, host }))
});

static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    kernels: &KERNELS,
    ulps,
    flushes: false,
    flushes_anywhere: || false,
    // Whole blocks, ends of every length, more than one piece.
    lengths: &[0, 1, 5, 16, 100, 1733],
    tried: |_, _| true,
    one_in: 1,
    // Past the cache, and large enough to stream.
    large: 1100 << 10,
    cases: 600,
    layouts_one_in: 1,
};

/// The stated bound and what the library's own function may be off.
fn ulps(w: &Workload) -> f64 {
    let float = if w.dtype() == DType::F64 { Float::F64 } else { Float::F32 };
    ulp_bound(w.op().name(), float).unwrap_or(0.5) + 2.0
}

#[test]
fn only_what_leaves_the_caches_is_streamed() {
    let kernels = KERNELS.as_ref().expect("there is always a CPU");
    if let Some(kernel) = kernels.iter().find(|k| k.name().contains("stream")) {
        let refused = |text: &str| kernel.supports(&text.parse().expect("a workload")).is_err();
        assert!(refused("neg f32 1000") && !refused("neg f32 300000"));
    }
}
