//! CPU.
pub mod host;
pub mod isa;
pub mod memory;
pub mod probe;
pub mod threads;
