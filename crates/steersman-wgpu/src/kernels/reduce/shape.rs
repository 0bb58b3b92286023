//! A reduction as two nests of loops: over results, and over what is reduced to each.

use crate::kernels::nest::Nest;
use smallvec::SmallVec;
use steersman_core::{Axes, Operand, Strides, Workload};

/// The loops of one reduction. Operands are the inputs, then the flat position in the group's shape; the
/// result is the last of `kept`.
pub(crate) struct Shape {
    pub kept: Nest,
    pub reduced: Nest,
    /// Results.
    pub outputs: u32,
    /// Elements of each.
    pub each: u32,
}

impl Shape {
    /// Over `axes` of the workload's shape, into `output`.
    pub fn new(w: &Workload, axes: Axes, output: &Operand) -> Shape {
        let dims: &[usize] = match w.expr() {
            Some(_) => w.dims(),
            None => &w.inputs()[0].dims,
        };
        let axes = axes.or_all(dims.len());
        let mut flat = Strides::from_elem(1, dims.len());
        for i in (1..dims.len()).rev() {
            flat[i - 1] = flat[i] * dims[i] as isize;
        }
        let pick = |list: &[usize], reduced: bool| -> SmallVec<[usize; 8]> {
            list.iter().enumerate().filter(|(i, _)| axes.contains(*i) == reduced).map(|(_, d)| *d).collect()
        };
        let pick_strides = |s: &[isize], reduced: bool| -> SmallVec<[isize; 8]> {
            s.iter().enumerate().filter(|(i, _)| axes.contains(*i) == reduced).map(|(_, d)| *d).collect()
        };
        let all = || w.inputs().iter().map(|o| &o.strides[..]).chain([&flat[..]]);
        let nest = |reduced: bool| {
            let mut strides: SmallVec<[SmallVec<[isize; 8]>; 4]> =
                all().map(|s| pick_strides(s, reduced)).collect();
            if !reduced {
                strides.push(output.strides.iter().copied().collect());
            }
            Nest::new(&pick(dims, reduced), strides.iter().map(|s| &s[..]))
        };
        let (kept, reduced) = (nest(false), nest(true));
        let (outputs, each) = (kept.elements(), reduced.elements());
        Shape { kept, reduced, outputs, each }
    }
}
