//! What the Python array API standard has beside the engine's own ops, made of those.

use super::Array;
use super::create::number;
use super::elementwise::broadcast;
use super::error::ArrayError;
use super::node::{Node, NodeOp};
use super::operand::Side;
use super::promote::promote;
use smallvec::smallvec;
use steersman_core::{DType, Dims};

impl Array {
    /// a/b rounded towards −∞, as Python's `//`; integers by zero give 0.
    ///
    /// ```
    /// # let mut knobs = steersman::Knobs::default();
    /// # knobs.set("wisdom.enabled", "false")?;
    /// # knobs.set("calibrate.background", "false")?;
    /// # let rt = steersman::Runtime::with_knobs(knobs)?;
    /// let a = rt.array([7, -7]);
    /// assert_eq!(a.floor_divide(2).to_vec::<i32>()?, [3, -4]);
    /// assert_eq!((&a / 2).to_vec::<i32>()?, [3, -3]); // Rust's
    /// # Ok::<(), steersman::Error>(())
    /// ```
    pub fn floor_divide<'a>(&'a self, other: impl Into<Side<'a>>) -> Array {
        self.paired("floor_divide", &other.into(), |a, b| {
            let left = a.rem(b);
            if !a.dtype().is_float() {
                let quotient = a.div(b);
                return opposed(&left, b).where_(quotient.sub(1), &quotient);
            }
            // By what the division leaves over, since a/b itself may round up to the next whole number. A quotient of
            // zero has the sign of a/b, and by zero there is nothing left over.
            let whole = a.sub(&left).div(b);
            let down = opposed(&left, b).where_(whole.sub(1), &whole).round();
            let plain = a.div(b);
            let down = down.eq(0).where_(plain.mul(0), down);
            b.eq(0).where_(plain, down)
        })
    }

    /// What [`floor_divide`](Array::floor_divide) leaves over, with the sign of the divisor, as Python's `%`; integers
    /// by zero give 0. [`rem`](Array::rem) has the sign of the dividend, as Rust's.
    pub fn remainder<'a>(&'a self, other: impl Into<Side<'a>>) -> Array {
        self.paired("remainder", &other.into(), |a, b| {
            let left = a.rem(b);
            let moved = opposed(&left, b).where_(left.add(b), &left);
            if !a.dtype().is_float() {
                return moved;
            }
            let zero = left.abs();
            left.eq(0).where_(b.lt(0).where_(zero.neg(), &zero), moved)
        })
    }

    /// Whether it is not a number; never for integers and bools.
    pub fn is_nan(&self) -> Array {
        self.ne(self)
    }

    /// Whether it is ∞ or −∞; never for integers and bools.
    pub fn is_inf(&self) -> Array {
        if self.dtype().is_float() { self.abs().eq(f64::INFINITY) } else { self.ne(self) }
    }

    /// Whether it is neither infinite nor NaN; always for integers and bools.
    pub fn is_finite(&self) -> Array {
        if self.dtype().is_float() { self.abs().lt(f64::INFINITY) } else { self.eq(self) }
    }

    /// Logarithm to base 10; the last digit may be off.
    pub fn log10(&self) -> Array {
        self.or_bad(|| {
            self.floats("log10")?;
            Ok(self.log2().mul(std::f64::consts::LOG10_2))
        })
    }

    /// Both as arrays of the type they are computed in, if they can be numbers and stretch to one shape.
    fn paired(
        &self,
        op: &'static str,
        other: &Side<'_>,
        make: impl FnOnce(&Array, &Array) -> Array,
    ) -> Array {
        if let Some(bad) = other.array().filter(|b| b.bad().is_some() && self.bad().is_none()) {
            return bad.clone();
        }
        self.or_bad(|| {
            let dtype = other.array().map_or(self.dtype(), |b| promote(self.dtype(), b.dtype()));
            if dtype == DType::Bool {
                return Err(ArrayError::DType { op, of: self.into() });
            }
            let b = match other {
                Side::Number(x) => {
                    let args = smallvec![number(op, *x, dtype)?];
                    Node::make(self.runtime(), NodeOp::Full, dtype, Dims::new(), args)
                }
                Side::Borrowed(b) => b.cast(dtype),
                Side::Owned(b) => b.cast(dtype),
            };
            if !self.runtime().is(b.runtime()) {
                return Err(ArrayError::MixedRuntimes { op });
            }
            if broadcast(self.shape(), b.shape()).is_none() {
                return Err(ArrayError::Broadcast { op, a: self.into(), b: (&b).into() });
            }
            Ok(make(&self.cast(dtype), &b))
        })
    }
}

/// Whether what is left over has the other sign than the divisor.
fn opposed(left: &Array, divisor: &Array) -> Array {
    left.ne(0).and(left.lt(0).xor(divisor.lt(0)))
}
