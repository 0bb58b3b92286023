//! What a reduction keeps on the way: `S`, with `identity`, `lift` of an element and its position, `merge` of
//! two (in any order), and `finish`.

use crate::wgsl::{Library, Wanted};
use steersman_core::{DType, ReduceOp};

/// The WGSL of one reduction.
pub(super) struct State {
    /// Declarations of `S` and its functions.
    pub text: String,
    /// Fields of `S` with their types.
    pub fields: &'static [(&'static str, &'static str)],
    /// Bytes of an `S` in a buffer.
    pub bytes: usize,
}

/// The parts of [`State::text`].
struct Parts {
    fields: &'static [(&'static str, &'static str)],
    identity: &'static str,
    /// Of `x` and its position `r`.
    lift: String,
    /// Of `a` and `b`.
    merge: &'static str,
    /// Of `s`, over `n` elements: statements that end in a return of `result`.
    finish: String,
    result: &'static str,
}

const ONE: &[(&str, &str)] = &[("v", "f32")];
const ONE_DOUBLE: &[(&str, &str)] = &[("v", "f64")];
const ONE_INT: &[(&str, &str)] = &[("v", "i32")];
const ONE_WORD: &[(&str, &str)] = &[("v", "u32")];
const WIDE: &[(&str, &str)] = &[("low", "u32"), ("high", "u32")];
const KEYED: &[(&str, &str)] = &[("key", "i32"), ("r", "u32")];
const KEYED_DOUBLE: &[(&str, &str)] = &[("key", "f64"), ("r", "u32")];
const PRODUCT: &[(&str, &str)] = &[("m", "f32"), ("e", "i32")];
const NORM: &[(&str, &str)] = &[("big", "f32"), ("mid", "f32"), ("small", "f32")];
const SPREAD: &[(&str, &str)] = &[("n", "f32"), ("mean", "f32"), ("m2", "f32")];
const SPREAD_DOUBLE: &[(&str, &str)] = &[("n", "f64"), ("mean", "f64"), ("m2", "f64")];

/// The state of `kind` over elements of `d`; `None` for what has none here.
pub(super) fn state(kind: ReduceOp, d: DType, wanted: &mut Wanted) -> Option<State> {
    if matches!(d, DType::I64) {
        return None;
    }
    wanted.add(match d {
        DType::F64 => Library::Double,
        DType::I32 | DType::U8 | DType::U32 if matches!(kind, ReduceOp::Sum | ReduceOp::Prod) => {
            Library::Wide
        }
        _ if kind == ReduceOp::Prod => Library::Exp,
        _ => Library::Bits,
    });
    let p = parts(kind, d);
    let declared: String = p.fields.iter().map(|(n, t)| format!("    {n}: {t},\n")).collect();
    let value = crate::wgsl::value_type(d);
    let text = format!(
        "struct S {{\n{declared}}}\n\
         fn identity() -> S {{ return S({}); }}\n\
         fn lift(x: {value}, r: u32) -> S {{\n{}\n}}\n\
         fn merge(a: S, b: S) -> S {{\n{}\n}}\n\
         fn finish(s: S, n: u32) -> {} {{\n{}\n}}\n",
        p.identity, p.lift, p.merge, p.result, p.finish
    );
    let double = p.fields[0].1 == "f64";
    let bytes = if double { 8 * p.fields.len() } else { 4 * p.fields.len() };
    Some(State { text, fields: p.fields, bytes })
}

fn parts(kind: ReduceOp, d: DType) -> Parts {
    use ReduceOp::*;
    let text = String::from;
    match (kind, d) {
        (Any | All, _) => {
            let nonzero = match d {
                DType::Bool => "x",
                DType::F64 => "!(x == 0.0lf)",
                DType::I32 => "x != 0",
                DType::U8 | DType::U32 => "x != 0u",
                _ => "f_nonzero(x)",
            };
            Parts {
                fields: ONE_WORD,
                identity: if kind == Any { "0u" } else { "1u" },
                lift: format!("    return S(select(0u, 1u, {nonzero}));"),
                merge: if kind == Any { "    return S(a.v | b.v);" } else { "    return S(a.v & b.v);" },
                finish: text("    return s.v != 0u;"),
                result: "bool",
            }
        }
        (Sum | Prod, DType::I32 | DType::U8 | DType::U32) => {
            let wide = if d == DType::I32 { "i64_from(x)" } else { "vec2<u32>(x, 0u)" };
            let (identity, merge) = match kind {
                Sum => (
                    "0u, 0u",
                    "    let w = i64_add(vec2<u32>(a.low, a.high), vec2<u32>(b.low, b.high));\n    return S(w.x, w.y);",
                ),
                _ => (
                    "1u, 0u",
                    "    let w = i64_mul(vec2<u32>(a.low, a.high), vec2<u32>(b.low, b.high));\n    return S(w.x, w.y);",
                ),
            };
            Parts {
                fields: WIDE,
                identity,
                lift: format!("    let w = {wide};\n    return S(w.x, w.y);"),
                merge,
                finish: text("    return vec2<u32>(s.low, s.high);"),
                result: "vec2<u32>",
            }
        }
        (Min | Max, DType::I32) => Parts {
            fields: ONE_INT,
            identity: if kind == Min { "2147483647" } else { "-2147483647 - 1" },
            lift: text("    return S(x);"),
            merge: if kind == Min { "    return S(min(a.v, b.v));" } else { "    return S(max(a.v, b.v));" },
            finish: text("    return s.v;"),
            result: "i32",
        },
        (Min | Max, DType::U8 | DType::U32) => Parts {
            fields: ONE_WORD,
            identity: if kind == Min { "0xffffffffu" } else { "0u" },
            lift: text("    return S(x);"),
            merge: if kind == Min { "    return S(min(a.v, b.v));" } else { "    return S(max(a.v, b.v));" },
            finish: text("    return s.v;"),
            result: "u32",
        },
        (Min | Max, DType::F64) => Parts {
            fields: ONE_DOUBLE,
            // The largest finite number; an infinity cannot be written, and one element is always there.
            identity: if kind == Min { "1.7976931348623157e308lf" } else { "-1.7976931348623157e308lf" },
            lift: text("    return S(x);"),
            merge: if kind == Min {
                "    return S(d_min(a.v, b.v));"
            } else {
                "    return S(d_max(a.v, b.v));"
            },
            finish: text("    return select(s.v, 0.0lf, s.v == 0.0lf);"),
            result: "f64",
        },
        (Min | Max, _) => Parts {
            fields: ONE,
            identity: if kind == Min { "inf()" } else { "-inf()" },
            lift: text("    return S(x);"),
            merge: if kind == Min {
                "    return S(f_min(a.v, b.v));"
            } else {
                "    return S(f_max(a.v, b.v));"
            },
            // Zeros are +0 and NaN the usual one, whatever order they came in.
            finish: text(
                "    let zero = !f_nonzero(s.v);\n    if (is_nan(s.v)) { return nan(); }\n    return from_bits(select(bitcast<u32>(s.v), 0u, zero));",
            ),
            result: "f32",
        },
        (ArgMin | ArgMax, DType::F64) => Parts {
            fields: KEYED_DOUBLE,
            identity: "0.0lf, 0xffffffffu",
            lift: format!("    return S({}x, r);", if kind == ArgMin { "-" } else { "" }),
            merge: "    if (a.r == 0xffffffffu) { return b; }\n    if (b.r == 0xffffffffu) { return a; }\n    let an = d_is_nan(a.key); let bn = d_is_nan(b.key);\n    if (an != bn) { if (an) { return a; } return b; }\n    if (!an && a.key > b.key) { return a; }\n    if (!an && b.key > a.key) { return b; }\n    if (a.r < b.r) { return a; }\n    return b;",
            finish: text("    return vec2<u32>(s.r, 0u);"),
            result: "vec2<u32>",
        },
        (ArgMin | ArgMax, _) => {
            let key = match (d, kind) {
                (DType::I32, ArgMin) => "~x",
                (DType::I32, _) => "x",
                (DType::U8, ArgMin) => "-bitcast<i32>(x)",
                (DType::U8, _) => "bitcast<i32>(x)",
                // Its order as that of signed numbers: the highest bit turned over, and all of them to look for the least.
                (DType::U32, ArgMin) => "bitcast<i32>(x ^ 0x7fffffffu)",
                (DType::U32, _) => "bitcast<i32>(x ^ 0x80000000u)",
                (_, ArgMin) => "select(-order(x), 0x7fffffff, is_nan(x))",
                _ => "select(order(x), 0x7fffffff, is_nan(x))",
            };
            Parts {
                fields: KEYED,
                identity: "-2147483647 - 1, 0xffffffffu",
                lift: format!("    return S({key}, r);"),
                merge: "    if (a.r == 0xffffffffu) { return b; }\n    if (b.r == 0xffffffffu) { return a; }\n    if (b.key > a.key || (b.key == a.key && b.r < a.r)) { return b; }\n    return a;",
                finish: text("    return vec2<u32>(s.r, 0u);"),
                result: "vec2<u32>",
            }
        }
        (Sum | Mean, DType::F64) => Parts {
            fields: ONE_DOUBLE,
            identity: "0.0lf",
            lift: text("    return S(x);"),
            merge: "    return S(a.v + b.v);",
            finish: text(if kind == Sum { "    return s.v;" } else { "    return s.v / f64(n);" }),
            result: "f64",
        },
        (Prod, DType::F64) => Parts {
            fields: ONE_DOUBLE,
            identity: "1.0lf",
            lift: text("    return S(x);"),
            merge: "    return S(a.v * b.v);",
            finish: text("    return s.v;"),
            result: "f64",
        },
        (Norm, DType::F64) => Parts {
            fields: ONE_DOUBLE,
            identity: "0.0lf",
            lift: text("    return S(x * x);"),
            merge: "    return S(a.v + b.v);",
            finish: text("    return sqrt(s.v);"),
            result: "f64",
        },
        (Var | Std, DType::F64) => Parts {
            fields: SPREAD_DOUBLE,
            identity: "0.0lf, 0.0lf, 0.0lf",
            lift: text("    return S(1.0lf, x, 0.0lf);"),
            merge: "    let n = a.n + b.n;\n    if (n == 0.0lf) { return a; }\n    let d = b.mean - a.mean;\n    let part = b.n / n;\n    return S(n, a.mean + d * part, a.m2 + b.m2 + d * d * a.n * part);",
            finish: format!(
                "    let v = select(s.m2, s.mean - s.mean, abs(s.mean) > 1.7976931348623157e308lf) / s.n;\n    return {};",
                if kind == Var { "v" } else { "sqrt(v)" }
            ),
            result: "f64",
        },
        (Sum | Mean, _) => Parts {
            fields: ONE,
            identity: "0.0",
            lift: text("    return S(x);"),
            merge: "    return S(a.v + b.v);",
            finish: text(match kind {
                Sum => "    return s.v;",
                _ => "    if (n == 0u) { return nan(); }\n    return s.v / f32(n);",
            }),
            result: "f32",
        },
        // Mantissa and exponent apart: a product in between may be far beyond the type while the whole is not.
        (Prod, _) => Parts {
            fields: PRODUCT,
            identity: "1.0, 0",
            lift: text(
                "    let b = bitcast<u32>(x) & 0x7fffffffu;\n    if (b == 0u || b >= 0x7f800000u) { return S(x, 0); }\n    if (b < 0x00800000u) {\n        let up = countLeadingZeros(b) - 8u;\n        return S(flip(from_bits(((b << up) & 0x7fffffu) | 0x3f800000u), x), -126 - i32(up));\n    }\n    return S(flip(from_bits((b & 0x7fffffu) | 0x3f800000u), x), i32(b >> 23u) - 127);",
            ),
            merge: "    let m = a.m * b.m;\n    let bits = bitcast<u32>(m) & 0x7fffffffu;\n    if (bits == 0u || bits >= 0x7f800000u) { return S(m, 0); }\n    let e = i32(bits >> 23u) - 127;\n    return S(flip(from_bits((bits & 0x7fffffu) | 0x3f800000u), m), clamp(a.e + b.e + e, -1000000000, 1000000000));",
            finish: text(
                "    let half = clamp(s.e, -252, 252) / 2;\n    return s.m * exp2_int(half) * exp2_int(clamp(s.e, -252, 252) - half);",
            ),
            result: "f32",
        },
        // Squares of the large and of the small are kept apart, scaled to where they neither over- nor underflow.
        (Norm, _) => Parts {
            fields: NORM,
            identity: "0.0, 0.0, 0.0",
            lift: text(
                "    let a = magnitude(x);\n    if (order(a) >= 0x58800000) { let y = a * 8.077935669463161e-28; return S(y * y, 0.0, 0.0); }\n    if (order(a) < 0x26800000) { let y = a * 1.2379400392853803e27; return S(0.0, 0.0, y * y); }\n    return S(0.0, a * a, 0.0);",
            ),
            merge: "    return S(a.big + b.big, a.mid + b.mid, a.small + b.small);",
            finish: text(
                "    if (f_nonzero(s.big)) {\n        if (is_inf(s.big) && !is_nan(s.mid)) { return inf(); }\n        return sqrt(s.big + (s.mid * 8.077935669463161e-28) * 8.077935669463161e-28) * 1.2379400392853803e27;\n    }\n    if (f_nonzero(s.mid)) { return sqrt(s.mid + (s.small * 8.077935669463161e-28) * 8.077935669463161e-28); }\n    return sqrt(s.small) * 8.077935669463161e-28;",
            ),
            result: "f32",
        },
        (Var | Std, _) => Parts {
            fields: SPREAD,
            identity: "0.0, 0.0, 0.0",
            lift: text("    return S(1.0, x, 0.0);"),
            merge: "    let n = a.n + b.n;\n    if (n == 0.0) { return a; }\n    let d = b.mean - a.mean;\n    let part = b.n / n;\n    return S(n, a.mean + d * part, a.m2 + b.m2 + d * d * a.n * part);",
            finish: format!(
                "    if (n == 0u || is_inf(s.mean) || is_nan(s.mean)) {{ return nan(); }}\n    let v = s.m2 / f32(n);\n    return {};",
                if kind == Var { "v" } else { "sqrt(v)" }
            ),
            result: "f32",
        },
    }
}
