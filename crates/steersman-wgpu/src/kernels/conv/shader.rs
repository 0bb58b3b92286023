//! Sources of convolutions. Operands of any strides; what lies on the border adds nothing, whatever the filter's
//! element there is.

use crate::kernels::bound::Bound;
use crate::kernels::matmul::block::{Lane, Tile, block};
use crate::wgsl::{Wanted, Word, loaded, stored, value_type};
use std::fmt::Write;
use steersman_core::DType;

/// How a convolution is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// An invocation each result, so many in a workgroup.
    Direct(u32),
    /// As a product, in tiles.
    Tiled(Tile),
}

/// Fields of the uniform block: filters, terms, results of an image and filter, images; the image's size, a row of
/// results, the filter's size; strides of image, filter and result.
pub(super) const NAMES: [&str; 27] = [
    "m", "zero", "k", "n", "batches", "height", "width", "columns", "taps_y", "taps_x", "stride", "pad",
    "x_at", "x0", "x1", "x2", "x3", "f_at", "f0", "f1", "f2", "f3", "y_at", "y0", "y1", "y2", "y3",
];

/// What a source is made from.
pub(super) struct Shader<'a> {
    pub cut: Cut,
    pub dtype: DType,
    /// Whether the adapter has f16 as such.
    pub f16: bool,
    pub bound: &'a Bound,
}

impl Shader<'_> {
    fn words(&self) -> Vec<Word> {
        self.bound.written.iter().map(|w| Word::of(self.dtype, *w, self.f16)).collect()
    }

    pub fn text(&self) -> String {
        let words = self.words();
        let mut wanted = Wanted::default();
        let fields: String = NAMES.iter().map(|n| format!("    {n}: u32,\n")).collect();
        let mut text = format!("struct P {{\n{fields}}}\n@group(0) @binding(0) var<uniform> p: P;\n");
        for (i, word) in words.iter().enumerate() {
            let access = if self.bound.written[i] { "read_write" } else { "read" };
            let name = word.name();
            let _ =
                writeln!(text, "@group(0) @binding({}) var<storage, {access}> b{i}: array<{name}>;", i + 1);
        }
        let of = |k: usize| {
            let i = usize::from(self.bound.spots[k].binding);
            (format!("b{i}"), words[i])
        };
        let load = |k: usize, at: &str, wanted: &mut Wanted| {
            let (array, word) = of(k);
            loaded(self.dtype, word, &array, at, wanted)
        };
        let t = value_type(self.dtype);
        let (zero, missing) = match self.dtype {
            DType::F64 => ("0.0lf", "!(v == v)"),
            _ => ("0.0", "(bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u"),
        };
        let image = load(0, "at + c * p.x1 + y * p.x2 + x * p.x3", &mut wanted);
        let filter = load(1, "p.f_at + r * p.f0 + c * p.f1 + ty * p.f2 + tx * p.f3", &mut wanted);
        let (array, word) = of(2);
        let store = stored(self.dtype, word, &array, "e", "v", &mut wanted);
        // Positions above the image wrap around to ones far below it.
        let _ = write!(
            text,
            "fn image(at: u32, c: u32, y: u32, x: u32) -> {t} {{ return {image}; }}\n\
             fn filter_(r: u32, c: u32, ty: u32, tx: u32) -> {t} {{ return {filter}; }}\n\
             fn direct(at: u32, r: u32, q: u32) -> {t} {{\n\
             \x20   let y0 = (q / p.columns) * p.stride - p.pad; let x0 = (q % p.columns) * p.stride - p.pad;\n\
             \x20   let plane = p.taps_y * p.taps_x;\n\
             \x20   var sum: {t} = {zero};\n\
             \x20   for (var k = 0u; k < p.k; k += 1u) {{\n\
             \x20       let c = k / plane; let ty = (k % plane) / p.taps_x; let tx = k % p.taps_x;\n\
             \x20       if (y0 + ty < p.height && x0 + tx < p.width) {{\n\
             \x20           sum += image(at, c, y0 + ty, x0 + tx) * filter_(r, c, ty, tx);\n\
             \x20       }}\n\
             \x20   }}\n\
             \x20   return sum;\n}}\n\
             fn keep_(at: u32, r: u32, q: u32, v: {t}) {{\n\
             \x20   let e = at + r * p.y1 + (q / p.columns) * p.y2 + (q % p.columns) * p.y3;\n    {store}\n}}\n"
        );
        text += &match self.cut {
            Cut::Direct(size) => direct(size),
            Cut::Tiled(tile) => tiled(&tile, t, zero, missing),
        };
        wanted.text() + &text
    }
}

fn direct(size: u32) -> String {
    format!(
        "@compute @workgroup_size({size})\n\
         fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) g: vec3<u32>) {{\n\
         \x20   for (var i = id.x; i < p.batches * p.m * p.n; i += g.x * {size}u) {{\n\
         \x20       let q = i % p.n; let r = (i / p.n) % p.m; let z = i / p.n / p.m;\n\
         \x20       keep_(p.y_at + z * p.y0, r, q, direct(p.x_at + z * p.x0, r, q));\n\
         \x20   }}\n}}\n"
    )
}

/// A border of zeros times an infinite element of the filter is no number: such results are computed once more.
fn tiled(tile: &Tile, t: &str, zero: &str, missing: &str) -> String {
    let (shared, body) = block(tile, t, zero, [Lane::Single; 2], false);
    let (x, y) = (tile.x, tile.y);
    format!(
        "var<private> image_at: u32;\n\
         fn a(at: u32, r: u32, k: u32) -> {t} {{\n\
         \x20   if (r >= p.m || k >= p.k) {{ return {zero}; }}\n\
         \x20   let plane = p.taps_y * p.taps_x;\n\
         \x20   return filter_(r, k / plane, (k % plane) / p.taps_x, k % p.taps_x);\n}}\n\
         fn b(at: u32, k: u32, q: u32) -> {t} {{\n\
         \x20   if (k >= p.k || q >= p.n) {{ return {zero}; }}\n\
         \x20   let plane = p.taps_y * p.taps_x;\n\
         \x20   let y = (q / p.columns) * p.stride - p.pad + (k % plane) / p.taps_x;\n\
         \x20   let x = (q % p.columns) * p.stride - p.pad + k % p.taps_x;\n\
         \x20   if (y >= p.height || x >= p.width) {{ return {zero}; }}\n\
         \x20   return image(at, k / plane, y, x);\n}}\n\
         fn put(at: u32, r: u32, q: u32, v: {t}) {{\n\
         \x20   if (r >= p.m || q >= p.n) {{ return; }}\n\
         \x20   var value = v;\n\
         \x20   if (p.pad > 0u && {missing}) {{ value = direct(image_at, r, q); }}\n\
         \x20   keep_(at, r, q, value);\n}}\n\
         {shared}@compute @workgroup_size({x}, {y})\n\
         fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(num_workgroups) all: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {{\n\
         \x20   for (var z = g.z; z < p.batches; z += all.z) {{\n\
         \x20       let aa = 0u; let bb = p.x_at + z * p.x0; let cc = p.y_at + z * p.y0;\n\
         \x20       image_at = bb;\n{body}\
         \x20   }}\n}}\n"
    )
}
