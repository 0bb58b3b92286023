//! Convolution by rows: each tap of a filter adds a multiple of a shifted image row to a row of the result.

use super::shape::{Shape, plain};
use crate::context::Context;
use crate::isa::{Body, Isa, Level};
use crate::threads::Team;
use std::marker::PhantomData;
use steersman_core::cost::{Machine, Terms};
use steersman_core::{
    DType, DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran, Refusal, Workload,
};

/// Filters that share a reading of the image.
const TOGETHER: usize = 4;

/// Convolution by rows, compiled for one instruction set.
pub(super) struct ByRows {
    ctx: Context,
    level: Level,
    name: String,
}

impl ByRows {
    pub fn new(ctx: &Context, level: Level) -> ByRows {
        ByRows { ctx: ctx.clone(), level, name: format!("cpu/conv-rows-{}", level.name()) }
    }
}

/// The convolution on so many threads.
///
/// # Safety
/// The CPU has `level`; `io` is valid for the shape, whose result is contiguous and whose image has contiguous
/// rows.
pub(super) unsafe fn convolve<T: Real>(
    level: Level,
    team: &Team,
    s: &Shape,
    threads: usize,
    io: Io<'_>,
) -> Ran {
    let groups = s.filters.div_ceil(TOGETHER);
    let at = Operands {
        x: io.inputs[0].as_ptr::<T>(),
        f: io.inputs[1].as_ptr::<T>(),
        y: io.output.as_mut_ptr::<T>(),
    };
    let job = |j: usize| {
        let (image, group) = (j / groups, j % groups * TOGETHER);
        let a = &at;
        // SAFETY: groups write planes of their own; the level is one the CPU has.
        unsafe {
            match s.filters - group {
                1 => level.dispatch_unchecked(Planes::<T, 1>::new(s, a, image, group)),
                2 => level.dispatch_unchecked(Planes::<T, 2>::new(s, a, image, group)),
                3 => level.dispatch_unchecked(Planes::<T, 3>::new(s, a, image, group)),
                _ => level.dispatch_unchecked(Planes::<T, TOGETHER>::new(s, a, image, group)),
            }
        }
    };
    over(team, threads, s.images * groups, &job)
}

/// Runs `job` for each number below `jobs`, on so many threads.
pub(super) fn over(team: &Team, threads: usize, jobs: usize, job: &(dyn Fn(usize) + Sync)) -> Ran {
    let threads = threads.min(jobs).max(1);
    if threads == 1 {
        (0..jobs).for_each(job);
        return Ran::Clean;
    }
    let outcome = team.run(threads, &|t| (t..jobs).step_by(threads).for_each(job));
    if outcome.is_parallel() { Ran::Clean } else { Ran::Disturbed }
}

/// Why the image cannot be read by rows.
pub(super) fn rows_refused(s: &Shape) -> Result<(), Refusal> {
    if s.width > 1 && s.x[3] != 1 {
        return Err(Refusal::new("the image's rows must be contiguous"));
    }
    Ok(())
}

struct Operands<T> {
    x: *const T,
    f: *const T,
    y: *mut T,
}

// SAFETY: read only, but for planes of the result that one job writes.
unsafe impl<T> Sync for Operands<T> {}

/// `f32` or `f64`.
pub(super) trait Real: Copy + 'static {
    const ZERO: Self;
    fn is_finite(self) -> bool;
    fn add<I: Isa>(self, x: Self, f: Self) -> Self;
}

macro_rules! real {
    ($($t:ty)+) => {$(
        impl Real for $t {
            const ZERO: $t = 0.0;
            fn is_finite(self) -> bool {
                <$t>::is_finite(self)
            }
            #[inline(always)]
            fn add<I: Isa>(self, x: $t, f: $t) -> $t {
                if I::FMA { x.mul_add(f, self) } else { self + x * f }
            }
        }
    )+};
}
real!(f32 f64);

/// `F` planes of the result for one image.
struct Planes<'a, T, const F: usize> {
    s: &'a Shape,
    image: *const T,
    filter: *const T,
    out: *mut T,
    kind: PhantomData<T>,
}

impl<'a, T: Real, const F: usize> Planes<'a, T, F> {
    fn new(s: &'a Shape, at: &Operands<T>, image: usize, filter: usize) -> Planes<'a, T, F> {
        let plane = s.out_height * s.out_width;
        Planes {
            s,
            image: at.x.wrapping_offset(image as isize * s.x[0]),
            filter: at.f.wrapping_offset(filter as isize * s.f[0]),
            out: at.y.wrapping_add((image * s.filters + filter) * plane),
            kind: PhantomData,
        }
    }
}

impl<T: Real, const F: usize> Body for Planes<'_, T, F> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let s = self.s;
        let plane = s.out_height * s.out_width;
        for row in 0..s.out_height {
            let mut out = [std::ptr::null_mut::<T>(); F];
            for (k, out) in out.iter_mut().enumerate() {
                *out = self.out.wrapping_add(k * plane + row * s.out_width);
                for i in 0..s.out_width {
                    // SAFETY: a row of the result.
                    unsafe { *out.add(i) = T::ZERO };
                }
            }
            for channel in 0..s.channels as isize {
                for ty in 0..s.taps.0 {
                    let Some(r) = s.row(row, ty) else { continue };
                    let line = self.image.wrapping_offset(channel * s.x[1] + r as isize * s.x[2]);
                    for tx in 0..s.taps.1 {
                        let columns = s.columns(tx);
                        let tap = channel * s.f[1] + ty as isize * s.f[2] + tx as isize * s.f[3];
                        let mut f = [T::ZERO; F];
                        for (k, f) in f.iter_mut().enumerate() {
                            // SAFETY: a tap of one of the filters.
                            *f = unsafe { *self.filter.offset(k as isize * s.f[0] + tap) };
                        }
                        let from =
                            line.wrapping_offset((columns.start * s.stride + tx) as isize - s.pad as isize);
                        let to: [*mut T; F] = std::array::from_fn(|k| out[k].wrapping_add(columns.start));
                        // SAFETY: `columns` lies inside the row of the result, and what it reads inside the image.
                        unsafe {
                            if s.stride == 1 {
                                line_up::<I, T, F>(from, 1, &to, f, columns.len());
                            } else {
                                line_up::<I, T, F>(from, s.stride, &to, f, columns.len());
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Adds multiples of one line to several, a few elements at a time: loads before stores, so that the compiler
/// need not ask whether they overlap.
#[inline(always)]
unsafe fn line_up<I: Isa, T: Real, const F: usize>(
    from: *const T,
    step: usize,
    to: &[*mut T; F],
    f: [T; F],
    n: usize,
) {
    const BLOCK: usize = 16;
    let whole = n - n % BLOCK;
    for i in (0..whole).step_by(BLOCK) {
        let mut x = [T::ZERO; BLOCK];
        for (j, x) in x.iter_mut().enumerate() {
            // SAFETY: below `n`, by the caller.
            *x = unsafe { *from.add((i + j) * step) };
        }
        for k in 0..F {
            // SAFETY: below `n`, by the caller; blocks are whole.
            unsafe {
                let at = to[k].add(i).cast::<[T; BLOCK]>();
                let mut y = at.read_unaligned();
                for j in 0..BLOCK {
                    y[j] = y[j].add::<I>(x[j], f[k]);
                }
                at.write_unaligned(y);
            }
        }
    }
    for i in whole..n {
        // SAFETY: below `n`, by the caller.
        unsafe {
            let x = *from.add(i * step);
            for k in 0..F {
                let at = to[k].add(i);
                *at = (*at).add::<I>(x, f[k]);
            }
        }
    }
}

impl Kernel for ByRows {
    fn name(&self) -> &str {
        &self.name
    }

    fn device(&self) -> DeviceId {
        self.ctx.device
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Conv2d { .. })
    }

    fn numerics(&self, _w: &Workload) -> NumericClass {
        NumericClass::Reassociated
    }

    fn legality_is_fixed(&self) -> bool {
        true
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        rows_refused(&plain(w)?)
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
        let share = 1.0 / p.threads as f64;
        let element = w.dtype().size();
        let lines = Shape::of(w)
            .map_or(0.0, |s| (s.images * s.filters.div_ceil(TOGETHER) * s.out_height * s.depth()) as f64);
        // Each product is a load, an addition and a store in the nearest cache: a third of the peak at best.
        let peak = machine.peak(self.level.name(), element, self.level.assumed_peak()) / 3.0;
        Terms::launch(20e-9 + machine.handoff(p.threads as usize))
            .and(w.flops() * share / peak)
            .and(lines * (4e-9 * share))
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let s = plain(w).map_err(|why| KernelError::Failed(why.to_string()))?;
        // SAFETY: the caller vouches for the operands; the element type is the workload's.
        Ok(unsafe {
            match w.dtype() {
                DType::F32 => convolve::<f32>(self.level, &self.ctx.team, &s, p.threads.into(), io),
                _ => convolve::<f64>(self.level, &self.ctx.team, &s, p.threads.into(), io),
            }
        })
    }
}
