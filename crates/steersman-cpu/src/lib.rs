//! CPU.
pub mod isa;
pub mod matmul;
