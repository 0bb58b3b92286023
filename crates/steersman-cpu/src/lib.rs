//! CPU.
pub mod isa;
pub mod memory;
pub mod threads;
