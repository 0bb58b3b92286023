//! One element at a time, any layout, by the standard library's functions: what the others are held to.

use super::cost::{self, Rate};
use super::narrow::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::operations;
use super::simd::is_single;
use super::{supported, table};
use crate::context::Context;
use crate::isa::Level;
use steersman_core::cost::{Machine, Terms, Traffic};
use steersman_core::{
    Address, DType, DeviceId, Io, Kernel, KernelError, MAX_RANK, Op, Operand, Params, Ran, Refusal,
    TernaryOp, Workload,
};

mod functions;
use functions::{Integer, Real};

/// The reference.
pub struct Scalar {
    device: DeviceId,
}

impl Scalar {
    /// For this device.
    pub fn new(ctx: &Context) -> Scalar {
        Scalar { device: ctx.device }
    }
}

impl Kernel for Scalar {
    fn name(&self) -> &str {
        "cpu/map-scalar"
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn handles(&self, op: Op) -> bool {
        op.is_elementwise()
    }

    fn legality_is_fixed(&self) -> bool {
        true
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        supported(w)
    }

    /// The others hand it what is quicker one by one, which takes them 4 ns; but for [so few](is_single) that they are not weighed.
    /// (It was ahead of them all in 52 of 1,700 shapes, none of more than 12 elements but for remainders, and by 18% at most.)
    fn outdone(&self, w: &Workload) -> Option<&'static str> {
        if is_single(w) {
            return None;
        }
        table::of(Level::best())(w.op(), w.dtype())
            .map(|_| "kernels with vectors do the same and more at once")
    }

    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        // One lane of four, and a call per element that no other work hides.
        // Scalar functions are the system's, and go by their formulas.
        let formula = operations::nominal(w.op());
        let share = cost::flops(w.op()) / formula / (4.0 + 40.0 / formula);
        let rate = Rate { kernel: self.name(), level: Level::Baseline, share, traffic: Traffic::Copy };
        cost::terms(w, p.threads.into(), machine, rate)
    }

    unsafe fn run(&self, w: &Workload, _: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        // SAFETY: passed on.
        let known = unsafe {
            match (w.op(), w.dtype()) {
                (Op::Ternary(TernaryOp::Where), d) => {
                    match d.size() {
                        1 => choose::<u8>(w, io),
                        2 => choose::<u16>(w, io),
                        4 => choose::<u32>(w, io),
                        _ => choose::<u64>(w, io),
                    }
                    Some(())
                }
                (_, DType::F32) => real::<f32, f32>(w, io, |x| x, |x| x),
                (_, DType::F64) => real::<f64, f64>(w, io, |x| x, |x| x),
                (_, DType::F16) => real::<u16, f32>(w, io, f16_to_f32, f32_to_f16),
                (_, DType::BF16) => real::<u16, f32>(w, io, bf16_to_f32, f32_to_bf16),
                (_, DType::I32) => integer::<i32>(w, io),
                (_, DType::U32) => integer::<u32>(w, io),
                (_, DType::I64) => integer::<i64>(w, io),
                (_, DType::U8 | DType::Bool) => integer::<u8>(w, io),
            }
        };
        match known {
            Some(()) => Ok(Ran::Clean),
            None => Err(KernelError::Failed(format!("there is no scalar function for {w}"))),
        }
    }
}

/// Floats stored as `S` and computed as `R`.
unsafe fn real<S: Copy, R: Real>(
    w: &Workload,
    io: Io<'_>,
    load: fn(S) -> R,
    store: fn(R) -> S,
) -> Option<()> {
    // SAFETY: `S` is the workload's element type, `u8` that of comparisons.
    unsafe {
        match w.op() {
            Op::Unary(u) => {
                let f = R::unary(u)?;
                each::<S, S, S>(w, io, |a, _, _| store(f(load(a))));
            }
            Op::Binary(b) if b.compares() => {
                let f = functions::compare::<R>(b)?;
                each::<S, S, u8>(w, io, |a, b, _| f(&load(a), &load(b)) as u8);
            }
            Op::Binary(b) => {
                let f = R::binary(b)?;
                each::<S, S, S>(w, io, |a, b, _| store(f(load(a), load(b))));
            }
            Op::Ternary(t) => {
                let f = R::ternary(t)?;
                each::<S, S, S>(w, io, |a, b, c| store(f(load(a), load(b), load(c))));
            }
            _ => return None,
        }
    }
    Some(())
}

unsafe fn integer<T: Integer>(w: &Workload, io: Io<'_>) -> Option<()> {
    // SAFETY: `T` is the workload's element type, `u8` that of comparisons.
    unsafe {
        match w.op() {
            Op::Unary(u) => {
                let f = T::unary(u)?;
                each::<T, T, T>(w, io, |a, _, _| f(a));
            }
            Op::Binary(b) if b.compares() => {
                let f = functions::compare::<T>(b)?;
                each::<T, T, u8>(w, io, |a, b, _| f(&a, &b) as u8);
            }
            Op::Binary(b) => {
                let f = T::binary(b)?;
                each::<T, T, T>(w, io, |a, b, _| f(a, b));
            }
            Op::Ternary(t) => {
                let f = T::ternary(t)?;
                each::<T, T, T>(w, io, f);
            }
            _ => return None,
        }
    }
    Some(())
}

unsafe fn choose<T: Copy>(w: &Workload, io: Io<'_>) {
    // SAFETY: the condition is of bytes, the rest of `T`'s size.
    unsafe { each::<u8, T, T>(w, io, |a, b, c| if a != 0 { b } else { c }) }
}

/// Calls `f` once per element, in the workload's own order. An input that is not there repeats the first,
/// whose type is then the same.
///
/// # Safety
/// `io` must be valid for the workload, whose first operand is of type `A`, others of `T`, result `U`.
unsafe fn each<A: Copy, T: Copy, U>(w: &Workload, io: Io<'_>, f: impl Fn(A, T, T) -> U) {
    let out = w.output();
    let Some(rows) = out.elements().checked_div(out.dims.last().copied().unwrap_or(1)) else { return };
    let first = (&w.inputs()[0], io.inputs[0]);
    let input = |k: usize| w.inputs().get(k).zip(io.inputs.get(k).copied()).unwrap_or(first);
    let operands: [(&Operand, Address); 4] = [first, input(1), input(2), (out, io.output)];
    let step = operands.map(|(o, _)| o.strides.last().copied().unwrap_or(0));
    let mut index = [0usize; MAX_RANK];
    let outer = out.rank().saturating_sub(1);
    for _ in 0..rows {
        let start = operands.map(|(o, _)| {
            o.strides.iter().zip(&index[..outer]).map(|(&s, &i)| s * i as isize).sum::<isize>()
        });
        for i in 0..out.dims.last().copied().unwrap_or(1) as isize {
            let at = |k: usize| start[k] + i * step[k];
            // SAFETY: within the operands by their dimensions and strides.
            unsafe {
                let a = operands[0].1.as_ptr::<A>().offset(at(0)).read_unaligned();
                let b = operands[1].1.as_ptr::<T>().offset(at(1)).read_unaligned();
                let c = operands[2].1.as_ptr::<T>().offset(at(2)).read_unaligned();
                operands[3].1.as_mut_ptr::<U>().offset(at(3)).write_unaligned(f(a, b, c));
            }
        }
        for d in (0..outer).rev() {
            index[d] += 1;
            if index[d] < out.dims[d] {
                break;
            }
            index[d] = 0;
        }
    }
}
