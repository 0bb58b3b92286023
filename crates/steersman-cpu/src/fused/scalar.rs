//! The reference: every step by the scalar kernels, each on whole arrays.

use super::kernel::supported;
use crate::context::Context;
use crate::isa::Level;
use crate::matmul::candidates::reference;
use crate::random::generator;
use crate::{map, reduce};
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::expr::{Output, Step, Value};
use steersman_core::{
    Address, DType, DeviceId, Io, Kernel, KernelError, Op, Operand, Params, Ran, Refusal, Workload,
    rounded_to_odd,
};

/// Bytes of arrays that it keeps at most.
const MOST: usize = 1 << 28;

/// Runs steps one by one.
pub struct Scalar {
    device: DeviceId,
    map: map::Scalar,
    reduce: reduce::ScalarKernel,
    product: Arc<dyn Kernel>,
}

/// A value of every element, contiguous.
struct Array {
    operand: Operand,
    memory: Vec<u64>,
}

impl Array {
    fn new(dtype: DType, dims: &[usize]) -> Result<Array, KernelError> {
        let operand = Operand::new(dtype, dims).map_err(|e| KernelError::Failed(e.to_string()))?;
        let memory = vec![0u64; operand.bytes().div_ceil(8).max(1)];
        Ok(Array { operand, memory })
    }

    fn address(&self) -> Address {
        Address::host(self.memory.as_ptr())
    }

    fn bytes(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast()
    }
}

impl Scalar {
    /// For this device.
    pub fn new(ctx: &Context) -> Scalar {
        Scalar {
            device: ctx.device,
            map: map::Scalar::new(ctx),
            reduce: reduce::ScalarKernel::new(ctx),
            product: reference(ctx),
        }
    }

    /// One op on arrays, into another.
    unsafe fn apply(
        &self,
        kernel: &dyn Kernel,
        op: Op,
        args: &[(&Operand, Address)],
        out: (Operand, Address),
    ) -> Result<(), KernelError> {
        let failed = |e: steersman_core::WorkloadError| KernelError::Failed(e.to_string());
        let w = Workload::new(op, args.iter().map(|(o, _)| (*o).clone())).map_err(failed)?;
        let w = w.with_output(out.0).map_err(failed)?;
        let inputs: Vec<Address> = args.iter().map(|(_, a)| *a).collect();
        // SAFETY: passed on.
        unsafe { kernel.run(&w, Params::SERIAL, Io::new(&inputs, out.1)) }.map(|_| ())
    }
}

impl Kernel for Scalar {
    fn name(&self) -> &str {
        "cpu/fused-scalar"
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Fused(_))
    }

    fn legality_is_fixed(&self) -> bool {
        true
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        supported(w)?;
        if self.scratch(w, Params::SERIAL) > MOST {
            return Err(Refusal::new("it keeps an array for each step, which is only for small groups"));
        }
        Ok(())
    }

    fn terms(&self, w: &Workload, _: Params, machine: &Machine) -> Terms {
        // A call of a library function for each element and step, and a trip through memory.
        let n = w.dims().iter().product::<usize>() as f64;
        let steps = w.expr().map_or(0, |e| e.steps().len()) as f64;
        let flops =
            w.flops() / (machine.peak(Level::Baseline.name(), 4, Level::Baseline.assumed_peak()) / 4.0);
        Terms::launch(200e-9).and(steps * 100e-9).and(n * steps * 2e-9).and(flops)
    }

    fn scratch(&self, w: &Workload, _: Params) -> usize {
        let n = w.dims().iter().product::<usize>();
        w.expr().map_or(0, |e| e.steps().len()).saturating_mul(n).saturating_mul(8)
    }

    unsafe fn run(&self, w: &Workload, _: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let Some(expr) = w.expr() else { return Err(KernelError::Failed("it has no expression".into())) };
        let dims = w.dims();
        let mut values: Vec<Array> = Vec::with_capacity(expr.steps().len());
        for (i, step) in expr.steps().iter().enumerate() {
            let dtype = expr.dtype_of(Value(i as u32));
            let mut out = Array::new(dtype, dims)?;
            let n = out.operand.elements();
            let args: Vec<(&Operand, Address)> =
                step.arguments().map(|v| (&values[v.index()].operand, values[v.index()].address())).collect();
            let to = (out.operand.clone(), out.address());
            // SAFETY: arrays have the group's shape, operands are valid by contract.
            unsafe {
                match *step {
                    Step::Input(k) => {
                        let from = (&w.inputs()[k as usize], io.inputs[k as usize]);
                        each(from.0, |offset, i| {
                            let size = dtype.size();
                            let at = from.1.as_ptr::<u8>().offset(offset * size as isize);
                            out.bytes().add(i * size).copy_from_nonoverlapping(at, size);
                        });
                    }
                    Step::Scalar(k, _) => {
                        let bits = io.scalars[k as usize].to_ne_bytes();
                        let size = dtype.size();
                        for i in 0..n {
                            out.bytes().add(i * size).copy_from_nonoverlapping(bits.as_ptr(), size);
                        }
                    }
                    Step::Unary(op, _) => self.apply(&self.map, Op::Unary(op), &args, to)?,
                    Step::Binary(op, ..) => self.apply(&self.map, Op::Binary(op), &args, to)?,
                    Step::Ternary(op, ..) => self.apply(&self.map, Op::Ternary(op), &args, to)?,
                    Step::Cast(_, v) => {
                        let from = &values[v.index()];
                        for i in 0..n {
                            let x = read(from.operand.dtype, from.memory.as_ptr().cast(), i);
                            write(dtype, out.bytes(), i, x);
                        }
                    }
                    Step::Index(_) => {
                        (0..n).for_each(|i| write(dtype, out.bytes(), i, Number::Whole(i as i64)))
                    }
                    Step::Product(a, b) => {
                        let (a, b) = (a as usize, b as usize);
                        let factors = [(&w.inputs()[a], io.inputs[a]), (&w.inputs()[b], io.inputs[b])];
                        self.apply(&*self.product, Op::MatMul, &factors, to)?;
                    }
                    Step::Random { dist, key, .. } => {
                        let wide = dtype == DType::F64;
                        generator(Level::Baseline, dist, wide)(io.scalars[key as usize], 0, out.bytes(), n);
                    }
                }
            }
            values.push(out);
        }
        for ((output, o), at) in expr.outputs().iter().zip(w.outputs()).zip(io.outputs()) {
            let value = &values[output.value().index()];
            // SAFETY: as above.
            unsafe {
                match *output {
                    Output::Array(_) => each(o, |offset, i| {
                        let size = o.dtype.size();
                        let to = at.as_mut_ptr::<u8>().offset(offset * size as isize);
                        to.copy_from_nonoverlapping(value.memory.as_ptr().cast::<u8>().add(i * size), size);
                    }),
                    Output::Reduce { kind, axes, .. } => {
                        let op = Op::Reduce { kind, axes };
                        self.apply(&self.reduce, op, &[(&value.operand, value.address())], (o.clone(), at))?;
                    }
                }
            }
        }
        Ok(Ran::Clean)
    }
}

/// Calls `f` with each element's offset and position.
fn each(o: &Operand, mut f: impl FnMut(isize, usize)) {
    for i in 0..o.elements() {
        let (mut rest, mut offset) = (i, 0);
        for (&d, &s) in o.dims.iter().zip(&o.strides).rev() {
            offset += (rest % d) as isize * s;
            rest /= d;
        }
        f(offset, i);
    }
}

/// An element on its way from one type to another.
#[derive(Clone, Copy)]
enum Number {
    Single(f32),
    Double(f64),
    Whole(i64),
}

unsafe fn read(dtype: DType, at: *const u8, i: usize) -> Number {
    // SAFETY: the caller vouches for the element.
    unsafe {
        match dtype {
            DType::F32 => Number::Single(*at.cast::<f32>().add(i)),
            DType::F64 => Number::Double(*at.cast::<f64>().add(i)),
            DType::F16 => Number::Single((*at.cast::<half::f16>().add(i)).to_f32()),
            DType::BF16 => Number::Single((*at.cast::<half::bf16>().add(i)).to_f32()),
            DType::I32 => Number::Whole((*at.cast::<i32>().add(i)).into()),
            DType::U32 => Number::Whole((*at.cast::<u32>().add(i)).into()),
            DType::I64 => Number::Whole(*at.cast::<i64>().add(i)),
            DType::U8 | DType::Bool => Number::Whole((*at.add(i)).into()),
        }
    }
}

unsafe fn write(dtype: DType, at: *mut u8, i: usize, x: Number) {
    let wide = match x {
        Number::Single(x) => x.into(),
        Number::Double(x) => x,
        Number::Whole(x) => x as f64,
    };
    macro_rules! convert {
        ($t:ty) => {
            match x {
                Number::Single(x) => x as $t,
                Number::Double(x) => x as $t,
                Number::Whole(x) => x as $t,
            }
        };
    }
    // SAFETY: the caller vouches for the element.
    unsafe {
        match dtype {
            DType::F32 => at.cast::<f32>().add(i).write(convert!(f32)),
            DType::F64 => at.cast::<f64>().add(i).write(wide),
            DType::F16 => at.cast::<half::f16>().add(i).write(half::f16::from_f32(rounded_to_odd(wide))),
            DType::BF16 => at.cast::<half::bf16>().add(i).write(half::bf16::from_f32(rounded_to_odd(wide))),
            DType::I32 => at.cast::<i32>().add(i).write(convert!(i32)),
            DType::U32 => at.cast::<u32>().add(i).write(convert!(u32)),
            DType::I64 => at.cast::<i64>().add(i).write(convert!(i64)),
            DType::U8 => at.add(i).write(convert!(u8)),
            DType::Bool => at.add(i).write(u8::from(wide != 0.0)),
        }
    }
}
