//! The words, costs, policies and learning of Steersman. Knows no device.
pub mod cost;
pub mod device;
pub mod dtype;
pub mod kernel;
pub mod knobs;
pub mod log;
pub mod op;
pub mod sense;
pub mod track;
pub mod units;
pub mod wisdom;
pub mod workload;

pub use device::{Device, DeviceId, Identity, Place};
pub use dtype::DType;
pub use kernel::{Address, Io, Kernel, KernelError, NumericClass, ParamList, Params, Ran, Refusal};
pub use knobs::{KnobError, Knobs};
pub use log::{DecisionLog, ReasonCode};
pub use op::{Axes, BinaryOp, MAX_RANK, Op, OpClass, Perm, ReduceOp, TernaryOp, UnaryOp};
pub use sense::Senses;
pub use track::Tracker;
pub use units::{Bytes, Seconds};
pub use wisdom::Wisdom;
pub use workload::{Dims, Key, Layout, Operand, Strides, Workload, WorkloadError};
