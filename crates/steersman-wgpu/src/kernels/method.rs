//! A method of doing things, as a kernel of one device: what all kernels here have in common is written once.

use super::{cost, ready};
use crate::device::Gpu;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::tune::Winners;
use steersman_core::{
    DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran, Refusal, Workload,
};

/// What is one kernel's own. The meanings are those of [`Kernel`].
pub(super) trait Method: Send + Sync + 'static {
    fn gpu(&self) -> &Gpu;
    fn handles(&self, op: Op) -> bool;
    fn supports(&self, w: &Workload) -> Result<(), Refusal>;
    fn params(&self, w: &Workload) -> ParamList;
    fn space(&self, w: &Workload) -> Vec<Params>;
    fn winners(&self) -> &Winners;
    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms;
    /// Hands it to the device, compiling what is not compiled yet. Addresses are found in the device's pool or refused.
    fn enqueue(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError>;

    fn numerics(&self, _: &Workload) -> NumericClass {
        NumericClass::Exact
    }

    fn revision(&self) -> u32 {
        1
    }

    fn scratch(&self, _: &Workload, _: Params) -> usize {
        0
    }
}

/// A method under a name on a device.
struct On<M> {
    device: DeviceId,
    name: String,
    method: M,
}

/// A kernel of a method, called `prefix/name`.
pub(super) fn on(device: DeviceId, prefix: &str, name: &str, method: impl Method) -> Arc<dyn Kernel> {
    Arc::new(On { device, name: format!("{prefix}/{name}"), method })
}

impl<M: Method> Kernel for On<M> {
    fn name(&self) -> &str {
        &self.name
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn handles(&self, op: Op) -> bool {
        self.method.handles(op)
    }

    fn revision(&self) -> u32 {
        self.method.revision()
    }

    fn numerics(&self, w: &Workload) -> NumericClass {
        self.method.numerics(w)
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        self.method.supports(w)
    }

    fn params(&self, w: &Workload) -> ParamList {
        self.method.params(w)
    }

    fn space(&self, w: &Workload) -> Vec<Params> {
        self.method.space(w)
    }

    fn winners(&self) -> Option<&Winners> {
        Some(self.method.winners())
    }

    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        self.method.terms(w, p, machine)
    }

    fn ready(&self, w: &Workload, p: Params) -> bool {
        ready::ready(self.method.gpu(), &self.name, w, p)
    }

    fn scratch(&self, w: &Workload, p: Params) -> usize {
        self.method.scratch(w, p)
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let ran = ready::noted(self.method.gpu(), &self.name, w, p, self.method.enqueue(w, p, io))?;
        if cost::is_long(self.method.gpu(), w) {
            self.method.gpu().submit_if_idle()?;
        }
        Ok(ran)
    }
}
