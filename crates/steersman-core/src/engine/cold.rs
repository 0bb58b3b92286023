//! What has to be compiled before it can run counts in the call that would wait for it.
//!
//! A call is worth waiting for if as many come after it as came before, the best guess without knowing the program:
//! the first one bears all of the wait, the tenth one a tenth. So a single call does not wait for a compiler, and a
//! loop soon does.

use super::{Engine, read, write};
use crate::candidate::Candidates;
use crate::cost::Variant;
use crate::device::DeviceId;
use crate::units::Seconds;
use crate::workload::Workload;

/// Share that a new wait has in what is expected of the next: they differ by ten times with the kernel.
const NEW: f64 = 0.1;

impl Engine {
    /// What a variant's first run of such a workload would have to wait for; none if it is ready, or if nobody knows.
    pub fn setup(&self, w: &Workload, variant: Variant) -> Option<Seconds> {
        let kernel = self.registry.get(variant.kernel)?;
        if kernel.ready(w, variant.params) {
            return None;
        }
        read(&self.devices).get(kernel.device().0 as usize)?.machine.setup.map(Seconds)
    }

    /// Has candidates that must be made ready first bear their part of that, with so many calls to come.
    pub(super) fn charge_setup(&self, w: &Workload, candidates: &mut Candidates, calls: f64) {
        for c in candidates.iter_mut().filter(|c| c.away) {
            if let Some(seconds) = self.setup(w, c.variant) {
                c.estimate = c.estimate.with_setup(seconds, calls);
                c.prior += seconds * (1.0 / calls.max(1.0));
            }
        }
    }

    /// Takes in by how much a first run on this device was longer than the next.
    pub fn learn_setup(&self, device: DeviceId, seconds: Seconds) {
        if let Some(d) = write(&self.devices).get_mut(device.0 as usize) {
            let seconds = seconds.0.max(0.0);
            let known = d.machine.setup.unwrap_or(seconds);
            d.machine.setup = Some(known + NEW * (seconds - known));
        }
    }
}
