//! An adapter as a device: what it is, its memory, its queue of work.

mod adapter;
mod batch;
mod copy;
mod download;
mod fault;
mod gpu;
mod kept;
mod memory;
mod pipeline;
mod pool;
mod shared;
mod staging;
mod tempo;

pub use adapter::{Found, adapters};
pub(crate) use batch::Launch;
pub use gpu::{Can, Counts, DeviceOptions, Gpu, OpenError};
pub(crate) use pipeline::{Key, Pipeline, Source};
pub(crate) use pool::Held;
