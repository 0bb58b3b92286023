//! A device finds out how quick it is.

mod hosted;

use hosted::gpu;
use std::time::Duration;

#[test]
fn a_probe_measures_what_there_is_time_for() {
    let Some(gpu) = gpu() else { return };
    let none = gpu.probe(Duration::ZERO).expect("no time, no error");
    assert!(none.machine.handoff.is_none() && none.link.upload.is_empty());
    let all = gpu.probe(Duration::from_secs(20)).expect("a probe");
    assert!(all.machine.handoff.is_some_and(|h| h > 0.0) && !all.machine.levels.is_empty());
    assert!(!all.machine.peak_f32.is_empty());
    assert!(all.link.joined.is_some_and(|s| s.0 >= 0.0 && s.0 < 1.0));
    assert!(all.link.upload.len() >= 4 && all.link.upload.len() == all.link.download.len());
}
