//! An array program as it was written: one statement a line, each value named once.

use steersman::array::Number;
use steersman_core::{DType, Op, ReduceOp};

/// A program that names only what it has.
#[derive(Debug)]
pub struct Program {
    /// In the order of the file; a value is its statement's place in here.
    pub statements: Vec<Statement>,
    /// The values that are read, one at least.
    pub read: Vec<usize>,
}

/// `name = ...`.
#[derive(Debug)]
pub struct Statement {
    /// Counted from 1.
    pub line: usize,
    pub name: String,
    pub make: Make,
}

/// What a statement makes its value of.
#[derive(Debug, PartialEq)]
pub enum Make {
    /// Ordinary numbers that are in memory before the program runs.
    Input(DType, Vec<usize>),
    Uniform(Float, Vec<usize>),
    Normal(Float, Vec<usize>),
    /// 0, 1, 2, ...
    Arange(i64),
    Cast(DType, usize),
    Reduce {
        kind: ReduceOp,
        of: usize,
        axes: Option<Vec<isize>>,
        keep: bool,
    },
    Permute(usize, Vec<isize>),
    Op(Op, Vec<Operand>),
}

/// The element types random numbers come in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Float {
    F32,
    F64,
}

/// What an op is applied to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// The value of an earlier statement.
    Value(usize),
    Number(Number),
}

impl Make {
    /// The values it is made of.
    pub fn uses(&self) -> Vec<usize> {
        match self {
            Make::Input(..) | Make::Uniform(..) | Make::Normal(..) | Make::Arange(_) => Vec::new(),
            Make::Cast(_, of) | Make::Reduce { of, .. } | Make::Permute(of, _) => vec![*of],
            Make::Op(_, operands) => operands
                .iter()
                .filter_map(|o| match o {
                    Operand::Value(v) => Some(*v),
                    Operand::Number(_) => None,
                })
                .collect(),
        }
    }
}
