//! Sources: how elements are stored and computed with in WGSL.
//!
//! Buffers are arrays of words; elements are taken out of them by bits, so that every type but f64 needs no
//! more than the language's core, subnormals and NaN survive being moved, and 16-bit floats are rounded here
//! (to nearest, ties to even) rather than as the driver likes. They are computed with in f32, as everywhere.

mod element;
mod functions;
mod library;
mod steps;

pub(crate) use element::{Word, bits, loaded, stored, value_type};
pub(crate) use library::{Library, Wanted};
pub(crate) use steps::{Program, computable, turns};
