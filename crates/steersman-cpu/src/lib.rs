//! CPU.
pub mod isa;
pub mod math;
