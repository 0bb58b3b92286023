//! Reductions on their way: which dispatches, over which buffers.

use super::Cut;
use super::shader::Shader;
use super::shape::Shape;
use crate::device::Gpu;
use crate::kernels::bound::{Bound, both};
use crate::wgsl::Word;
use smallvec::SmallVec;
use std::sync::Arc;
use steersman_core::expr::{Expr, Output, Step};
use steersman_core::{DType, Io, KernelError, Memory, Ran, Workload};

/// Who reduces what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Form {
    /// An invocation each result: many short ones, or columns.
    Each,
    /// A workgroup each result, joined through its memory.
    Tree,
    /// A workgroup each result, joined through subgroups.
    Subgroup,
    /// Several workgroups each result, joined by a second dispatch.
    TwoPass,
}

/// What a dispatch of a form does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stage {
    Whole,
    /// Chunks of each result to states.
    Partial,
    /// States to results.
    Join,
}

/// Workgroups that share a result at most.
const CHUNKS: u32 = 1024;

/// Chunks of each result in two passes, of so many elements at least.
pub(crate) fn chunks(each: u32, chunk: u32) -> u32 {
    each.div_ceil(chunk).clamp(1, CHUNKS)
}

/// Bytes of the states between two passes.
pub(crate) fn scratch(outputs: usize, each: usize, chunk: u32) -> usize {
    outputs * chunks(each.min(u32::MAX as usize) as u32, chunk) as usize * 24
}

/// Enqueues reduction `index` of `expr`'s outputs.
pub(crate) fn run(
    gpu: &Arc<Gpu>,
    w: &Workload,
    expr: &Expr,
    index: usize,
    io: Io<'_>,
    form: Form,
    Cut { workgroup, chunk }: Cut,
) -> Result<Ran, KernelError> {
    let Output::Reduce { axes, .. } = expr.outputs()[index] else { return Ok(Ran::Clean) };
    let result = &w.outputs()[index];
    if result.elements() == 0 {
        return Ok(Ran::Clean);
    }
    let at = io.outputs().nth(index).unwrap_or(io.output);
    let shape = Shape::new(w, axes, result);
    let parts = chunks(shape.each, chunk);
    let types: SmallVec<[DType; 4]> = w.inputs().iter().map(|o| o.dtype).collect();
    let inputs = w.inputs().iter().zip(io.inputs).map(|(o, a)| (*a, o.dtype, false));
    let positions = expr.steps().iter().any(|s| matches!(s, Step::Index(_) | Step::Random { .. }));
    let launch = |form: Form, stage: Stage, bound: &Bound, outputs: u32| -> Result<Ran, KernelError> {
        let words = words(bound, &types, result.dtype, stage, gpu.can().f16)
            .or_else(|| words(bound, &types, result.dtype, stage, false))
            .ok_or_else(|| KernelError::Failed("f64 and other types share a buffer".into()))?;
        let shader = Shader {
            expr,
            output: index,
            shape: &shape,
            bound,
            words,
            types: &types,
            result: result.dtype,
            form,
            stage,
            workgroup,
            chunks: parts,
            positions,
        };
        let pipeline = gpu.pipeline(&shader.key(), || shader.source())?;
        let most = gpu.limits().max_compute_workgroups_per_dimension;
        let per = if form == Form::Each { workgroup } else { 1 };
        let groups = match stage {
            Stage::Partial => [outputs.clamp(1, most), parts, 1],
            _ => [outputs.div_ceil(per).clamp(1, most), 1, 1],
        };
        let params = shader.params(io.scalars);
        gpu.launch(&bound.launch(&pipeline, &params, groups))
    };
    if form != Form::TwoPass || parts == 1 {
        let form = if form == Form::TwoPass { Form::Tree } else { form };
        let bound = Bound::new(gpu, inputs.chain([(at, result.dtype, true)]))?;
        return launch(form, Stage::Whole, &bound, shape.outputs);
    }
    let bytes = scratch(shape.outputs as usize, shape.each as usize, chunk);
    let block = gpu.clone().take(bytes)?;
    let between = gpu.find(block.address())?;
    let mut bound = Bound::new(gpu, inputs)?;
    bound.add(between.0.clone(), 0, DType::F32, true)?;
    let first = launch(Form::Tree, Stage::Partial, &bound, shape.outputs)?;
    let mut bound = Bound::new(gpu, [(at, result.dtype, true)].into_iter())?;
    bound.add(between.0, 0, DType::F32, false)?;
    let second = launch(Form::Tree, Stage::Join, &bound, shape.outputs)?;
    Ok(if first == Ran::Clean { second } else { first })
}

/// What each buffer is an array of; the states between passes are `Word::Plain` here and named apart.
fn words(
    bound: &Bound,
    types: &[DType],
    result: DType,
    stage: Stage,
    f16: bool,
) -> Option<SmallVec<[Word; 8]>> {
    let of = |d: DType, written: bool| Word::of(d, written, f16);
    let list: SmallVec<[Word; 8]> = match stage {
        Stage::Whole => types.iter().map(|d| of(*d, false)).chain([of(result, true)]).collect(),
        Stage::Partial => types.iter().map(|d| of(*d, false)).chain([Word::Plain]).collect(),
        Stage::Join => smallvec::smallvec![of(result, true), Word::Plain],
    };
    let mut words: SmallVec<[Option<Word>; 8]> = SmallVec::from_elem(None, bound.buffers.len());
    for (spot, word) in bound.spots.iter().zip(list) {
        words[usize::from(spot.binding)] = Some(both(words[usize::from(spot.binding)], word)?);
    }
    Some(words.into_iter().map(|w| w.unwrap_or(Word::Plain)).collect())
}
