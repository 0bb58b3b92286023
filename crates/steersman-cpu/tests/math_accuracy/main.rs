//! Every function of `math`, at every level of this CPU, keeps the error stated in `math::bounds`.
//!
//! `f32` is held against `f64`, `f64` against arbitrary precision.
//! `cargo test -p steersman-cpu --test math_accuracy -- --nocapture` prints the worst errors found.

mod edges;
mod f32;
mod f64;
mod pairs;
mod reference;
