//! Ways of doing things, one file each.

mod bound;
mod conv;
mod cost;
mod elementwise;
mod fused;
mod map;
mod matmul;
mod method;
mod moves;
mod nest;
mod ready;
mod reduce;
mod single;
mod space;

use crate::device::Gpu;
use std::sync::Arc;
use steersman_core::{DeviceId, Kernel};

pub(crate) use cost::PEAK;

impl Gpu {
    /// Every kernel of this device, to be registered under `device`; names start with its family: `vulkan/map`.
    pub fn kernels(self: &Arc<Gpu>, device: DeviceId) -> Vec<Arc<dyn Kernel>> {
        self.kernels_as(device, &self.identity().family)
    }

    /// The same with names that start otherwise, for a second device of the family in one registry.
    pub fn kernels_as(self: &Arc<Gpu>, device: DeviceId, prefix: &str) -> Vec<Arc<dyn Kernel>> {
        let mut all: Vec<Arc<dyn Kernel>> = Vec::new();
        let cuts: [Arc<elementwise::Cuts>; 2] = Default::default();
        let forms = reduce::forms(self);
        all.extend(elementwise::kernels(self, device, prefix, &cuts));
        all.extend(reduce::kernels(self, device, prefix, &forms));
        all.extend(moves::kernels(self, device, prefix));
        all.extend(matmul::kernels(self, device, prefix));
        all.extend(conv::kernels(self, device, prefix));
        all.extend(fused::kernels(self, device, prefix, &cuts, &forms));
        all
    }
}
