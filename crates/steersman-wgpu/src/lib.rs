//! WebGPU devices of Steersman: Vulkan, Metal and DX12 through `wgpu`.
//!
//! [`adapters`] lists what there is (nothing, where there is no driver), [`Gpu::open`] opens one of them. An
//! open [`Gpu`] is a [`Memory`](steersman_core::Memory), has [`kernels`](Gpu::kernels) for every op class, and can
//! [`probe`](Gpu::probe) its own speed.
//!
//! ```
//! use std::sync::Arc;
//! use steersman_core::{Io, Memory, Params, Workload};
//! use steersman_wgpu::{DeviceOptions, Gpu, adapters};
//!
//! let Some(found) = adapters().into_iter().next() else { return Ok(()) };
//! let gpu = Gpu::open(&found, DeviceOptions::default())?;
//! let w: Workload = "add f32 3 1".parse()?;
//! let (a, b, sum) = (gpu.clone().take(12)?, gpu.clone().take(4)?, gpu.clone().take(12)?);
//! gpu.upload(&[1f32, 2.0, 3.0].map(f32::to_ne_bytes).concat(), a.address())?;
//! gpu.upload(&10f32.to_ne_bytes(), b.address())?;
//! let kernels = gpu.kernels(steersman_core::DeviceId(1));
//! let kernel = kernels.iter().find(|k| k.supports(&w).is_ok()).expect("a kernel that adds");
//! // SAFETY: the blocks have the workload's shapes.
//! unsafe { kernel.run(&w, Params::SERIAL, Io::new(&[a.address(), b.address()], sum.address()))? };
//! let mut bytes = [0u8; 12];
//! gpu.download(sum.address(), &mut bytes)?;
//! assert_eq!(bytes, *[11f32, 12.0, 13.0].map(f32::to_ne_bytes).as_flattened());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Kernels
//!
//! Names start with the backend: `vulkan/map`.
//!
//! | ops | kernels |
//! |---|---|
//! | element-wise | `map`, `map-vec4` |
//! | reductions | `reduce-each`, `reduce-tree`, `reduce-subgroup`, `reduce-two-pass` |
//! | copy, transpose | `copy`, `copy-vec4`, `transpose-tiled` |
//! | matrix products | `matmul-naive`, `-tiled`, `-blocked`, `-vec4`, `-rows` |
//! | convolutions | `conv-direct`, `conv-tiled` |
//! | fused groups | `fused`, `fused-vec4`; with reductions `fused-each`, `-tree`, `-subgroup`, `-two-pass` |
//!
//! Their `variant` is a point in a space of workgroup sizes, elements each invocation does and tiles, of those the
//! adapter takes: `space` lists them, `params` is the one that won on work of about that size. A run that had to
//! compile says [`Ran::Cold`](steersman_core::Ran): it is no measurement.
//!
//! # Numbers
//!
//! f32, i32, u32, u8, bool, f16 and bf16 (both computed in f32) are taken everywhere; f64 where the adapter computes in
//! it, but for functions beyond roots, `rem` and scalars of groups; i64 is moved, chosen and summed to, not
//! computed with. What is not taken is refused with the reason. NaN, infinities, signed zeros and integer
//! division are those of the CPU's reference; functions are written out, within 5 units in the last place (tan and
//! gelu 9, pow 12), since those of the language may be off by thousands. An adapter may flush subnormal results
//! of arithmetic, so that arithmetic in floats is never called exact.
//!
//! The rooms: `device` (adapter, memory, batches, pipelines), `wgsl` (sources: element types, functions, the
//! steps of expressions), `kernels` (one file each way of doing things).

mod device;
mod kernels;
mod probe;
mod wgsl;

pub use device::{Can, Counts, DeviceOptions, Found, Gpu, OpenError, adapters};
pub use probe::{Link, Probed};
