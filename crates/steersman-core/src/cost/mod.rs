//! What things will cost.
mod machine;
mod terms;
pub use machine::{Level, Machine, Traffic};
pub use terms::{MAX_TERMS, Terms};
