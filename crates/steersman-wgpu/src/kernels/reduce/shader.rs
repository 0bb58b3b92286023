//! The generator of reductions: an expression's value at each position, merged over some of the axes.

use super::shape::Shape;
use super::state::{State, state};
use crate::device::{Gpu, Key, Launch, Source};
use crate::kernels::bound::Bound;
use crate::wgsl::{Program, Wanted, Word, loaded, stored, value_type};
use smallvec::SmallVec;
use std::fmt::Write;
use std::sync::Arc;
use steersman_core::expr::{Expr, Output, Step};
use steersman_core::{DType, Io, KernelError, Memory, Ran, ReduceOp, Workload};

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
enum Stage {
    Whole,
    /// Chunks of each result to states.
    Partial,
    /// States to results.
    Join,
}

struct Shader<'a> {
    expr: &'a Expr,
    output: usize,
    shape: &'a Shape,
    bound: &'a Bound,
    words: SmallVec<[Word; 8]>,
    /// Types of the inputs.
    types: &'a [DType],
    result: DType,
    form: Form,
    stage: Stage,
    workgroup: u32,
    /// Whether steps ask for the position in the group's shape.
    positions: bool,
}

/// Elements of a result that a workgroup of a two-pass reduction takes at least.
const CHUNK: u32 = 2048;
/// Workgroups that share a result at most.
const CHUNKS: u32 = 1024;

/// Chunks of each result in two passes.
pub(crate) fn chunks(each: u32) -> u32 {
    each.div_ceil(CHUNK).clamp(1, CHUNKS)
}

/// Bytes of the states between two passes.
pub(crate) fn scratch(outputs: usize, each: usize) -> usize {
    outputs * chunks(each.min(u32::MAX as usize) as u32) as usize * 24
}

/// Enqueues reduction `index` of `expr`'s outputs.
pub(crate) fn run(
    gpu: &Arc<Gpu>,
    w: &Workload,
    expr: &Expr,
    index: usize,
    io: Io<'_>,
    form: Form,
    workgroup: u32,
) -> Result<Ran, KernelError> {
    let Output::Reduce { axes, .. } = expr.outputs()[index] else { return Ok(Ran::Clean) };
    let result = &w.outputs()[index];
    if result.elements() == 0 {
        return Ok(Ran::Clean);
    }
    let at = io.outputs().nth(index).unwrap_or(io.output);
    let shape = Shape::new(w, axes, result);
    let types: SmallVec<[DType; 4]> = w.inputs().iter().map(|o| o.dtype).collect();
    let inputs = w.inputs().iter().zip(io.inputs).map(|(o, a)| (*a, o.dtype, false));
    let positions = expr.steps().iter().any(|s| matches!(s, Step::Index(_) | Step::Random { .. }));
    let launch = |form: Form, stage: Stage, bound: &Bound, outputs: u32| -> Result<Ran, KernelError> {
        let words = words(bound, &types, result.dtype, stage)
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
            positions,
        };
        let pipeline = gpu.pipeline(&shader.key(), || shader.source())?;
        let most = gpu.limits().max_compute_workgroups_per_dimension;
        let per = if form == Form::Each { workgroup } else { 1 };
        let groups = match stage {
            Stage::Partial => [outputs.clamp(1, most), chunks(shape.each), 1],
            _ => [outputs.div_ceil(per).clamp(1, most), 1, 1],
        };
        let params = shader.params(io.scalars);
        gpu.launch(&Launch { pipeline: &pipeline, buffers: &bound.buffers, params: &params, groups })
    };
    if form != Form::TwoPass || chunks(shape.each) == 1 {
        let form = if form == Form::TwoPass { Form::Tree } else { form };
        let bound = Bound::new(gpu, inputs.chain([(at, result.dtype, true)]))?;
        return launch(form, Stage::Whole, &bound, shape.outputs);
    }
    let bytes = scratch(shape.outputs as usize, shape.each as usize);
    let block = gpu.clone().take(bytes).map_err(|e| KernelError::Failed(e.to_string()))?;
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
fn words(bound: &Bound, types: &[DType], result: DType, stage: Stage) -> Option<SmallVec<[Word; 8]>> {
    let of = |d: DType, written: bool| match d {
        DType::F64 => Word::Double,
        _ if written && d.size() < 4 => Word::Atomic,
        _ => Word::Plain,
    };
    let list: SmallVec<[Word; 8]> = match stage {
        Stage::Whole => types.iter().map(|d| of(*d, false)).chain([of(result, true)]).collect(),
        Stage::Partial => types.iter().map(|d| of(*d, false)).chain([Word::Plain]).collect(),
        Stage::Join => smallvec::smallvec![of(result, true), Word::Plain],
    };
    let mut words: SmallVec<[Option<Word>; 8]> = SmallVec::from_elem(None, bound.buffers.len());
    for (spot, word) in bound.spots.iter().zip(list) {
        let known = &mut words[spot.binding as usize];
        *known = match (*known, word) {
            (None, w) => Some(w),
            (Some(a), b) if a == b => Some(a),
            (Some(Word::Plain), Word::Atomic) | (Some(Word::Atomic), Word::Plain) => Some(Word::Atomic),
            _ => return None,
        };
    }
    Some(words.into_iter().map(|w| w.unwrap_or(Word::Plain)).collect())
}

impl Shader<'_> {
    fn kind(&self) -> (ReduceOp, DType) {
        match self.expr.outputs()[self.output] {
            Output::Reduce { kind, value, .. } => (kind, self.expr.dtype_of(value)),
            // Only reductions get here.
            Output::Array(v) => (ReduceOp::Sum, self.expr.dtype_of(v)),
        }
    }

    fn key(&self) -> Key {
        let hash = self.expr.hash64();
        let mut key: Key = smallvec::smallvec![
            1,
            hash as u32,
            (hash >> 32) as u32,
            self.output as u32,
            self.form as u32 | (self.stage as u32) << 8,
            self.workgroup,
            self.shape.kept.dims.len() as u32,
            self.shape.reduced.dims.len() as u32,
        ];
        key.extend(self.bound.spots.iter().map(|s| u32::from(s.binding)));
        key.extend(self.words.iter().zip(&self.bound.written).map(|(w, r)| *w as u32 | u32::from(*r) << 8));
        key
    }

    /// Operands with strides: inputs, and the position if steps ask for it.
    fn walked(&self) -> usize {
        self.types.len() + usize::from(self.positions)
    }

    fn params(&self, scalars: &[u64]) -> SmallVec<[u32; 32]> {
        let (kept, reduced) = (&self.shape.kept, &self.shape.reduced);
        let n = chunks(self.shape.each);
        let mut p: SmallVec<[u32; 32]> =
            smallvec::smallvec![self.shape.outputs, 0, self.shape.each, n, self.shape.each.div_ceil(n)];
        p.extend(kept.dims.iter().chain(&reduced.dims).copied());
        for k in 0..self.walked() {
            p.extend(kept.strides[k].iter().chain(&reduced.strides[k]).map(|s| *s as u32));
        }
        p.extend(kept.strides[self.types.len() + 1].iter().map(|s| *s as u32));
        p.extend(self.bound.spots.iter().map(|s| s.offset));
        p.extend(scalars.iter().flat_map(|s| [*s as u32, (*s >> 32) as u32]));
        p
    }

    fn block(&self) -> (String, usize) {
        let (kept, reduced) = (self.shape.kept.dims.len(), self.shape.reduced.dims.len());
        let mut names: Vec<String> = ["n", "zero", "each", "chunks", "chunk"].map(String::from).into();
        names.extend((0..kept).map(|j| format!("dk{j}")).chain((0..reduced).map(|j| format!("dr{j}"))));
        for k in 0..self.walked() {
            names.extend((0..kept).map(|j| format!("k{j}_{k}")));
            names.extend((0..reduced).map(|j| format!("r{j}_{k}")));
        }
        names.extend((0..kept).map(|j| format!("out{j}")));
        names.extend((0..self.bound.spots.len()).map(|k| format!("o{k}")));
        names.extend((0..self.expr.scalars().len()).flat_map(|k| [format!("k{k}"), format!("k{k}_high")]));
        let fields: String = names.iter().map(|n| format!("    {n}: u32,\n")).collect();
        (format!("struct P {{\n{fields}}}\n@group(0) @binding(0) var<uniform> p: P;\n"), names.len())
    }

    fn source(&self) -> Result<Source, String> {
        let mut wanted = Wanted::default();
        let (kind, d) = self.kind();
        let State { text: state, fields, .. } =
            state(kind, d, &mut wanted).ok_or_else(|| format!("no {} of {d}", kind.name()))?;
        let (mut text, words) = self.block();
        text += &state;
        // The states between passes are the last operand's buffer, and nobody else's.
        let between = (self.stage != Stage::Whole)
            .then(|| self.bound.spots.last().map(|s| usize::from(s.binding)))
            .flatten();
        for (i, word) in self.words.iter().enumerate() {
            let access = if self.bound.written[i] { "read_write" } else { "read" };
            let of = if between == Some(i) { "S" } else { word.name() };
            let _ = writeln!(text, "@group(0) @binding({}) var<storage, {access}> b{i}: array<{of}>;", i + 1);
        }
        if self.stage != Stage::Join {
            text += &self.elements(&mut wanted)?;
        }
        let store = match between {
            Some(b) if self.stage == Stage::Partial => format!("    b{b}[o * p.chunks + c] = s;"),
            _ => self.store(&mut wanted),
        };
        let _ = writeln!(text, "fn store(o: u32, c: u32, s: S) {{\n{store}\n}}");
        let fold = match (self.stage, between) {
            (Stage::Join, Some(b)) => format!(
                "fn fold(o: u32, from_: u32, to_: u32, step: u32) -> S {{\n    var s = identity();\n    for (var r = from_; r < to_; r += step) {{ s = merge(s, b{b}[o * p.chunks + r]); }}\n    return s;\n}}\n"
            ),
            // In blocks of 32, so that errors of long sums grow with the number of blocks.
            _ => "fn fold(o: u32, from_: u32, to_: u32, step: u32) -> S {\n    let b = base(o);\n    var s = identity();\n    var r = from_;\n    while (r < to_) {\n        var t = identity();\n        for (var k = 0u; k < 32u && r < to_; k += 1u) {\n            t = merge(t, value(b, r));\n            r += step;\n        }\n        s = merge(s, t);\n    }\n    return s;\n}\n".to_string(),
        };
        text += &fold;
        text += &self.main(fields);
        let text = wanted.text() + &text;
        Ok(Source { text, written: self.bound.written.clone(), words })
    }

    /// `base` of a result and `value` at a position of it.
    fn elements(&self, wanted: &mut Wanted) -> Result<String, String> {
        let program = Program::of(self.expr)?;
        wanted.merge(program.wanted);
        let (kept, reduced) = (self.shape.kept.dims.len(), self.shape.reduced.dims.len());
        let mut text = String::from("struct B {\n");
        for k in 0..self.walked() {
            let _ = writeln!(text, "    e{k}: u32,");
        }
        text += "}\nfn base(o: u32) -> B {\n";
        text += &coordinates("o", "dk", kept);
        let offset = |k: usize| if k < self.types.len() { format!("p.o{k}") } else { "0u".into() };
        let list: Vec<String> = (0..self.walked())
            .map(|k| (0..kept).fold(offset(k), |t, j| format!("{t} + c{j} * p.k{j}_{k}")))
            .collect();
        let _ = writeln!(text, "    return B({});\n}}\nfn value(b: B, r: u32) -> S {{", list.join(", "));
        text += &coordinates("r", "dr", reduced);
        for k in 0..self.walked() {
            let at = (0..reduced).fold(format!("b.e{k}"), |t, j| format!("{t} + c{j} * p.r{j}_{k}"));
            match self.types.get(k) {
                Some(&d) => {
                    let spot = self.bound.spots[k].binding;
                    let word = self.words[usize::from(spot)];
                    let _ = writeln!(text, "    let at{k} = {at};");
                    let load = loaded(d, word, &format!("b{spot}"), &format!("at{k}"), wanted);
                    let _ = writeln!(text, "    let x{k}: {} = {load};", value_type(d));
                }
                None => {
                    let _ = writeln!(text, "    let i = {at};");
                }
            }
        }
        let value = self.expr.outputs()[self.output].value().index();
        let _ = writeln!(text, "{}    return lift(v{value}, r);\n}}", program.body);
        Ok(text)
    }

    fn store(&self, wanted: &mut Wanted) -> String {
        let k = if self.stage == Stage::Join { 0 } else { self.bound.spots.len() - 1 };
        let spot = self.bound.spots[k].binding;
        let kept = self.shape.kept.dims.len();
        let mut text = coordinates("o", "dk", kept);
        let at = (0..kept).fold(format!("p.o{k}"), |t, j| format!("{t} + c{j} * p.out{j}"));
        let _ = writeln!(text, "    let at = {at};\n    let v = finish(s, p.each);");
        let word = self.words[usize::from(spot)];
        text + "    " + &stored(self.result, word, &format!("b{spot}"), "at", "v", wanted)
    }

    fn main(&self, fields: &[(&str, &str)]) -> String {
        let size = self.workgroup;
        if self.form == Form::Each {
            return format!(
                "@compute @workgroup_size({size})\n\
                 fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) g: vec3<u32>) {{\n\
                 \x20   for (var o = id.x; o < p.n; o += g.x * {size}u) {{ store(o, 0u, fold(o, 0u, p.each, 1u)); }}\n}}\n"
            );
        }
        let range = match self.stage {
            Stage::Whole => "let from_ = 0u; let to_ = p.each;",
            Stage::Partial => "let from_ = g.y * p.chunk; let to_ = min(from_ + p.chunk, p.each);",
            Stage::Join => "let from_ = 0u; let to_ = p.chunks;",
        };
        let (inputs, join) = if self.form == Form::Subgroup {
            let shuffled: Vec<String> =
                fields.iter().map(|(n, _)| format!("subgroupShuffleXor(s.{n}, d)")).collect();
            (
                ", @builtin(subgroup_size) lanes: u32, @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_id) which: u32, @builtin(num_subgroups) many: u32",
                format!(
                    "        for (var d = lanes / 2u; d > 0u; d = d / 2u) {{ s = merge(s, S({})); }}\n\
                     \x20       if (lane == 0u) {{ shared_[which] = s; }}\n\
                     \x20       workgroupBarrier();\n\
                     \x20       if (l == 0u) {{\n\
                     \x20           var t = shared_[0];\n\
                     \x20           for (var k = 1u; k < many; k += 1u) {{ t = merge(t, shared_[k]); }}\n\
                     \x20           shared_[0] = t;\n\
                     \x20       }}\n",
                    shuffled.join(", ")
                ),
            )
        } else {
            (
                "",
                format!(
                    "        shared_[l] = s;\n\
                     \x20       workgroupBarrier();\n\
                     \x20       for (var half = {}u; half > 0u; half = half / 2u) {{\n\
                     \x20           if (l < half) {{ shared_[l] = merge(shared_[l], shared_[l + half]); }}\n\
                     \x20           workgroupBarrier();\n\
                     \x20       }}\n",
                    size / 2
                ),
            )
        };
        format!(
            "var<workgroup> shared_: array<S, {size}>;\n\
             @compute @workgroup_size({size})\n\
             fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(num_workgroups) all: vec3<u32>, @builtin(local_invocation_index) l: u32{inputs}) {{\n\
             \x20   {range}\n\
             \x20   for (var o = g.x; o < p.n; o += all.x) {{\n\
             \x20       var s = fold(o, from_ + l, to_, {size}u);\n{join}\
             \x20       if (l == 0u) {{ store(o, g.y, shared_[0]); }}\n\
             \x20       workgroupBarrier();\n\
             \x20   }}\n}}\n"
        )
    }
}

/// Indices `c0`, `c1`, .. of the loops `{dims}0`, .. from a flat position.
fn coordinates(of: &str, dims: &str, rank: usize) -> String {
    let mut text = String::new();
    if rank == 0 {
        return text;
    }
    let _ = writeln!(text, "    var rest = {of};");
    for j in (1..rank).rev() {
        let _ = writeln!(text, "    let c{j} = rest % p.{dims}{j}; rest = rest / p.{dims}{j};");
    }
    text + "    let c0 = rest;\n"
}

/// The bytes of a state, for tests of the scratch they take.
pub(super) fn state_bytes(kind: ReduceOp, d: DType) -> Option<usize> {
    state(kind, d, &mut Wanted::default()).map(|s| s.bytes)
}
