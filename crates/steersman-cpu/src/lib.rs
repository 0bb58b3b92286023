//! CPU.
pub mod context;
pub mod device;
pub mod host;
pub mod isa;
pub mod map;
pub mod math;
pub mod matmul;
pub mod memory;
pub mod moves;
pub mod plan;
pub mod probe;
pub mod rates;
pub mod reduce;
pub mod rig;
pub mod threads;

pub use device::Cpu;
