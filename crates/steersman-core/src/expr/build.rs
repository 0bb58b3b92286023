//! Puts expressions together, checking types as workloads do.

use super::{Dist, Expr, ExprHash, Notes, Output, Step, Value};
use crate::dtype::DType;
use crate::op::{Axes, BinaryOp, ReduceOp, TernaryOp, UnaryOp};

/// The most steps an expression may have.
pub const MAX_STEPS: usize = 1 << 20;

/// An expression that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExprError {
    /// The op has no meaning for this element type.
    #[error("{op} is not defined for {dtype}")]
    DType {
        /// The op's name.
        op: &'static str,
        /// The element type given.
        dtype: DType,
    },
    /// Arguments of different element types.
    #[error("{op}: arguments are {a} and {b}; cast one first (nothing is cast silently)")]
    MixedDTypes {
        /// The op's name.
        op: &'static str,
        /// One type.
        a: DType,
        /// The other.
        b: DType,
    },
    /// A step on a value that is not there yet.
    #[error("there is no value {value} among {steps} steps")]
    Value {
        /// The value named.
        value: u32,
        /// Steps so far.
        steps: usize,
    },
    /// An operand that was not declared.
    #[error("there is no operand {index}: the expression was started with {inputs}")]
    Input {
        /// The operand named.
        index: u16,
        /// Operands declared.
        inputs: usize,
    },
    /// A scalar used as two things.
    #[error("scalar {index} is used both as {a} and as {b}")]
    Scalar {
        /// Which scalar.
        index: u16,
        /// One use.
        a: &'static str,
        /// The other.
        b: &'static str,
    },
    /// A product that cannot be.
    #[error("matmul of operands {a} and {b}: {why}")]
    Product {
        /// The left operand.
        a: u16,
        /// The right operand.
        b: u16,
        /// What is wrong.
        why: &'static str,
    },
    /// Nothing comes out.
    #[error("the expression has no output")]
    NoOutput,
    /// Too long.
    #[error("the expression has more than {MAX_STEPS} steps: split it")]
    TooLong,
}

/// An expression in the making; see [the module](super) for an example.
#[derive(Clone, Debug)]
pub struct Builder {
    inputs: Vec<DType>,
    steps: Vec<Step>,
    dtypes: Vec<DType>,
    outputs: Vec<Output>,
    /// The type of each scalar named so far; `Some(None)` is a key.
    scalars: Vec<Option<Option<DType>>>,
}

impl Builder {
    pub(super) fn new(inputs: Vec<DType>) -> Builder {
        Builder { inputs, steps: Vec::new(), dtypes: Vec::new(), outputs: Vec::new(), scalars: Vec::new() }
    }

    /// Operand `index`, broadcast to the group's shape.
    pub fn input(&mut self, index: u16) -> Result<Value, ExprError> {
        let Some(&dtype) = self.inputs.get(index as usize) else {
            return Err(ExprError::Input { index, inputs: self.inputs.len() });
        };
        if let Some((a, b, _)) = product(&self.steps).filter(|&(a, b, _)| a == index || b == index) {
            return Err(ExprError::Product { a, b, why: "an operand of a product is used for nothing else" });
        }
        self.push(Step::Input(index), dtype)
    }

    /// The run's scalar `index`.
    pub fn scalar(&mut self, index: u16, dtype: DType) -> Result<Value, ExprError> {
        self.declare(index, Some(dtype))?;
        self.push(Step::Scalar(index, dtype), dtype)
    }

    /// One value in.
    pub fn unary(&mut self, op: UnaryOp, a: Value) -> Result<Value, ExprError> {
        let dtype = self.dtype_of(a)?;
        defined(op.name(), dtype, op.takes(dtype))?;
        self.push(Step::Unary(op, a), dtype)
    }

    /// Two values of one type in.
    pub fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Result<Value, ExprError> {
        let dtype = self.same(op.name(), a, b)?;
        defined(op.name(), dtype, op.takes(dtype))?;
        let result = if op.compares() { DType::Bool } else { dtype };
        self.push(Step::Binary(op, a, b), result)
    }

    /// Three values of one type in; `where`'s first is bool.
    pub fn ternary(&mut self, op: TernaryOp, a: Value, b: Value, c: Value) -> Result<Value, ExprError> {
        let dtype = self.same(op.name(), b, c)?;
        let first = self.dtype_of(a)?;
        let wanted = if op == TernaryOp::Where { DType::Bool } else { dtype };
        if first != wanted {
            return Err(ExprError::MixedDTypes { op: op.name(), a: first, b: wanted });
        }
        defined(op.name(), dtype, op.takes(dtype))?;
        self.push(Step::Ternary(op, a, b, c), dtype)
    }

    /// A value in another type; see [`Step::Cast`].
    pub fn cast(&mut self, to: DType, a: Value) -> Result<Value, ExprError> {
        self.dtype_of(a)?;
        self.push(Step::Cast(to, a), to)
    }

    /// The element's flat row-major position.
    pub fn index(&mut self, dtype: DType) -> Result<Value, ExprError> {
        defined("index", dtype, !matches!(dtype, DType::Bool | DType::U8))?;
        self.push(Step::Index(dtype), dtype)
    }

    /// Random numbers whose key is the run's scalar `key`.
    pub fn random(&mut self, dist: Dist, dtype: DType, key: u16) -> Result<Value, ExprError> {
        defined(dist.name(), dtype, matches!(dtype, DType::F32 | DType::F64))?;
        self.declare(key, None)?;
        self.push(Step::Random { dist, dtype, key }, dtype)
    }

    /// The matrix product of operands `a` and `b`, which the group's shape must be that of.
    pub fn product(&mut self, a: u16, b: u16) -> Result<Value, ExprError> {
        let of = |k: u16| {
            let missing = ExprError::Input { index: k, inputs: self.inputs.len() };
            self.inputs.get(k as usize).copied().ok_or(missing)
        };
        let (left, right) = (of(a)?, of(b)?);
        if left != right {
            return Err(ExprError::MixedDTypes { op: "matmul", a: left, b: right });
        }
        defined("matmul", left, !matches!(left, DType::Bool | DType::U8))?;
        let used = |s: &Step| matches!(*s, Step::Input(k) if k == a || k == b);
        let why = if a == b || self.steps.iter().any(used) {
            Some("an operand of a product is used for nothing else")
        } else {
            product(&self.steps).map(|_| "an expression has one product at most")
        };
        match why {
            Some(why) => Err(ExprError::Product { a, b, why }),
            None => self.push(Step::Product(a, b), left),
        }
    }

    /// Has every element of `value` come out. Returns the output's index.
    pub fn output(&mut self, value: Value) -> Result<usize, ExprError> {
        self.dtype_of(value)?;
        self.outputs.push(Output::Array(value));
        Ok(self.outputs.len() - 1)
    }

    /// Has `value` come out reduced over `axes` of the group's shape. Returns the output's index.
    pub fn reduce(&mut self, kind: ReduceOp, axes: Axes, value: Value) -> Result<usize, ExprError> {
        let dtype = self.dtype_of(value)?;
        defined(kind.name(), dtype, kind.takes(dtype))?;
        self.outputs.push(Output::Reduce { kind, axes, value });
        Ok(self.outputs.len() - 1)
    }

    /// The element type of a value so far.
    pub fn dtype_of(&self, v: Value) -> Result<DType, ExprError> {
        let missing = ExprError::Value { value: v.0, steps: self.steps.len() };
        self.dtypes.get(v.index()).copied().ok_or(missing)
    }

    /// Steps so far.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is no step yet.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The expression.
    pub fn finish(self) -> Result<Expr, ExprError> {
        if self.outputs.is_empty() {
            return Err(ExprError::NoOutput);
        }
        let Builder { inputs, steps, dtypes, outputs, scalars } = self;
        let of_output = |o: &Output| match o {
            Output::Array(_) => 0.0,
            Output::Reduce { kind, .. } => kind.flops(),
        };
        let flops = steps.iter().map(Step::flops).chain(outputs.iter().map(of_output)).sum();
        let dtype = most_arithmetic(&steps, &dtypes).unwrap_or(dtypes[outputs[0].value().index()]);
        let hash = hash(&inputs, &steps, &outputs);
        let product = product(&steps);
        // A scalar that no step names may hold anything, like a key.
        let scalars = scalars.into_iter().map(Option::flatten).collect();
        Ok(Expr {
            inputs,
            steps,
            dtypes,
            outputs,
            scalars,
            hash,
            flops,
            dtype,
            product,
            notes: Notes::default(),
        })
    }

    fn push(&mut self, step: Step, dtype: DType) -> Result<Value, ExprError> {
        if self.steps.len() >= MAX_STEPS {
            return Err(ExprError::TooLong);
        }
        self.steps.push(step);
        self.dtypes.push(dtype);
        Ok(Value(self.steps.len() as u32 - 1))
    }

    fn same(&self, op: &'static str, a: Value, b: Value) -> Result<DType, ExprError> {
        let (a, b) = (self.dtype_of(a)?, self.dtype_of(b)?);
        if a == b { Ok(a) } else { Err(ExprError::MixedDTypes { op, a, b }) }
    }

    fn declare(&mut self, index: u16, dtype: Option<DType>) -> Result<(), ExprError> {
        if self.scalars.len() <= index as usize {
            self.scalars.resize(index as usize + 1, None);
        }
        let name = |d: Option<DType>| d.map_or("key", DType::name);
        match self.scalars[index as usize].replace(dtype) {
            Some(old) if old != dtype => Err(ExprError::Scalar { index, a: name(old), b: name(dtype) }),
            _ => Ok(()),
        }
    }
}

/// The product among these steps: its operands and its value.
pub(super) fn product(steps: &[Step]) -> Option<(u16, u16, Value)> {
    let of = |(i, s): (usize, &Step)| match *s {
        Step::Product(a, b) => Some((a, b, Value(i as u32))),
        _ => None,
    };
    steps.iter().enumerate().find_map(of)
}

fn defined(op: &'static str, dtype: DType, takes: bool) -> Result<(), ExprError> {
    if takes { Ok(()) } else { Err(ExprError::DType { op, dtype }) }
}

/// The type that most operations are in: of what a step reads, where that differs from what it gives.
fn most_arithmetic(steps: &[Step], dtypes: &[DType]) -> Option<DType> {
    let mut flops = [0.0; DType::ALL.len()];
    for (i, s) in steps.iter().enumerate() {
        let of = s.arguments().last().map_or(dtypes[i], |v| dtypes[v.index()]);
        flops[of as usize] += s.flops();
    }
    let most = DType::ALL.into_iter().max_by(|a, b| flops[*a as usize].total_cmp(&flops[*b as usize]))?;
    (flops[most as usize] > 0.0).then_some(most)
}

/// Words mixed one by one, then once more so that every bit counts: the same in every process.
pub(super) fn hash(inputs: &[DType], steps: &[Step], outputs: &[Output]) -> ExprHash {
    let mut h = 0x243F_6A88_85A3_08D3u64;
    let mut mix = |word: u64| h = (h.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mix(inputs.len() as u64 | (outputs.len() as u64) << 32);
    inputs.iter().for_each(|d| mix(*d as u64));
    steps.iter().flat_map(|s| s.words()).for_each(&mut mix);
    outputs.iter().for_each(|o| mix(o.word()));
    let x = (h ^ (h >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    ExprHash(x ^ (x >> 32))
}
