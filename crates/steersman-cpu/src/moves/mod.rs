//! Data movement: transposes of any rank, and copies into contiguous memory.
//!
//! ```
//! use std::sync::Arc;
//! use steersman_core::{Address, DeviceId, Io, Params, Workload};
//! use steersman_cpu::{context::Context, host::Host, moves, threads::Team};
//!
//! let ctx = Context { device: DeviceId(0), team: Arc::new(Team::new(2)), host: Arc::new(Host::detect()) };
//! let w: Workload = "transpose i32 2x3".parse()?;
//! let (x, mut y) = ([1, 2, 3, 4, 5, 6], [0; 6]);
//! for kernel in moves::kernels(&ctx).iter().filter(|k| k.supports(&w).is_ok()) {
//!     let inputs = [Address::host(x.as_ptr())];
//!     let io = Io::new(&inputs, Address::host(y.as_mut_ptr()));
//!     // SAFETY: both arrays are as large as the workload says.
//!     unsafe { kernel.run(&w, Params::SERIAL, io)? };
//!     assert_eq!(y, [1, 4, 2, 5, 3, 6]);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `cpu/move-scalar` takes everything. `cpu/move-tiled` goes through memory in tiles of whole cache lines,
//! `cpu/move-stream` does too and writes past the caches, which pays for results larger than they are.

mod plan;
mod runs;
mod scalar;
mod tile;
mod tiled;

pub(crate) use tile::{side, turn};

use crate::context::Context;
use std::sync::Arc;
use steersman_core::Kernel;

/// Every kernel for moves.
pub fn kernels(ctx: &Context) -> Vec<Arc<dyn Kernel>> {
    let mut list: Vec<Arc<dyn Kernel>> = vec![
        Arc::new(scalar::ScalarKernel::new(ctx)),
        Arc::new(tiled::TiledKernel::new(ctx, tile::Stores::Cached)),
    ];
    if tile::Stores::Streaming.available() {
        list.push(Arc::new(tiled::TiledKernel::new(ctx, tile::Stores::Streaming)));
    }
    list
}
