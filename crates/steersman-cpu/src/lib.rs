//! CPU.
pub mod isa;
