//! What it costs to give work to a worker.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::sample;
use crate::threads::{Outcome, Team, WhySerial};

/// Seconds lost by using a second thread, for work that takes no time itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Handoff {
    /// Call and return while the worker is still spinning from the call before.
    pub hot: f64,
    /// Call and return when the worker sleeps: it is called, and not waited for.
    pub cold: f64,
    /// From the call until a sleeping worker has begun.
    pub wake: f64,
}

pub(super) fn measure(team: &Team, slice: Duration) -> Option<Handoff> {
    if team.max() < 2 {
        return None;
    }
    let third = slice.div_f64(3.0);
    let hot = sample::best(third, |times| (0..times).all(|_| team.run(2, &|_| ()).is_parallel()))?;
    // Long enough for the worker to have tired of spinning and gone to sleep.
    let pause = team.spin() * 3 + Duration::from_micros(100);
    let after_pause = |once: &dyn Fn() -> bool| {
        std::thread::sleep(pause);
        let start = Instant::now();
        let valid = once();
        let seconds = start.elapsed().as_secs_f64();
        valid.then_some(seconds)
    };
    let cold = sample::median(third, || {
        after_pause(&|| {
            let outcome = team.run(2, &|_| ());
            outcome != Outcome::Serial { reason: WhySerial::Busy }
        })
    })?;
    let wake = sample::median(third, || after_pause(&|| until_begun(team)))?;
    Some(Handoff { hot, cold, wake })
}

/// Part 0 holds on until part 1 has begun, so the caller cannot do it for the worker. Where the
/// worker cannot be had at all the parts run in turn, which must not hang: so not for ever. Tells
/// whether the worker came.
fn until_begun(team: &Team) -> bool {
    const LONGEST: Duration = Duration::from_millis(2);
    let begun = AtomicBool::new(false);
    let start = Instant::now();
    let outcome = team.run(2, &|part| {
        if part == 1 {
            begun.store(true, Relaxed);
        }
        while !begun.load(Relaxed) && start.elapsed() < LONGEST {
            std::hint::spin_loop();
        }
    });
    outcome.is_parallel()
}
