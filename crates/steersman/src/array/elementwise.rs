//! Element-wise operations as methods.

use super::Array;
use super::error::{ArrayError, Spec};
use super::node::{Arg, Args, Node, NodeOp};
use super::number::Number;
use super::operand::Side;
use super::promote::promote;
use crate::runtime::Runtime;
use smallvec::smallvec;
use steersman_core::{BinaryOp, DType, Dims, TernaryOp, UnaryOp, WorkloadError};

macro_rules! unary {
    ($($(#[$doc:meta])* $method:ident = $op:ident;)*) => {
        impl Array { $(
            $(#[$doc])*
            pub fn $method(&self) -> Array { self.unary(UnaryOp::$op) }
        )* }
    };
}

unary! {
    /// −x
    neg = Neg;
    /// |x|
    abs = Abs;
    /// −1, 0 or 1; NaN stays NaN
    sign = Sign;
    /// √x
    sqrt = Sqrt;
    /// 1/√x
    rsqrt = Rsqrt;
    /// 1/x
    recip = Recip;
    /// eˣ
    exp = Exp;
    /// eˣ − 1, exact near 0
    expm1 = Expm1;
    /// Natural logarithm
    ln = Ln;
    /// ln(1 + x), exact near 0
    log1p = Log1p;
    /// Logarithm to base 2
    log2 = Log2;
    /// Sine
    sin = Sin;
    /// Cosine
    cos = Cos;
    /// Tangent
    tan = Tan;
    /// Arc sine
    asin = Asin;
    /// Arc cosine
    acos = Acos;
    /// Arc tangent
    atan = Atan;
    /// Hyperbolic sine
    sinh = Sinh;
    /// Hyperbolic cosine
    cosh = Cosh;
    /// Hyperbolic tangent
    tanh = Tanh;
    /// 1/(1 + e⁻ˣ)
    sigmoid = Sigmoid;
    /// max(x, 0); NaN stays NaN
    relu = Relu;
    /// x·Φ(x), by erf
    gelu = Gelu;
    /// x·sigmoid(x)
    silu = Silu;
    /// Error function
    erf = Erf;
    /// Towards −∞
    floor = Floor;
    /// Towards +∞
    ceil = Ceil;
    /// To nearest, halves to even
    round = Round;
    /// Towards zero
    trunc = Trunc;
    /// Logical not, of bools
    not = Not;
}

macro_rules! binary {
    ($($(#[$doc:meta])* $method:ident = $op:ident;)*) => {
        impl Array { $(
            $(#[$doc])*
            pub fn $method<'a>(&'a self, other: impl Into<Side<'a>>) -> Array {
                binary(BinaryOp::$op, self.into(), other.into())
            }
        )* }
    };
}

binary! {
    /// a + b
    add = Add;
    /// a − b
    sub = Sub;
    /// a·b
    mul = Mul;
    /// a/b; integers divide towards zero, by zero gives 0
    div = Div;
    /// Remainder with the sign of the dividend
    rem = Rem;
    /// aᵇ; integers only to a whole number of at least 0, other powers of them need a cast to floats
    pow = Pow;
    /// The smaller of both; NaN wins
    minimum = Min;
    /// The larger of both; NaN wins
    maximum = Max;
    /// Angle of the point (b, a)
    atan2 = Atan2;
    /// a = b
    eq = Eq;
    /// a ≠ b
    ne = Ne;
    /// a < b
    lt = Lt;
    /// a ≤ b
    le = Le;
    /// a > b
    gt = Gt;
    /// a ≥ b
    ge = Ge;
    /// Both, of bools
    and = And;
    /// Either, of bools
    or = Or;
    /// Exactly one, of bools
    xor = Xor;
}

impl Array {
    /// Element-wise op by its name in the engine.
    pub fn unary(&self, op: UnaryOp) -> Array {
        self.or_bad(|| {
            let dtype = self.dtype();
            if dtype.is_integer()
                && matches!(op, UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc)
            {
                return Ok(self.clone());
            }
            if matches!(dtype, DType::U8 | DType::U32) && op == UnaryOp::Neg {
                return Ok(binary(BinaryOp::Sub, 0.into(), self.into()));
            }
            if !op.takes(dtype) {
                return Err(ArrayError::DType { op: op.name(), of: self.into() });
            }
            let args = smallvec![Arg::Node(self.clone())];
            let dims = Dims::from_slice(self.shape());
            Ok(Node::make(self.runtime(), NodeOp::Unary(op), dtype, dims, args))
        })
    }

    /// The same elements as another type. Floats to integers cut towards zero and saturate; to bool, anything but
    /// zero is true.
    pub fn cast(&self, dtype: DType) -> Array {
        if self.bad().is_some() || dtype == self.dtype() {
            return self.clone();
        }
        let args = smallvec![Arg::Node(self.clone())];
        Node::make(self.runtime(), NodeOp::Cast, dtype, Dims::from_slice(self.shape()), args)
    }

    /// `a` where this is true, else `b`. Two numbers give `f32`, `i64` or bool, by their kind.
    pub fn where_<'a>(&'a self, a: impl Into<Side<'a>>, b: impl Into<Side<'a>>) -> Array {
        let (a, b) = (a.into(), b.into());
        if let (Side::Number(x), Side::Number(y)) = (&a, &b) {
            let dtype = match (x, y) {
                (Number::Bool(_), Number::Bool(_)) => DType::Bool,
                (Number::Int(_), Number::Int(_)) => DType::I64,
                _ => DType::F32,
            };
            return self.or_bad(|| {
                nary(self.runtime(), TernaryOp::Where, &[self.into(), a.clone(), b.clone()], dtype)
            });
        }
        ternary(TernaryOp::Where, [self.into(), a, b])
    }

    /// Held between `low` and `high`.
    pub fn clamp<'a>(&'a self, low: impl Into<Side<'a>>, high: impl Into<Side<'a>>) -> Array {
        ternary(TernaryOp::Clamp, [self.into(), low.into(), high.into()])
    }

    /// This·b + c, rounded once where the hardware fuses it.
    pub fn fma<'a>(&'a self, b: impl Into<Side<'a>>, c: impl Into<Side<'a>>) -> Array {
        ternary(TernaryOp::Fma, [self.into(), b.into(), c.into()])
    }
}

/// An argument of this type.
pub(super) fn arg(op: &'static str, side: &Side<'_>, dtype: DType) -> Result<Arg, ArrayError> {
    match side {
        Side::Borrowed(a) => Ok(Arg::Node(a.cast(dtype))),
        Side::Owned(a) => Ok(Arg::Node(a.cast(dtype))),
        Side::Number(n) => n.bits(dtype).map(Arg::Scalar).ok_or_else(|| ArrayError::Number {
            op,
            number: n.to_string(),
            dtype,
        }),
    }
}

/// The shape both stretch to.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Option<Dims> {
    if a == b {
        return Some(Dims::from_slice(a));
    }
    let rank = a.len().max(b.len());
    let at = |d: &[usize], i: usize| (i + d.len()).checked_sub(rank).map_or(1, |j| d[j]);
    let mut out = Dims::new();
    for i in 0..rank {
        match (at(a, i), at(b, i)) {
            (x, y) if x == y => out.push(x),
            (1, y) => out.push(y),
            (x, 1) => out.push(x),
            _ => return None,
        }
    }
    Some(out)
}

/// The runtime of the arrays among the operands, or the array that stands for what is wrong with them.
fn common<'a>(op: &'static str, sides: &'a [Side<'_>]) -> Result<&'a Runtime, Array> {
    let mut first: Option<&Array> = None;
    for a in sides.iter().filter_map(|s| s.array()) {
        if a.bad().is_some() {
            return Err(a.clone());
        }
        match first {
            None => first = Some(a),
            Some(f) if f.runtime().is(a.runtime()) => {}
            Some(f) => return Err(f.fail(ArrayError::MixedRuntimes { op })),
        }
    }
    // The methods give one array at least.
    first.map(|a| a.runtime()).ok_or_else(|| unreachable!("an element-wise op without an array: {op}"))
}

/// An element-wise op of two operands, at least one of them an array.
pub(crate) fn binary(op: BinaryOp, a: Side<'_>, b: Side<'_>) -> Array {
    let sides = [a, b];
    let rt = match common(op.name(), &sides) {
        Ok(rt) => rt,
        Err(bad) => return bad,
    };
    let made = || {
        let dtype = match (sides[0].array(), sides[1].array()) {
            (Some(x), Some(y)) => promote(x.dtype(), y.dtype()),
            (Some(x), None) | (None, Some(x)) => x.dtype(),
            (None, None) => return Err(ArrayError::NoArray { op: op.name() }),
        };
        if op == BinaryOp::Pow
            && dtype.is_integer()
            && let (Some(base), Side::Number(exponent)) = (sides[0].array(), &sides[1])
            && let Some(exponent @ 0..) = exponent.bits(DType::I64).map(|bits| bits as i64)
        {
            return Ok(whole_power(base, exponent as u64));
        }
        let shape = |s: &'_ Side<'_>| s.array().map_or(Dims::new(), |a| Dims::from_slice(a.shape()));
        let (a, b) = (shape(&sides[0]), shape(&sides[1]));
        let spec = |i: usize| sides[i].array().map_or_else(|| Spec::new(dtype, &[]), Spec::from);
        let Some(dims) = broadcast(&a, &b) else {
            return Err(ArrayError::Broadcast { op: op.name(), a: spec(0), b: spec(1) });
        };
        if !op.takes(dtype) {
            return Err(ArrayError::DType { op: op.name(), of: Spec::new(dtype, &dims) });
        }
        let args: Args = smallvec![arg(op.name(), &sides[0], dtype)?, arg(op.name(), &sides[1], dtype)?];
        let result = if op.compares() { DType::Bool } else { dtype };
        fits(op.name(), result, &dims)?;
        Ok(Node::make(rt, NodeOp::Binary(op), result, dims, args))
    };
    made().unwrap_or_else(|why| Node::bad(rt, std::sync::Arc::new(why)))
}

/// Integers to a whole power that is the same for all, by squaring; overflow wraps as in every product.
fn whole_power(base: &Array, exponent: u64) -> Array {
    let mut power: Option<Array> = None;
    let mut square = base.clone();
    let mut left = exponent;
    while left > 0 {
        if left & 1 == 1 {
            power = Some(power.map_or_else(|| square.clone(), |p| p.mul(&square)));
        }
        left >>= 1;
        if left > 0 {
            square = square.mul(&square);
        }
    }
    power.unwrap_or_else(|| base.ones_like())
}

/// Whether an array of this shape can be addressed; broadcasting may ask for more than there is.
pub(super) fn fits(op: &'static str, dtype: DType, dims: &[usize]) -> Result<(), ArrayError> {
    if dims.len() <= 2 && dims.iter().all(|&d| d < 1 << 21) {
        return Ok(());
    }
    match steersman_core::Operand::new(dtype, dims) {
        Ok(_) => Ok(()),
        Err(WorkloadError::Rank { .. }) => Err(ArrayError::Rank { op, dims: Dims::from_slice(dims) }),
        Err(_) => Err(ArrayError::TooLarge { op, of: Spec::new(dtype, dims) }),
    }
}

/// An element-wise op of three operands, at least one of them an array.
pub(super) fn ternary(op: TernaryOp, sides: [Side<'_>; 3]) -> Array {
    let rt = match common(op.name(), &sides) {
        Ok(rt) => rt,
        Err(bad) => return bad,
    };
    let data = if op == TernaryOp::Where { &sides[1..] } else { &sides[..] };
    let dtype = data.iter().filter_map(|s| s.array()).map(|a| a.dtype()).reduce(promote);
    let made = dtype.ok_or(ArrayError::NoArray { op: op.name() }).and_then(|d| nary(rt, op, &sides, d));
    made.unwrap_or_else(|why| Node::bad(rt, std::sync::Arc::new(why)))
}

fn nary(rt: &Runtime, op: TernaryOp, sides: &[Side<'_>; 3], dtype: DType) -> Result<Array, ArrayError> {
    if !op.takes(dtype) {
        let widest = sides.iter().filter_map(|s| s.array()).max_by_key(|a| a.rank());
        return Err(ArrayError::DType {
            op: op.name(),
            of: Spec::new(dtype, widest.map_or(&[], |a| a.shape())),
        });
    }
    let mut dims = Dims::new();
    let mut args = Args::new();
    for (i, side) in sides.iter().enumerate() {
        if let Some(a) = side.array() {
            dims = broadcast(&dims, a.shape()).ok_or_else(|| ArrayError::Broadcast {
                op: op.name(),
                a: Spec::new(dtype, &dims),
                b: a.into(),
            })?;
        }
        if op == TernaryOp::Where && i == 0 {
            if let Some(condition) = side.array().filter(|a| a.dtype() != DType::Bool) {
                return Err(ArrayError::Condition { of: condition.into() });
            }
            args.push(arg(op.name(), side, DType::Bool)?);
        } else {
            args.push(arg(op.name(), side, dtype)?);
        }
    }
    fits(op.name(), dtype, &dims)?;
    Ok(Node::make(rt, NodeOp::Ternary(op), dtype, dims, args))
}
