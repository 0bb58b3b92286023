//! Elements in buffers of words.

use super::library::{Library, Wanted};
use steersman_core::DType;

/// What a buffer's array is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// 32 bits.
    Plain,
    /// 32 bits that several invocations may write parts of.
    Atomic,
    /// Four words together.
    Four,
    /// f64 as such.
    Double,
    /// f16 as such: a store touches no neighbour.
    Half,
}

impl Word {
    /// What an operand of a type is best an array of, with f16 as such where the adapter has it.
    pub fn of(d: DType, written: bool, f16: bool) -> Word {
        match d {
            DType::F64 => Word::Double,
            DType::F16 if f16 => Word::Half,
            _ if written && d.size() < 4 => Word::Atomic,
            _ => Word::Plain,
        }
    }

    /// The array's element type.
    pub fn name(self) -> &'static str {
        match self {
            Word::Plain => "u32",
            Word::Atomic => "atomic<u32>",
            Word::Four => "vec4<u32>",
            Word::Double => "f64",
            Word::Half => "f16",
        }
    }

    /// The word of index `i` of the array `name`.
    pub fn read(self, name: &str, i: &str) -> String {
        match self {
            Word::Plain | Word::Double | Word::Half => format!("{name}[{i}]"),
            Word::Atomic => format!("atomicLoad(&{name}[{i}])"),
            Word::Four => format!("{name}[({i}) >> 2u][({i}) & 3u]"),
        }
    }
}

/// The type that values of an element type have in a shader.
pub(crate) fn value_type(d: DType) -> &'static str {
    match d {
        DType::F32 | DType::F16 | DType::BF16 => "f32",
        DType::F64 => "f64",
        DType::I32 => "i32",
        DType::I64 => "vec2<u32>",
        DType::U8 | DType::U32 => "u32",
        DType::Bool => "bool",
    }
}

/// Element `i` (in elements) of the array `name`, as a value.
pub(crate) fn loaded(d: DType, word: Word, name: &str, i: &str, wanted: &mut Wanted) -> String {
    match d {
        DType::F64 if word == Word::Double => format!("{name}[{i}]"),
        DType::F16 if word == Word::Half => {
            wanted.add_f16();
            format!("f32({name}[{i}])")
        }
        DType::F32 => format!("bitcast<f32>({})", word.read(name, i)),
        DType::I32 => format!("bitcast<i32>({})", word.read(name, i)),
        DType::U32 => word.read(name, i),
        DType::F64 | DType::I64 => {
            let (low, high) = (format!("2u * ({i})"), format!("2u * ({i}) + 1u"));
            format!("vec2<u32>({}, {})", word.read(name, &low), word.read(name, &high))
        }
        DType::U8 => {
            format!("(({}) >> ((({i}) & 3u) * 8u)) & 0xffu", word.read(name, &format!("({i}) >> 2u")))
        }
        DType::Bool => {
            format!("((({}) >> ((({i}) & 3u) * 8u)) & 0xffu) != 0u", word.read(name, &format!("({i}) >> 2u")))
        }
        DType::F16 | DType::BF16 => {
            wanted.add(Library::Half);
            let half =
                format!("(({}) >> ((({i}) & 1u) * 16u)) & 0xffffu", word.read(name, &format!("({i}) >> 1u")));
            format!("from_{d}({half})")
        }
    }
}

/// The bits of a value: a word, or less of one in its low end.
pub(crate) fn bits(d: DType, value: &str, wanted: &mut Wanted) -> String {
    match d {
        DType::F32 | DType::I32 => format!("bitcast<u32>({value})"),
        DType::U8 => format!("({value}) & 0xffu"),
        DType::Bool => format!("select(0u, 1u, {value})"),
        DType::F16 | DType::BF16 => {
            wanted.add(Library::Half);
            format!("to_{d}({value})")
        }
        DType::U32 | DType::F64 | DType::I64 => value.to_string(),
    }
}

/// The statement that stores `value` as element `i` of the array `name`. Types smaller than a word need an
/// atomic one: each invocation changes its own bits alone.
pub(crate) fn stored(d: DType, word: Word, name: &str, i: &str, value: &str, wanted: &mut Wanted) -> String {
    if word == Word::Half {
        wanted.add_f16();
        wanted.add(Library::Half);
        // Rounded here: an adapter may round either way, and what is an f16 already stays it.
        return format!("{name}[{i}] = f16(as_f16({value}));");
    }
    let b = bits(d, value, wanted);
    let one = |i: &str, b: &str| match word {
        Word::Atomic => format!("atomicStore(&{name}[{i}], {b});"),
        Word::Four => format!("{name}[({i}) >> 2u][({i}) & 3u] = {b};"),
        _ => format!("{name}[{i}] = {b};"),
    };
    match d {
        DType::F64 if word == Word::Double => one(i, value),
        DType::F32 | DType::I32 | DType::U32 => one(i, &b),
        DType::F64 | DType::I64 => {
            let (low, high) = (format!("2u * ({i})"), format!("2u * ({i}) + 1u"));
            format!("{} {}", one(&low, &format!("({b}).x")), one(&high, &format!("({b}).y")))
        }
        _ => {
            let (per, shift, width, mask) =
                if d.size() == 2 { (1, "1u", 16, "0xffffu") } else { (2, "3u", 8, "0xffu") };
            format!(
                "{{ let by_ = (({i}) & {shift}) * {width}u; let word_ = ({i}) >> {per}u; \
                 atomicAnd(&{name}[word_], ~({mask} << by_)); atomicOr(&{name}[word_], ({b}) << by_); }}"
            )
        }
    }
}
