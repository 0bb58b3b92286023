//! Plain loops over any strides: the reference the other kernels are compared with.
//!
//! Sums, norms and variances add up in twice f64's precision whatever the element type, and results are
//! rounded once. An extreme that is a zero is +0, one that is NaN the usual NaN.

use super::element::{Brain, Float, Half};
use super::fold::Twofold;
use super::shape::{Inner, Shape};
use super::walk::Walk;
use crate::context::Context;
use steersman_core::cost::{Machine, Terms, Traffic};
use steersman_core::{
    DType, DeviceId, Io, Kernel, KernelError, Op, Params, Ran, ReduceOp, Refusal, Workload,
};

/// Reduces one element at a time.
pub(crate) struct ScalarKernel {
    device: DeviceId,
}

impl ScalarKernel {
    pub fn new(ctx: &Context) -> ScalarKernel {
        ScalarKernel { device: ctx.device }
    }
}

impl Kernel for ScalarKernel {
    fn name(&self) -> &str {
        "cpu/reduce-scalar"
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Reduce { .. })
    }

    fn legality_is_fixed(&self) -> bool {
        true
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        match w.op() {
            Op::Reduce { .. } => Ok(()),
            _ => Err(Refusal::new("not a reduction")),
        }
    }

    fn outdone(&self, w: &Workload) -> Option<&'static str> {
        let taken = Shape::of(w).is_some_and(|s| s.inner != Inner::Scattered);
        taken.then_some("kernels with vectors do the same and more at once")
    }

    fn terms(&self, w: &Workload, _p: Params, machine: &Machine) -> Terms {
        let input = &w.inputs()[0];
        let n = input.elements() as f64;
        let per = machine.rate(self.name(), w.op(), input.dtype).unwrap_or(2e-9);
        let mut terms = Terms::launch(20e-9);
        for (share, bandwidth) in machine.streams(input.distinct_bytes() as f64, Traffic::Read, 1) {
            let read = input.dtype.size() as f64 / bandwidth;
            terms = terms.and(n * share * per.max(read));
        }
        terms.and(w.output().elements() as f64 * 5e-9)
    }

    unsafe fn run(&self, w: &Workload, _p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let Op::Reduce { kind, .. } = w.op() else {
            return Err(KernelError::Failed("not a reduction".into()));
        };
        // SAFETY: the caller's promise, passed on; each type is the workload's.
        unsafe {
            match w.dtype() {
                DType::F32 => float::<f32>(w, kind, io),
                DType::F64 => float::<f64>(w, kind, io),
                DType::F16 => float::<Half>(w, kind, io),
                DType::BF16 => float::<Brain>(w, kind, io),
                DType::I32 => integer::<i32>(w, kind, io),
                DType::U32 => integer::<u32>(w, kind, io),
                DType::I64 => integer::<i64>(w, kind, io),
                DType::U8 | DType::Bool => integer::<u8>(w, kind, io),
            }
        }
        Ok(Ran::Clean)
    }
}

/// Writes to each output what `one` makes of its elements.
unsafe fn each<T: Copy, O>(w: &Workload, io: Io<'_>, one: impl Fn(&mut dyn Iterator<Item = T>) -> O) {
    let (kept, reduced) = Walk::of(w);
    let x = io.inputs[0].as_ptr::<T>();
    let out = io.output.as_mut_ptr::<O>();
    for (from, to) in kept {
        // SAFETY: walks stay within the strides of their operands, for which the caller vouches.
        unsafe {
            let mut elements = reduced.clone().map(|(at, _)| *x.offset(from + at));
            *out.offset(to) = one(&mut elements);
        }
    }
}

unsafe fn float<T: Float>(w: &Workload, kind: ReduceOp, io: Io<'_>) {
    let sum = |xs: &mut dyn Iterator<Item = f64>| {
        let mut n = 0u64;
        let total = xs.inspect(|_| n += 1).fold(Twofold::default(), |t, x| t.plus(x));
        (total.value(), n as f64)
    };
    let spread = |xs: &mut dyn Iterator<Item = T>| {
        let all: Vec<f64> = xs.map(T::wide).collect();
        let (total, n) = sum(&mut all.iter().copied());
        let mean = total / n;
        sum(&mut all.iter().map(|x| (x - mean) * (x - mean))).0 / n
    };
    // SAFETY: the caller's promise, passed on.
    unsafe {
        match kind {
            ReduceOp::Sum => {
                each(w, io, |xs: &mut dyn Iterator<Item = T>| T::from_wide(sum(&mut xs.map(T::wide)).0))
            }
            ReduceOp::Mean => each(w, io, |xs: &mut dyn Iterator<Item = T>| {
                let (total, n) = sum(&mut xs.map(T::wide));
                T::from_wide(total / n)
            }),
            ReduceOp::Prod => each(w, io, |xs: &mut dyn Iterator<Item = T>| {
                T::from_wide(xs.map(T::wide).fold(1.0, |a, x| a * x))
            }),
            ReduceOp::Norm => each(w, io, |xs: &mut dyn Iterator<Item = T>| {
                T::from_wide(sum(&mut xs.map(|x| x.wide() * x.wide())).0.sqrt())
            }),
            ReduceOp::Var => each(w, io, |xs: &mut dyn Iterator<Item = T>| T::from_wide(spread(xs))),
            ReduceOp::Std => each(w, io, |xs: &mut dyn Iterator<Item = T>| T::from_wide(spread(xs).sqrt())),
            ReduceOp::Min => {
                each(w, io, |xs: &mut dyn Iterator<Item = T>| T::from_wide(extreme(xs, |x, best| x < best)))
            }
            ReduceOp::Max => {
                each(w, io, |xs: &mut dyn Iterator<Item = T>| T::from_wide(extreme(xs, |x, best| x > best)))
            }
            ReduceOp::ArgMin => each(w, io, |xs: &mut dyn Iterator<Item = T>| {
                position(&mut xs.map(T::wide), |x, best| x < best)
            }),
            ReduceOp::ArgMax => each(w, io, |xs: &mut dyn Iterator<Item = T>| {
                position(&mut xs.map(T::wide), |x, best| x > best)
            }),
            ReduceOp::Any => {
                each(w, io, |mut xs: &mut dyn Iterator<Item = T>| Iterator::any(&mut xs, |x| x.wide() != 0.0))
            }
            ReduceOp::All => {
                each(w, io, |mut xs: &mut dyn Iterator<Item = T>| Iterator::all(&mut xs, |x| x.wide() != 0.0))
            }
        }
    }
}

fn extreme<T: Float>(xs: &mut dyn Iterator<Item = T>, better: impl Fn(f64, f64) -> bool) -> f64 {
    let mut best = None;
    for x in xs.map(T::wide) {
        if x.is_nan() {
            return f64::NAN;
        }
        if best.is_none_or(|b| better(x, b)) {
            best = Some(x);
        }
    }
    // Adding +0 turns -0 into +0 and leaves the rest alone.
    best.unwrap_or(f64::NAN) + 0.0
}

/// The index of the first element no other is better than; a NaN is better than anything.
fn position<K: PartialOrd + Copy>(xs: &mut dyn Iterator<Item = K>, better: impl Fn(K, K) -> bool) -> i64 {
    let mut found: Option<(usize, K)> = None;
    for (at, x) in xs.enumerate() {
        if x.partial_cmp(&x).is_none() {
            return at as i64;
        }
        if found.is_none_or(|(_, best)| better(x, best)) {
            found = Some((at, x));
        }
    }
    found.map_or(0, |(at, _)| at as i64)
}

unsafe fn integer<T: Copy + Ord + Into<i64>>(w: &Workload, kind: ReduceOp, io: Io<'_>) {
    // SAFETY: the caller's promise, passed on.
    unsafe {
        match kind {
            ReduceOp::Sum => {
                each(w, io, |xs: &mut dyn Iterator<Item = T>| xs.fold(0i64, |a, x| a.wrapping_add(x.into())))
            }
            ReduceOp::Prod => {
                each(w, io, |xs: &mut dyn Iterator<Item = T>| xs.fold(1i64, |a, x| a.wrapping_mul(x.into())))
            }
            ReduceOp::ArgMin => each(w, io, |xs: &mut dyn Iterator<Item = T>| position(xs, |x, b| x < b)),
            ReduceOp::ArgMax => each(w, io, |xs: &mut dyn Iterator<Item = T>| position(xs, |x, b| x > b)),
            ReduceOp::Any => {
                each(w, io, |mut xs: &mut dyn Iterator<Item = T>| Iterator::any(&mut xs, |x| x.into() != 0))
            }
            ReduceOp::All => {
                each(w, io, |mut xs: &mut dyn Iterator<Item = T>| Iterator::all(&mut xs, |x| x.into() != 0))
            }
            // A workload refuses these over no elements, and the rest of this list over integers.
            _ => each(w, io, |xs: &mut dyn Iterator<Item = T>| {
                let first = if kind == ReduceOp::Min { xs.min() } else { xs.max() };
                first.expect("min and max have at least one element: workloads see to it")
            }),
        }
    }
}
