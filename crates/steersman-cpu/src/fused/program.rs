//! An expression made ready to run on one instruction set: calls of loops on places, in order.
//!
//! A place is somewhere a tile's elements are: an operand, an output, a buffer. Which pointers places have is
//! found for each tile; the calls stay the same.

use super::lower::{self, Id, Lowered, Out, Work};
use super::schedule;
use crate::isa::Level;
use crate::map::{RowFn, Rows};
use crate::random::Generate;
use std::collections::HashMap;
use steersman_core::expr::{Expr, Step};
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

/// A program.
pub struct Program {
    pub inputs: usize,
    pub outlets: Vec<Outlet>,
    pub instrs: Vec<Instr>,
    /// In order: later ones may use earlier ones.
    pub uniforms: Vec<Uniform>,
    /// Uniforms that must be there as whole tiles, with their size.
    pub splats: Vec<(usize, usize)>,
    pub slots: usize,
    /// Bytes of the widest element in a slot or splat.
    pub width: usize,
    /// How often each op occurs, with the type it computes in.
    pub counts: Vec<(Op, DType, f64)>,
    /// Nominal operations of the rest: casts, positions, random numbers.
    pub other_flops: f64,
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

    /// Makes an expression ready, or says why it cannot be.
    pub fn new(expr: &Expr, level: Level) -> Result<Program, Refusal> {
        let lowered = Lowered::new(expr, level)?;
        let order = schedule::order(&lowered);
        let last = schedule::last_uses(&lowered, &order);
        Ok(Assembly::new(expr, &lowered, &order).assemble(&order, &last))
    }
}

/// Where a value is, before places have numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Spot {
    Input(usize),
    Output(usize),
    Slot(usize),
    Uniform(usize),
    Splat(usize),
}

struct Pending {
    call: Call,
    args: Vec<Spot>,
    out: Spot,
    rows: Option<(Rows, u8)>,
}

struct Assembly<'a> {
    lowered: &'a Lowered,
    expr: &'a Expr,
    spots: Vec<Option<Spot>>,
    pending: Vec<Pending>,
    uniforms: Vec<Result<u16, Pending>>,
    splats: Vec<(usize, usize)>,
    splat_of: HashMap<usize, usize>,
    free: Vec<usize>,
    slots: usize,
    width: usize,
}

impl<'a> Assembly<'a> {
    fn new(expr: &'a Expr, lowered: &'a Lowered, order: &[Id]) -> Assembly<'a> {
        let mut a = Assembly {
            lowered,
            expr,
            spots: vec![None; lowered.lows.len()],
            pending: Vec::with_capacity(order.len()),
            uniforms: Vec::new(),
            splats: Vec::new(),
            splat_of: HashMap::new(),
            free: Vec::new(),
            slots: 0,
            width: 1,
        };
        // Values that come out are made where they come out.
        for (o, out) in lowered.outs.iter().enumerate() {
            let value = out.value() as usize;
            let made = schedule::is_tiled(&lowered.lows[value]);
            if matches!(out, Out::Array { .. }) && made && a.spots[value].is_none() {
                a.spots[value] = Some(Spot::Output(o));
            }
        }
        a
    }

    fn assemble(mut self, order: &[Id], last: &[usize]) -> Program {
        for (at, &id) in order.iter().enumerate() {
            self.step(id);
            if !schedule::is_tiled(&self.lowered.lows[id as usize]) {
                continue;
            }
            // Freed after the step has its own slot: loops must not write where they read.
            let mut args = self.lowered.lows[id as usize].args.clone();
            args.sort_unstable();
            args.dedup();
            for arg in args.into_iter().filter(|&a| last[a as usize] == at) {
                if let Some(Spot::Slot(s)) = self.spots[arg as usize] {
                    self.free.push(s);
                }
            }
        }
        self.finish()
    }

    fn step(&mut self, id: Id) {
        let low = &self.lowered.lows[id as usize];
        let pending = match low.work {
            Work::Input(k) => {
                self.spots[id as usize] = Some(Spot::Input(k.into()));
                return;
            }
            Work::Scalar(k) => {
                self.uniforms.push(Ok(k));
                self.spots[id as usize] = Some(Spot::Uniform(self.uniforms.len() - 1));
                return;
            }
            Work::Row(rows) => {
                let arity = low.args.len() as u8;
                let spot = |a: &Id| self.spots[*a as usize].expect("an order has arguments first");
                let mut args: Vec<Spot> = low.args.iter().map(spot).collect();
                let same = |s: &Spot| matches!(s, Spot::Uniform(_));
                let form = if low.uniform { [false; 3] } else { pattern(&args, same) };
                let f = choose(rows, form);
                if !low.uniform {
                    let served = f.is_some().then_some(form).unwrap_or_default();
                    for (i, arg) in args.iter_mut().enumerate() {
                        if let (Spot::Uniform(u), false) = (*arg, served[i]) {
                            let size = self.lowered.lows[low.args[i] as usize].size;
                            *arg = self.splat(u, size);
                        }
                    }
                }
                let call = Call::Row(f.unwrap_or(rows.each));
                Pending { call, args, out: Spot::Slot(0), rows: Some((rows, arity)) }
            }
            Work::At(f, key) => Pending {
                call: Call::At(f, key.unwrap_or(NO_KEY)),
                args: Vec::new(),
                out: Spot::Slot(0),
                rows: None,
            },
        };
        if low.uniform {
            let out = Spot::Uniform(self.uniforms.len());
            self.uniforms.push(Err(Pending { out, ..pending }));
            self.spots[id as usize] = Some(out);
            return;
        }
        let out = self.spots[id as usize].unwrap_or_else(|| {
            Spot::Slot(self.free.pop().unwrap_or_else(|| {
                self.slots += 1;
                self.slots - 1
            }))
        });
        self.width = self.width.max(low.size);
        self.spots[id as usize] = Some(out);
        self.pending.push(Pending { out, ..pending });
    }

    /// A tile full of a uniform.
    fn splat(&mut self, uniform: usize, size: usize) -> Spot {
        self.width = self.width.max(size);
        let splats = &mut self.splats;
        Spot::Splat(*self.splat_of.entry(uniform).or_insert_with(|| {
            splats.push((uniform, size));
            splats.len() - 1
        }))
    }

    fn finish(mut self) -> Program {
        let outs = self.lowered.outs.clone();
        let mut places = Vec::with_capacity(outs.len());
        for (o, out) in outs.iter().enumerate() {
            let low = &self.lowered.lows[out.value() as usize];
            let mut spot = self.spots[out.value() as usize].expect("outputs were scheduled");
            if let Spot::Uniform(u) = spot {
                spot = self.splat(u, low.size);
            }
            if matches!(out, Out::Array { .. }) && spot != Spot::Output(o) {
                // An operand, a uniform, or what comes out elsewhere too.
                let call = Call::Row(lower::copy(low.size));
                self.pending.push(Pending { call, args: vec![spot], out: Spot::Output(o), rows: None });
                spot = Spot::Output(o);
            }
            places.push((spot, low.size));
        }
        let (counts, other_flops) = count(self.expr);
        let mut program = Program {
            inputs: self.expr.inputs().len(),
            outlets: outs.iter().map(|&out| Outlet { out, place: 0, size: 0 }).collect(),
            instrs: Vec::new(),
            uniforms: Vec::new(),
            splats: self.splats,
            slots: self.slots,
            width: self.width,
            counts,
            other_flops,
        };
        // The number of uniforms is part of where splats are.
        program.uniforms = self.uniforms.iter().map(|_| Uniform { from: Ok(0) }).collect();
        let place = |spot: Spot| match spot {
            Spot::Input(k) => program.input(k),
            Spot::Output(o) => program.output(o),
            Spot::Slot(s) => program.slot(s),
            Spot::Uniform(u) => program.uniform(u),
            Spot::Splat(s) => program.splat(s),
        };
        let instr = |p: &Pending| {
            // Arguments that a loop does not have are not looked at: any place will do.
            let arg = |i: usize| p.args.get(i).map_or(0, |&s| place(s));
            Instr { call: p.call, args: [arg(0), arg(1), arg(2)], out: place(p.out), rows: p.rows }
        };
        let instrs: Vec<Instr> = self.pending.iter().map(instr).collect();
        let uniforms: Vec<Uniform> =
            self.uniforms.iter().map(|u| Uniform { from: u.as_ref().map(|k| *k).map_err(instr) }).collect();
        let outlets: Vec<Outlet> = outs
            .iter()
            .zip(&places)
            .map(|(&out, &(spot, size))| Outlet { out, place: place(spot), size })
            .collect();
        (program.instrs, program.uniforms, program.outlets) = (instrs, uniforms, outlets);
        program
    }
}

/// Which arguments stay the same.
fn pattern<T>(args: &[T], same: impl Fn(&T) -> bool) -> [bool; 3] {
    std::array::from_fn(|i| args.get(i).is_some_and(&same))
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

/// How often each op occurs, and the nominal operations of the other steps.
fn count(expr: &Expr) -> (Vec<(Op, DType, f64)>, f64) {
    let mut counts: HashMap<(Op, DType), f64> = HashMap::new();
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
    (counts.into_iter().map(|((op, d), n)| (op, d, n)).collect(), other)
}
