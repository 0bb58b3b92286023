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
    /// Thread counts worth trying: one, all, and a few between, as long as each thread has enough to do.
    pub fn thread_params(&self, w: &Workload) -> ParamList {
        let max = self.team.max();
        let most = (nominal(w) * (1.0 / SHARE)) as usize;
        // In steps of four on larger machines: with every power of two a product has 60 candidates on 16 cores,
        // too many to learn in a calibration (32% mean regret) and 36 µs to choose from.
        let step = if max <= 4 { 2 } else { 4 };
        let between = std::iter::successors(Some(1), |t| Some(t * step)).take_while(|t| *t < max);
        let mut list: ParamList =
            between.take_while(|t| *t == 1 || *t <= most).map(Params::threads).collect();
        if max > 1 && max <= most {
            list.push(Params::threads(max));
        }
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
