//! The generator of element-wise shaders: an expression's arrays over operands of any layout.
//!
//! The plain form takes one element at a time, any layout, any type. The wide form takes four neighbours: its
//! operands lie flat (or are one element) and start at a multiple of four words; what is left over at the end
//! goes one by one.

mod shader;

use super::bound::{Bound, Spot, both};
use super::nest::{Nest, Path};
use crate::device::Gpu;
use crate::wgsl::Word;
use shader::Shader;
use smallvec::SmallVec;
use std::sync::Arc;
use steersman_core::expr::{Expr, Output};
use steersman_core::{Address, DType, Io, KernelError, Ran, Workload};

/// How the work is cut: invocations of a workgroup, and elements (or fours) each of them does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub workgroup: u32,
    pub each: u32,
}

/// Cuts by variant. The order is what is remembered of them: new ones go at the end.
pub(crate) const CUTS: [Cut; 16] = [
    cut(64, 1),
    cut(256, 1),
    cut(64, 8),
    cut(256, 16),
    cut(32, 1),
    cut(128, 1),
    cut(512, 1),
    cut(1024, 1),
    cut(128, 2),
    cut(256, 2),
    cut(128, 4),
    cut(256, 4),
    cut(256, 8),
    cut(64, 16),
    cut(64, 64),
    cut(256, 64),
];

const fn cut(workgroup: u32, each: u32) -> Cut {
    Cut { workgroup, each }
}

/// Enqueues the array outputs of `expr` for `w`.
pub(crate) fn run(
    gpu: &Gpu,
    w: &Workload,
    expr: &Arc<Expr>,
    io: Io<'_>,
    wide: bool,
    cut: Cut,
) -> Result<Ran, KernelError> {
    let arrays = || {
        expr.outputs()
            .iter()
            .zip(w.outputs())
            .zip(io.outputs())
            .filter_map(|((o, spec), at)| matches!(o, Output::Array(_)).then_some((spec, at)))
    };
    let inputs = w.inputs().len();
    let operands: SmallVec<[(&steersman_core::Operand, Address); 4]> =
        w.inputs().iter().zip(io.inputs.iter().copied()).chain(arrays()).collect();
    if operands.len() == inputs || w.dims().contains(&0) {
        return Ok(Ran::Clean);
    }
    let nest = Nest::new(w.dims(), operands.iter().map(|(o, _)| &o.strides[..]));
    let each = operands.iter().enumerate().map(|(k, (o, at))| (*at, o.dtype, k >= inputs));
    let bound = Bound::new(gpu, each)?;
    let types: SmallVec<[DType; 4]> = operands.iter().map(|(o, _)| o.dtype).collect();
    let wide = wide && fits_wide(&nest, &bound.spots, &types);
    let Some((wide, words)) = words(&bound, &types, inputs, (wide, gpu.can().f16)) else {
        return Err(KernelError::Failed("f64 and other types share a buffer".into()));
    };
    let shader =
        Shader { expr, types, inputs, nest: &nest, bound: &bound, words, wide, workgroup: cut.workgroup };
    let pipeline = gpu.pipeline(&shader.key(), || shader.source())?;
    let n = nest.elements();
    let items = if wide { n.div_ceil(4) } else { n };
    let most = gpu.limits().max_compute_workgroups_per_dimension;
    let groups = items.div_ceil(cut.workgroup * cut.each).clamp(1, most);
    let params = shader.params(n, io.scalars);
    gpu.launch(&bound.launch(&pipeline, &params, [groups, 1, 1]))
}

/// Whether four neighbours are four words in a row for everyone.
fn fits_wide(nest: &Nest, spots: &[Spot], types: &[DType]) -> bool {
    types.iter().zip(spots).enumerate().all(|(k, (d, spot))| match nest.path(k) {
        Path::Flat => d.size() <= 4 && spot.offset.is_multiple_of(4),
        Path::Fixed => d.size() <= 4,
        Path::Strided => false,
    })
}

/// What each buffer is an array of; the wide form only if everyone's view agrees.
fn words(
    bound: &Bound,
    types: &[DType],
    inputs: usize,
    (wide, f16): (bool, bool),
) -> Option<(bool, SmallVec<[Word; 8]>)> {
    let try_as = |wide: bool, f16: bool| {
        let mut words: SmallVec<[Option<Word>; 8]> = SmallVec::from_elem(None, bound.buffers.len());
        for (k, (d, spot)) in types.iter().zip(&bound.spots).enumerate() {
            let word = match d.size() {
                4 if wide => Word::Four,
                _ => Word::of(*d, k >= inputs, f16),
            };
            words[usize::from(spot.binding)] = Some(both(words[usize::from(spot.binding)], word)?);
        }
        Some(words.into_iter().map(|w| w.unwrap_or(Word::Plain)).collect())
    };
    // As f16 only what nobody takes for anything else.
    let ways = [(true, true), (true, false), (false, true), (false, false)];
    let ways = ways.into_iter().filter(|(w, h)| (wide || !w) && (f16 || !h));
    ways.filter_map(|(wide, f16)| Some((wide, try_as(wide, f16)?))).next()
}
