//! Plain loops over any strides: the reference.

use super::shape::Shape;
use crate::context::Context;
use steersman_core::cost::{Machine, Terms};
use steersman_core::{DType, DeviceId, Io, Kernel, KernelError, Op, Params, Ran, Refusal, Workload};

/// One element of the result after the other.
pub(super) struct Scalar {
    device: DeviceId,
}

impl Scalar {
    pub fn new(ctx: &Context) -> Scalar {
        Scalar { device: ctx.device }
    }
}

impl Kernel for Scalar {
    fn name(&self) -> &str {
        "cpu/conv-scalar"
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Conv2d { .. })
    }

    fn legality_is_fixed(&self) -> bool {
        true
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        Shape::of(w).map(|_| ()).ok_or(Refusal::new("only convolves"))
    }

    fn terms(&self, w: &Workload, _p: Params, _machine: &Machine) -> Terms {
        Terms::launch(20e-9).and(w.flops() * 0.5e-9).and(w.output().elements() as f64 * 2e-9)
    }

    unsafe fn run(&self, w: &Workload, _p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let Some(shape) = Shape::of(w) else { return Err(KernelError::Failed("only convolves".into())) };
        // SAFETY: the caller vouches for the operands; the element type is the workload's.
        unsafe {
            match w.dtype() {
                DType::F32 => each(&shape, io, |x: f32| x, |a, x, f| a + x * f, |a| a),
                DType::F64 => each(&shape, io, |x: f64| x, |a, x, f| a + x * f, |a| a),
                DType::F16 => {
                    each(&shape, io, half::f16::to_f32, |a: f32, x, f| a + x * f, half::f16::from_f32)
                }
                _ => each(&shape, io, half::bf16::to_f32, |a: f32, x, f| a + x * f, half::bf16::from_f32),
            }
        }
        Ok(Ran::Clean)
    }
}

unsafe fn each<T: Copy, A: Copy + Default>(
    s: &Shape,
    io: Io<'_>,
    wide: impl Fn(T) -> A,
    add: impl Fn(A, A, A) -> A,
    narrow: impl Fn(A) -> T,
) {
    let (x, f, y) = (io.inputs[0].as_ptr::<T>(), io.inputs[1].as_ptr::<T>(), io.output.as_mut_ptr::<T>());
    let at = |st: &[isize; 4], i: [usize; 4]| -> isize { (0..4).map(|k| i[k] as isize * st[k]).sum() };
    for image in 0..s.images {
        for filter in 0..s.filters {
            for row in 0..s.out_height {
                for column in 0..s.out_width {
                    let mut sum = A::default();
                    for channel in 0..s.channels {
                        for ty in 0..s.taps.0 {
                            let Some(r) = s.row(row, ty) else { continue };
                            for tx in 0..s.taps.1 {
                                if !s.columns(tx).contains(&column) {
                                    continue;
                                }
                                let c = column * s.stride + tx - s.pad;
                                // SAFETY: inside the image and the filter, by the shape.
                                sum = unsafe {
                                    add(
                                        sum,
                                        wide(*x.offset(at(&s.x, [image, channel, r, c]))),
                                        wide(*f.offset(at(&s.f, [filter, channel, ty, tx]))),
                                    )
                                };
                            }
                        }
                    }
                    // SAFETY: inside the result.
                    unsafe { *y.offset(at(&s.y, [image, filter, row, column])) = narrow(sum) };
                }
            }
        }
    }
}
