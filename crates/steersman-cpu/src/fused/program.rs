//! An expression made ready to run on one instruction set: calls of loops on places, in order.
//!
//! A place is somewhere a tile's elements are: an operand, an output, a buffer. Which pointers places have is
//! found for each tile; the calls stay the same.

use super::assembly::Assembly;
use super::chain::{ChainFn, Micro};
use super::lower::{Lowered, Out};
use super::schedule;
use crate::isa::Level;
use crate::map::{RowFn, Rows};
use crate::random::Generate;
use std::collections::HashMap;
use steersman_core::expr::{Dist, Expr, Step};
use steersman_core::{DType, Op, Refusal};

/// Index into the table of pointers.
pub type Place = u32;

/// What a call does.
#[derive(Clone, Copy)]
pub enum Call {
    /// A loop over arguments.
    Row(RowFn),
    /// Numbers by position, with the scalar of this index as key (or none).
    At(Generate, u16),
    /// A chain of the program's steps from the first number to before the second.
    Chain(ChainFn, u32, u32),
}

/// No key.
pub const NO_KEY: u16 = u16::MAX;

/// One call.
#[derive(Clone, Copy)]
pub struct Instr {
    pub call: Call,
    pub args: [Place; 3],
    pub out: Place,
    /// The loops it could be, and how many arguments they take, to choose again when an operand turns out
    /// to stay the same along rows.
    pub rows: Option<(Rows, u8)>,
}

/// A scalar or what only depends on scalars.
pub struct Uniform {
    /// The scalar it is, or the call that makes it.
    pub from: Result<u16, Instr>,
}

/// An output: where its elements are at the end of a tile.
#[derive(Clone, Copy)]
pub struct Outlet {
    pub out: Out,
    pub place: Place,
    /// Bytes of an element.
    pub size: usize,
}

/// What a program does for each element, for predicting its time.
pub struct Counts {
    /// How often each op occurs, with the type it computes in.
    pub ops: Vec<(Op, DType, f64)>,
    /// How often random numbers are drawn, by their distribution, `f64` if true.
    pub draws: Vec<(Dist, bool)>,
    /// Nominal operations of the rest: casts, positions.
    pub other_flops: f64,
}

/// A program.
pub struct Program {
    pub inputs: usize,
    pub outlets: Vec<Outlet>,
    pub instrs: Vec<Instr>,
    /// Steps of chains.
    pub micros: Vec<Micro>,
    /// In order: later ones may use earlier ones.
    pub uniforms: Vec<Uniform>,
    /// Uniforms that must be there as whole tiles, with their size.
    pub splats: Vec<(usize, usize)>,
    pub slots: usize,
    /// Bytes of the widest element in a slot or splat.
    pub width: usize,
    pub counts: Counts,
}

/// Where places of each kind start.
impl Program {
    /// Element by element.
    pub fn input(&self, k: usize) -> Place {
        k as Place
    }
    /// The one element of an operand that stays the same.
    pub fn same(&self, k: usize) -> Place {
        (self.inputs + k) as Place
    }
    pub fn output(&self, o: usize) -> Place {
        (2 * self.inputs + o) as Place
    }
    pub fn slot(&self, s: usize) -> Place {
        (2 * self.inputs + self.outlets.len() + s) as Place
    }
    pub fn uniform(&self, u: usize) -> Place {
        self.slot(self.slots) + u as Place
    }
    pub fn splat(&self, s: usize) -> Place {
        self.uniform(self.uniforms.len()) + s as Place
    }
    pub fn places(&self) -> usize {
        self.splat(self.splats.len()) as usize
    }

    /// Whether it is a single chain that stores its last value only.
    pub fn is_one_chain(&self) -> bool {
        let stores = self.micros.iter().filter(|m| m.store != Place::MAX).count();
        stores == 1 && matches!(self.instrs[..], [Instr { call: Call::Chain(..), .. }])
    }

    /// Makes an expression ready, or says why it cannot be.
    pub fn new(expr: &Expr, level: Level) -> Result<Program, Refusal> {
        let lowered = Lowered::new(expr, level)?;
        let order = schedule::order(&lowered);
        let last = schedule::last_uses(&lowered, &order);
        Ok(Assembly::new(expr, &lowered, &order, level).assemble(&order, &last))
    }
}

/// The loop for arguments that stay the same in this pattern, if there is one.
pub fn choose(rows: Rows, same: [bool; 3]) -> Option<RowFn> {
    match same {
        [false, false, false] => Some(rows.each),
        [false, true, false] => rows.second_same,
        [true, false, false] => rows.first_same,
        _ => None,
    }
}

/// How often each op occurs, what random numbers are drawn, and the nominal operations of the other steps.
pub(super) fn count(expr: &Expr) -> Counts {
    let mut counts: HashMap<(Op, DType), f64> = HashMap::new();
    let mut draws = Vec::new();
    let mut other = 0.0;
    for (i, step) in expr.steps().iter().enumerate() {
        let of = step
            .arguments()
            .last()
            .map_or(expr.dtype_of(steersman_core::expr::Value(i as u32)), |v| expr.dtype_of(v));
        let op = match *step {
            Step::Unary(u, _) => Op::Unary(u),
            Step::Binary(b, ..) => Op::Binary(b),
            Step::Ternary(t, ..) => Op::Ternary(t),
            Step::Random { dist, dtype, .. } => {
                draws.push((dist, dtype == DType::F64));
                continue;
            }
            _ => {
                other += step.flops();
                continue;
            }
        };
        *counts.entry((op, of)).or_default() += 1.0;
    }
    for output in expr.outputs() {
        if let steersman_core::expr::Output::Reduce { kind, axes, value } = *output {
            *counts.entry((Op::Reduce { kind, axes }, expr.dtype_of(value))).or_default() += 1.0;
        }
    }
    let ops = counts.into_iter().map(|((op, d), n)| (op, d, n)).collect();
    Counts { ops, draws, other_flops: other }
}
