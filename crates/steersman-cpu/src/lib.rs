//! CPU.
pub mod context;
pub mod host;
pub mod isa;
pub mod math;
pub mod memory;
pub mod moves;
pub mod probe;
pub mod reduce;
pub mod threads;
