//! Convolutions of images with filters (NCHW by OIHW), and what they cost.
//!
//! ```
//! use std::sync::Arc;
//! use steersman_core::{Address, DeviceId, Io, Params, Workload};
//! use steersman_cpu::{context::Context, conv, host::Host, threads::Team};
//!
//! let ctx = Context { device: DeviceId(0), team: Arc::new(Team::new(2)), host: Arc::new(Host::detect()) };
//! // One image of 1×4 with a border of one, a filter that adds three neighbours.
//! let w: Workload = "conv2d f32 1x1x3x4 1x1x3x3 pad=1".parse()?;
//! let (x, f, mut y) = ([1.0f32; 12], [1.0f32; 9], [0.0f32; 12]);
//! for kernel in conv::kernels(&ctx) {
//!     let inputs = [Address::host(x.as_ptr()), Address::host(f.as_ptr())];
//!     // SAFETY: the arrays are as large as the workload says.
//!     unsafe { kernel.run(&w, Params::SERIAL, Io::new(&inputs, Address::host(y.as_mut_ptr())))? };
//!     assert_eq!(y, [4.0, 6.0, 6.0, 4.0, 6.0, 9.0, 9.0, 6.0, 4.0, 6.0, 6.0, 4.0]);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `cpu/conv-scalar` takes everything and is what the others are compared with. `cpu/conv-rows-*` adds
//! multiples of shifted image rows; `cpu/conv-product-*` writes patches of the image side by side and
//! multiplies matrices, which is worth the copies from a few filters and channels on.

mod product;
mod rows;
mod scalar;
mod shape;

use crate::context::Context;
use crate::isa::Level;
use std::sync::Arc;
use steersman_core::Kernel;

/// Every kernel for convolutions, plainest first.
pub fn kernels(ctx: &Context) -> Vec<Arc<dyn Kernel>> {
    let mut list: Vec<Arc<dyn Kernel>> = vec![Arc::new(scalar::Scalar::new(ctx))];
    for level in Level::present() {
        list.push(Arc::new(rows::ByRows::new(ctx, level)));
        list.push(Arc::new(product::AsProduct::new(ctx, level)));
    }
    list
}
