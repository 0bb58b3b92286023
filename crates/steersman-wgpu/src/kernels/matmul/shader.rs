//! Sources of matrix products.
//!
//! Operands of any strides and type; elements beyond an edge read as zero. The naive form has an invocation
//! each result. The tiled one shares a tile of each operand in workgroup memory. The blocked ones have several rows
//! and columns of results each invocation, elements fetched one by one or four at a time.

use super::block::{Lane, Tile, block};
use crate::kernels::bound::Bound;
use crate::wgsl::{Wanted, Word, loaded, stored, value_type};
use std::fmt::Write;
use steersman_core::DType;

/// How a product is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// An invocation each result, so many in each direction.
    Naive(u32),
    /// The same with tiles in workgroup memory.
    Tiled(u32),
    /// Blocks; how operands are fetched, and whether results are stored in fours.
    Block(Tile, [Lane; 2], bool),
}

impl Cut {
    /// Rows and columns of results of a workgroup.
    pub fn span(&self) -> (u32, u32) {
        match self {
            Cut::Naive(side) | Cut::Tiled(side) => (*side, *side),
            Cut::Block(tile, ..) => (tile.down(), tile.across()),
        }
    }

    /// Invocations of a workgroup, across and down.
    fn invocations(&self) -> (u32, u32) {
        match self {
            Cut::Naive(side) | Cut::Tiled(side) => (*side, *side),
            Cut::Block(tile, ..) => (tile.x, tile.y),
        }
    }
}

/// What a source is made from.
pub(super) struct Shader<'a> {
    pub cut: Cut,
    pub dtype: DType,
    /// Batch loops.
    pub rank: usize,
    pub bound: &'a Bound,
    pub words: &'a [Word],
}

impl Shader<'_> {
    /// Fields of the uniform block.
    pub fn names(&self) -> Vec<String> {
        let fixed = [
            "m", "zero", "k", "n", "batches", "a_at", "a_rs", "a_cs", "b_at", "b_rs", "b_cs", "c_at", "c_rs",
            "c_cs",
        ];
        let mut names: Vec<String> = fixed.map(String::from).into();
        for j in 0..self.rank {
            names.extend([format!("d{j}"), format!("a{j}"), format!("b{j}"), format!("c{j}")]);
        }
        names
    }

    pub fn text(&self) -> String {
        let mut wanted = Wanted::default();
        let fields: String = self.names().iter().map(|n| format!("    {n}: u32,\n")).collect();
        let mut text = format!("struct P {{\n{fields}}}\n@group(0) @binding(0) var<uniform> p: P;\n");
        for (i, word) in self.words.iter().enumerate() {
            let access = if self.bound.written[i] { "read_write" } else { "read" };
            let _ = writeln!(
                text,
                "@group(0) @binding({}) var<storage, {access}> x{i}: array<{}>;",
                i + 1,
                word.name()
            );
        }
        let t = value_type(self.dtype);
        let zero = match self.dtype {
            DType::F64 => "0.0lf",
            DType::I32 => "0",
            DType::U32 => "0u",
            _ => "0.0",
        };
        let at = |k: usize| {
            let i = usize::from(self.bound.spots[k].binding);
            (format!("x{i}"), self.words[i])
        };
        for (k, name) in [(0, "a"), (1, "b")] {
            let (array, word) = at(k);
            let load = loaded(
                self.dtype,
                word,
                &array,
                &format!("at + r * p.{name}_rs + c * p.{name}_cs"),
                &mut wanted,
            );
            let (rows, columns) = if k == 0 { ("p.m", "p.k") } else { ("p.k", "p.n") };
            let _ = writeln!(
                text,
                "fn {name}(at: u32, r: u32, c: u32) -> {t} {{\n    if (r >= {rows} || c >= {columns}) {{ return {zero}; }}\n    return {load};\n}}"
            );
        }
        let (array, word) = at(2);
        let store = stored(self.dtype, word, &array, "e", "v", &mut wanted);
        let _ = writeln!(
            text,
            "fn put(at: u32, r: u32, c: u32, v: {t}) {{\n    if (r >= p.m || c >= p.n) {{ return; }}\n    let e = at + r * p.c_rs + c * p.c_cs;\n    {store}\n}}"
        );
        let batch: String = (0..self.rank)
            .rev()
            .map(|j| {
                format!(
                    "        {{ let c = rest % p.d{j}; rest = rest / p.d{j}; aa += c * p.a{j}; bb += c * p.b{j}; cc += c * p.c{j}; }}\n"
                )
            })
            .collect();
        let (shared, body) = match self.cut {
            Cut::Naive(side) => (String::new(), naive(side, t, zero)),
            Cut::Tiled(side) => tiled(side, t, zero),
            Cut::Block(tile, lanes, fours) => {
                text += &self.fours(lanes, fours);
                block(&tile, t, zero, lanes, fours)
            }
        };
        let (x, y) = self.cut.invocations();
        let _ = write!(
            text,
            "{shared}@compute @workgroup_size({x}, {y})\n\
             fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(num_workgroups) all: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {{\n\
             \x20   for (var z = g.z; z < p.batches; z += all.z) {{\n\
             \x20       var rest = z; var aa = p.a_at; var bb = p.b_at; var cc = p.c_at;\n{batch}{body}\
             \x20   }}\n}}\n"
        );
        wanted.text() + &text
    }

    /// The functions of four neighbours that the block asks for.
    fn fours(&self, lanes: [Lane; 2], fours: bool) -> String {
        let mut text = String::new();
        let array = |k: usize| format!("x{}", self.bound.spots[k].binding);
        for (k, name) in [(0, "a"), (1, "b")].into_iter().filter(|(k, _)| lanes[*k] != Lane::Single) {
            let (rows, columns) = if k == 0 { ("p.m", "p.k") } else { ("p.k", "p.n") };
            let _ = writeln!(
                text,
                "fn {name}4(at: u32, r: u32, c: u32) -> vec4<f32> {{\n    if (r >= {rows} || c >= {columns}) {{ return vec4<f32>(0.0); }}\n    return bitcast<vec4<f32>>({}[(at + r * p.{name}_rs + c * p.{name}_cs) >> 2u]);\n}}",
                array(k)
            );
        }
        if fours {
            let _ = writeln!(
                text,
                "fn put4(at: u32, r: u32, c: u32, v: vec4<f32>) {{\n    if (r >= p.m || c >= p.n) {{ return; }}\n    {}[(at + r * p.c_rs + c) >> 2u] = bitcast<vec4<u32>>(v);\n}}",
                array(2)
            );
        }
        text
    }
}

fn naive(s: u32, t: &str, zero: &str) -> String {
    format!(
        "        let r = g.y * {s}u + l.y; let c = g.x * {s}u + l.x;\n\
         \x20       var sum: {t} = {zero};\n\
         \x20       if (r < p.m && c < p.n) {{\n\
         \x20           for (var k = 0u; k < p.k; k += 1u) {{ sum += a(aa, r, k) * b(bb, k, c); }}\n\
         \x20       }}\n\
         \x20       put(cc, r, c, sum);\n"
    )
}

fn tiled(s: u32, t: &str, zero: &str) -> (String, String) {
    let shared = format!(
        "var<workgroup> ta: array<array<{t}, {s}>, {s}>;\nvar<workgroup> tb: array<array<{t}, {s}>, {s}>;\n"
    );
    let body = format!(
        "        let r = g.y * {s}u + l.y; let c = g.x * {s}u + l.x;\n\
         \x20       var sum: {t} = {zero};\n\
         \x20       for (var k0 = 0u; k0 < p.k; k0 += {s}u) {{\n\
         \x20           ta[l.y][l.x] = a(aa, r, k0 + l.x);\n\
         \x20           tb[l.y][l.x] = b(bb, k0 + l.y, c);\n\
         \x20           workgroupBarrier();\n\
         \x20           for (var k = 0u; k < {s}u; k += 1u) {{ sum += ta[l.y][k] * tb[k][l.x]; }}\n\
         \x20           workgroupBarrier();\n\
         \x20       }}\n\
         \x20       put(cc, r, c, sum);\n"
    );
    (shared, body)
}
