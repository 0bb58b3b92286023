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
        // In steps of four on larger machines: on 16 cores a product has 36 candidates instead of 60, and takes 20 µs
        // to choose from instead of 36. Choices there got no better by it: mean regret was above 10% with either.
        let step = if max <= 4 { 2 } else { 4 };
        let mut list = ParamList::new();
        list.push(Params::SERIAL);
        let mut threads = step;
        while threads < max && threads <= most {
            list.push(Params::threads(threads));
            threads *= step;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_offered_as_the_work_grows() {
        let counts = |max: usize, w: &str| -> Vec<u16> {
            let ctx = Context {
                device: DeviceId(0),
                team: Arc::new(Team::new(max)),
                host: Arc::new(Host::detect()),
            };
            ctx.thread_params(&w.parse().unwrap()).iter().map(|p| p.threads).collect()
        };
        assert_eq!(counts(1, "add f32 10000000 10000000"), [1]);
        assert_eq!(counts(2, "add f32 1000 1000"), [1]);
        assert_eq!(counts(2, "add f32 100000 100000"), [1, 2]);
        assert_eq!(counts(3, "add f32 10000000 10000000"), [1, 2, 3]);
        assert_eq!(counts(16, "add f32 10000000 10000000"), [1, 4, 16]);
        assert_eq!(counts(16, "add f32 60000 60000"), [1, 4]);
        assert_eq!(counts(16, "add f32 20000 20000"), [1]);
    }
}
