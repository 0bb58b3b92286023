//! Convolution as a product of matrices: filters × depth times depth × positions, whose columns are patches
//! of the image written side by side, as many as stay in the second-level cache.

use super::rows::{Real, convolve, over, rows_refused};
use super::shape::{Shape, plain};
use crate::context::Context;
use crate::isa::Level;
use crate::matmul::{Float, Gemm, Scratch, small};
use steersman_core::cost::{Machine, Terms};
use steersman_core::{
    DType, DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran, Refusal, Workload,
};

/// Bytes of patches at a time.
const PATCHES: usize = 256 << 10;
/// Positions at a time at least, whatever the depth.
const LEAST: usize = 48;

/// Convolution by matrix products of one instruction set.
pub(super) struct AsProduct {
    ctx: Context,
    level: Level,
    name: String,
}

impl AsProduct {
    pub fn new(ctx: &Context, level: Level) -> AsProduct {
        AsProduct { ctx: ctx.clone(), level, name: format!("cpu/conv-product-{}", level.name()) }
    }

    unsafe fn all<T: Float + Real>(&self, s: &Shape, threads: usize, io: Io<'_>) -> Ran {
        let (x, f, y) = (io.inputs[0], io.inputs[1], io.output);
        // The border adds nothing, but as zeros in a patch it would make NaN of an infinite tap.
        let finite = |filter: usize| {
            let first = f.as_ptr::<T>().wrapping_offset(filter as isize * s.f[0]);
            // SAFETY: the taps of a filter lie one after another.
            (0..s.depth()).all(|i| unsafe { *first.add(i) }.is_finite())
        };
        if s.pad > 0 && !(0..s.filters).all(finite) {
            // SAFETY: passed on; `supports` asked for what it needs.
            return unsafe { convolve::<T>(self.level, &self.ctx.team, s, threads, io) };
        }
        let positions = s.out_height * s.out_width;
        let at_once = at_once(s, size_of::<T>(), threads);
        let blocks = positions.div_ceil(at_once);
        over(&self.ctx.team, threads, s.images * blocks, &|job| {
            let (image, from) = (job / blocks, job % blocks * at_once);
            let n = at_once.min(positions - from);
            Scratch::with_local(|scratch| {
                // SAFETY: the patches have room for `depth` rows of `n`; blocks of positions do not overlap.
                unsafe {
                    let (patches, _) = scratch.pair::<T>(s.depth() * n, 0);
                    gather(s, x.as_ptr::<T>().offset(image as isize * s.x[0]), from..from + n, patches);
                    let g = Gemm {
                        m: s.filters,
                        k: s.depth(),
                        n,
                        a: f.as_ptr::<T>(),
                        a_rs: s.f[0],
                        a_cs: 1,
                        b: patches,
                        b_rs: n as isize,
                        b_cs: 1,
                        c: y.as_mut_ptr::<T>().add(image * s.filters * positions + from),
                        c_rs: positions as isize,
                    };
                    small(self.level, &g);
                }
            });
        })
    }
}

/// Positions whose patches are made at a time: what the cache holds, and something for each thread.
fn at_once(s: &Shape, size: usize, threads: usize) -> usize {
    let positions = (s.out_height * s.out_width).max(1);
    let fit = (PATCHES / (s.depth() * size).max(1)).max(LEAST);
    let share = positions.div_ceil(threads.div_ceil(s.images.max(1))).next_multiple_of(16);
    fit.min(share).min(positions)
}

/// Writes the patches of some positions side by side: a row for each channel and tap.
unsafe fn gather<T: Float>(s: &Shape, image: *const T, at: std::ops::Range<usize>, to: *mut T) {
    let n = at.len();
    let mut line = to;
    for channel in 0..s.channels as isize {
        for ty in 0..s.taps.0 {
            for tx in 0..s.taps.1 {
                let columns = s.columns(tx);
                let mut position = at.start;
                while position < at.end {
                    let (row, first) = (position / s.out_width, position % s.out_width);
                    let end = s.out_width.min(first + at.end - position);
                    // SAFETY: `end - first` places of the line; what is read lies inside the image.
                    unsafe {
                        let to = line.add(position - at.start);
                        let inside = s.row(row, ty).map_or(first..first, |_| {
                            columns.start.clamp(first, end)..columns.end.clamp(first, end)
                        });
                        for c in (first..inside.start).chain(inside.end.max(first)..end) {
                            *to.add(c - first) = T::ZERO;
                        }
                        if !inside.is_empty() {
                            let r = row * s.stride + ty - s.pad;
                            let from = image.offset(channel * s.x[1] + r as isize * s.x[2]);
                            let place = |c: usize| c * s.stride + tx - s.pad;
                            let to = to.add(inside.start - first);
                            if s.stride == 1 {
                                to.copy_from_nonoverlapping(from.add(place(inside.start)), inside.len());
                            } else {
                                for (i, c) in inside.enumerate() {
                                    *to.add(i) = *from.add(place(c));
                                }
                            }
                        }
                    }
                    position += end - first;
                }
                line = line.wrapping_add(n);
            }
        }
    }
}

impl Kernel for AsProduct {
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
        let s = plain(w)?;
        rows_refused(&s)?;
        let filter = [s.depth() / s.channels.max(1), s.taps.1, 1].map(|n| n as isize);
        let together = (1..4).all(|i| w.inputs()[1].dims[i] <= 1 || s.f[i] == filter[i - 1]);
        if !together {
            return Err(Refusal::new("the elements of a filter must lie one after another"));
        }
        Ok(())
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

    fn scratch(&self, w: &Workload, p: Params) -> usize {
        let size = w.dtype().size();
        let threads = p.threads.into();
        Shape::of(w).map_or(0, |s| threads * s.depth() * at_once(&s, size, threads) * size)
    }

    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        let share = 1.0 / p.threads as f64;
        let element = w.dtype().size();
        let peak = machine.peak(self.level.name(), element, self.level.assumed_peak());
        let (patches, blocks) = Shape::of(w).map_or((0.0, 0.0), |s| {
            let positions = s.out_height * s.out_width;
            let blocks = s.images * positions.div_ceil(at_once(&s, element, p.threads.into()));
            ((s.images * positions * s.depth()) as f64, blocks as f64)
        });
        Terms::launch(50e-9 + machine.handoff(p.threads as usize))
            .and(w.flops() * share / peak)
            .and(patches * (0.3e-9 * share))
            .and(blocks * (200e-9 * share))
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let s = plain(w).map_err(|why| KernelError::Failed(why.to_string()))?;
        // SAFETY: the caller vouches for the operands; the element type is the workload's.
        Ok(unsafe {
            match w.dtype() {
                DType::F32 => self.all::<f32>(&s, p.threads.into(), io),
                _ => self.all::<f64>(&s, p.threads.into(), io),
            }
        })
    }
}
