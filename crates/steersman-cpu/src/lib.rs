//! The CPU as a device of Steersman.
//!
//! [`Cpu`] brings everything together: what the host is ([`host`]), its threads ([`threads`]), memory for results
//! ([`memory`]) and its kernels by op class: [`map`] (element-wise), [`reduce`], [`moves`] (transpose and copy),
//! [`matmul`] and [`fused`] groups. Kernels are written once and compiled for each instruction set ([`isa`]); functions have stated
//! error bounds ([`math`]). [`probe`] and [`rates`] measure what the machine reaches, [`plan`] says what to
//! calibrate and [`rig`] lays workloads out in memory.
//!
//! ```
//! use steersman_core::DeviceId;
//! use steersman_cpu::Cpu;
//!
//! let cpu = Cpu::new(Some(1), 1 << 20);
//! assert!(cpu.kernels(DeviceId(0), None).iter().any(|k| k.name() == "cpu/map-scalar"));
//! ```

pub mod context;
pub mod conv;
pub mod device;
pub mod fused;
pub mod host;
pub mod isa;
pub mod map;
pub mod math;
pub mod matmul;
pub mod memory;
pub mod moves;
pub mod plan;
pub mod probe;
pub mod random;
pub mod rates;
pub mod reduce;
pub mod rig;
pub mod threads;

pub use device::Cpu;
