//! Groups as expressions: steps, operands and scalars in the form that fused kernels take.

use super::group::Role;
use super::lower::{Fed, Lower, NO_SLOT};
use super::stage::{Base, Source};
use crate::array::node::{NodeOp, Spread};
use crate::error::Error;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use steersman_core::expr::{Builder, Dist, Expr, ExprError, Value};
use steersman_core::{DType, Operand};

/// A group as an expression with its operands.
pub(super) struct Fused {
    pub expr: Arc<Expr>,
    pub inputs: Vec<Fed>,
    pub scalars: Vec<u32>,
}

impl Fused {
    /// The expression of these steps, which are the stamped items, perhaps with a matrix product that they take.
    pub fn build(
        l: &Lower<'_>,
        steps: &[u32],
        arrays: &[u32],
        reductions: &[u32],
        product: Option<u32>,
    ) -> Result<Fused, Error> {
        let inside = |a: u32| l.stamp[a as usize] == l.stamps;
        let number = |a: u32| match l.groups.roles[a as usize] {
            Role::Constant(_) => l.items[a as usize].args.first().and_then(|s| s.scalar()),
            _ => None,
        };
        // A product's operands are nobody else's, whatever else reads the same memory.
        let mut inputs: Vec<Fed> = match product {
            Some(p) => l.items[p as usize].args.iter().filter_map(|a| a.node()).map(|a| l.fed(a)).collect(),
            None => Vec::new(),
        };
        let mut input_of: HashMap<u32, u16> = HashMap::new();
        let read = steps.iter().chain(reductions).flat_map(|&i| &l.items[i as usize].args);
        for a in read.filter_map(|a| a.node()) {
            if Some(a) != product && !inside(a) && number(a).is_none() && !input_of.contains_key(&a) {
                let too_long = |_| Error::from(ExprError::TooLong);
                input_of.insert(a, u16::try_from(inputs.len()).map_err(too_long)?);
                let plain =
                    matches!(l.groups.roles[a as usize], Role::Step(_)) && l.slot_of[a as usize] == NO_SLOT;
                let item = &l.items[a as usize];
                inputs.push(if plain {
                    (Source { base: Base::Empty, offset: 0 }, Operand::new(item.dtype, &item.dims)?)
                } else {
                    l.fed(a)
                });
            }
        }
        let mut b = Expr::builder(inputs.iter().map(|(_, o)| o.dtype));
        let mut scalars = Scalars::default();
        let mut value_of: HashMap<u32, Value> = HashMap::new();
        let mut build = |b: &mut Builder, scalars: &mut Scalars| -> Result<(), ExprError> {
            if let Some(p) = product {
                value_of.insert(p, b.product(0, 1)?);
            }
            for &i in steps {
                let item = &l.items[i as usize];
                let mut args: SmallVec<[Value; 3]> = SmallVec::new();
                let takes = !matches!(item.op, NodeOp::Full | NodeOp::Random(_));
                for (k, arg) in item.args.iter().enumerate().filter(|_| takes) {
                    let value = match (arg.scalar(), arg.node()) {
                        (Some(s), _) => scalars.value(b, s, l.argument_type(i, k))?,
                        (None, Some(a)) => match (value_of.get(&a), number(a)) {
                            (Some(&v), _) => v,
                            (None, Some(s)) => scalars.value(b, s, l.items[a as usize].dtype)?,
                            (None, None) => {
                                let v = b.input(input_of.get(&a).copied().unwrap_or(0))?;
                                value_of.insert(a, v);
                                v
                            }
                        },
                        (None, None) => continue,
                    };
                    args.push(value);
                }
                let scalar = |k: usize| item.args[k].scalar().unwrap_or(0);
                let value = match item.op {
                    NodeOp::Unary(u) => b.unary(u, args[0])?,
                    NodeOp::Binary(o) => b.binary(o, args[0], args[1])?,
                    NodeOp::Ternary(t) => b.ternary(t, args[0], args[1], args[2])?,
                    NodeOp::Cast => b.cast(item.dtype, args[0])?,
                    NodeOp::Position => b.index(item.dtype)?,
                    NodeOp::Random(spread) => {
                        let dist = match spread {
                            Spread::Uniform => Dist::Uniform,
                            Spread::Normal => Dist::Normal,
                        };
                        let key = scalars.number(scalar(0), None)?;
                        b.random(dist, item.dtype, key)?
                    }
                    _ => scalars.value(b, scalar(0), item.dtype)?,
                };
                value_of.insert(i, value);
            }
            for i in arrays {
                b.output(value_of[i])?;
            }
            for &r in reductions {
                if let NodeOp::Reduce { kind, axes } = l.items[r as usize].op
                    && let Some(a) = l.items[r as usize].args[0].node()
                {
                    let value = match value_of.get(&a) {
                        Some(&v) => v,
                        None => b.input(input_of.get(&a).copied().unwrap_or(0))?,
                    };
                    value_of.insert(a, value);
                    b.reduce(kind, axes, value)?;
                }
            }
            Ok(())
        };
        build(&mut b, &mut scalars)?;
        let expr = Arc::new(b.finish()?);
        Ok(Fused { expr, inputs, scalars: scalars.list })
    }
}

/// The scalars of one expression: a number may be used as several types, each of which is one.
#[derive(Default)]
struct Scalars {
    list: Vec<u32>,
    known: HashMap<(u32, Option<DType>), (u16, Option<Value>)>,
}

impl Scalars {
    fn number(&mut self, s: u32, dtype: Option<DType>) -> Result<u16, ExprError> {
        if let Some(&(n, _)) = self.known.get(&(s, dtype)) {
            return Ok(n);
        }
        let n = u16::try_from(self.list.len()).map_err(|_| ExprError::TooLong)?;
        self.list.push(s);
        self.known.insert((s, dtype), (n, None));
        Ok(n)
    }

    fn value(&mut self, b: &mut Builder, s: u32, dtype: DType) -> Result<Value, ExprError> {
        let n = self.number(s, Some(dtype))?;
        if let Some(&(_, Some(v))) = self.known.get(&(s, Some(dtype))) {
            return Ok(v);
        }
        let v = b.scalar(n, dtype)?;
        self.known.insert((s, Some(dtype)), (n, Some(v)));
        Ok(v)
    }
}
