//! Element-wise kernels: one, two or three elements in, one out.
//!
//! ```
//! # use std::sync::Arc;
//! use steersman_core::{Address, DeviceId, Io, Params, Workload};
//! use steersman_cpu::{context::Context, host::Host, map, threads::Team};
//!
//! let ctx = Context { device: DeviceId(0), team: Arc::new(Team::new(1)), host: Arc::new(Host::detect()) };
//! let w: Workload = "add f32 3 1".parse()?;
//! let (a, b, mut sum) = ([1.0f32, 2.0, 3.0], [10.0f32], [0.0f32; 3]);
//! for kernel in map::kernels(&ctx).iter().filter(|k| k.supports(&w).is_ok()) {
//!     let inputs = [Address::host(&a), Address::host(&b)];
//!     let io = Io::new(&inputs, Address::host(&mut sum));
//!     // SAFETY: the arrays have the workload's shapes.
//!     unsafe { kernel.run(&w, Params::SERIAL, io) }.unwrap();
//!     assert_eq!(sum, [11.0, 12.0, 13.0], "{}", kernel.name());
//! }
//! # Ok::<(), steersman_core::WorkloadError>(())
//! ```
//!
//! - `cpu/map-scalar`: one element at a time through the standard library's functions; the reference.
//! - `cpu/map-<isa>`: vector code for each instruction set of this CPU, any layout, any thread count.
//! - `cpu/map-stream-<isa>`: the same for the widest of them with results written past the cache, for outputs that would
//!   only push other data out of it.
//!
//! How it hangs together: `row` holds the loops over consecutive elements, compiled once per op,
//! element type and instruction set; `float` and `integer` the functions in them, `table` the way
//! from an op to its loop. `plan` folds any layout into the fewest nested loops, `chunk` feeds the
//! rows from it; `repeated` does without both where that would take longer than the work.

mod chunk;
mod copy;
mod cost;
mod float;
mod integer;
pub(crate) mod narrow;
mod operations;
mod pad;
mod plan;
mod repeated;
mod row;
mod scalar;
mod simd;
pub(crate) mod stream;
mod table;

pub(crate) use copy::{fill, gather_run, scatter_run};
pub(crate) use cost::flops;
pub(crate) use narrow::{Half, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
pub(crate) use plan::{period, step};
pub(crate) use row::{RowFn, Rows};
pub(crate) use scalar::Scalar;
pub(crate) use table::of as find_rows;

use crate::context::Context;
use crate::isa::Level;
use std::sync::Arc;
use steersman_core::{BinaryOp, DType, Kernel, NumericClass, Op, Refusal, TernaryOp, UnaryOp, Workload};

/// Every element-wise kernel that this CPU can run, the reference first.
pub fn kernels(ctx: &Context) -> Vec<Arc<dyn Kernel>> {
    let mut all: Vec<Arc<dyn Kernel>> = vec![Arc::new(scalar::Scalar::new(ctx))];
    let best = Level::best();
    for level in Level::present() {
        all.push(Arc::new(simd::Simd::new(ctx, level)));
        // Of one width: memory is what they wait for. (`add` of 3.1 million f32 on two threads of a Xeon takes 445 to 457 µs
        // with AVX2, 456 to 478 with AVX-512.)
        if cfg!(target_arch = "x86_64") && level == best {
            all.push(Arc::new(simd::Simd::streaming(ctx, level)));
        }
    }
    all
}

/// What every kernel here takes.
fn supported(w: &Workload) -> Result<(), Refusal> {
    if !w.op().is_elementwise() {
        return Err(Refusal::new("it only does element-wise operations"));
    }
    let out = w.output();
    if out.dims.iter().zip(&out.strides).any(|(&d, &s)| d > 1 && s == 0) {
        return Err(Refusal::new("the output's elements share memory"));
    }
    Ok(())
}

/// How far vector code may be from the reference: not at all, but for functions with a ULP bound of their
/// own and for `fma` where there is no such instruction.
pub(crate) fn class(op: Op, dtype: DType, level: Level) -> NumericClass {
    use UnaryOp::{Abs, Ceil, Floor, Neg, Not, Recip, Relu, Round, Sign, Sqrt, Trunc};
    let exact = match op {
        _ if !dtype.is_float() => true,
        Op::Unary(u) => {
            matches!(u, Neg | Abs | Sign | Sqrt | Recip | Relu | Floor | Ceil | Round | Trunc | Not)
        }
        Op::Binary(b) => !matches!(b, BinaryOp::Pow | BinaryOp::Atan2),
        Op::Ternary(TernaryOp::Fma) => level > Level::Baseline || cfg!(target_arch = "aarch64"),
        _ => true,
    };
    if exact { NumericClass::Exact } else { NumericClass::Reassociated }
}
