//! The generator of reductions: an expression's value at each position, merged over some of the axes.

use super::launch::{Form, Stage};
use super::shape::Shape;
use super::state::{State, state};
use crate::device::{Key, Source};
use crate::kernels::bound::Bound;
use crate::wgsl::{Program, Wanted, Word, loaded, stored, value_type};
use smallvec::SmallVec;
use std::fmt::Write;
use steersman_core::expr::{Expr, Output};
use steersman_core::{DType, ReduceOp};

/// One dispatch of a reduction.
pub(super) struct Shader<'a> {
    pub expr: &'a Expr,
    pub output: usize,
    pub shape: &'a Shape,
    pub bound: &'a Bound,
    pub words: SmallVec<[Word; 8]>,
    /// Types of the inputs.
    pub types: &'a [DType],
    pub result: DType,
    pub form: Form,
    pub stage: Stage,
    pub workgroup: u32,
    /// Parts of each result in two passes.
    pub chunks: u32,
    /// Whether steps ask for the position in the group's shape.
    pub positions: bool,
}

impl Shader<'_> {
    fn kind(&self) -> (ReduceOp, DType) {
        match self.expr.outputs()[self.output] {
            Output::Reduce { kind, value, .. } => (kind, self.expr.dtype_of(value)),
            // Only reductions get here.
            Output::Array(v) => (ReduceOp::Sum, self.expr.dtype_of(v)),
        }
    }

    pub fn key(&self) -> Key {
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

    pub fn params(&self, scalars: &[u64]) -> SmallVec<[u32; 32]> {
        let (kept, reduced) = (&self.shape.kept, &self.shape.reduced);
        let n = self.chunks;
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

    pub fn source(&self) -> Result<Source, String> {
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

    /// `base` of a result and `value` at a position of it. Variances are of what the first element leaves: a mean
    /// far from zero would take their digits.
    fn elements(&self, wanted: &mut Wanted) -> Result<String, String> {
        let program = Program::of(self.expr)?;
        wanted.merge(program.wanted);
        let (kind, d) = self.kind();
        let pivot = matches!(kind, ReduceOp::Var | ReduceOp::Std) && d != DType::F64;
        let (kept, reduced) = (self.shape.kept.dims.len(), self.shape.reduced.dims.len());
        let mut text = String::from("struct B {\n");
        for k in 0..self.walked() {
            let _ = writeln!(text, "    e{k}: u32,");
        }
        let _ = writeln!(text, "    pivot: f32,\n}}\nfn element(b: B, r: u32) -> {} {{", value_type(d));
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
        let _ = writeln!(text, "{}    return v{value};\n}}\nfn base(o: u32) -> B {{", program.body);
        text += &coordinates("o", "dk", kept);
        let offset = |k: usize| if k < self.types.len() { format!("p.o{k}") } else { "0u".into() };
        let mut list: Vec<String> = (0..self.walked())
            .map(|k| (0..kept).fold(offset(k), |t, j| format!("{t} + c{j} * p.k{j}_{k}")))
            .collect();
        list.push("0.0".into());
        let _ = writeln!(text, "    var b = B({});", list.join(", "));
        if pivot {
            text += "    if (p.each > 0u) {\n        let first = element(b, 0u);\n        if (!is_nan(first) && !is_inf(first)) { b.pivot = first; }\n    }\n";
        }
        let lifted = if pivot { "element(b, r) - b.pivot" } else { "element(b, r)" };
        let _ =
            writeln!(text, "    return b;\n}}\nfn value(b: B, r: u32) -> S {{ return lift({lifted}, r); }}");
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

/// The bytes of a state.
pub(super) fn state_bytes(kind: ReduceOp, d: DType) -> Option<usize> {
    state(kind, d, &mut Wanted::default()).map(|s| s.bytes)
}
