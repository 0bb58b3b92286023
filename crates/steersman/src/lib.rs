//! Runs every operation where it is quickest on this machine: decides, runs, measures, learns.

pub mod adaptive;
pub use adaptive::Adaptive;
