//! Every kernel for moves writes what the definition says; see `conformance/bodies/moves.rs`.

#[path = "conformance/bodies/moves.rs"]
mod bodies;
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;

use conformance::Kernels;
use std::sync::{Arc, LazyLock};
use steersman_core::{DType, DeviceId, Kernel, Workload};
use steersman_cpu::{context::Context, host::Host, moves, threads::Team};

static KERNELS: Kernels = LazyLock::new(|| {
    let team = Arc::new(Team::new(3));
    // Where nothing is known of caches they are taken to be small, and small results are streamed past them.
    let host = Arc::new(Host { caches: Vec::new(), ..Host::detect() });
    Some(moves::kernels(&Context { device: DeviceId(0), team, host }))
});

/// Larger than the caches, with rows of the result that begin at cache lines.
const STREAMED: [&str; 4] = [
    "transpose f32 1024x512",
    "transpose u8 2048x1024",
    "transpose f64 3x256x208 perm=0,2,1",
    "copy f32 700001",
];
/// As large, but with rows that begin anywhere.
const OFF_THE_LINES: &str = "transpose f32 1023x1025";

static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    kernels: &KERNELS,
    large: &[STREAMED[0], STREAMED[1], STREAMED[2], STREAMED[3], OFF_THE_LINES],
    types: &DType::ALL,
    cases: 300,
};

fn kernels() -> &'static [Arc<dyn Kernel>] {
    KERNELS.as_ref().expect("there is always a CPU")
}

#[test]
fn results_larger_than_the_caches_are_streamed() {
    for text in STREAMED {
        let w: Workload = text.parse().expect("a workload");
        let streams = kernels().iter().filter(|k| k.name() == "cpu/move-stream" && k.supports(&w).is_ok());
        assert_eq!(streams.count(), cfg!(target_arch = "x86_64") as usize, "{text}");
    }
}

#[test]
fn rows_off_the_cache_lines_are_not_streamed() {
    let w: Workload = OFF_THE_LINES.parse().expect("a workload");
    let refused: Vec<String> =
        kernels().iter().filter_map(|k| k.supports(&w).err()).map(|r| r.to_string()).collect();
    if cfg!(target_arch = "x86_64") {
        assert_eq!(refused, ["rows of the result do not begin at cache lines"]);
    }
}
