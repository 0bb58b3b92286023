//! Sources of matrix products.
//!
//! Operands of any strides and type; elements beyond an edge read as zero. The naive form has an invocation
//! each result. The tiled one shares a tile of each operand in workgroup memory. The blocked one has four by
//! four results each invocation, the vec4 one the same with four neighbours loaded and multiplied at once.

use crate::kernels::bound::Bound;
use crate::wgsl::{Wanted, Word, loaded, stored, value_type};
use std::fmt::Write;
use steersman_core::DType;

/// How a product is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Form {
    Naive,
    Tiled,
    Blocked,
    Vec4,
}

/// What a source is made from.
pub(super) struct Shader<'a> {
    pub form: Form,
    pub dtype: DType,
    /// Invocations of a workgroup in each direction.
    pub side: u32,
    /// Batch loops.
    pub rank: usize,
    pub bound: &'a Bound,
    pub words: &'a [Word],
}

/// Results of an invocation in each direction, of the forms that have several.
pub(super) const BLOCK: u32 = 4;

impl Form {
    /// Results of a workgroup in each direction.
    pub fn span(self, side: u32) -> u32 {
        match self {
            Form::Naive | Form::Tiled => side,
            Form::Blocked | Form::Vec4 => side * BLOCK,
        }
    }
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
        let (shared, body) = match self.form {
            Form::Naive => (String::new(), self.naive(t, zero)),
            Form::Tiled => self.tiled(t, zero),
            Form::Blocked => self.blocked(t, zero),
            Form::Vec4 => self.vec4(),
        };
        let _ = write!(
            text,
            "{shared}@compute @workgroup_size({s}, {s})\n\
             fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(num_workgroups) all: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {{\n\
             \x20   for (var z = g.z; z < p.batches; z += all.z) {{\n\
             \x20       var rest = z; var aa = p.a_at; var bb = p.b_at; var cc = p.c_at;\n{batch}{body}\
             \x20   }}\n}}\n",
            s = self.side
        );
        wanted.text() + &text
    }

    fn naive(&self, t: &str, zero: &str) -> String {
        let s = self.side;
        format!(
            "        let r = g.y * {s}u + l.y; let c = g.x * {s}u + l.x;\n\
             \x20       var sum: {t} = {zero};\n\
             \x20       if (r < p.m && c < p.n) {{\n\
             \x20           for (var k = 0u; k < p.k; k += 1u) {{ sum += a(aa, r, k) * b(bb, k, c); }}\n\
             \x20       }}\n\
             \x20       put(cc, r, c, sum);\n"
        )
    }

    fn tiled(&self, t: &str, zero: &str) -> (String, String) {
        let s = self.side;
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

    /// A block of four by four: rows of the first operand's tile lie by `k`, so that both are read in runs.
    fn blocked(&self, t: &str, zero: &str) -> (String, String) {
        let (s, span) = (self.side, self.side * BLOCK);
        let shared = format!(
            "var<workgroup> ta: array<array<{t}, {span}>, {s}>;\nvar<workgroup> tb: array<array<{t}, {span}>, {s}>;\n"
        );
        let mut sums = String::new();
        let (mut adds, mut puts) = (String::new(), String::new());
        for i in 0..BLOCK {
            for j in 0..BLOCK {
                let _ = writeln!(sums, "        var s{i}{j}: {t} = {zero};");
                let _ = writeln!(
                    adds,
                    "                s{i}{j} += ta[k][l.y + {i}u * {s}u] * tb[k][l.x + {j}u * {s}u];"
                );
                let _ = writeln!(
                    puts,
                    "        put(cc, r0 + l.y + {i}u * {s}u, c0 + l.x + {j}u * {s}u, s{i}{j});"
                );
            }
        }
        let body = format!(
            "        let r0 = g.y * {span}u; let c0 = g.x * {span}u;\n{sums}\
             \x20       for (var k0 = 0u; k0 < p.k; k0 += {s}u) {{\n\
             \x20           for (var q = 0u; q < {BLOCK}u; q += 1u) {{\n\
             \x20               ta[l.x][l.y + q * {s}u] = a(aa, r0 + l.y + q * {s}u, k0 + l.x);\n\
             \x20               tb[l.y][l.x + q * {s}u] = b(bb, k0 + l.y, c0 + l.x + q * {s}u);\n\
             \x20           }}\n\
             \x20           workgroupBarrier();\n\
             \x20           for (var k = 0u; k < {s}u; k += 1u) {{\n{adds}            }}\n\
             \x20           workgroupBarrier();\n\
             \x20       }}\n{puts}"
        );
        (shared, body)
    }

    /// Four rows of four neighbours; the second operand's rows are contiguous and a multiple of four long.
    fn vec4(&self) -> (String, String) {
        let (s, span) = (self.side, self.side * BLOCK);
        let array = format!("x{}", self.bound.spots[1].binding);
        let shared = format!(
            "fn b4(at: u32, r: u32, c: u32) -> vec4<f32> {{\n    if (r >= p.k || c >= p.n) {{ return vec4<f32>(0.0); }}\n    return bitcast<vec4<f32>>({array}[(at + r * p.b_rs + c) >> 2u]);\n}}\n\
             var<workgroup> ta: array<array<f32, {span}>, {s}>;\nvar<workgroup> tb: array<array<vec4<f32>, {s}>, {s}>;\n"
        );
        let (mut sums, mut adds, mut puts) = (String::new(), String::new(), String::new());
        for i in 0..BLOCK {
            let _ = writeln!(sums, "        var s{i} = vec4<f32>(0.0);");
            let _ = writeln!(adds, "                s{i} += ta[k][l.y * 4u + {i}u] * row;");
            for j in 0..BLOCK {
                let _ =
                    writeln!(puts, "        put(cc, r0 + l.y * 4u + {i}u, c0 + l.x * 4u + {j}u, s{i}[{j}]);");
            }
        }
        let body = format!(
            "        let r0 = g.y * {span}u; let c0 = g.x * {span}u;\n{sums}\
             \x20       for (var k0 = 0u; k0 < p.k; k0 += {s}u) {{\n\
             \x20           for (var q = 0u; q < {BLOCK}u; q += 1u) {{\n\
             \x20               ta[l.x][l.y + q * {s}u] = a(aa, r0 + l.y + q * {s}u, k0 + l.x);\n\
             \x20           }}\n\
             \x20           tb[l.y][l.x] = b4(bb, k0 + l.y, c0 + l.x * 4u);\n\
             \x20           workgroupBarrier();\n\
             \x20           for (var k = 0u; k < {s}u; k += 1u) {{\n\
             \x20               let row = tb[k][l.x];\n{adds}            }}\n\
             \x20           workgroupBarrier();\n\
             \x20       }}\n{puts}"
        );
        (shared, body)
    }
}
