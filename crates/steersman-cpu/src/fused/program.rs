//! An expression made ready to run on one instruction set: calls of loops on places, in order.
//!
//! A place is somewhere a tile's elements are: an operand, an output, a buffer. Which pointers places have is
//! found for each tile; the calls stay the same.

use super::chain::{self, ChainFn, Code, Micro, NOWHERE, Other};
use super::lower::{self, Id, Lowered, Out, Work};
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
    /// How often each op occurs, with the type it computes in.
    pub counts: Vec<(Op, DType, f64)>,
    /// How often random numbers are drawn, by their distribution, `f64` if true.
    pub draws: Vec<(Dist, bool)>,
    /// Nominal operations of the rest: casts, positions.
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
    /// The value it is, if it is one.
    id: Option<Id>,
}

struct Assembly<'a> {
    level: Level,
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
    fn new(expr: &'a Expr, lowered: &'a Lowered, order: &[Id], level: Level) -> Assembly<'a> {
        let mut a = Assembly {
            level,
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
                    let served = if f.is_some() { form } else { [false; 3] };
                    for (i, arg) in args.iter_mut().enumerate() {
                        if let (Spot::Uniform(u), false) = (*arg, served[i]) {
                            let size = self.lowered.lows[low.args[i] as usize].size;
                            *arg = self.splat(u, size);
                        }
                    }
                }
                let call = Call::Row(f.unwrap_or(rows.each));
                Pending { call, args, out: Spot::Slot(0), rows: Some((rows, arity)), id: Some(id) }
            }
            Work::At(f, key) => Pending {
                call: Call::At(f, key.unwrap_or(NO_KEY)),
                args: Vec::new(),
                out: Spot::Slot(0),
                rows: None,
                id: Some(id),
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
                self.pending.push(Pending {
                    call,
                    args: vec![spot],
                    out: Spot::Output(o),
                    rows: None,
                    id: None,
                });
                spot = Spot::Output(o);
            }
            places.push((spot, low.size));
        }
        let (counts, draws, other_flops) = count(self.expr);
        let mut program = Program {
            inputs: self.expr.inputs().len(),
            outlets: outs.iter().map(|&out| Outlet { out, place: 0, size: 0 }).collect(),
            instrs: Vec::new(),
            micros: Vec::new(),
            uniforms: Vec::new(),
            splats: self.splats,
            slots: self.slots,
            width: self.width,
            counts,
            draws,
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
        let links = links(self.lowered, &self.pending);
        let (mut instrs, mut micros): (Vec<Instr>, Vec<Micro>) = (Vec::new(), Vec::new());
        let mut i = 0;
        while i < self.pending.len() {
            let run = i + links[i..].iter().take_while(|l| l.joins).count().min(self.pending.len() - 1 - i);
            let function = links[i].wide.and_then(|wide| chain::function(self.level, wide));
            match function {
                Some(f) if run > i => {
                    let from = micros.len() as u32;
                    push_chain(self.lowered, &self.pending[i..=run], &links[i..=run], &place, &mut micros);
                    let out = place(self.pending[run].out);
                    let call = Call::Chain(f, from, micros.len() as u32);
                    instrs.push(Instr { call, args: [0; 3], out, rows: None });
                    i = run + 1;
                }
                _ => {
                    instrs.push(instr(&self.pending[i]));
                    i += 1;
                }
            }
        }
        let uniforms: Vec<Uniform> =
            self.uniforms.iter().map(|u| Uniform { from: u.as_ref().map(|k| *k).map_err(instr) }).collect();
        let outlets: Vec<Outlet> = outs
            .iter()
            .zip(&places)
            .map(|(&out, &(spot, size))| Outlet { out, place: place(spot), size })
            .collect();
        (program.instrs, program.uniforms, program.outlets) = (instrs, uniforms, outlets);
        program.micros = micros;
        program
    }
}

/// How a call stands to the one after it.
struct Link {
    /// `f64` or `f32`, if it can be a step of a chain at all.
    wide: Option<bool>,
    /// Whether the next one goes on with what this one gives.
    joins: bool,
    /// Whether what it gives is needed elsewhere than in the next one.
    kept: bool,
}

fn links(lowered: &Lowered, pending: &[Pending]) -> Vec<Link> {
    let mut uses = vec![0u32; lowered.lows.len()];
    lowered.lows.iter().flat_map(|l| &l.args).for_each(|&a| uses[a as usize] += 1);
    lowered.outs.iter().for_each(|o| uses[o.value() as usize] += 1);
    let low = |i: usize| pending.get(i).and_then(|p| p.id).map(|id| (id, &lowered.lows[id as usize]));
    let link = |i: usize| {
        let mut link = Link { wide: None, joins: false, kept: true };
        let Some((id, this)) = low(i) else { return link };
        // As the first of a chain it goes on with its own first argument.
        let mut first: Vec<bool> = this.args.iter().map(|_| false).collect();
        first.iter_mut().take(1).for_each(|f| *f = true);
        link.wide = this.op.and_then(|(op, wide)| chain::code(op, &first).map(|_| wide));
        if let (Some(wide), Some((_, next))) = (link.wide, low(i + 1)) {
            let hand: Vec<bool> = next.args.iter().map(|&a| a == id).collect();
            let times = hand.iter().filter(|h| **h).count() as u32;
            let code = next.op.filter(|(_, w)| *w == wide).and_then(|(op, _)| chain::code(op, &hand));
            link.joins = times > 0 && code.is_some();
            link.kept = uses[id as usize] > times;
        }
        link
    };
    (0..pending.len()).map(link).collect()
}

/// Writes the steps of a run of calls that go on with each other's values.
fn push_chain(
    lowered: &Lowered,
    run: &[Pending],
    links: &[Link],
    place: &impl Fn(Spot) -> Place,
    micros: &mut Vec<Micro>,
) {
    let other = |spot: Spot| Other { place: place(spot), same: matches!(spot, Spot::Uniform(_)) };
    let mut hand = None;
    for (i, (call, link)) in run.iter().zip(links).enumerate() {
        let Some((op, args)) = call.id.and_then(|id| {
            let low = &lowered.lows[id as usize];
            low.op.map(|(op, _)| (op, &low.args))
        }) else {
            return;
        };
        let hands: Vec<bool> = match hand {
            Some(hand) => args.iter().map(|&a| a == hand).collect(),
            // The first one's first argument is loaded.
            None => {
                let load = Micro {
                    code: Code::Load,
                    y: other(call.args[0]),
                    z: NOWHERE,
                    store: Place::MAX,
                    past: false,
                };
                micros.push(load);
                (0..args.len()).map(|k| k == 0).collect()
            }
        };
        let mut others = call.args.iter().zip(&hands).filter(|(_, h)| !**h).map(|(&s, _)| other(s));
        let (y, z) = (others.next().unwrap_or(NOWHERE), others.next().unwrap_or(NOWHERE));
        let last = i + 1 == run.len();
        let store = if last || link.kept { place(call.out) } else { Place::MAX };
        // Links are only made where there is a step for the pattern.
        if let Some(code) = chain::code(op, &hands) {
            micros.push(Micro { code, y, z, store, past: false });
        }
        hand = call.id;
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

/// How often each op occurs, what random numbers are drawn, and the nominal operations of the other steps.
fn count(expr: &Expr) -> (Vec<(Op, DType, f64)>, Vec<(Dist, bool)>, f64) {
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
    (counts.into_iter().map(|((op, d), n)| (op, d, n)).collect(), draws, other)
}
