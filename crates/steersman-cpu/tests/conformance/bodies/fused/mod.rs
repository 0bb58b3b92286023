//! Fused groups give what their steps give one by one: any expression, shape and layout.

pub mod groups;
mod reductions;
pub mod steps;

use crate::conformance::Kernels;
use steersman_core::DType;

/// What a test file says of its device.
pub struct UnderTest {
    pub kernels: &'static Kernels,
    /// What its steps do in the bits of the reference.
    pub exact: steps::Menu,
    /// Whether every kernel promises those bits, and takes every such group.
    pub all_exact: bool,
    /// The share of max(1, |x|) by which functions of ordinary numbers may be off.
    pub share: f64,
    /// Random groups of at most so many steps, and the steps of a long one.
    pub cases: u32,
    pub most: usize,
    pub long: usize,
    /// Elements of a large group, by their dimensions.
    pub large: [usize; 2],
    /// Random reductions, of these types.
    pub reduction_cases: u32,
    pub reduced: &'static [DType],
    /// Whether numbers of any size are reduced.
    pub wild: bool,
    /// Whether every kernel takes reductions of leading and of trailing axes.
    pub takes_every_reduction: bool,
    /// Reductions that take every way: types, dimensions and axes.
    pub long_types: &'static [DType],
    pub long_shapes: &'static [(&'static [usize], &'static [usize])],
}
