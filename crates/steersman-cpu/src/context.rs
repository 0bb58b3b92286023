//! What every CPU kernel is made with.

use crate::host::Host;
use crate::threads::Team;
use std::sync::Arc;
use steersman_core::{DeviceId, ParamList, Params, Workload};

/// What every CPU kernel is made with: which device it belongs to and the threads it may use.
#[derive(Clone)]
pub struct Context {
    /// The device in its registry.
    pub device: DeviceId,
    /// The threads.
    pub team: Arc<Team>,
    /// What the CPU is.
    pub host: Arc<Host>,
}

impl Context {
    /// Thread counts worth trying: 1, powers of two, and all, as long as each thread has enough to do.
    pub fn thread_params(&self, w: &Workload) -> ParamList {
        let most = self.team.max().min((nominal(w) * (1.0 / SHARE)) as usize);
        let mut list = ParamList::new();
        let mut threads = 1;
        while threads < most {
            list.push(Params::threads(threads));
            threads *= 2;
        }
        list.push(Params::threads(most.max(1)));
        list
    }
}

/// Nominal seconds a thread must have to do. A hand-off to a thread that still spins takes 0.2 µs, so that two
/// would pay from 0.5 µs on; but to one that sleeps it takes 5 to 25, and a program that calls now and then
/// only meets those. With less the gain is under half a microsecond, the loss up to 15.
const SHARE: f64 = 1.5e-6;

/// About what one core of today takes, whichever it is: a bound for what is worth trying, never an estimate.
fn nominal(w: &Workload) -> f64 {
    let narrow = w.dtype().size() as f64 / 4.0;
    w.bytes() * (1.0 / 75e9) + w.flops() * narrow * (1.0 / 60e9)
}
