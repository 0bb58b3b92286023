//! What element-wise kernels count: a call, and elements at each memory level.

use crate::isa::Level;
use steersman_core::cost::{Machine, Terms, Traffic};
use steersman_core::{DType, Layout, Op, Workload};

/// Seconds of a call on a few elements: 24 to 27 ns on a Zen 4.
const CALL: f64 = 25e-9;
/// Seconds to bring one element of a strided operand through a buffer: 0.8 ns for a transposed matrix of
/// 4 MB on a Zen 4.
const GATHERED: f64 = 0.8e-9;

/// Seconds to begin another run of elements where operands are not one: 1 to 2 ns for a row of a few elements.
const RUN: f64 = 1.5e-9;

/// Of the time that operands take which are read and written past the caches, the part in which elements are computed for
/// nothing. (On a Xeon, 2.1 million f32 on two threads: `add` 364 µs, `div` 388, which computes for 227.)
const HIDDEN: f64 = 0.5;

/// Elements of the innermost dimension that has more than one.
fn last(w: &Workload) -> f64 {
    w.output().row() as f64
}

/// How a kernel's elements are counted.
pub struct Rate<'a> {
    /// The name its measured rates go by.
    pub kernel: &'a str,
    /// The instruction set whose peak stands in where none was measured.
    pub level: Level,
    /// How many of that instruction set's lanes it uses: 1, or less for one element at a time.
    pub share: f64,
    /// How results reach memory.
    pub traffic: Traffic,
}

/// Operations of one element at the peak that is assumed.
pub fn flops(op: Op) -> f64 {
    super::operations::at_peak(op)
}

/// A call, then elements by memory level (L1, L2, L3, main), then strided elements, then runs of elements. A kernel that
/// writes past the caches computes a burst and writes it then: what of its computing does not fit beside the moving it
/// counts apart, last.
pub fn terms(w: &Workload, threads: usize, machine: &Machine, rate: Rate<'_>) -> Terms {
    let n = w.output().elements() as f64;
    let dtype = w.dtype();
    // Half precision is converted on the way in and out, a few operations each.
    let half = matches!(dtype, DType::F16 | DType::BF16);
    let (extra, size) = if half { (6.0 * (w.inputs().len() + 1) as f64, 4) } else { (0.0, dtype.size()) };
    let element = machine.rate(rate.kernel, w.op(), dtype).unwrap_or_else(|| {
        (flops(w.op()) + extra)
            / (machine.peak(rate.level.name(), size, rate.level.assumed_peak()) * rate.share)
    }) / threads as f64;
    let (bytes, streams) = (w.bytes(), rate.traffic == Traffic::Stream);
    let mut terms = Terms::launch(CALL + machine.handoff(threads));
    let mut past = 0.0;
    for (weight, bandwidth) in machine.streams(bytes, rate.traffic, threads) {
        let moved = bytes / bandwidth;
        past += weight * moved;
        terms = terms.and(weight * if streams { moved } else { moved.max(n * element) });
    }
    let (layout, threads) = (w.layout(), threads as f64);
    let strided = if layout == Layout::Strided { n * GATHERED / threads } else { 0.0 };
    let runs = if layout == Layout::Contiguous { 0.0 } else { n / last(w).max(1.0) };
    let terms = terms.and(strided).and(runs * RUN / threads);
    if streams { terms.and((n * element - HIDDEN * past).max(0.0)) } else { terms }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_writes_past_the_caches_computes_and_then_writes() {
        let total = |op: &str, traffic| {
            let w: Workload = format!("{op} f32 30000000").parse().unwrap();
            let rate = Rate { kernel: "", level: Level::Baseline, share: 1e-3, traffic };
            terms(&w, 1, &Machine::default(), rate).total()
        };
        // At a thousandth of the lanes computing takes far longer than moving, which then goes on beside it or not.
        for op in ["relu", "tanh"] {
            let (cached, streamed) = (total(op, Traffic::Copy), total(op, Traffic::Stream));
            assert!(streamed > cached, "{op}: {streamed} after {cached}");
        }
    }
}
