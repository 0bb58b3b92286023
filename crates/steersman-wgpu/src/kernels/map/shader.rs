//! Sources of element-wise shaders.

use crate::device::{Key, Source};
use crate::kernels::bound::Bound;
use crate::kernels::nest::{Nest, Path};
use crate::wgsl::{Program, Wanted, Word, loaded, stored, value_type};
use smallvec::SmallVec;
use std::fmt::Write;
use steersman_core::DType;
use steersman_core::expr::{Expr, Output};

/// One shader.
pub(super) struct Shader<'a> {
    pub expr: &'a Expr,
    /// Types of inputs and array outputs, in this order.
    pub types: SmallVec<[DType; 4]>,
    pub inputs: usize,
    pub nest: &'a Nest,
    pub bound: &'a Bound,
    pub words: SmallVec<[Word; 8]>,
    pub wide: bool,
    pub workgroup: u32,
}

impl Shader<'_> {
    pub fn key(&self) -> Key {
        let hash = self.expr.hash64();
        let mut key: Key = smallvec::smallvec![
            0,
            hash as u32,
            (hash >> 32) as u32,
            u32::from(self.wide),
            self.workgroup,
            self.nest.dims.len() as u32,
            self.inputs as u32,
        ];
        for (k, (d, spot)) in self.types.iter().zip(&self.bound.spots).enumerate() {
            key.push(*d as u32 | (self.nest.path(k) as u32) << 8 | u32::from(spot.binding) << 16);
        }
        key.extend(self.words.iter().zip(&self.bound.written).map(|(w, r)| *w as u32 | u32::from(*r) << 8));
        key
    }

    /// Values of the uniform block, in the order of `block`.
    pub fn params(&self, n: u32, scalars: &[u64]) -> SmallVec<[u32; 32]> {
        let mut p: SmallVec<[u32; 32]> = smallvec::smallvec![n, 0];
        p.extend(self.nest.dims.iter().copied());
        for (k, spot) in self.bound.spots.iter().enumerate() {
            p.push(spot.offset);
            if self.nest.path(k) == Path::Strided {
                p.extend(self.nest.strides[k].iter().map(|s| *s as u32));
            }
        }
        p.extend(scalars.iter().flat_map(|s| [*s as u32, (*s >> 32) as u32]));
        p
    }

    /// The uniform block's declaration and its words.
    fn block(&self) -> (String, usize) {
        let mut names = vec!["n".to_string(), "zero".into()];
        names.extend((0..self.nest.dims.len()).map(|j| format!("d{j}")));
        for k in 0..self.types.len() {
            names.push(format!("o{k}"));
            if self.nest.path(k) == Path::Strided {
                names.extend((0..self.nest.dims.len()).map(|j| format!("s{k}_{j}")));
            }
        }
        names.extend((0..self.expr.scalars().len()).flat_map(|k| [format!("k{k}"), format!("k{k}_high")]));
        let fields: String = names.iter().map(|n| format!("    {n}: u32,\n")).collect();
        (format!("struct P {{\n{fields}}}\n@group(0) @binding(0) var<uniform> p: P;\n"), names.len())
    }

    fn name(&self, k: usize) -> String {
        format!("b{}", self.bound.spots[k].binding)
    }

    fn word(&self, k: usize) -> Word {
        self.words[self.bound.spots[k].binding as usize]
    }

    pub fn source(&self) -> Result<Source, String> {
        let program = Program::of(self.expr)?;
        let mut wanted = program.wanted;
        let (mut text, words) = self.block();
        for (i, word) in self.words.iter().enumerate() {
            let access = if self.bound.written[i] { "read_write" } else { "read" };
            let _ = writeln!(
                text,
                "@group(0) @binding({}) var<storage, {access}> b{i}: array<{}>;",
                i + 1,
                word.name()
            );
        }
        let values: Vec<usize> = self
            .expr
            .outputs()
            .iter()
            .filter(|o| matches!(o, Output::Array(_)))
            .map(|o| o.value().index())
            .collect();
        let fields: String = values
            .iter()
            .enumerate()
            .map(|(k, _)| format!("    r{k}: {},\n", value_type(self.types[self.inputs + k])))
            .collect();
        let arguments: String =
            (0..self.inputs).map(|k| format!(", x{k}: {}", value_type(self.types[k]))).collect();
        let results: Vec<String> = values.iter().map(|v| format!("v{v}")).collect();
        let _ = writeln!(text, "struct R {{\n{fields}}}");
        let _ = writeln!(text, "fn element(i: u32{arguments}) -> R {{");
        let _ = writeln!(text, "{}    return R({});\n}}", program.body, results.join(", "));
        text += &self.one(&mut wanted);
        let body = if self.wide { self.four(&mut wanted) } else { String::new() };
        text += &body;
        let (bound, call) = if self.wide { ("(p.n + 3u) / 4u", "four(i);") } else { ("p.n", "one(i);") };
        let _ = write!(
            text,
            "@compute @workgroup_size({0})\n\
             fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) g: vec3<u32>) {{\n\
             \x20   for (var i = id.x; i < {bound}; i += g.x * {0}u) {{ {call} }}\n}}\n",
            self.workgroup
        );
        Ok(Source { text: wanted.text() + &text, written: self.bound.written.clone(), words })
    }

    /// The function of one element by its flat position.
    fn one(&self, wanted: &mut Wanted) -> String {
        let mut text = String::from("fn one(i: u32) {\n");
        let rank = self.nest.dims.len();
        if (0..self.types.len()).any(|k| self.nest.path(k) == Path::Strided) {
            text += "    var rest = i;\n";
            for j in (1..rank).rev() {
                let _ = writeln!(text, "    let c{j} = rest % p.d{j}; rest = rest / p.d{j};");
            }
            text += "    let c0 = rest;\n";
        }
        for k in 0..self.types.len() {
            let at = match self.nest.path(k) {
                Path::Flat => format!("p.o{k} + i"),
                Path::Fixed => format!("p.o{k}"),
                Path::Strided => (0..rank).fold(format!("p.o{k}"), |t, j| format!("{t} + c{j} * p.s{k}_{j}")),
            };
            let _ = writeln!(text, "    let e{k} = {at};");
        }
        let loads: String = (0..self.inputs)
            .map(|k| {
                let e = format!("e{k}");
                format!(", {}", loaded(self.types[k], self.word(k), &self.name(k), &e, wanted))
            })
            .collect();
        let _ = writeln!(text, "    let r = element(i{loads});");
        for k in self.inputs..self.types.len() {
            let (e, r) = (format!("e{k}"), format!("r.r{}", k - self.inputs));
            let _ =
                writeln!(text, "    {}", stored(self.types[k], self.word(k), &self.name(k), &e, &r, wanted));
        }
        text + "}\n"
    }

    /// The function of four neighbours by the position of the first over four.
    fn four(&self, wanted: &mut Wanted) -> String {
        let mut text = String::from(
            "fn four(q: u32) {\n    let i = q * 4u;\n    if (i + 4u > p.n) {\n        for (var t = i; t < p.n; t += 1u) { one(t); }\n        return;\n    }\n",
        );
        for k in 0..self.inputs {
            let (d, name) = (self.types[k], self.name(k));
            let lanes: [String; 4] = if self.nest.path(k) == Path::Fixed {
                let _ = writeln!(
                    text,
                    "    let x{k} = {};",
                    loaded(d, self.word(k), &name, &format!("p.o{k}"), wanted)
                );
                std::array::from_fn(|_| format!("x{k}"))
            } else {
                let _ = writeln!(text, "    let e{k} = p.o{k} + i;");
                let lane = |l: usize, wanted: &mut Wanted| match self.word(k) {
                    Word::Four => {
                        format!("bitcast<{}>({name}[e{k} >> 2u][{l}u])", value_type(d))
                    }
                    word => loaded(d, word, &name, &format!("e{k} + {l}u"), wanted),
                };
                std::array::from_fn(|l| lane(l, wanted))
            };
            for (l, lane) in lanes.iter().enumerate() {
                let _ = writeln!(text, "    let x{k}_{l} = {lane};");
            }
        }
        for l in 0..4 {
            let x: String = (0..self.inputs).map(|k| format!(", x{k}_{l}")).collect();
            let _ = writeln!(text, "    let r{l} = element(i + {l}u{x});");
        }
        for k in self.inputs..self.types.len() {
            let (d, name, o) = (self.types[k], self.name(k), k - self.inputs);
            if self.word(k) == Word::Half {
                for l in 0..4 {
                    let (at, value) = (format!("p.o{k} + i + {l}u"), format!("r{l}.r{o}"));
                    let _ = writeln!(text, "    {}", stored(d, Word::Half, &name, &at, &value, wanted));
                }
                continue;
            }
            let bits: [String; 4] =
                std::array::from_fn(|l| crate::wgsl::bits(d, &format!("r{l}.r{o}"), wanted));
            let at = format!("p.o{k} + i");
            let [a, b, c, e] = &bits;
            let _ = match d.size() {
                4 => writeln!(text, "    {name}[({at}) >> 2u] = vec4<u32>({a}, {b}, {c}, {e});"),
                2 => writeln!(
                    text,
                    "    atomicStore(&{name}[({at}) >> 1u], ({a}) | (({b}) << 16u));\n    \
                     atomicStore(&{name}[(({at}) >> 1u) + 1u], ({c}) | (({e}) << 16u));"
                ),
                _ => writeln!(
                    text,
                    "    atomicStore(&{name}[({at}) >> 2u], ({a}) | (({b}) << 8u) | (({c}) << 16u) | (({e}) << 24u));"
                ),
            };
        }
        text + "}\n"
    }
}
