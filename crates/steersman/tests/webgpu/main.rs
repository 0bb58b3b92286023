//! A WebGPU adapter: the promises of arrays once more, with everything it can compute computed there, then what
//! programs see of it. Where there is none the tests say so and pass; CI requires one
//! (`STEERSMAN_REQUIRE_ADAPTER`).

#![cfg(feature = "webgpu")]

#[path = "../arrays/apply.rs"]
mod apply;
#[path = "../arrays/basics.rs"]
mod basics;
#[path = "../arrays/compose.rs"]
mod compose;
#[path = "../arrays/display.rs"]
mod display;
#[path = "../arrays/errors.rs"]
mod errors;
#[cfg(feature = "ndarray")]
#[path = "../arrays/exchange.rs"]
mod exchange;
#[path = "../arrays/graphs.rs"]
mod graphs;
#[path = "../arrays/joined.rs"]
mod joined;
mod leaving;
#[path = "../arrays/limits.rs"]
mod limits;
#[path = "../arrays/numpy.rs"]
mod numpy;
mod programs;
#[path = "../runtime/promises.rs"]
mod promises;
#[path = "../arrays/promotion.rs"]
mod promotion;
#[path = "../arrays/rust.rs"]
mod rust;
mod searching;
#[path = "../arrays/shapes.rs"]
mod shapes;
mod troubles;

use std::sync::{Arc, LazyLock};
use steersman::core::cost::{Level, Machine};
use steersman::core::place::Wire;
use steersman::core::{Bytes, Device, DeviceId, Place, Seconds};
use steersman::webgpu::{DeviceOptions, Gpu, adapters};
use steersman::{Knobs, Runtime};

/// An adapter opened for one test: a software one if there is one, as in CI.
pub fn adapter(options: DeviceOptions) -> Option<Arc<Gpu>> {
    let mut found = adapters();
    found.sort_by_key(|f| !f.software);
    let required = std::env::var_os("STEERSMAN_REQUIRE_ADAPTER").is_some_and(|v| v != "0");
    assert!(!found.is_empty() || !required, "STEERSMAN_REQUIRE_ADAPTER is set and there is no adapter");
    if found.is_empty() {
        println!("on the host alone: no WebGPU adapter");
    }
    let found = found.first()?;
    Some(Gpu::open(found, options).expect("an adapter that was listed opens"))
}

/// One for all tests that only compute.
fn gpu() -> Option<Arc<Gpu>> {
    static GPU: LazyLock<Option<Arc<Gpu>>> = LazyLock::new(|| adapter(DeviceOptions::default()));
    GPU.clone()
}

/// Rates that nothing on a CPU comes near, except what tests say takes a tenth of a launch.
fn instant() -> Machine {
    let level = Level {
        name: "main".into(),
        capacity: None,
        private: false,
        copy: vec![1e20],
        read: vec![1e20],
        stream: Vec::new(),
    };
    let peak = [("wgsl".to_string(), 1e25)].into();
    Machine { levels: vec![level], peak_f32: peak, handoff: Some(1e-11), ..Machine::default() }
}

/// A link that was measured to take nothing.
fn no_way() -> Wire {
    let mut wire = Wire::default();
    for lane in [&mut wire.out, &mut wire.home] {
        (0..64u64).for_each(|i| lane.add(Bytes(4096 << (i % 12)), Seconds(1e-12)));
    }
    wire
}

fn at_home(knobs: &[(&str, &str)]) -> Runtime {
    let mut k = Knobs::default();
    k.set("webgpu.enabled", "false").unwrap();
    for (name, value) in [("wisdom.enabled", "false"), ("calibrate.background", "false")].iter().chain(knobs)
    {
        k.set(name, value).unwrap();
    }
    Runtime::with_knobs(k).unwrap()
}

/// Adds an adapter that is said to be quickest at everything; its kernels' names start with `prefix`.
pub fn add(rt: &Runtime, gpu: &Arc<Gpu>, prefix: &str) -> DeviceId {
    let identity = gpu.identity().clone();
    let device = Device { identity, place: Place::Device(DeviceId(1)), machine: instant() };
    let id = rt.add_accelerator(device, gpu.clone(), |id| gpu.kernels_as(id, prefix));
    rt.engine().set_wire(id, no_way());
    id
}

/// A runtime that keeps to itself with this adapter, and more knobs set.
pub fn with_adapter(gpu: &Arc<Gpu>, knobs: &[(&str, &str)]) -> Runtime {
    let rt = at_home(knobs);
    add(&rt, gpu, &gpu.identity().family);
    rt
}

/// The same with the adapter of all tests, where there is one.
pub fn runtime_with(knobs: &[(&str, &str)]) -> Runtime {
    match gpu() {
        Some(gpu) => with_adapter(&gpu, knobs),
        None => at_home(knobs),
    }
}

/// The same; frozen, so that it stays quickest whatever the clock says.
pub fn runtime() -> Runtime {
    runtime_with(&[("frozen", "true")])
}

#[test]
fn everything_is_computed_on_the_adapter() {
    let Some(gpu) = gpu() else { return };
    let rt = runtime();
    let x = rt.from_vec(vec![1.0f32, 2.0, 3.0], [3]).unwrap();
    let y = (&x * 2.0).exp().sum(..);
    let plan = rt.explain(&y).unwrap();
    assert!(plan.stages.iter().all(|s| s.place != "host"), "{plan}");
    let before = gpu.counts().dispatches;
    assert!((y.item::<f32>().unwrap() - (2f32.exp() + 4f32.exp() + 6f32.exp())).abs() < 1e-3);
    assert!(gpu.counts().dispatches > before);
}
