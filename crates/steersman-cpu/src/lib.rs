//! CPU.
pub mod context;
pub mod host;
pub mod isa;
pub mod map;
pub mod math;
pub mod memory;
pub mod probe;
pub mod threads;
pub mod matmul;
