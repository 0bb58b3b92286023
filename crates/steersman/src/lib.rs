//! Steersman runs every operation where it is quickest on the machine at hand: which kernel, on how many
//! threads, with which parameters. It measures instead of guessing, learns from every run, and can say why.
//!
//! - [`Runtime`] owns devices, engine and wisdom; [`Runtime::eval`] runs an op on [`View`]s of your data.
//! - [`Array`] is numeric work written down: lazy, fused, and run where it is quickest when it is read.
//! - [`Adaptive`] makes one function of several implementations of anything.
//! - [`core`] is the decision engine alone, [`cpu`] the CPU device.

pub mod adaptive;
pub mod array;
mod background;
mod calibrate;
mod crossover;
mod error;
pub mod plan;
mod refresh;
mod regret;
mod remember;
mod runtime;
mod unmet;
mod view;

pub use adaptive::Adaptive;
pub use array::{Array, Axis, Over, Seed, Slice};
pub use calibrate::{Calibrate, CalibrationReport, Step};
pub use crossover::parallel_from;
pub use error::Error;
pub use plan::{Plan, PlanInput, PlanStage, PlanTransfer};
pub use regret::{RegretReport, RegretRow};
pub use runtime::Runtime;
pub use steersman_core as core;
pub use steersman_core::Knobs;
pub use steersman_core::Workload;
pub use steersman_cpu as cpu;
#[cfg(feature = "webgpu")]
pub use steersman_wgpu as webgpu;
pub use view::{Element, Tensor, View, ViewMut};

/// The text of a panic.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "with no message".into())
}
