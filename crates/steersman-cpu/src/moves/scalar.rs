//! Plain loops over any strides: the reference the other kernels are compared with.

use super::plan::{Loop, loops};
use super::tile;
use super::tiled::{self, is_slim};
use crate::context::Context;
use crate::isa::Level;
use steersman_core::Op;
use steersman_core::cost::{Machine, Terms, Traffic};
use steersman_core::{DeviceId, Io, Kernel, KernelError, Params, Ran, Refusal, Workload};

/// Moves one element at a time.
pub(super) struct ScalarKernel {
    device: DeviceId,
    level: Level,
}

impl ScalarKernel {
    pub fn new(ctx: &Context) -> ScalarKernel {
        ScalarKernel { device: ctx.device, level: Level::best() }
    }
}

/// Seconds an element where rows of results are read a few bytes apart: one line serves many, and the compiler has vectors for
/// it. (1000 to 6000 rows of 2 to 7 of one to eight bytes on a Zen 5: 0.12 to 0.16 ns; rows further apart 0.4 to 1.3.)
const SLIM: f64 = 0.15e-9;

/// Seconds to read an element from the next cache.
const MISSED: f64 = 1.5e-9;
/// Bytes of a cache line, and how many lie in each way of the nearest cache.
const LINE: usize = 64;
const SETS: usize = 64;

/// Share of elements whose lines the nearest cache does not hold until their neighbours are read: it holds fewer of those
/// that lie a power of two apart. (75×128 f64 takes 8 to 13 µs, 75×127 3.5.)
fn missed(inner: &Loop, w: &Workload, machine: &Machine) -> f64 {
    let step = inner.from.unsigned_abs() * w.dtype().size();
    if step < LINE {
        return 0.0;
    }
    let sets = if step.is_multiple_of(LINE) { SETS >> (step / LINE).trailing_zeros().min(6) } else { SETS };
    let holds = machine.capacity(0) / LINE as f64 * sets as f64 / SETS as f64;
    (1.0 - holds / inner.n as f64).max(0.0)
}

/// Rows of a transposed matrix, and elements, from beyond which moving squares is always ahead. (On a Zen 5 of 115 matrices those
/// with more were ahead by 1.03 to 7 times, the others were behind by up to 1.4. Of 640×75 f64, where nothing near had been timed, one
/// at a time was thought to take as long as squares on two threads, and takes 2.7 times as long.)
const FEW_ROWS: usize = 7;
const FEW: usize = 64;
/// The same of fewer rows, if squares reach into those behind: elements where eight make a side, bytes where it is four. (On a
/// Zen 5 1738×5 f32 take 1.3 µs one by one and 0.95 in squares, 1000×5 f64 0.86 and 1.06, 3000×5 3.9 and 3.2.)
const REACHED: usize = 512;
const FAR: usize = 45_000;

impl Kernel for ScalarKernel {
    fn name(&self) -> &str {
        "cpu/move-scalar"
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn revision(&self) -> u32 {
        3
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Transpose { .. } | Op::Copy)
    }

    fn legality_is_fixed(&self) -> bool {
        true
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        loops(w).map(|_| ()).ok_or(Refusal::new("neither a transpose nor a copy"))
    }

    fn outdone(&self, w: &Workload) -> Option<&'static str> {
        let (Op::Transpose { .. }, &[rows, cols]) = (w.op(), &w.output().dims[..]) else { return None };
        let (n, size) = (rows * cols, w.dtype().size());
        let lanes = tile::lanes(self.level, size);
        if !w.inputs().iter().chain(w.outputs()).all(|o| o.is_contiguous()) {
            return None;
        }
        if is_slim(w, self.level) {
            return (n > tiled::FEW).then_some("the same loops run there on several threads");
        }
        let squares = match rows > FEW_ROWS {
            true => n > FEW,
            false => lanes >= 8 && n > REACHED || n * size > FAR,
        };
        squares.then_some("whole squares of a matrix are moved more quickly")
    }

    fn terms(&self, w: &Workload, _p: Params, machine: &Machine) -> Terms {
        let n = w.output().elements() as f64;
        let all = loops(w);
        let last = all.as_ref().and_then(|all| all.as_slice().last());
        let apart = last.map_or(0, |l| l.from.unsigned_abs() * w.dtype().size());
        let slim = matches!(w.op(), Op::Transpose { .. }) && apart > w.dtype().size() && apart < LINE;
        let measured = || machine.rate(self.name(), w.op(), w.dtype()).unwrap_or(1e-9);
        let per = if slim { SLIM } else { measured() };
        let mut terms = Terms::launch(15e-9);
        for (share, bandwidth) in machine.streams(w.bytes(), Traffic::Copy, 1) {
            let moved = 2.0 * w.dtype().size() as f64 / bandwidth;
            terms = terms.and(n * share * per.max(moved));
        }
        let inner = w.output().dims.last().map_or(1, |n| *n).max(1) as f64;
        let missed = last.map_or(0.0, |l| missed(l, w, machine));
        terms.and(n / inner * 3e-9).and(n * missed * MISSED).by(slim.into())
    }

    unsafe fn run(&self, w: &Workload, _p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let Some(all) = loops(w) else {
            return Err(KernelError::Failed("neither a transpose nor a copy".into()));
        };
        let (x, y) = (io.inputs[0], io.output);
        // SAFETY: the loops are the operands' own, for which the caller vouches.
        unsafe {
            match w.dtype().size() {
                1 => walk(all.as_slice(), x.as_ptr::<u8>(), y.as_mut_ptr()),
                2 => walk(all.as_slice(), x.as_ptr::<u16>(), y.as_mut_ptr()),
                4 => walk(all.as_slice(), x.as_ptr::<u32>(), y.as_mut_ptr()),
                _ => walk(all.as_slice(), x.as_ptr::<u64>(), y.as_mut_ptr()),
            }
        }
        Ok(Ran::Clean)
    }
}

/// Goes through loops, outermost first, one element at a time.
///
/// # Safety
/// Both must be valid for every place that the loops reach.
#[inline(never)]
pub(super) unsafe fn walk<E: Copy>(loops: &[Loop], x: *const E, y: *mut E) {
    // SAFETY: the caller vouches for every place the loops reach.
    unsafe {
        match loops {
            [] => *y = *x,
            [l] => {
                for i in 0..l.n as isize {
                    *y.offset(i * l.to) = *x.offset(i * l.from);
                }
            }
            [l, inner @ ..] => {
                for i in 0..l.n as isize {
                    walk(inner, x.offset(i * l.from), y.offset(i * l.to));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_a_power_of_two_apart_are_missed_sooner() {
        let machine = Machine::default();
        let share = |text: &str| {
            let w: Workload = text.parse().unwrap();
            let all = loops(&w).unwrap();
            missed(all.as_slice().last().unwrap(), &w, &machine)
        };
        assert_eq!(share("transpose f64 75x127"), 0.0);
        assert!(
            share("transpose f64 75x128") > 0.3,
            "32 KiB have 8 of them in each set, and 4 sets are theirs"
        );
        assert_eq!(share("transpose f64 20x128"), 0.0);
        assert!(share("transpose f64 4000x127") > 0.8);
        assert_eq!(share("transpose f32 4000x2"), 0.0, "neighbours share lines");
    }

    #[test]
    fn one_element_at_a_time_is_weighed_where_squares_may_be_behind() {
        let kernel = ScalarKernel { device: DeviceId(0), level: Level::Avx2 };
        let weighed = |text: &str| kernel.outdone(&text.parse().unwrap()).is_none();
        let all = [
            "transpose f32 60x7",
            "transpose f32 1000x2",
            "transpose u8 500x7",
            "transpose f64 1000x5",
            "transpose f64 8x8",
            "transpose f32 2x3x50",
            "copy f32 100x100:1,100",
        ];
        for text in all {
            assert!(weighed(text), "{text}");
        }
        assert!(weighed("transpose f32 100x100:200,1"), "gaps between its rows");
        for text in
            ["transpose f64 640x75", "transpose f32 2x40", "transpose f32 300x5", "transpose f32 6000x2"]
        {
            assert!(!weighed(text), "{text}");
        }
        assert!(!weighed("transpose f64 3000x5"), "beyond the nearest cache");
    }
}
