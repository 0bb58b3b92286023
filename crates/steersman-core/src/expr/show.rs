//! Expressions as one line of text.

use super::{Expr, Output, Step, Value};
use std::fmt;

/// An expression's text with at most so many steps: programs of thousands end up in logs.
pub(crate) struct Brief<'a>(pub &'a Expr, pub usize);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Brief(expr, most) = *self;
        f.write_str("(")?;
        for (i, step) in expr.steps().iter().enumerate().take(most) {
            if i > 0 {
                f.write_str(" ")?;
            }
            write_step(f, expr, Value(i as u32), step)?;
        }
        if let Some(left) = expr.steps().len().checked_sub(most).filter(|&l| l > 0) {
            write!(f, " … {left} more")?;
        }
        f.write_str(") -> ")?;
        for (i, output) in expr.outputs().iter().enumerate() {
            f.write_str(if i > 0 { ", " } else { "" })?;
            match *output {
                Output::Array(v) => write_value(f, expr, v)?,
                Output::Reduce { kind, axes, value } => {
                    write!(f, "{}(", kind.name())?;
                    write_value(f, expr, value)?;
                    if !axes.is_empty() {
                        write!(f, " axis={axes}")?;
                    }
                    f.write_str(")")?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Brief(self, usize::MAX).fmt(f)
    }
}

fn write_step(f: &mut fmt::Formatter<'_>, expr: &Expr, v: Value, step: &Step) -> fmt::Result {
    match *step {
        Step::Input(_) | Step::Scalar(..) => {
            write_value(f, expr, v)?;
            return write!(f, ":{}", expr.dtype_of(v));
        }
        _ => write!(f, "v{}=", v.0)?,
    }
    match *step {
        Step::Input(_) | Step::Scalar(..) => {}
        Step::Unary(op, _) => f.write_str(op.name())?,
        Step::Binary(op, ..) => f.write_str(op.name())?,
        Step::Ternary(op, ..) => f.write_str(op.name())?,
        Step::Cast(to, _) => f.write_str(to.name())?,
        Step::Product(a, b) => return write!(f, "matmul(in{a},in{b})"),
        Step::Index(dtype) => return write!(f, "index:{dtype}"),
        Step::Random { dist, dtype, key } => return write!(f, "{}:{dtype}(s{key})", dist.name()),
    }
    f.write_str("(")?;
    for (i, a) in step.arguments().enumerate() {
        f.write_str(if i > 0 { "," } else { "" })?;
        write_value(f, expr, a)?;
    }
    f.write_str(")")
}

fn write_value(f: &mut fmt::Formatter<'_>, expr: &Expr, v: Value) -> fmt::Result {
    match expr.steps()[v.index()] {
        Step::Input(i) => write!(f, "in{i}"),
        Step::Scalar(i, _) => write!(f, "s{i}"),
        _ => write!(f, "v{}", v.0),
    }
}
