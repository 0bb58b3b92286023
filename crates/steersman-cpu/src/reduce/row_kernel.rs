//! The kernel for outputs whose elements lie side by side.

use super::choose::{Visit, choose};
use super::rows::Rows;
use super::shape::{Inner, Shape};
use super::{SPLIT_FROM, numerics, prior};
use crate::context::Context;
use crate::isa::{Body, Isa, Level};
use crate::threads::Team;
use std::mem::MaybeUninit;
use std::ops::Range;
use steersman_core::Op;
use steersman_core::cost::{Machine, Terms};
use steersman_core::{
    Address, DeviceId, Io, Kernel, KernelError, NumericClass, ParamList, Params, Ran, Refusal, Workload,
};

/// Reduces rows, vectorised for one instruction set.
pub(super) struct RowKernel {
    name: String,
    level: Level,
    ctx: Context,
}

impl RowKernel {
    pub fn new(ctx: &Context, level: Level) -> RowKernel {
        RowKernel { name: format!("cpu/reduce-rows-{}", level.name()), level, ctx: ctx.clone() }
    }
}

impl Kernel for RowKernel {
    fn name(&self) -> &str {
        &self.name
    }

    fn device(&self) -> DeviceId {
        self.ctx.device
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Reduce { .. })
    }

    fn numerics(&self, w: &Workload) -> NumericClass {
        numerics(w)
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        match Shape::of(w).map(|s| s.inner) {
            Some(Inner::Row) => Ok(()),
            Some(Inner::Column) => Err(Refusal::new("the innermost axis is kept: a reduction of columns")),
            Some(Inner::Scattered) => Err(Refusal::new("no axis has its elements side by side")),
            None => Err(Refusal::new("not a reduction")),
        }
    }

    fn params(&self, w: &Workload) -> ParamList {
        if w.inputs()[0].elements() < SPLIT_FROM {
            return std::iter::once(Params::SERIAL).collect();
        }
        self.ctx.thread_params()
    }

    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        let rows = w.output().elements() as f64;
        prior(w, p, machine, &self.name, self.level).and(rows * 2e-9 / p.threads.max(1) as f64)
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let Some(shape) = Shape::of(w) else { return Err(KernelError::Failed("not a reduction".into())) };
        let team = &*self.ctx.team;
        let threads = p.threads as usize;
        let call =
            Call { shape: &shape, input: io.inputs[0], output: io.output, level: self.level, team, threads };
        let clean = choose(shape.kind, w.dtype(), call)?;
        Ok(if clean { Ran::Clean } else { Ran::Disturbed })
    }
}

struct Call<'a> {
    shape: &'a Shape,
    input: Address,
    output: Address,
    level: Level,
    team: &'a Team,
    threads: usize,
}

/// Partial results that fit the stack.
const PARTS: usize = 256;

impl Visit for Call<'_> {
    #[inline]
    fn visit<J: Rows>(self, job: J) -> bool {
        let Call { shape, input, output, level, team, threads } = self;
        let (rows, n) = (shape.kept.count(), shape.last.n);
        let some = Band { job, shape, input, output, rows: 0..rows, columns: 0..n, sink: Sink::Results };
        if threads <= 1 {
            level.dispatch(some);
            return true;
        }
        if rows >= 4 * threads || rows * threads > PARTS {
            let outcome = team.run(threads, &|part| {
                level.dispatch(Band { rows: share(rows, threads, part), ..some.clone() })
            });
            return outcome.is_parallel();
        }
        let mut parts = [const { MaybeUninit::<J::Part>::uninit() }; PARTS];
        let slots = Slots(parts.as_mut_ptr());
        let outcome = team.run(threads, &|part| {
            let sink = Sink::Parts { slots: slots.first(), part, parts: threads };
            level.dispatch(Band { columns: share(n, threads, part), sink, ..some.clone() });
        });
        for row in 0..rows {
            let mut all = job.start();
            for slot in &parts[row * threads..(row + 1) * threads] {
                // SAFETY: each part of the run, which has ended, filled its slots.
                all = job.join(all, unsafe { slot.assume_init() });
            }
            let (_, to) = shape.kept.offset(row);
            // SAFETY: the output is writable over its strides.
            unsafe { *output.as_mut_ptr::<J::Out>().offset(shape.to + to) = job.finish(all, shape.length) };
        }
        outcome.is_parallel()
    }
}

/// Slots of which each part writes its own.
struct Slots<P>(*mut MaybeUninit<P>);
// SAFETY: no slot is written by two parts, nor read before all have ended.
unsafe impl<P: Send> Sync for Slots<P> {}

impl<P> Slots<P> {
    fn first(&self) -> *mut MaybeUninit<P> {
        self.0
    }
}

/// The part-th of `parts` nearly equal ranges of `0..n`.
pub(super) fn share(n: usize, parts: usize, part: usize) -> Range<usize> {
    let at = |k: usize| (n as u128 * k as u128 / parts as u128) as usize;
    at(part)..at(part + 1)
}

/// Where what is known of a row goes.
#[derive(Clone)]
enum Sink<P> {
    /// Finished, to the output.
    Results,
    /// To one of `parts` slots of that row.
    Parts { slots: *mut MaybeUninit<P>, part: usize, parts: usize },
}

// SAFETY: see `Slots`.
unsafe impl<P: Send> Sync for Sink<P> {}

/// Some rows, and of each run of their elements those in `columns`. One body for whole rows and pieces:
/// each body is compiled for every reduction, type and instruction set.
#[derive(Clone)]
struct Band<'a, J: Rows> {
    job: J,
    shape: &'a Shape,
    input: Address,
    output: Address,
    rows: Range<usize>,
    columns: Range<usize>,
    sink: Sink<J::Part>,
}

impl<J: Rows> Body for Band<'_, J> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Band { job, shape, input, output, rows, columns, sink } = self;
        let n = shape.last.n;
        // SAFETY: the shape's loops stay within the operands, whose addresses the kernel's caller vouches
        // for; there is a slot for each row and part.
        unsafe {
            let x = input.as_ptr::<J::In>().offset(shape.from);
            let out = output.as_mut_ptr::<J::Out>().offset(shape.to);
            let dense = match shape.kept.as_slice() {
                [l] => {
                    l.from == n as isize && l.to == 1 && shape.length == n && matches!(sink, Sink::Results)
                }
                _ => false,
            };
            if dense && job.short::<I>(x.add(rows.start * n), n, rows.len(), out.add(rows.start)) {
                return;
            }
            let runs = shape.reduced.count();
            for row in rows {
                let (from, to) = shape.kept.offset(row);
                let mut found = job.start();
                for run in 0..runs {
                    let (step, _) = shape.reduced.offset(run);
                    let x = x.offset(from + step).add(columns.start);
                    found = job.more::<I>(found, x, columns.len(), run * n + columns.start);
                }
                match sink {
                    Sink::Results => *out.offset(to) = job.finish(found, shape.length),
                    Sink::Parts { slots, part, parts } => {
                        (*slots.add(row * parts + part)).write(found);
                    }
                }
            }
        }
    }
}
