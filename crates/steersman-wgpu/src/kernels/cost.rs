//! Prior costs: a launch, bytes and operations at rates that were probed, or at modest ones that were not.

use crate::device::Gpu;
use steersman_core::Workload;
use steersman_core::cost::{Machine, Terms, Traffic};

/// Assumed where nothing was probed: a priori, never shown as a measurement.
struct Assumed {
    launch: f64,
    bandwidth: f64,
    peak: f64,
}

/// A driver that runs on the CPU: a submission wakes its threads. (Mesa's on two cores: 90 to 160 µs, 2.0 to 2.7 GB/s,
/// 21 Gflop/s.)
const SOFTWARE: Assumed = Assumed { launch: 150e-6, bandwidth: 2e9, peak: 8e9 };
/// An ordinary part of 2020.
const HARDWARE: Assumed = Assumed { launch: 40e-6, bandwidth: 150e9, peak: 3e12 };

/// The key of a device's peak in [`Machine::peak_f32`].
pub(crate) const PEAK: &str = "wgsl";

/// Whether work takes so long that the device should begin with it at once: several times what a submission takes.
pub(crate) fn is_long(gpu: &Gpu, w: &Workload) -> bool {
    let assumed = if gpu.software() { SOFTWARE } else { HARDWARE };
    w.bytes() / assumed.bandwidth + w.flops() / assumed.peak > 4.0 * assumed.launch
}

/// Launches, bytes and operations; `traffic` and `work` are how many times the least a kernel moves and does.
pub(crate) fn terms(
    gpu: &Gpu,
    w: &Workload,
    machine: &Machine,
    dispatches: f64,
    traffic: f64,
    work: f64,
) -> Terms {
    let assumed = if gpu.software() { SOFTWARE } else { HARDWARE };
    let launch = machine.handoff.unwrap_or(assumed.launch);
    let bandwidth = match machine.levels.is_empty() {
        true => assumed.bandwidth,
        false => machine.bandwidth(machine.levels.len() - 1, Traffic::Copy, 1),
    };
    let peak = machine.peak(PEAK, 4, assumed.peak);
    Terms::launch(launch * dispatches)
        .and(w.bytes() * traffic / bandwidth)
        .and(w.flops().max(w.dims().iter().product::<usize>() as f64) * work / peak)
}
