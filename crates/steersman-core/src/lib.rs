//! The words, costs, policies and learning of Steersman. Knows no device.
//!
//! Usable alone: register kernels, ask for decisions, report how long things took.
//!
//! ```
//! use std::sync::Arc;
//! use steersman_core::cost::{Machine, Terms};
//! use steersman_core::{DeviceId, Engine, Kernel, Op, Params, Refusal, Seconds, Workload};
//!
//! struct Plain;
//! impl Kernel for Plain {
//!     fn name(&self) -> &str {
//!         "mine/plain"
//!     }
//!     fn device(&self) -> DeviceId {
//!         DeviceId(0)
//!     }
//!     fn handles(&self, op: Op) -> bool {
//!         op.is_elementwise()
//!     }
//!     fn supports(&self, _: &Workload) -> Result<(), Refusal> {
//!         Ok(())
//!     }
//!     fn terms(&self, w: &Workload, _: Params, _: &Machine) -> Terms {
//!         Terms::launch(20e-9).and(w.output().elements() as f64 * 1e-9)
//!     }
//! }
//!
//! let engine = Engine::default();
//! engine.register(Arc::new(Plain))?;
//! let workload: Workload = "exp f32 1000".parse()?;
//! let decision = engine.decide(&workload)?;
//! assert_eq!(engine.name(decision.variant().kernel), "mine/plain");
//! engine.observe(&decision, Seconds(1.2e-6)); // the next decision knows
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The loop, room by room: [`workload`] (what is asked), [`candidate`] and [`kernel`] (who can do it),
//! [`cost`] (what it will take), [`policy`] (which one), [`Engine`] (all of it together), [`measure`] and
//! [`tune`] (learning on purpose), [`place`] (a whole graph at once), [`wisdom`] (remembering), [`log`] (saying why).

pub mod candidate;
pub mod cost;
mod decision;
pub mod device;
pub mod drift;
pub mod dtype;
mod engine;
pub mod explore;
pub mod expr;
pub mod guard;
mod hits;
pub mod kernel;
pub mod knobs;
pub mod log;
pub mod measure;
pub mod memory;
pub mod op;
pub mod place;
pub mod policy;
pub mod registry;
pub mod sense;
pub mod track;
pub mod tune;
pub mod units;
pub mod vary;
pub mod wisdom;
pub mod workload;

pub use candidate::Candidate;
pub use cost::Variant;
pub use decision::{Crossover, Decision, Explanation};
pub use device::{Device, DeviceId, Identity, Place, Places};
pub use dtype::{DType, rounded_to_odd};
pub use engine::{Convicted, Engine, EngineError, Observed, Remembered, Runs, Settings, glob};
pub use expr::{Expr, ExprError};
pub use kernel::{Address, Io, Kernel, KernelError, NumericClass, ParamList, Params, Ran, Refusal};
pub use knobs::{KnobError, Knobs};
pub use log::{DecisionLog, ReasonCode};
pub use memory::Memory;
pub use op::{Axes, BinaryOp, MAX_RANK, Op, OpClass, Perm, ReduceOp, TernaryOp, UnaryOp};
pub use sense::Senses;
pub use track::Tracker;
pub use units::{Bytes, Seconds};
pub use wisdom::Wisdom;
pub use workload::{Dims, Key, Layout, Operand, Strides, Workload, WorkloadError};
