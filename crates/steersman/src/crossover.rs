//! Where threads begin to pay, from what was learned.

use steersman_core::{Engine, Workload};

/// Elements from which two or more threads win `add f32`; `None` if they never do, or nothing is known.
pub fn parallel_from(engine: &Engine) -> Option<usize> {
    let wins = |n: usize| -> Option<bool> {
        let w: Workload = format!("add f32 {n} {n}").parse().ok()?;
        engine.judge(&w).ok().map(|d| d.params().threads > 1)
    };
    let (mut below, mut above) = (1usize, 1usize << 26);
    if wins(below)? || !wins(above)? {
        return None;
    }
    while above - below > below / 20 + 1 {
        let mid = below.midpoint(above);
        if wins(mid)? { above = mid } else { below = mid }
    }
    Some(above)
}
