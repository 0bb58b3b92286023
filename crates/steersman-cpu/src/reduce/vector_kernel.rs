//! What the vectorised kernels for rows and for columns have in common: all but the way they go through
//! memory, which is a [`Way`].

use super::shape::{Inner, Shape};
use super::{numerics, prior};
use crate::context::Context;
use crate::isa::Level;
use crate::threads::Team;
use std::marker::PhantomData;
use std::ops::Range;
use steersman_core::cost::{Machine, Terms};
use steersman_core::{
    Address, DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran, Refusal, Workload,
};

/// A way through memory.
pub(super) trait Way: Send + Sync + 'static {
    /// What it is called in the kernel's name.
    const NAME: &'static str;
    /// The innermost loop it is for.
    const INNER: Inner;
    /// Why it does not take elements that lie side by side the other way.
    const OTHERWISE: &'static str;

    /// `prior` and what this way takes beyond it.
    fn terms(prior: Terms, w: &Workload, cost: &Cost<'_>, threads: f64) -> Terms;

    /// Reduces; answers whether as many threads took part as were asked.
    ///
    /// # Safety
    /// As for [`Kernel::run`]; and the call's level must be present.
    unsafe fn run(w: &Workload, call: Call<'_>) -> Result<bool, KernelError>;
}

/// Where a kernel's costs are known from.
pub(super) struct Cost<'a> {
    pub machine: &'a Machine,
    pub kernel: &'a str,
    pub level: Level,
}

/// One run of a kernel.
pub(super) struct Call<'a> {
    pub input: Address,
    pub output: Address,
    pub level: Level,
    pub team: &'a Team,
    pub threads: usize,
}

/// Reduces in one way, vectorised for one instruction set.
pub(super) struct VectorKernel<W> {
    name: String,
    level: Level,
    ctx: Context,
    way: PhantomData<W>,
}

impl<W: Way> VectorKernel<W> {
    pub fn new(ctx: &Context, level: Level) -> VectorKernel<W> {
        let name = format!("cpu/reduce-{}-{}", W::NAME, level.name());
        VectorKernel { name, level, ctx: ctx.clone(), way: PhantomData }
    }
}

impl<W: Way> Kernel for VectorKernel<W> {
    fn name(&self) -> &str {
        &self.name
    }

    fn revision(&self) -> u32 {
        11
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

    fn legality_is_fixed(&self) -> bool {
        true
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        match Shape::of(w).map(|s| s.inner) {
            Some(inner) if inner == W::INNER => Ok(()),
            Some(Inner::Scattered) => Err(Refusal::new("no axis has its elements side by side")),
            Some(_) => Err(Refusal::new(W::OTHERWISE)),
            None => Err(Refusal::new("not a reduction")),
        }
    }

    fn outdone(&self, _w: &Workload) -> Option<&'static str> {
        self.level.outdone()
    }

    fn narrower(&self) -> Option<String> {
        self.level.narrower(&self.name)
    }

    fn params(&self, w: &Workload) -> ParamList {
        self.ctx.thread_params(w)
    }

    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        let prior = prior(w, p, machine, &self.name, self.level);
        let cost = Cost { machine, kernel: &self.name, level: self.level };
        W::terms(prior, w, &cost, p.threads.max(1) as f64)
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let (level, team, threads) = (self.level, &*self.ctx.team, p.threads as usize);
        let call = Call { input: io.inputs[0], output: io.output, level, team, threads };
        // SAFETY: passed on from the caller; there are kernels only for levels that are present.
        let clean = unsafe { W::run(w, call) }?;
        Ok(if clean { Ran::Clean } else { Ran::Disturbed })
    }
}

/// As [`share`], with whole cache lines in all but the last where that leaves them nearly equal: vectors of a part that begins
/// within a line cross from line to line. (The sum of 468944 f32 took 13.1 µs on two threads of a Xeon with AVX-512, and 9.8
/// with AVX2, whose vectors are half as long; with whole lines 7.8.)
pub(super) fn share_lines(n: usize, parts: usize, part: usize) -> Range<usize> {
    // A whole number of lines of every element type.
    const LINES: usize = 64;
    let all = share(n, parts, part);
    if n < 8 * LINES * parts {
        return all;
    }
    let whole = |at: usize| if at == n { n } else { at / LINES * LINES };
    whole(all.start)..whole(all.end)
}

/// The part-th of `parts` nearly equal ranges of `0..n`.
pub(super) fn share(n: usize, parts: usize, part: usize) -> Range<usize> {
    let at = |k: usize| (n as u128 * k as u128 / parts as u128) as usize;
    at(part)..at(part + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_one_another_and_begin_with_a_line_where_they_are_long() {
        for (n, parts) in [(0, 2), (5, 3), (1000, 2), (1024, 2), (468_944, 2), (10_001, 7), (9, 16)] {
            let mut at = 0;
            for part in 0..parts {
                let range = share_lines(n, parts, part);
                assert_eq!(range.start, at);
                assert!(n < 512 * parts || at % 64 == 0, "{n} in {parts}: {at}");
                assert!(range.len() <= n.div_ceil(parts) + 64);
                at = range.end;
            }
            assert_eq!(at, n);
        }
    }
}
