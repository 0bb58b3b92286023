//! Operations by the engine's names, for programs that are read rather than written.

use super::Array;
use super::axis::Over;
use super::elementwise::{binary, ternary};
use super::error::ArrayError;
use super::node::Node;
use super::operand::Side;
use crate::runtime::Runtime;
use std::sync::Arc;
use steersman_core::{Op, TernaryOp, WorkloadError};

impl Runtime {
    /// The op applied to these operands, as the method of its name would.
    ///
    /// A reduction without axes goes over all of them, and a transpose without a permutation turns their order
    /// round. Arrays have no custom ops, and form fused groups by themselves.
    ///
    /// ```
    /// use steersman::core::Op;
    /// # use steersman::{Knobs, Runtime};
    /// # let mut knobs = Knobs::default();
    /// # knobs.set("wisdom.enabled", "false")?;
    /// # knobs.set("calibrate.background", "false")?;
    /// # let rt = Runtime::with_knobs(knobs)?;
    /// let x = rt.from_vec(vec![1.0f32, 2.0, 3.0], 3)?;
    /// let op = Op::from_name("mul").expect("the engine has it");
    /// assert_eq!(rt.apply(op, &[(&x).into(), 2.0.into()]).to_vec::<f32>()?, [2.0, 4.0, 6.0]);
    /// # Ok::<(), steersman::Error>(())
    /// ```
    pub fn apply(&self, op: Op, operands: &[Side<'_>]) -> Array {
        self.applied(op, operands).unwrap_or_else(|why| Node::bad(self, Arc::new(why)))
    }

    fn applied(&self, op: Op, operands: &[Side<'_>]) -> Result<Array, ArrayError> {
        let name = op.name();
        if operands.iter().filter_map(Side::array).any(|a| !self.is(a.runtime())) {
            return Err(ArrayError::MixedRuntimes { op: name });
        }
        Ok(match (op, operands) {
            (Op::Custom(_) | Op::Fused(_), _) => {
                return Err(ArrayError::NotForArrays { op: name });
            }
            (Op::Unary(u), [x]) => array(name, x)?.unary(u),
            (Op::Reduce { kind, axes }, [x]) if axes.is_empty() => array(name, x)?.reduce(kind, ..),
            (Op::Reduce { kind, axes }, [x]) => array(name, x)?.reduce(kind, Over::axes(axes.iter())),
            (Op::Transpose { perm }, [x]) if perm.rank() == 0 => array(name, x)?.t(),
            (Op::Transpose { perm }, [x]) => array(name, x)?.permute(perm.iter().collect::<Vec<_>>()),
            (Op::Copy, [x]) => array(name, x)?.contiguous(),
            (Op::Conv2d { stride, pad }, [x, f]) => array(name, x)?.conv2d(array(name, f)?, stride, pad),
            (Op::MatMul, [a, b]) => array(name, a)?.matmul(array(name, b)?),
            (Op::Ternary(TernaryOp::Where), [condition, a, b]) => {
                array(name, condition)?.where_(a.clone(), b.clone())
            }
            (Op::Binary(_) | Op::Ternary(_), all)
                if all.len() == op.arity() && all.iter().all(|s| s.array().is_none()) =>
            {
                return Err(ArrayError::NoArray { op: name });
            }
            (Op::Binary(o), [a, b]) => binary(o, a.clone(), b.clone()),
            (Op::Ternary(o), [a, b, c]) => ternary(o, [a.clone(), b.clone(), c.clone()]),
            _ => {
                let (expected, got) = (op.arity(), operands.len());
                return Err(WorkloadError::Arity { op: name, expected, got }.into());
            }
        })
    }
}

/// The operand where only an array will do.
fn array<'a>(op: &'static str, side: &'a Side<'_>) -> Result<&'a Array, ArrayError> {
    match side {
        Side::Borrowed(a) => Ok(a),
        Side::Owned(a) => Ok(a),
        Side::Number(n) => Err(ArrayError::NotArray { op, number: n.to_string() }),
    }
}
