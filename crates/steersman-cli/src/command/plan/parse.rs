//! The text of an array program.
//!
//! ```text
//! x = input f32 1000x100     # ordinary numbers
//! m = mean x axis=0          # axis=0,1 for several; keep=true leaves axes of one
//! y = sub x m
//! z = max y 0.5              # two operands; `max y` alone reduces
//! t = transpose z perm=1,0
//! read t                     # else what nobody uses is read
//! ```

use super::program::{Float, Make, Operand, Program, Statement};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;
use steersman::array::Number;
use steersman_core::{DType, Op, ReduceOp, TernaryOp};

/// Ways to make an array that are no ops of the engine.
const MAKERS: [&str; 5] = ["input", "uniform", "normal", "arange", "cast"];

/// What cannot be read in a program.
#[derive(Debug)]
pub struct Malformed {
    /// Counted from 1; none if the whole is wrong.
    line: Option<usize>,
    problem: String,
    expected: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}; expected {}", self.problem, self.expected)
    }
}

fn wrong<T>(problem: impl Into<String>, expected: impl Into<String>) -> Result<T, Malformed> {
    Err(Malformed { line: None, problem: problem.into(), expected: expected.into() })
}

impl FromStr for Program {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Program, Malformed> {
        let mut known = Known::default();
        let mut read: Vec<usize> = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            let at = |e: Malformed| Malformed { line: Some(i + 1), ..e };
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                ["read"] => wrong("read names nothing", "values to read, like 'read m s'").map_err(at)?,
                ["read", ref names @ ..] if names[0] != "=" => {
                    for name in names {
                        let value = known.value(name).map_err(at)?;
                        if !read.contains(&value) {
                            read.push(value);
                        }
                    }
                }
                _ => known.statement(i + 1, line).map_err(at)?,
            }
        }
        let Known { statements, .. } = known;
        if statements.is_empty() {
            return wrong("it holds no statements", "one a line, like 'x = input f32 1000x1000'");
        }
        if read.is_empty() {
            let used: BTreeSet<usize> = statements.iter().flat_map(|s| s.make.uses()).collect();
            read = (0..statements.len()).filter(|v| !used.contains(v)).collect();
        }
        Ok(Program { statements, read })
    }
}

/// The statements so far.
#[derive(Default)]
struct Known {
    statements: Vec<Statement>,
    /// Values by name; a long program would take long to search.
    values: HashMap<String, usize>,
}

impl Known {
    fn statement(&mut self, line: usize, text: &str) -> Result<(), Malformed> {
        let form = "'NAME = OP OPERANDS', like 'y = matmul x w', or 'read NAMES'";
        // The `=` of an attribute has no space before it, and comes after an op.
        let Some((name, rest)) = text.split_once('=') else {
            return wrong(format!("'{text}' is no statement"), form);
        };
        let name = name.trim();
        if !is_name(name) {
            return wrong(format!("'{name}' is not a name"), form);
        }
        if let Some(&v) = self.values.get(name) {
            let line = self.statements[v].line;
            return wrong(format!("'{name}' is the value of line {line} already"), "a name of its own");
        }
        let words: Vec<&str> = rest.split_whitespace().collect();
        let Some((op, rest)) = words.split_first() else {
            return wrong(format!("nothing follows '{name} ='"), form);
        };
        let make = self.make(op, rest)?;
        self.values.insert(name.into(), self.statements.len());
        self.statements.push(Statement { line, name: name.into(), make });
        Ok(())
    }

    fn make(&self, name: &str, words: &[&str]) -> Result<Make, Malformed> {
        match (name, words) {
            ("input", [d, s]) => Ok(Make::Input(dtype(d)?, shape(s)?)),
            ("uniform", [d, s]) => Ok(Make::Uniform(float(d)?, shape(s)?)),
            ("normal", [d, s]) => Ok(Make::Normal(float(d)?, shape(s)?)),
            ("input" | "uniform" | "normal", _) => {
                wrong(format!("{name} takes an element type and a shape"), like(name, "f32 1000x1000"))
            }
            ("arange", [n]) => match n.parse() {
                Ok(n) if n >= 0 => Ok(Make::Arange(n)),
                _ => wrong(format!("'{n}' is no number of elements"), like(name, "1000")),
            },
            ("arange", _) => wrong("arange takes one number", like(name, "1000")),
            ("cast", [d, x]) => Ok(Make::Cast(dtype(d)?, self.value(x)?)),
            ("cast", _) => wrong("cast takes an element type and a value", like(name, "f64 x")),
            _ => self.op(name, words),
        }
    }

    fn op(&self, name: &str, words: &[&str]) -> Result<Make, Malformed> {
        let Some(op) = Op::from_name(name).filter(|op| !matches!(op, Op::Conv2d { .. })) else {
            let mut names = MAKERS.to_vec();
            names.extend(Op::names().into_iter().filter(|n| *n != "conv2d"));
            // `max` and `min` are there twice, for one operand and for two.
            let mut seen = BTreeSet::new();
            names.retain(|n| seen.insert(*n));
            return wrong(format!("there is no op '{name}'"), format!("one of: {}", names.join(" ")));
        };
        let (attributes, operands): (Vec<&str>, Vec<&str>) = words.iter().partition(|w| w.contains('='));
        let op = match ReduceOp::ALL.iter().find(|r| r.name() == name) {
            Some(&kind) if operands.len() == 1 => return self.reduction(kind, operands[0], &attributes),
            _ => op,
        };
        let arity = op.arity();
        if operands.len() != arity {
            let operands_got = format!("{name} takes {arity} operand(s), got {}", operands.len());
            return wrong(operands_got, like(name, &["x", "y", "z"][..arity].join(" ")));
        }
        if let (Op::Transpose { .. }, [attribute]) = (op, &attributes[..]) {
            let Some(list) = attribute.strip_prefix("perm=") else {
                return wrong(format!("transpose has no attribute '{attribute}'"), "perm=, like perm=1,0");
            };
            return Ok(Make::Permute(self.value(operands[0])?, axes("perm", list)?));
        }
        if let Some(attribute) = attributes.first() {
            return wrong(
                format!("'{attribute}' is too much for {name}"),
                "axis= and keep= of reductions, perm= of transpose, and of other ops operands only",
            );
        }
        let operand = |(i, text): (usize, &&str)| match op {
            Op::Binary(_) | Op::Ternary(_) if (op, i) != (Op::Ternary(TernaryOp::Where), 0) => {
                self.operand(text)
            }
            _ => self.value(text).map(Operand::Value),
        };
        Ok(Make::Op(op, operands.iter().enumerate().map(operand).collect::<Result<_, _>>()?))
    }

    fn reduction(&self, kind: ReduceOp, of: &str, attributes: &[&str]) -> Result<Make, Malformed> {
        let (mut over, mut keep) = (None, false);
        for attribute in attributes {
            match attribute.split_once('=') {
                Some(("axis", list)) => over = Some(axes("axis", list)?),
                Some(("keep", "true")) => keep = true,
                Some(("keep", "false")) => keep = false,
                _ => {
                    return wrong(
                        format!("{} has no attribute '{attribute}'", kind.name()),
                        "axis=, like axis=0 or axis=0,1, or keep=true",
                    );
                }
            }
        }
        Ok(Make::Reduce { kind, of: self.value(of)?, axes: over, keep })
    }

    fn value(&self, name: &str) -> Result<usize, Malformed> {
        if let Some(&v) = self.values.get(name) {
            return Ok(v);
        }
        if !is_name(name) {
            return wrong(format!("'{name}' is no array"), "the name of a value that a line before makes");
        }
        // The latest are the likeliest to be meant, and a message should fit a screen.
        let names: Vec<&str> = self.statements.iter().rev().take(12).map(|s| s.name.as_str()).collect();
        wrong(
            format!("there is no value '{name}' yet"),
            if names.is_empty() {
                "a line before that makes it".into()
            } else {
                format!("one of the lines before: {}", names.join(" "))
            },
        )
    }

    fn operand(&self, text: &str) -> Result<Operand, Malformed> {
        let number = match text {
            "true" | "false" => Number::Bool(text == "true"),
            _ if is_name(text) => return self.value(text).map(Operand::Value),
            _ => match (text.parse(), text.parse()) {
                (Ok(whole), _) => Number::Int(whole),
                // `inf` is a word of its own; digits that come to that were meant to be a number.
                (_, Ok(real)) if f64::is_infinite(real) && text.contains(|c: char| c.is_ascii_digit()) => {
                    return wrong(format!("'{text}' is beyond what f64 holds"), "a smaller number, or inf");
                }
                (_, Ok(real)) => Number::Float(real),
                _ => {
                    return wrong(
                        format!("'{text}' is no operand"),
                        "the name of a value, or a number such as 0.5",
                    );
                }
            },
        };
        Ok(Operand::Number(number))
    }
}

fn like(name: &str, rest: &str) -> String {
    format!("something like 'y = {name} {rest}'")
}

/// Letters, digits and underscores, no digit first, and no number or word of its own.
fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && letters.all(|c| c.is_alphanumeric() || c == '_')
        && !["true", "false", "inf", "nan", "read"].contains(&text)
}

fn dtype(text: &str) -> Result<DType, Malformed> {
    text.parse().or_else(|_| {
        let types = DType::ALL.map(|d| d.name()).join(" ");
        wrong(format!("'{text}' is not an element type"), format!("one of: {types}"))
    })
}

fn float(text: &str) -> Result<Float, Malformed> {
    match dtype(text)? {
        DType::F32 => Ok(Float::F32),
        DType::F64 => Ok(Float::F64),
        other => wrong(format!("there are no random numbers of {other}"), "f32 or f64; cast them then"),
    }
}

fn shape(text: &str) -> Result<Vec<usize>, Malformed> {
    let dims: Result<_, _> = text.split('x').map(str::parse).collect();
    dims.or_else(|_| wrong(format!("'{text}' is not a shape"), "numbers joined by x, like 1024x512"))
}

fn axes(key: &str, text: &str) -> Result<Vec<isize>, Malformed> {
    let list: Result<_, _> = text.split(',').map(str::parse).collect();
    list.or_else(|_| wrong(format!("{key}={text} names no axes"), format!("numbers, like {key}=1,0")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> Program {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn what_nobody_uses_is_read_unless_the_program_says_what() {
        let text = "x = input f32 3\ny = exp x\nz = ln y # used by none\nw = neg x\n";
        assert_eq!(program(text).read, [2, 3]);
        assert_eq!(program(&format!("{text}read y z y\nread w")).read, [1, 2, 3]);
    }

    #[test]
    fn one_operand_reduces_and_two_compare() {
        let p = program("x=input f32 2x3\na = max x axis=-1 keep=true\nb = max x 0\nc = max x");
        let reduced = |axes, keep| Make::Reduce { kind: ReduceOp::Max, of: 0, axes, keep };
        assert_eq!(p.statements[1].make, reduced(Some(vec![-1]), true));
        assert_eq!(p.statements[2].make.uses(), [0]);
        assert_eq!(p.statements[3].make, reduced(None, false));
    }

    #[test]
    fn numbers_keep_their_kind() {
        let p = program("x = input f32 2\na = add x 2\nb = add x 2.0\nc = add x -1e3\nd = add x -inf");
        let numbers =
            [Number::Int(2), Number::Float(2.0), Number::Float(-1e3), Number::Float(f64::NEG_INFINITY)];
        for (s, n) in p.statements[1..].iter().zip(numbers) {
            let Make::Op(_, operands) = &s.make else { panic!("{s:?}") };
            assert_eq!(operands[1], Operand::Number(n));
        }
    }

    #[test]
    fn a_number_too_large_is_not_taken_for_infinity() {
        for text in ["1e999", "-1e999"] {
            let program: Result<Program, _> = format!("x = input f32 2\na = add x {text}").parse();
            let said = program.expect_err(text).to_string();
            assert!(said.contains("beyond what f64 holds"), "{said}");
        }
    }

    #[test]
    fn every_op_that_arrays_have_is_read() {
        for name in Op::names().into_iter().filter(|n| *n != "conv2d") {
            let operands = ["x", "x", "x"][..Op::from_name(name).map_or(0, Op::arity)].join(" ");
            program(&format!("x = input f32 2x2\ny = {name} {operands}"));
        }
    }
}
