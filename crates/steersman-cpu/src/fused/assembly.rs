//! Gives every value of a lowered expression its place, and makes calls of its steps.

use super::chain::{self, Micro};
use super::link::{links, push_chain};
use super::lower::{self, Id, Lowered, Out, Work};
use super::program::{Call, Instr, NO_KEY, Outlet, Program, Uniform, choose, count};
use super::schedule;
use crate::isa::Level;
use crate::map::Rows;
use std::collections::HashMap;
use steersman_core::expr::Expr;

/// Where a value is, before places have numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Spot {
    Input(usize),
    Output(usize),
    Slot(usize),
    Uniform(usize),
    Splat(usize),
}

pub(super) struct Pending {
    pub call: Call,
    pub args: Vec<Spot>,
    pub out: Spot,
    rows: Option<(Rows, u8)>,
    /// The value it is, if it is one.
    pub id: Option<Id>,
}

pub(super) struct Assembly<'a> {
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
    pub fn new(expr: &'a Expr, lowered: &'a Lowered, order: &[Id], level: Level) -> Assembly<'a> {
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

    pub fn assemble(mut self, order: &[Id], last: &[usize]) -> Program {
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
        let mut program = Program {
            inputs: self.expr.inputs().len(),
            outlets: outs.iter().map(|&out| Outlet { out, place: 0, size: 0 }).collect(),
            instrs: Vec::new(),
            micros: Vec::new(),
            uniforms: Vec::new(),
            splats: self.splats,
            slots: self.slots,
            width: self.width,
            counts: count(self.expr),
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

/// Which arguments stay the same.
fn pattern<T>(args: &[T], same: impl Fn(&T) -> bool) -> [bool; 3] {
    std::array::from_fn(|i| args.get(i).is_some_and(&same))
}
