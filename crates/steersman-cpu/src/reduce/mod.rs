//! Reductions: sum, mean, product, extremes and where they are, any, all, norm, variance.
//!
//! ```
//! use std::sync::Arc;
//! use steersman_core::{Address, DeviceId, Io, Params, Workload};
//! use steersman_cpu::{context::Context, host::Host, reduce, threads::Team};
//!
//! let ctx = Context { device: DeviceId(0), team: Arc::new(Team::new(2)), host: Arc::new(Host::detect()) };
//! let w: Workload = "sum f32 2x3 axis=1".parse()?;
//! let (x, mut sums) = ([1f32, 2.0, 3.0, 4.0, 5.0, 6.0], [0f32; 2]);
//! for kernel in reduce::kernels(&ctx).iter().filter(|k| k.supports(&w).is_ok()) {
//!     let inputs = [Address::host(x.as_ptr())];
//!     let io = Io::new(&inputs, Address::host(sums.as_mut_ptr()));
//!     // SAFETY: both arrays are as large as the workload says.
//!     unsafe { kernel.run(&w, Params::SERIAL, io)? };
//!     assert_eq!(sums, [6.0, 15.0]);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `cpu/reduce-scalar` takes everything and is what the others are compared with. `cpu/reduce-rows-*` are
//! for outputs whose elements lie side by side, `cpu/reduce-columns-*` for elements below one another.
//!
//! How exact the vectorised ones are: sums of n floats differ from the true sum by at most 32 ε Σ|x|,
//! whatever n is (ε: the unit of f32 for f32, f16 and bf16 before the result is rounded, of f64 for f64);
//! products by n ε; variances, computed in f64, by the rounding of the result for the narrower types.
//! A partial sum of f32 may overflow where the whole would not, and a partial product vanish before it meets
//! an infinity. Norms square in the type they sum in: elements whose square is no longer a normal number add
//! nothing exact. The rest is exact.

mod arg;
mod choose;
mod column_kernel;
mod columns;
mod element;
mod erased;
mod fold;
mod row_kernel;
mod rows;
mod scalar;
mod shape;
mod turned;
mod variance;
mod vector_kernel;
mod walk;
mod wide;

pub(crate) use erased::{CELL, CELLS, Part, Reducer};
pub(crate) use row_kernel::{ROW, SHORT, SHORT_CALL, TURNED};
pub(crate) use scalar::ScalarKernel;

use crate::context::Context;
use crate::isa::Level;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms, Traffic};
use steersman_core::{DType, Kernel, NumericClass, Op, Params, ReduceOp, Workload};

/// Every reduction kernel this CPU can run.
pub fn kernels(ctx: &Context) -> Vec<Arc<dyn Kernel>> {
    let mut list: Vec<Arc<dyn Kernel>> = vec![Arc::new(scalar::ScalarKernel::new(ctx))];
    for level in Level::present() {
        list.push(Arc::new(row_kernel::RowKernel::new(ctx, level)));
        list.push(Arc::new(column_kernel::ColumnKernel::new(ctx, level)));
    }
    list
}

/// How far a vectorised result may differ from the reference.
fn numerics(w: &Workload) -> NumericClass {
    match w.op() {
        Op::Reduce { kind, .. } => class(kind, w.dtype()),
        _ => NumericClass::Reassociated,
    }
}

/// How far a vectorised reduction of this type may differ from the reference.
pub(crate) fn class(kind: ReduceOp, dtype: DType) -> NumericClass {
    use ReduceOp::{All, Any, ArgMax, ArgMin, Max, Min};
    let exact = matches!(kind, Min | Max | ArgMin | ArgMax | Any | All);
    if exact || !dtype.is_float() { NumericClass::Exact } else { NumericClass::Reassociated }
}

/// The terms that row and column kernels share: the call, and the elements at each memory level.
fn prior(w: &Workload, p: Params, machine: &Machine, name: &str, level: Level) -> Terms {
    let input = &w.inputs()[0];
    let threads = p.threads.max(1) as usize;
    let flops = match w.op() {
        Op::Reduce { kind, .. } => kind.flops(),
        _ => 1.0,
    };
    let size = input.dtype.size();
    let (n, bytes) = (input.elements() as f64, size as f64);
    let per = machine
        .rate(name, w.op(), input.dtype)
        .unwrap_or_else(|| flops / machine.peak(level.name(), size, level.assumed_peak()));
    let streams = machine.streams(input.distinct_bytes() as f64, Traffic::Read, threads);
    let mut terms = Terms::launch(20e-9 + machine.handoff(threads));
    for (share, bandwidth) in streams {
        terms = terms.and(n * share * (bytes / bandwidth).max(per / threads as f64));
    }
    terms
}
