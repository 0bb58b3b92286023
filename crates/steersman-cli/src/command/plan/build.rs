//! From a program to arrays.

use super::program::{Float, Make, Operand, Program, Statement};
use crate::exit::Failure;
use std::path::Path;
use steersman::array::{ArrayError, Over, Side};
use steersman::{Array, Error, Runtime, Seed};
use steersman_core::DType;

/// What is wrong with a program that could be read.
#[derive(Debug)]
pub enum Wrong {
    /// A line asks for what cannot be.
    Line(usize, Box<ArrayError>),
    /// All that it reads is in memory from the start.
    Nothing,
    /// It did not run, in this line if it was one alone.
    Run(Option<usize>, Box<Error>),
}

impl From<Error> for Wrong {
    fn from(e: Error) -> Wrong {
        Wrong::Run(None, Box::new(e))
    }
}

impl Wrong {
    /// How the command ends for it.
    pub fn prefixed(self, file: &Path) -> Failure {
        let file = file.display();
        match self {
            Wrong::Line(line, e) => Failure::input(format!("{file}: line {line}: {e}")),
            Wrong::Nothing => Failure::input(format!(
                "{file}: it reads nothing but inputs; expected an op on one of them, like 'y = exp x'"
            )),
            Wrong::Run(Some(line), e) => Failure::failed(format!("{file}: line {line}: {e}")),
            Wrong::Run(None, e) => Failure::failed(format!("{file}: {e}")),
        }
    }
}

impl Program {
    /// Whether shapes and element types fit; computes nothing.
    pub fn check(&self, rt: &Runtime) -> Result<(), Wrong> {
        self.build(rt, |i, dtype, dims| ordinary(rt, i, dtype, dims)).map(|_| ())
    }

    /// The inputs in memory, by their statement's place; nothing for other statements.
    pub fn inputs(&self, rt: &Runtime) -> Result<Vec<Option<Array>>, Wrong> {
        let made = |(i, s): (usize, &Statement)| match &s.make {
            Make::Input(dtype, dims) => {
                let array = ordinary(rt, i, *dtype, dims).named(&s.name);
                array.eval().map_err(|e| Wrong::Run(Some(s.line), Box::new(e)))?;
                Ok(Some(array))
            }
            _ => Ok(None),
        };
        self.statements.iter().enumerate().map(made).collect()
    }

    /// What the program reads, not yet computed. Values in between are held by nobody, so that a plan need not keep
    /// them.
    pub fn arrays(&self, rt: &Runtime, inputs: &[Option<Array>]) -> Result<Vec<Array>, Wrong> {
        let all = self
            .build(rt, |i, dtype, dims| inputs[i].clone().unwrap_or_else(|| ordinary(rt, i, dtype, dims)))?;
        Ok(self.read.iter().map(|&v| all[v].clone()).collect())
    }

    /// What is read, by name, type and shape.
    pub fn describe(&self, results: &[Array]) -> String {
        let one = |(&v, a): (&usize, &Array)| {
            let dims: Vec<String> = a.shape().iter().map(usize::to_string).collect();
            let shape = if dims.is_empty() { "scalar".into() } else { dims.join("x") };
            format!("{} {} {shape}", self.statements[v].name, a.dtype())
        };
        self.read.iter().zip(results).map(one).collect::<Vec<_>>().join(", ")
    }

    fn build(
        &self,
        rt: &Runtime,
        input: impl Fn(usize, DType, &[usize]) -> Array,
    ) -> Result<Vec<Array>, Wrong> {
        let mut made: Vec<Array> = Vec::with_capacity(self.statements.len());
        for (i, s) in self.statements.iter().enumerate() {
            // Each statement's own random numbers, the same in every run.
            let seed = Seed(0).nth(i as u64);
            let array = match &s.make {
                Make::Input(dtype, dims) => input(i, *dtype, dims),
                Make::Uniform(Float::F32, dims) => rt.uniform(&dims[..], seed),
                Make::Uniform(Float::F64, dims) => rt.uniform_f64(&dims[..], seed),
                Make::Normal(Float::F32, dims) => rt.normal(&dims[..], seed),
                Make::Normal(Float::F64, dims) => rt.normal_f64(&dims[..], seed),
                Make::Arange(n) => rt.arange(0, *n, 1),
                Make::Cast(dtype, of) => made[*of].cast(*dtype),
                Make::Reduce { kind, of, axes, keep } => {
                    let over = axes.as_ref().map_or_else(Over::all, |a| Over::from(&a[..]));
                    made[*of].reduce(*kind, if *keep { over.keep() } else { over })
                }
                Make::Permute(of, axes) => made[*of].permute(axes),
                Make::Op(op, operands) => {
                    let side = |o: &Operand| match o {
                        Operand::Value(v) => Side::from(made[*v].clone()),
                        Operand::Number(n) => Side::Number(*n),
                    };
                    rt.apply(*op, &operands.iter().map(side).collect::<Vec<_>>())
                }
            };
            array.check().map_err(|e| Wrong::Line(s.line, Box::new(e)))?;
            made.push(array);
        }
        Ok(made)
    }
}

/// Numbers that no op is slow for: floats from 0.5 to 1.5, whole numbers from 1 to 9, both truth values.
fn ordinary(rt: &Runtime, i: usize, dtype: DType, dims: &[usize]) -> Array {
    let even = rt.uniform(dims, Seed(1).nth(i as u64));
    match dtype {
        DType::Bool => even.lt(0.5),
        d if d.is_float() => even.add(0.5).cast(d),
        d => even.mul(9.0).add(1.0).cast(d),
    }
}
