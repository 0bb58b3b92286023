//! Expressions as statements on one element.

use super::element::value_type;
use super::functions;
use super::library::{Library, Wanted};
use std::fmt::Write;
use steersman_core::expr::{Dist, Expr, Step, Value};
use steersman_core::{BinaryOp, DType, Refusal, TernaryOp};

/// The steps of an expression as the body of a function of the operands.
pub(crate) struct Program {
    /// Statements; value `i` is `v{i}` afterwards.
    pub body: String,
    pub wanted: Wanted,
}

/// Steps beyond which compiling would take longer than any run gains.
const MOST: usize = 400;

/// Whether every step of `expr` can be computed; `f64` says whether the device has that.
pub(crate) fn computable(expr: &Expr, f64: bool) -> Result<(), Refusal> {
    if expr.steps().len() > MOST {
        return Err(Refusal::new(format!("a shader takes at most {MOST} steps")));
    }
    for (i, step) in expr.steps().iter().enumerate() {
        let d = expr.dtype_of(Value(i as u32));
        // Inputs that are only moved need no arithmetic, whatever their type.
        let moved = matches!(step, Step::Input(_) | Step::Ternary(TernaryOp::Where, ..));
        let of = step.arguments().last().map_or(d, |v| expr.dtype_of(v));
        if (d == DType::F64 || of == DType::F64) && !f64 {
            return Err(Refusal::new(
                "this adapter does not compute in f64, and nothing is rounded silently",
            ));
        }
        if matches!(step, Step::Scalar(_, DType::F64)) {
            return Err(Refusal::new("WGSL cannot make an f64 of bits: no f64 scalars"));
        }
        if matches!(step, Step::Product(..)) {
            return Err(Refusal::new("a group that starts with a matrix product is not for this device"));
        }
        if d == DType::I64 && moved {
            continue;
        }
        if translated(expr, i, step, &mut Wanted::default()).is_none() {
            let name = match *step {
                Step::Unary(u, _) => u.name(),
                Step::Binary(b, ..) => b.name(),
                Step::Ternary(t, ..) => t.name(),
                Step::Cast(to, _) => to.name(),
                Step::Random { dist, .. } => dist.name(),
                Step::Input(_) | Step::Scalar(..) => "a scalar",
                Step::Index(_) => "index",
                Step::Product(..) => "matmul",
            };
            return Err(Refusal::new(format!("there is no {name} of {of} in WGSL that is right")));
        }
    }
    Ok(())
}

/// Turns of loops that one element may take in all steps: remainders go bit by bit.
pub(crate) fn turns(expr: &Expr) -> usize {
    let remainder =
        |s: &&Step| matches!(**s, Step::Binary(BinaryOp::Rem, a, _) if expr.dtype_of(a).is_float());
    1 + 280 * expr.steps().iter().filter(remainder).count()
}

impl Program {
    /// Of an expression that is [`computable`]. Inputs are `x{k}`, scalars `p.k{k}` and `p.k{k}_high`, the
    /// element's flat position `i`.
    pub fn of(expr: &Expr) -> Result<Program, String> {
        let mut program = Program { body: String::new(), wanted: Wanted::default() };
        for (i, step) in expr.steps().iter().enumerate() {
            let d = expr.dtype_of(Value(i as u32));
            let text = translated(expr, i, step, &mut program.wanted)
                .ok_or_else(|| format!("step {i} of {expr} has no translation"))?;
            let _ = writeln!(program.body, "    let v{i}: {} = {text};", value_type(d));
        }
        Ok(program)
    }
}

/// A step as an expression of earlier values.
fn translated(expr: &Expr, index: usize, step: &Step, wanted: &mut Wanted) -> Option<String> {
    let d = expr.dtype_of(Value(index as u32));
    let v = |v: Value| format!("v{}", v.index());
    let of = step.arguments().last().map_or(d, |a| expr.dtype_of(a));
    let text = match *step {
        Step::Input(k) => return Some(format!("x{k}")),
        Step::Scalar(k, d) => return scalar(k, d, wanted),
        Step::Unary(op, a) => functions::unary(op, of, &v(a), wanted)?,
        Step::Binary(op, a, b) => {
            // Compilers turn x - x into 0 and x / x into 1, which an infinite x is not.
            let second = if a == b && of == DType::F32 { format!("keep({})", v(b)) } else { v(b) };
            wanted.add(Library::Bits);
            functions::binary(op, of, &v(a), &second, wanted)?
        }
        Step::Ternary(op, a, b, c) => functions::ternary(op, of, [&v(a), &v(b), &v(c)], wanted)?,
        Step::Cast(to, a) => functions::cast(of, to, &v(a), wanted)?,
        Step::Index(DType::F32) => "f32(i)".into(),
        Step::Index(DType::F64) => "f64(i)".into(),
        Step::Index(DType::I32) => "bitcast<i32>(i)".into(),
        Step::Index(DType::U32) => "i".into(),
        Step::Index(DType::I64) => "vec2<u32>(i, 0u)".into(),
        Step::Random { dist, dtype: DType::F32, key } => {
            wanted.add(Library::Random);
            let name = match dist {
                Dist::Uniform => "uniform_f32",
                Dist::Normal => "normal_f32",
            };
            format!("{name}(vec2<u32>(p.k{key}, p.k{key}_high), i)")
        }
        Step::Index(_) | Step::Random { .. } | Step::Product(..) => return None,
    };
    // Types of 16 bits are rounded after every step, as if stored.
    if matches!(d, DType::F16 | DType::BF16) && !matches!(step, Step::Ternary(TernaryOp::Where, ..)) {
        wanted.add(Library::Half);
        return Some(format!("as_{d}({text})"));
    }
    Some(text)
}

fn scalar(k: u16, d: DType, wanted: &mut Wanted) -> Option<String> {
    Some(match d {
        DType::F32 => format!("bitcast<f32>(p.k{k})"),
        DType::I32 => format!("bitcast<i32>(p.k{k})"),
        DType::U32 => format!("p.k{k}"),
        DType::I64 => format!("vec2<u32>(p.k{k}, p.k{k}_high)"),
        DType::U8 => format!("p.k{k} & 0xffu"),
        DType::Bool => format!("(p.k{k} & 0xffu) != 0u"),
        DType::F16 | DType::BF16 => {
            wanted.add(Library::Half);
            format!("from_{d}(p.k{k} & 0xffffu)")
        }
        DType::F64 => return None,
    })
}
