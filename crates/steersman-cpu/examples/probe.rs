//! The limits of this machine: `cargo run --release -p steersman-cpu --example probe`.

use steersman_cpu::host::Host;
use steersman_cpu::probe::{self, Store};
use steersman_cpu::threads::Team;

fn main() {
    let host = Host::detect();
    println!("{host:#?}");
    let team = Team::new(host.cores);
    let probes = probe::run(&host, &team, probe::DEFAULT_BUDGET, &mut |_, _| true).unwrap_or_default();
    for peak in &probes.peaks {
        let (single, double) = (peak.f32_flops / 1e9, peak.f64_flops / 1e9);
        println!("{:<8} {single:7.1} Gflop/s f32 {double:7.1} Gflop/s f64, one core", peak.isa);
    }
    println!("store  threads  bytes each     read     copy    triad   GB/s");
    for found in &probes.bandwidths {
        let store = match found.store {
            Store::Cache(level) => format!("L{level}"),
            Store::Main => "main".to_owned(),
        };
        let [read, copy, triad] = [found.read, found.copy, found.triad].map(|rate| rate / 1e9);
        let (threads, bytes) = (found.threads, found.bytes_per_thread);
        println!("{store:<6} {threads:7} {bytes:11} {read:8.1} {copy:8.1} {triad:8.1}");
    }
    if let Some(rate) = probes.first_touch {
        println!("first touch {:.2} GB/s", rate / 1e9);
    }
    if let Some(handoff) = probes.handoff {
        let [hot, cold, wake] = [handoff.hot, handoff.cold, handoff.wake].map(|seconds| seconds * 1e6);
        println!("hand-off hot {hot:.2} µs, cold {cold:.2} µs, worker up after {wake:.1} µs");
    }
    if let Some(clock) = probes.clock {
        println!("clock {:.1} ns", clock * 1e9);
    }
    println!("took {:.0} ms", probes.took * 1e3);
}
