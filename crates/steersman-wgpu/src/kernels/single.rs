//! Single ops as expressions, so that one generator serves them and fused groups.

use smallvec::SmallVec;
use std::sync::Arc;
use steersman_core::expr::{Expr, ExprError, Output, Step};
use steersman_core::{BinaryOp, DType, NumericClass, Op, TernaryOp, UnaryOp};

/// The expression of one op on elements of this type.
pub(crate) fn of_op(op: Op, dtype: DType) -> Result<Arc<Expr>, ExprError> {
    let first = if op == Op::Ternary(TernaryOp::Where) { DType::Bool } else { dtype };
    let types: SmallVec<[DType; 3]> = (0..op.arity()).map(|k| if k == 0 { first } else { dtype }).collect();
    let mut b = Expr::builder(types.iter().copied());
    let x = (0..op.arity()).map(|k| b.input(k as u16)).collect::<Result<SmallVec<[_; 3]>, _>>()?;
    match op {
        Op::Unary(u) => b.unary(u, x[0]).and_then(|v| b.output(v))?,
        Op::Binary(o) => b.binary(o, x[0], x[1]).and_then(|v| b.output(v))?,
        Op::Ternary(t) => b.ternary(t, x[0], x[1], x[2]).and_then(|v| b.output(v))?,
        Op::Reduce { kind, axes } => b.reduce(kind, axes, x[0])?,
        _ => b.output(x[0])?,
    };
    Ok(Arc::new(b.finish()?))
}

/// How far an expression's arrays may be from the reference. Sums, products, quotients and roots are rounded
/// as the reference does on most adapters, but one may flush subnormals.
pub(crate) fn class(expr: &Expr) -> NumericClass {
    let exact = |step: &Step| match *step {
        Step::Input(_) | Step::Scalar(..) => true,
        // How conversions to floats round is the driver's choice, if there is one.
        Step::Index(d) => !d.is_float(),
        Step::Cast(to, v) => !to.is_float() || matches!(expr.dtype_of(v), DType::U8 | DType::Bool),
        Step::Random { .. } | Step::Product(..) => false,
        Step::Unary(u, v) => !expr.dtype_of(v).is_float() || exact_unary(u),
        Step::Binary(b, v, _) => !expr.dtype_of(v).is_float() || exact_binary(b),
        Step::Ternary(t, _, v, _) => !expr.dtype_of(v).is_float() || t != TernaryOp::Fma,
    };
    let arrays = expr.outputs().iter().all(|o| matches!(o, Output::Array(_)));
    if arrays && expr.steps().iter().all(exact) { NumericClass::Exact } else { NumericClass::Reassociated }
}

fn exact_unary(u: UnaryOp) -> bool {
    use UnaryOp::*;
    matches!(u, Neg | Abs | Sign | Relu | Floor | Ceil | Round | Trunc | Not)
}

fn exact_binary(b: BinaryOp) -> bool {
    b.compares() || matches!(b, BinaryOp::Min | BinaryOp::Max | BinaryOp::Rem)
}
