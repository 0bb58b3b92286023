//! The runtime on the real CPU.

mod promises;

use steersman::{Knobs, Runtime};

/// A runtime that keeps to itself, with more knobs set.
pub fn runtime_with(knobs: &[(&str, &str)]) -> Runtime {
    let own = [("webgpu.enabled", "false"), ("wisdom.enabled", "false"), ("calibrate.background", "false")];
    let mut k = Knobs::default();
    own.iter().chain(knobs).for_each(|(name, value)| k.set(name, value).unwrap());
    Runtime::with_knobs(k).unwrap()
}

/// A runtime that keeps to itself.
pub fn runtime() -> Runtime {
    runtime_with(&[])
}
