//! Several places: the promises of arrays once more, with everything computed on a device that has memory of its own,
//! then what is moved and what is not, what attracts work, and what happens when a device fails.

#[path = "../arrays/apply.rs"]
mod apply;
#[path = "../arrays/basics.rs"]
mod basics;
#[path = "../arrays/graphs.rs"]
mod graphs;
mod lent;
mod lost;
mod moves;
mod overlap;
#[path = "../arrays/promotion.rs"]
mod promotion;
#[path = "../arrays/shapes.rs"]
mod shapes;
mod simulated;

use steersman::{Knobs, Runtime};

/// A runtime that keeps to itself, with a device that is always quickest, and more knobs set.
pub fn runtime_with(knobs: &[(&str, &str)]) -> Runtime {
    let mut k = Knobs::default();
    k.set("webgpu.enabled", "false").unwrap();
    for (name, value) in [("wisdom.enabled", "false"), ("calibrate.background", "false")].iter().chain(knobs)
    {
        k.set(name, value).unwrap();
    }
    let rt = Runtime::with_knobs(k).unwrap();
    let (id, _) = simulated::add(&rt, "sim", simulated::INSTANT);
    rt.engine().set_wire(id, simulated::wire(1e-12, 1e18));
    rt
}

/// The same; frozen, so that it stays quickest whatever the clock says.
pub fn runtime() -> Runtime {
    runtime_with(&[("frozen", "true")])
}

#[test]
fn everything_is_computed_away() {
    let rt = runtime();
    let x = rt.from_vec(vec![1.0f32, 2.0, 3.0], [3]).unwrap();
    let y = (&x * 2.0).exp().sum(..);
    let plan = rt.explain(&y).unwrap();
    assert!(plan.stages.iter().all(|s| s.place == "sim:0"), "{plan}");
    assert!((y.item::<f32>().unwrap() - (2f32.exp() + 4f32.exp() + 6f32.exp())).abs() < 1e-3);
}
