//! Promises of arrays: semantics, laziness, fusion, limits.

mod apply;
mod basics;
mod compose;
mod display;
mod errors;
#[cfg(feature = "ndarray")]
mod exchange;
mod graphs;
mod joined;
mod limits;
mod numpy;
mod promotion;
mod rust;
mod shapes;

use steersman::{Knobs, Runtime};

/// A runtime that keeps to itself, with more knobs set.
pub fn runtime_with(knobs: &[(&str, &str)]) -> Runtime {
    let mut k = Knobs::default();
    k.set("webgpu.enabled", "false").unwrap();
    for (name, value) in [("wisdom.enabled", "false"), ("calibrate.background", "false")].iter().chain(knobs)
    {
        k.set(name, value).unwrap();
    }
    Runtime::with_knobs(k).unwrap()
}

/// A runtime that keeps to itself.
pub fn runtime() -> Runtime {
    runtime_with(&[])
}
