//! The text form: `matmul f32 1024x512 512x256`, one workload a line, `#` starts a comment.
//!
//! Beyond the plain form an operand may carry strides and a place, `1024x512:1,1024@host`, and a line
//! may end with attributes (`axis=0,1`, `perm=1,0`, `stride=1 pad=1`, `numerics=relaxed`) and `-> place`.

use super::error::show;
use super::{Operand, Strides, Workload, WorkloadError};
use crate::device::{Place, Places};
use crate::dtype::DType;
use crate::expr::Brief;
use crate::kernel::NumericClass;
use crate::op::{Axes, Op, Perm, ReduceOp, TernaryOp};
use std::fmt;
use std::str::FromStr;

/// Steps of a fused group that its text shows: enough to recognise it by.
const SHOWN_STEPS: usize = 12;

struct Fail {
    problem: String,
    expected: String,
}

fn fail<T>(problem: impl Into<String>, expected: impl Into<String>) -> Result<T, Fail> {
    Err(Fail { problem: problem.into(), expected: expected.into() })
}

enum Problem {
    Text(Fail),
    Workload(WorkloadError),
}
impl From<Fail> for Problem {
    fn from(f: Fail) -> Problem {
        Problem::Text(f)
    }
}
impl From<WorkloadError> for Problem {
    fn from(e: WorkloadError) -> Problem {
        Problem::Workload(e)
    }
}

impl FromStr for Workload {
    type Err = WorkloadError;

    /// As it prints without names: devices are `device:1`. [`Workload::parse`] knows them by family.
    fn from_str(text: &str) -> Result<Workload, WorkloadError> {
        let expected = || "host; devices have names only where they are registered".to_string();
        workload(text, &|t| t.parse().ok(), &expected)
    }
}

impl Workload {
    /// Reads the text form, with these places.
    pub fn parse(text: &str, places: &Places) -> Result<Workload, WorkloadError> {
        let expected = || format!("one of: {}", places.names().collect::<Vec<_>>().join(" "));
        workload(text, &|t| places.find(t), &expected)
    }

    /// The text form with the names of these places.
    pub fn named<'a>(&'a self, places: &'a Places) -> impl fmt::Display + 'a {
        Named(self, Some(places))
    }
}

fn workload(
    text: &str,
    find: &dyn Fn(&str) -> Option<Place>,
    expected: &dyn Fn() -> String,
) -> Result<Workload, WorkloadError> {
    let line = text.split('#').next().unwrap_or("").trim();
    let place = |t: &str| match find(t) {
        Some(p) => Ok(p),
        None => fail(format!("there is no place '{t}'"), expected()),
    };
    parse(line, &place).map_err(|p| match p {
        Problem::Text(f) => {
            WorkloadError::Text { text: line.into(), problem: f.problem, expected: f.expected }
        }
        Problem::Workload(e) => e,
    })
}

/// Reads a workload file: one a line, blank lines and comments skipped. The first bad line is the error.
pub fn parse_file(text: &str, places: &Places) -> Result<Vec<Workload>, WorkloadError> {
    // Editors of another system begin files with a mark that is no text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let at = |i: usize, e| WorkloadError::Line { line: i + 1, source: Box::new(e) };
    text.lines()
        .enumerate()
        .filter(|(_, l)| !l.split('#').next().unwrap_or("").trim().is_empty())
        .map(|(i, l)| Workload::parse(l, places).map_err(|e| at(i, e)))
        .collect()
}

type FindPlace<'a> = &'a dyn Fn(&str) -> Result<Place, Fail>;

fn parse(line: &str, place: FindPlace<'_>) -> Result<Workload, Problem> {
    let mut tokens = line.split_whitespace();
    let Some(name) = tokens.next() else {
        return Err(fail::<Problem>(
            "it is empty",
            "an op, an element type and shapes, like 'add f32 1000 1000'",
        )?);
    };
    let Some(mut op) = Op::from_name(name) else {
        let names = Op::names();
        let near = nearest(name, &names);
        return Err(fail::<Problem>(
            format!("there is no op '{name}'"),
            match near {
                Some(n) => format!("an op such as '{n}' (did you mean that?)"),
                None => format!("one of: {}", once(&names).join(" ")),
            },
        )?);
    };
    let types = || DType::ALL.map(|d| d.name()).join(" ");
    let Some(dtype) = tokens.next() else {
        return Err(fail::<Problem>("the element type is missing", format!("one of: {}", types()))?);
    };
    let Ok(dtype) = dtype.parse::<DType>() else {
        return Err(fail::<Problem>(
            format!("'{dtype}' is not an element type"),
            format!("one of: {}", types()),
        )?);
    };
    let mut inputs: Vec<Operand> = Vec::new();
    let (mut out_place, mut numerics) = (None, None);
    // What they mean depends on how many operands there are, wherever they stand.
    let mut attributes: Vec<(&str, &str)> = Vec::new();
    while let Some(t) = tokens.next() {
        if t == "->" {
            let Some(p) = tokens.next() else {
                return Err(fail::<Problem>("'->' is followed by nothing", "a place, like '-> host'")?);
            };
            if out_place.replace(place(p)?).is_some() {
                return Err(fail::<Problem>("'->' is there twice", "one place for the result")?);
            }
        } else if let Some((k, v)) = t.split_once('=') {
            if attributes.iter().any(|(other, _)| *other == k) {
                return Err(fail::<Problem>(format!("{k}= is there twice"), format!("one {k}="))?);
            }
            attributes.push((k, v));
        } else {
            let d =
                if op == Op::Ternary(TernaryOp::Where) && inputs.is_empty() { DType::Bool } else { dtype };
            inputs.push(parse_operand(t, d, place)?);
        }
    }
    for (k, v) in attributes {
        match k {
            "numerics" => numerics = Some(parse_numerics(v)?),
            _ => op = attribute(op, k, v, inputs.len())?,
        }
    }
    op = by_count(op, inputs.len());
    let mut w = Workload::new(op, inputs)?;
    if let Some(n) = numerics {
        w = w.with_numerics(n);
    }
    if let Some(p) = out_place {
        w = w.with_output_at(p);
    }
    Ok(w)
}

/// `max` and `min` of one operand reduce it; of two they compare.
fn by_count(op: Op, operands: usize) -> Op {
    match op {
        Op::Binary(b) if operands == 1 => match ReduceOp::ALL.iter().find(|r| r.name() == b.name()) {
            Some(&kind) => Op::Reduce { kind, axes: Axes::NONE },
            None => op,
        },
        _ => op,
    }
}

fn attribute(op: Op, key: &str, value: &str, operands: usize) -> Result<Op, Fail> {
    let list = || -> Result<Vec<usize>, Fail> {
        value
            .split(',')
            .map(|a| {
                a.parse().or_else(|_| {
                    fail(format!("'{a}' in {key}= is not a number"), format!("{key}=0 or {key}=0,1"))
                })
            })
            .collect()
    };
    match (by_count(op, operands), key) {
        (Op::Reduce { kind, .. }, "axis") => match Axes::from_list(&list()?) {
            Some(axes) => Ok(Op::Reduce { kind, axes }),
            None => fail(
                format!("axis={value} repeats an axis or names one above 7"),
                "each axis once, like axis=0,1",
            ),
        },
        (Op::Transpose { .. }, "perm") => match Perm::from_list(&list()?) {
            Some(perm) => Ok(Op::Transpose { perm }),
            None => fail(format!("perm={value} is not a permutation"), "each axis once, like perm=1,0"),
        },
        (Op::Conv2d { stride, pad }, "stride" | "pad") => match value.parse::<u16>() {
            Ok(v) if key == "stride" => Ok(Op::Conv2d { stride: v, pad }),
            Ok(v) => Ok(Op::Conv2d { stride, pad: v }),
            Err(_) => fail(format!("{key}={value} is not a small number"), format!("{key}=1")),
        },
        (o, _) => fail(
            format!("{} has no attribute '{key}'", o.name()),
            "axis= (reductions), perm= (transpose), stride= pad= (conv2d) or numerics=",
        ),
    }
}

fn parse_operand(text: &str, dtype: DType, place: FindPlace<'_>) -> Result<Operand, Problem> {
    let (rest, place) = match text.split_once('@') {
        Some((r, p)) => (r, place(p)?),
        None => (text, Place::Host),
    };
    let (shape, strides) = match rest.split_once(':') {
        Some((s, t)) => (s, Some(t)),
        None => (rest, None),
    };
    let mut dims = Vec::new();
    for d in shape.split('x') {
        match d.parse::<usize>() {
            Ok(v) => dims.push(v),
            Err(_) => {
                return Err(fail::<Problem>(
                    format!("'{shape}' is not a shape"),
                    "numbers joined by x, like 1024x512, or 1 for a scalar",
                )?);
            }
        }
    }
    let operand = match strides {
        None => Operand::new(dtype, &dims)?,
        Some(s) => {
            let parsed: Result<Strides, _> = s.split(',').map(|v| v.parse::<isize>()).collect();
            match parsed {
                Ok(strides) => Operand::strided(dtype, &dims, strides)?,
                Err(_) => {
                    return Err(fail::<Problem>(
                        format!("'{s}' are not strides"),
                        "numbers joined by commas, like 1024x512:1,1024",
                    )?);
                }
            }
        }
    };
    Ok(operand.at(place))
}

fn parse_numerics(text: &str) -> Result<NumericClass, Fail> {
    text.parse().or_else(|_| fail(format!("numerics={text} is unknown"), "exact, reassociated or relaxed"))
}

/// Each name once: `max` and `min` are two ops each.
fn once<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let first = |(i, name): &(usize, &&str)| !names[..*i].contains(*name);
    names.iter().enumerate().filter(first).map(|(_, n)| *n).collect()
}

/// The closest of `names`, within one edit for every three letters and two at most: of four letters, two make another word.
fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let near = |n: &str| (word.chars().count().max(n.len()) / 3).clamp(1, 2);
    names.iter().map(|n| (edits(word, n), *n)).filter(|(d, n)| *d <= near(n)).min().map(|(_, n)| n)
}

fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Named(self, None).fmt(f)
    }
}

/// A workload with the names of its places, if they are known.
struct Named<'a>(&'a Workload, Option<&'a Places>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = self.0;
        let place = |p: Place| self.1.map_or_else(|| p.to_string(), |places| places.name(p));
        write!(f, "{} {}", w.op.name(), w.dtype())?;
        if let Some(expr) = w.expr() {
            write!(f, " {} {{{}}}", show(w.dims()), Brief(expr, SHOWN_STEPS))?;
            if !w.inputs.is_empty() {
                f.write_str(" of")?;
            }
        }
        let mut shown: Vec<_> = w.inputs.iter().map(|o| unstretched(w.op, o)).collect();
        if !stretches_back(w, &shown) {
            // No operand is as large as what all are stretched to.
            shown[0] = as_it_is(&w.inputs[0]);
        }
        for (o, (dims, strides)) in w.inputs.iter().zip(shown) {
            write!(f, " {}", show(&dims))?;
            if let Some(strides) = strides {
                let list: Vec<String> = strides.iter().map(|s| s.to_string()).collect();
                write!(f, ":{}", list.join(","))?;
            }
            if o.place != Place::Host {
                write!(f, "@{}", place(o.place))?;
            }
        }
        match w.op {
            Op::Reduce { axes, .. } if axes != Axes::all(w.inputs[0].rank()) => write!(f, " axis={axes}")?,
            Op::Transpose { perm } if Some(perm) != Perm::reversed(perm.rank()) => write!(f, " perm={perm}")?,
            Op::Conv2d { stride, pad } => write!(f, " stride={stride} pad={pad}")?,
            _ => {}
        }
        if w.numerics != NumericClass::Reassociated {
            write!(f, " numerics={}", w.numerics)?;
        }
        if w.output.place != Place::Host {
            write!(f, " -> {}", place(w.output.place))?;
        }
        Ok(())
    }
}

type Shown = (super::Dims, Option<Strides>);

/// The operand as it was before broadcasting where that can be told: leading repeated dimensions are
/// dropped, other repeated ones become 1. Strides only if what is left is not contiguous.
fn unstretched(op: Op, o: &Operand) -> Shown {
    let Some(apart) = unbroadcast(op) else { return as_it_is(o) };
    let (mut dims, mut strides) = (o.dims.clone(), o.strides.clone());
    while dims.len() > apart.max(1) && strides[0] == 0 && dims[0] > 1 {
        dims.remove(0);
        strides.remove(0);
    }
    for i in 0..dims.len().saturating_sub(apart) {
        if strides[i] == 0 && dims[i] > 1 {
            dims[i] = 1;
        }
    }
    as_it_is(&Operand { dims, strides, ..o.clone() })
}

/// Trailing dimensions that do not broadcast, of an op whose others do.
fn unbroadcast(op: Op) -> Option<usize> {
    match op {
        Op::Binary(_) | Op::Ternary(_) | Op::Fused(_) => Some(0),
        Op::MatMul => Some(2),
        _ => None,
    }
}

fn as_it_is(o: &Operand) -> Shown {
    (o.dims.clone(), (!o.is_contiguous()).then(|| o.strides.clone()))
}

/// Whether broadcasting these gives the result's shape again; that of a fused group is said apart.
fn stretches_back(w: &Workload, shown: &[Shown]) -> bool {
    let Some(apart) = unbroadcast(w.op).filter(|_| w.expr().is_none()) else { return true };
    let out = &w.output.dims;
    (apart + 1..=out.len()).all(|back| {
        let dim = |(dims, _): &Shown| dims.len().checked_sub(back).map(|i| dims[i]);
        shown.iter().any(|s| dim(s) == Some(out[out.len() - back]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_survives_a_round_trip() {
        for text in [
            "matmul f32 1024x512 512x256",
            "add f32 1000x1000 1000",
            "add f32 1000x1000 1000x1",
            "add f32 1 1000",
            "exp f64 65536",
            "sum f32 4096x4096 axis=1",
            "sum f32 4096x4096",
            "max f32 4x37",
            "max f32 4x37 4x37",
            "transpose f32 4096x4096",
            "transpose f32 2x3x4 perm=1,0,2",
            "conv2d f32 8x64x56x56 64x64x3x3 stride=1 pad=1",
            "where f32 10 10 1",
            "matmul f64 5x3x4 4x2",
            "matmul f32 64x32:1,64 32x8 numerics=relaxed",
            "copy f32 10x10:20,2",
            "any bool 0x3",
            "add f32 10@device:1 10 -> device:2",
            "exp f32 10:0",
            "neg f32 3x4:0,1",
            "add f32 10:0 1",
            "matmul f32 4x8:0,1 8x4",
            "matmul f32 5x4x8:0,8,1 8x4",
        ] {
            let w: Workload = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(w.to_string(), text);
            assert_eq!(w.to_string().parse::<Workload>().unwrap(), w);
        }
    }

    #[test]
    fn malformed_text_says_what_was_expected() {
        let cases = [
            ("", "empty"),
            ("frob f32 10", "no op 'frob'"),
            ("ad f32 10 10", "did you mean"),
            ("frob f32 10", "one of: neg"),
            ("matmlu f32 10x10 10x10", "'matmul' (did you mean"),
            ("add bool 10 10", "not defined for bool; it takes f32 f64"),
            ("sum f32 10x10 axis=0 axis=1", "axis= is there twice"),
            ("add f32 10 10 -> host -> host", "'->' is there twice"),
            ("max f32 axis=0 10x20 10x20", "no attribute 'axis'"),
            ("add f99 10 10", "f99"),
            ("add f32 -3 4", "'-3' is not a shape"),
            ("add f32 10", "takes 2 operand"),
            ("add f32 3 4", "do not broadcast"),
            ("matmul f32 3x4 5x6", "columns (4)"),
            ("sum f32 10x10 axis=7", "axis 7 is out of range"),
            ("sum f32 10x10 axis=0,0", "repeats"),
            ("sum f32 10x10 perm=0", "no attribute 'perm'"),
            ("exp i32 10", "not defined for i32"),
            ("neg u32 10", "not defined for u32"),
            ("min f32 0", "zero elements"),
            ("matmul f32 99999999999x99999999999 99999999999x9", "too large"),
            ("exp f32 99999999999999999999999", "is not a shape"),
            ("transpose f32 2x3 perm=0,1,2", "does not name each axis"),
            ("add f32 10 10 ->", "followed by nothing"),
            ("conv2d f32 1x1x2x2 1x1x3x3", "larger than the padded image"),
        ];
        for (text, want) in cases {
            let got = text.parse::<Workload>().unwrap_err().to_string();
            assert!(got.contains(want), "{text:?}: {got}");
        }
    }

    #[test]
    fn a_file_reports_the_line_of_the_first_mistake() {
        let e = parse_file("# head\nadd f32 1 1\n\nadd f32 x\n", &Places::default()).unwrap_err().to_string();
        assert!(e.starts_with("line 4: "), "{e}");
        assert_eq!(parse_file("add f32 1 1 # note\n", &Places::default()).unwrap().len(), 1);
    }

    #[test]
    fn each_op_is_offered_once() {
        let said = "frobnicate f32 10".parse::<Workload>().unwrap_err().to_string();
        assert_eq!(said.split_whitespace().filter(|w| *w == "max").count(), 1, "{said}");
    }

    #[test]
    fn attributes_may_stand_before_the_operands() {
        for (text, same) in [
            ("sum f32 axis=0 10x20", "sum f32 10x20 axis=0"),
            ("max f32 axis=0 10x20", "max f32 10x20 axis=0"),
        ] {
            let w: Workload = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(w.to_string(), same);
        }
    }

    #[test]
    fn a_mark_at_the_beginning_of_a_file_is_no_text() {
        assert_eq!(parse_file("\u{feff}add f32 1 1\n", &Places::default()).unwrap().len(), 1);
    }

    #[test]
    fn devices_are_known_by_their_family_and_an_unknown_one_is_said_with_those_there_are() {
        let device = |family: &str, place| crate::device::Device {
            identity: crate::device::Identity {
                family: family.into(),
                part: String::new(),
                driver: String::new(),
                memory: None,
                parallelism: 1,
                isa: Vec::new(),
            },
            place,
            machine: Default::default(),
        };
        let at = |i| Place::Device(crate::device::DeviceId(i));
        let devices = [
            device("cpu", Place::Host),
            device("vulkan", at(1)),
            device("cuda", at(2)),
            device("vulkan", at(3)),
        ];
        let places = Places::of(&devices);
        let text = "matmul f32 8x8@vulkan:1 8x8 -> cuda:0";
        let w = Workload::parse(text, &places).unwrap();
        assert_eq!([w.inputs()[0].place, w.inputs()[1].place, w.output().place], [at(3), Place::Host, at(2)]);
        assert_eq!(w.named(&places).to_string(), text);
        let e = Workload::parse("exp f32 8@cuda:1", &places).unwrap_err().to_string();
        assert!(e.contains("'cuda:1'") && e.contains("host cpu:0 vulkan:0 cuda:0 vulkan:1"), "{e}");
        assert!("exp f32 8@cuda:0".parse::<Workload>().is_err());
    }
}
