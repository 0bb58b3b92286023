//! CPU.
pub mod isa;
pub mod threads;
