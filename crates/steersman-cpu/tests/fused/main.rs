//! Fused groups give what their steps give one by one: any expression, shape, layout and thread count.

#[path = "../conformance/element.rs"]
mod element;
mod groups;
#[path = "../conformance/layout.rs"]
mod layout;
#[path = "../conformance/memory.rs"]
mod memory;
mod reductions;
mod reference;

use layout::Lie;
use std::sync::{Arc, LazyLock};
use steersman_core::{DeviceId, Kernel};
use steersman_cpu::context::Context;
use steersman_cpu::host::Host;
use steersman_cpu::threads::Team;
use steersman_cpu::{fused, map, reduce};

static CONTEXT: LazyLock<Context> = LazyLock::new(|| Context {
    device: DeviceId(0),
    team: Arc::new(Team::new(3)),
    host: Arc::new(Host::detect()),
});
/// Those for groups without a matrix product.
static FUSED: LazyLock<Vec<Arc<dyn Kernel>>> = LazyLock::new(|| {
    fused::kernels(&CONTEXT).into_iter().filter(|k| !k.name().ends_with("+fused")).collect()
});
static MAP: LazyLock<Vec<Arc<dyn Kernel>>> = LazyLock::new(|| map::kernels(&CONTEXT));
static REDUCE: LazyLock<Vec<Arc<dyn Kernel>>> = LazyLock::new(|| reduce::kernels(&CONTEXT));

/// Contiguous operands.
fn straight() -> Vec<Lie> {
    let lie =
        Lie { order: vec![0, 1, 2, 3], gaps: vec![0; 4], backwards: vec![false; 4], repeats: vec![false; 4] };
    vec![lie; 5]
}
