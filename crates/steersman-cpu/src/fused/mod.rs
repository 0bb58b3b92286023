//! Fused groups: element-wise programs, and reductions at their end, in one pass over memory.
//!
//! ```
//! use std::sync::Arc;
//! use steersman_core::expr::Expr;
//! use steersman_core::{Address, BinaryOp, DType, DeviceId, Io, Operand, Params, UnaryOp, Workload};
//! use steersman_cpu::{context::Context, fused, host::Host, threads::Team};
//!
//! // exp(x + s)
//! let mut b = Expr::builder([DType::F32]);
//! let (x, s) = (b.input(0)?, b.scalar(0, DType::F32)?);
//! let sum = b.binary(BinaryOp::Add, x, s)?;
//! let y = b.unary(UnaryOp::Exp, sum)?;
//! b.output(y)?;
//! let w = Workload::fused(&Arc::new(b.finish()?), &[3], [Operand::new(DType::F32, &[3])?])?;
//!
//! let ctx = Context { device: DeviceId(0), team: Arc::new(Team::new(1)), host: Arc::new(Host::detect()) };
//! let (x, mut y) = ([-1f32, 0.0, 1.0], [0f32; 3]);
//! let (inputs, scalars) = ([Address::host(&x)], [u64::from(1f32.to_bits())]);
//! for kernel in fused::kernels(&ctx).iter().filter(|k| k.supports(&w).is_ok()) {
//!     let io = Io { scalars: &scalars, ..Io::new(&inputs, Address::host(&mut y)) };
//!     // SAFETY: the arrays have the workload's shape.
//!     unsafe { kernel.run(&w, Params::SERIAL, io)? };
//!     assert!((y[2] - 1f32.exp().powi(2)).abs() < 1e-5, "{}", kernel.name());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - `cpu/fused-scalar` runs the steps one by one through whole arrays, by the scalar kernels: the reference.
//! - `cpu/fused-<isa>` runs all steps on a tile of a few hundred elements, then the next tile; what lives between
//!   steps stays in the nearest cache. Variant 1 writes results past the cache.
//! - `cpu/matmul-<way>-<isa>+fused` runs groups that start with a matrix product: block by block, the rest while the
//!   block is in cache.
//!
//! How it hangs together: `lower` turns an expression into loops (those of [`map`](crate::map), and `convert`'s),
//! `schedule` orders them so that few values live at once, `assembly` gives values places and `link` makes `chain`s of
//! cheap steps; that is done once for an expression and kept with it. For each run, `shape` says what is reduced over what, `bind` how operands
//! reach tiles, `nest` where they are; `tile` runs the steps, `drive` takes threads through their tiles.

mod assembly;
mod bind;
mod chain;
mod convert;
mod cost;
mod drive;
mod kernel;
mod link;
mod lower;
mod nest;
mod product;
mod program;
mod scalar;
mod schedule;
mod shape;
mod tile;

use crate::context::Context;
use crate::isa::Level;
use crate::matmul::Way;
use std::sync::Arc;
use steersman_core::Kernel;

/// Every kernel for fused groups that this CPU can run, the reference first.
pub fn kernels(ctx: &Context) -> Vec<Arc<dyn Kernel>> {
    let mut all: Vec<Arc<dyn Kernel>> = vec![Arc::new(scalar::Scalar::new(ctx))];
    for level in Level::present() {
        all.push(Arc::new(kernel::Fused::new(ctx, level)));
        for way in [Way::Small, Way::Packed] {
            all.push(Arc::new(product::WithProduct::new(ctx, level, way)));
        }
    }
    all
}
