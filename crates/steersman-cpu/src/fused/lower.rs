//! From an expression to steps as tiles see them: every one a loop over consecutive elements.
//!
//! Half-precision values are `f32` in tiles, rounded to their type after each step that could give anything
//! else, so that a group gives what its steps give one by one.

use super::convert;
use crate::isa::Level;
use crate::map::{Half, RowFn, Rows, find_rows};
use crate::random::{Generate, generator};
use smallvec::SmallVec;
use steersman_core::expr::{Expr, Output, Step, Value};
use steersman_core::{DType, Op, ReduceOp, Refusal};

/// A value of the lowered program: the index of its step.
pub type Id = u32;

/// How a lowered step computes its value.
#[derive(Clone, Copy)]
pub enum Work {
    /// An operand as it lies in memory.
    Input(u16),
    /// A scalar of the run, in its own bits.
    Scalar(u16),
    /// A loop.
    Row(Rows),
    /// Numbers that depend on where an element is, and perhaps on a key among the scalars.
    At(Generate, Option<u16>),
}

/// One lowered step.
#[derive(Clone)]
pub struct Low {
    pub work: Work,
    pub args: SmallVec<[Id; 3]>,
    /// Bytes of an element.
    pub size: usize,
    /// Whether it is the same for every element whatever the operands are.
    pub uniform: bool,
    /// The op it is on `f32` or, if true, `f64`, where it is one.
    pub op: Option<(Op, bool)>,
}

/// What comes out.
#[derive(Clone, Copy)]
pub enum Out {
    Array { value: Id },
    Reduce { value: Id, kind: ReduceOp, dtype: DType },
}

impl Out {
    pub fn value(&self) -> Id {
        match *self {
            Out::Array { value } | Out::Reduce { value, .. } => value,
        }
    }
}

/// Steps and outputs.
#[derive(Clone)]
pub struct Lowered {
    pub lows: Vec<Low>,
    pub outs: Vec<Out>,
}

/// The half-precision format of a type, if it is one.
pub fn half(d: DType) -> Option<Half> {
    match d {
        DType::F16 => Some(Half::F16),
        DType::BF16 => Some(Half::BF16),
        _ => None,
    }
}

/// Bytes of an element in a tile.
fn width(d: DType) -> usize {
    if half(d).is_some() { 4 } else { d.size() }
}

/// Whether results of an op on half-precision numbers need no rounding: they are one of the arguments, but
/// for the sign.
fn keeps(step: &Step) -> bool {
    use steersman_core::{BinaryOp, TernaryOp, UnaryOp};
    match step {
        Step::Unary(u, _) => {
            matches!(u, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Relu | UnaryOp::Sign)
        }
        Step::Binary(b, ..) => matches!(b, BinaryOp::Min | BinaryOp::Max) || b.compares(),
        Step::Ternary(t, ..) => matches!(t, TernaryOp::Where | TernaryOp::Clamp),
        _ => false,
    }
}

impl Lowered {
    /// Lowers an expression for an instruction set; refuses what has no loop.
    pub fn new(expr: &Expr, level: Level) -> Result<Lowered, Refusal> {
        let mut lowered = Lowered { lows: Vec::with_capacity(expr.steps().len()), outs: Vec::new() };
        let mut ids: Vec<Id> = Vec::with_capacity(expr.steps().len());
        for (i, step) in expr.steps().iter().enumerate() {
            let id = lowered.step(expr, level, Value(i as u32), step, &ids)?;
            ids.push(id);
        }
        for output in expr.outputs() {
            let (v, dtype) = (ids[output.value().index()], expr.dtype_of(output.value()));
            let value = lowered.narrowed(level, v, dtype);
            lowered.outs.push(match *output {
                Output::Array(_) => Out::Array { value },
                Output::Reduce { kind, .. } => Out::Reduce { value, kind, dtype },
            });
        }
        Ok(lowered)
    }

    fn step(
        &mut self,
        expr: &Expr,
        level: Level,
        value: Value,
        step: &Step,
        ids: &[Id],
    ) -> Result<Id, Refusal> {
        let dtype = expr.dtype_of(value);
        let args: SmallVec<[Id; 3]> = step.arguments().map(|v| ids[v.index()]).collect();
        // The type a step computes in: of what it reads.
        let of = step.arguments().last().map_or(dtype, |v| expr.dtype_of(v));
        let row = |op: Op| {
            // In tiles, halves are `f32`.
            let tile = if half(of).is_some() { DType::F32 } else { of };
            let missing = || Refusal::new(format!("it has no loop for {} on {of}", op.name()));
            find_rows(level)(op, tile).map(Work::Row).ok_or_else(missing)
        };
        let work = match *step {
            Step::Input(k) => {
                let id = self.push(Work::Input(k), args, dtype.size());
                return Ok(self.widened(level, id, dtype));
            }
            Step::Scalar(k, _) => {
                let id = self.push(Work::Scalar(k), args, dtype.size());
                return Ok(self.widened(level, id, dtype));
            }
            Step::Unary(op, _) => row(Op::Unary(op))?,
            Step::Binary(op, ..) => row(Op::Binary(op))?,
            Step::Ternary(op, ..) => row(Op::Ternary(op))?,
            Step::Cast(to, _) => match convert::cast(level, of, to) {
                Some(rows) => Work::Row(rows),
                None => return Ok(args[0]),
            },
            Step::Product(..) => return Err(Refusal::new("a matrix product is no loop over elements")),
            Step::Index(_) => Work::At(convert::index(level, dtype), None),
            Step::Random { dist, key, .. } => {
                Work::At(generator(level, dist, dtype == DType::F64), Some(key))
            }
        };
        let id = self.push(work, args, width(dtype));
        let op = match *step {
            Step::Unary(op, _) => Some(Op::Unary(op)),
            Step::Binary(op, ..) => Some(Op::Binary(op)),
            Step::Ternary(op, ..) => Some(Op::Ternary(op)),
            _ => None,
        };
        if of == dtype && matches!(dtype, DType::F32 | DType::F64) {
            self.lows[id as usize].op = op.map(|op| (op, dtype == DType::F64));
        }
        // Casts round by themselves.
        match half(dtype) {
            Some(half) if !keeps(step) && !matches!(step, Step::Cast(..)) => {
                Ok(self.push(Work::Row(convert::round(level, half)), SmallVec::from_slice(&[id]), 4))
            }
            _ => Ok(id),
        }
    }

    fn push(&mut self, work: Work, args: SmallVec<[Id; 3]>, size: usize) -> Id {
        let uniform = match work {
            Work::Scalar(_) => true,
            Work::Input(_) | Work::At(..) => false,
            Work::Row(_) => args.iter().all(|&a| self.lows[a as usize].uniform),
        };
        self.lows.push(Low { work, args, size, uniform, op: None });
        self.lows.len() as Id - 1
    }

    fn widened(&mut self, level: Level, id: Id, dtype: DType) -> Id {
        match half(dtype) {
            Some(half) => self.push(Work::Row(convert::widen(level, half)), SmallVec::from_slice(&[id]), 4),
            None => id,
        }
    }

    fn narrowed(&mut self, level: Level, id: Id, dtype: DType) -> Id {
        match half(dtype) {
            Some(half) => self.push(Work::Row(convert::narrow(level, half)), SmallVec::from_slice(&[id]), 2),
            None => id,
        }
    }
}

/// A loop that copies elements of `size` bytes.
pub fn copy(size: usize) -> RowFn {
    unsafe fn bytes<const SIZE: usize>(a: *const u8, _: *const u8, _: *const u8, out: *mut u8, n: usize) {
        // SAFETY: by the contract of rows.
        unsafe { out.copy_from_nonoverlapping(a, n * SIZE) }
    }
    match size {
        1 => bytes::<1>,
        2 => bytes::<2>,
        4 => bytes::<4>,
        _ => bytes::<8>,
    }
}
