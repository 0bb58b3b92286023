//! Fused groups by vector instructions.

use super::bind::{Bound, Exit};
use super::cost;
use super::drive::{self, Cells, Parts};
use super::program::Program;
use super::shape::{Over, Shape};
use crate::context::Context;
use crate::isa::Level;
use crate::map;
use crate::reduce::CELLS;
use std::ops::Range;
use std::sync::Mutex;
use steersman_core::cost::{Machine, Terms};
use steersman_core::expr::{Dist, Expr, Output, Step};
use steersman_core::{
    DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran, Refusal, Workload,
};

/// Elements that a thread's share is a multiple of: whole cache lines of every type.
const SHARE: usize = 64;

/// Parameter variants: results through the cache, or past it.
const THROUGH: u16 = 0;
const PAST: u16 = 1;

/// Fused groups on one instruction set.
pub struct Fused {
    ctx: Context,
    level: Level,
    name: String,
    /// Whose measured rates say what a step costs.
    rates: String,
    nearest: Option<usize>,
}

/// What is worked out once for each expression.
struct Ready {
    program: Result<Program, Refusal>,
    class: NumericClass,
}

impl Fused {
    /// On this instruction set, which the CPU must have.
    pub fn new(ctx: &Context, level: Level) -> Fused {
        let name = format!("cpu/fused-{}", level.name());
        let nearest = ctx.host.cache(1).map(|c| c.bytes);
        Fused { ctx: ctx.clone(), level, name, rates: format!("cpu/map-{}", level.name()), nearest }
    }

    fn ready<'e>(&self, expr: &'e Expr) -> &'e Ready {
        // Programs depend on the instruction set alone.
        let level = self.level;
        expr.notes()
            .get(level as u64, || Ready { program: Program::new(expr, level), class: class(expr, level) })
    }

    /// Bytes of the nearest cache.
    pub(super) fn nearest(&self) -> Option<usize> {
        self.nearest
    }

    /// Whose measured rates say what a step costs, and on which instruction set.
    pub(super) fn rates(&self) -> (&str, Level) {
        (&self.rates, self.level)
    }

    /// The expression's program, or why there is none.
    pub(super) fn program<'e>(&self, expr: &'e Expr) -> Result<&'e Program, Refusal> {
        self.ready(expr).program.as_ref().map_err(Refusal::clone)
    }

    /// Runs `part` on shares of `n` things, each a multiple of `unit`.
    fn split(
        &self,
        n: usize,
        unit: usize,
        threads: usize,
        part: &(dyn Fn(usize, Range<usize>) + Sync),
    ) -> Ran {
        if threads <= 1 || n <= unit {
            part(0, 0..n);
            return Ran::Clean;
        }
        let share = n.div_ceil(threads).next_multiple_of(unit);
        let outcome = self.ctx.team.run(threads, &|i| {
            let start = (i * share).min(n);
            let end = (start + share).min(n);
            if start < end {
                part(i, start..end);
            }
        });
        if outcome.is_parallel() { Ran::Clean } else { Ran::Disturbed }
    }

    /// Elements in order; `range` is the whole group or one row of it.
    unsafe fn flat(
        &self,
        bound: &Bound<'_>,
        range: Range<usize>,
        unit: usize,
        threads: usize,
    ) -> (Parts, Ran) {
        if threads <= 1 {
            let mut parts = drive::start(bound);
            // SAFETY: passed on.
            unsafe { drive::flat(bound, range, &mut parts) };
            return (parts, Ran::Clean);
        }
        let all: Mutex<Vec<(usize, Parts)>> = Mutex::new(Vec::with_capacity(threads));
        let ran = self.split(range.len(), unit, threads, &|i, share| {
            let mut parts = drive::start(bound);
            // SAFETY: shares do not overlap.
            unsafe { drive::flat(bound, range.start + share.start..range.start + share.end, &mut parts) };
            all.lock().unwrap_or_else(|e| e.into_inner()).push((i, parts));
        });
        (joined(bound, all), ran)
    }
}

/// Parts of all threads as one, in the order of their elements, so that a result depends on how many threads
/// there were and not on which was first.
fn joined(bound: &Bound<'_>, all: Mutex<Vec<(usize, Parts)>>) -> Parts {
    let mut all = all.into_inner().unwrap_or_else(|e| e.into_inner());
    all.sort_by_key(|(i, _)| *i);
    let mut all = all.into_iter().map(|(_, parts)| parts);
    let mut parts = all.next().unwrap_or_else(|| drive::start(bound));
    for other in all {
        // SAFETY: all are of `bound`.
        unsafe {
            drive::join(bound, &mut parts, &other, Over::All);
            drive::join(bound, &mut parts, &other, Over::Trailing);
        }
    }
    parts
}

/// How far results may be from the reference: what the loosest step says.
fn class(expr: &Expr, level: Level) -> NumericClass {
    let of_step = |(i, step): (usize, &Step)| {
        let own = expr.dtype_of(steersman_core::expr::Value(i as u32));
        let of = step.arguments().last().map_or(own, |v| expr.dtype_of(v));
        match *step {
            Step::Unary(u, _) => map::class(Op::Unary(u), of, level),
            Step::Binary(b, ..) => map::class(Op::Binary(b), of, level),
            Step::Ternary(t, ..) => map::class(Op::Ternary(t), of, level),
            Step::Random { dist: Dist::Normal, .. } => NumericClass::Reassociated,
            _ => NumericClass::Exact,
        }
    };
    let of_output = |o: &Output| match *o {
        Output::Array(_) => NumericClass::Exact,
        Output::Reduce { kind, value, .. } => crate::reduce::class(kind, expr.dtype_of(value)),
    };
    let steps = expr.steps().iter().enumerate().map(of_step);
    steps.chain(expr.outputs().iter().map(of_output)).max().unwrap_or(NumericClass::Exact)
}

/// What every kernel of fused groups takes.
pub fn supported(w: &Workload) -> Result<Shape, Refusal> {
    if w.expr().is_none() {
        return Err(Refusal::new("it only runs fused groups"));
    }
    for (o, over) in w.outputs().iter().zip(w.expr().map_or(&[][..], |e| e.outputs())) {
        if matches!(over, Output::Reduce { .. }) && !o.is_contiguous() {
            return Err(Refusal::new("what it reduces to must be contiguous"));
        }
        if o.dims.iter().zip(&o.strides).any(|(&d, &s)| d > 1 && s == 0) {
            return Err(Refusal::new("an output's elements share memory"));
        }
    }
    Shape::new(w)
}

/// Bytes of all arrays that come out.
fn array_bytes(w: &Workload, shape: &Shape) -> usize {
    w.outputs().iter().zip(&shape.over).filter(|(_, over)| over.is_none()).map(|(o, _)| o.bytes()).sum()
}

impl Kernel for Fused {
    fn name(&self) -> &str {
        &self.name
    }

    fn device(&self) -> DeviceId {
        self.ctx.device
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Fused(_))
    }

    fn numerics(&self, w: &Workload) -> NumericClass {
        w.expr().map_or(NumericClass::Exact, |e| self.ready(e).class)
    }

    fn legality_is_fixed(&self) -> bool {
        true
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        supported(w)?;
        if w.product().is_some() {
            return Err(Refusal::new("it does not multiply matrices"));
        }
        w.expr().map_or(Ok(()), |e| self.program(e).map(|_| ()))
    }

    fn outdone(&self, _w: &Workload) -> Option<&'static str> {
        self.level.outdone()
    }

    fn narrower(&self) -> Option<String> {
        self.level.narrower(&self.name)
    }

    fn params(&self, w: &Workload) -> ParamList {
        let Ok(shape) = Shape::new(w) else { return ParamList::new() };
        let mut list = self.ctx.thread_params(w);
        if cfg!(target_arch = "x86_64") && array_bytes(w, &shape) >= self.ctx.host.stream_from() {
            let past: ParamList = list.iter().map(|p| Params { variant: PAST, ..*p }).collect();
            list.extend(past);
        }
        list
    }

    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        match w.expr().map(|e| self.program(e)) {
            Some(Ok(program)) => {
                cost::terms(w, program, p.threads.into(), machine, self.rates(), p.variant != THROUGH)
            }
            _ => Terms::launch(f64::INFINITY),
        }
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let fail = |why: Refusal| KernelError::Failed(format!("{} does not take {w}: {why}", self.name));
        let Some(expr) = w.expr() else { return Err(fail(Refusal::new("it has no expression"))) };
        let shape = supported(w).map_err(fail)?;
        let program = self.program(expr).map_err(fail)?;
        if io.scalars.len() < expr.scalars().len() || io.more.len() + 1 < w.outputs().len() {
            return Err(fail(Refusal::new("scalars or outputs are missing")));
        }
        let threads = p.threads.max(1) as usize;
        let bound = Bound::new(program, &shape, w, io, self.level, self.nearest, p.variant == PAST);
        // SAFETY: `io` is valid for the workload by contract.
        unsafe {
            if shape.elements == 0 {
                self.nothing(&bound, w);
                return Ok(Ran::Clean);
            }
            if shape.has(Over::Leading) {
                return Ok(self.columns(&bound, threads));
            }
            if shape.has(Over::Trailing)
                && threads > 1
                && shape.rows() < 4 * threads
                && shape.columns > bound.tile
            {
                return Ok(self.few_rows(&bound, threads));
            }
            let row = if shape.has(Over::Trailing) { shape.columns } else { 1 };
            let unit = row.max(SHARE / row.min(SHARE) * row);
            let unit = if bound.period > 1 { unit.next_multiple_of(bound.period) } else { unit };
            let (parts, ran) = self.flat(&bound, 0..shape.elements, unit, threads);
            drive::finish(&bound, &parts);
            Ok(ran)
        }
    }
}

impl Fused {
    /// Results of no elements.
    unsafe fn nothing(&self, bound: &Bound<'_>, w: &Workload) {
        let parts = drive::start(bound);
        for (o, outlet) in bound.outlets.iter().enumerate() {
            let (Exit::Reduce(_), Some(r)) = (outlet.exit, outlet.reducer) else { continue };
            for i in 0..w.outputs()[o].elements() {
                // SAFETY: by the caller's word.
                unsafe { r.finish(&parts[o], 0, outlet.base.add(i * outlet.size)) };
            }
        }
    }

    /// Rows too few to share out, each longer than a tile: one after another, by all threads.
    unsafe fn few_rows(&self, bound: &Bound<'_>, threads: usize) -> Ran {
        let (rows, columns) = (bound.shape.rows(), bound.shape.columns);
        let mut total = drive::start(bound);
        let mut clean = Ran::Clean;
        for row in 0..rows {
            // SAFETY: passed on.
            unsafe {
                let (parts, ran) = self.flat(bound, row * columns..(row + 1) * columns, SHARE, threads);
                drive::finish_row(bound, &parts, row);
                drive::join(bound, &mut total, &parts, Over::All);
                if ran != Ran::Clean {
                    clean = ran;
                }
            }
        }
        // SAFETY: passed on.
        unsafe { drive::finish(bound, &total) };
        clean
    }

    /// Reductions over leading axes.
    unsafe fn columns(&self, bound: &Bound<'_>, threads: usize) -> Ran {
        let (rows, columns) = (bound.shape.rows(), bound.shape.columns);
        let all: Mutex<Vec<(usize, Parts)>> = Mutex::new(Vec::with_capacity(threads));
        let keep = |i: usize, parts: Parts| all.lock().unwrap_or_else(|e| e.into_inner()).push((i, parts));
        let ran = if columns > CELLS {
            self.split(columns, SHARE, threads, &|i, share| {
                let mut parts = drive::start(bound);
                // SAFETY: shares do not overlap.
                unsafe { drive::wide(bound, share, &mut parts) };
                keep(i, parts);
            })
        } else {
            let known: Mutex<Vec<(usize, Cells)>> = Mutex::new(Vec::with_capacity(threads));
            // Whole lines of output, and whole periods of what starts over.
            let unit = bound.period.div_ceil(columns).max(SHARE.div_ceil(columns));
            let ran = self.split(rows, unit, threads, &|i, share| {
                let mut parts = drive::start(bound);
                let mut cells = Cells::new(bound, columns);
                // SAFETY: shares do not overlap.
                unsafe { drive::narrow(bound, share, &mut parts, &mut cells) };
                keep(i, parts);
                known.lock().unwrap_or_else(|e| e.into_inner()).push((i, cells));
            });
            let mut known = known.into_inner().unwrap_or_else(|e| e.into_inner());
            known.sort_by_key(|(i, _)| *i);
            let mut known = known.into_iter().map(|(_, cells)| cells);
            if let Some(mut cells) = known.next() {
                known.for_each(|mut other| cells.join(bound, &mut other));
                // SAFETY: passed on.
                unsafe { cells.finish(bound, 0, columns) };
            }
            ran
        };
        let parts = joined(bound, all);
        // SAFETY: passed on.
        unsafe { drive::finish(bound, &parts) };
        ran
    }
}
