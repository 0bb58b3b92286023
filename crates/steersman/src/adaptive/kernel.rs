//! A variant as the engine sees it: a name, threads and counted work. The closure stays with its owner.

use steersman_core::cost::{Machine, Terms};
use steersman_core::{DeviceId, Kernel, Op, ParamList, Params, Refusal, Workload};

/// Nothing is known about user code: these only say what a time may be made of. The first runs set the
/// scale, and every rate is learned from there.
const CALL: f64 = 50e-9;
const EACH: f64 = 1e-9;
const EACH_LOG: f64 = 0.1e-9;
/// The caller's order is the only rank there is: each variant is supposed to be this much slower than the
/// one before it. More than the tie band, so that the first is the default.
const STEP: f64 = 0.05;

pub(super) struct VariantKernel {
    pub name: String,
    pub function: &'static str,
    pub device: DeviceId,
    pub params: Params,
    /// Place in the caller's order.
    pub place: usize,
    pub revision: u32,
}

impl Kernel for VariantKernel {
    fn name(&self) -> &str {
        &self.name
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn handles(&self, op: Op) -> bool {
        op == Op::Custom(self.function)
    }

    fn function(&self) -> Option<&'static str> {
        Some(self.function)
    }

    fn revision(&self) -> u32 {
        self.revision
    }

    fn supports(&self, _w: &Workload) -> Result<(), Refusal> {
        Ok(())
    }

    fn params(&self, _w: &Workload) -> ParamList {
        ParamList::from_slice(&[self.params])
    }

    /// A call, all sizes multiplied (n), n·log n; with several sizes also each by itself.
    fn terms(&self, w: &Workload, _p: Params, _machine: &Machine) -> Terms {
        let dims = &w.inputs()[0].dims;
        let n = dims.iter().map(|&d| d as f64).product::<f64>();
        let k = 1.0 + STEP * self.place as f64;
        let mut terms = Terms::launch(CALL * k).and(EACH * k * n).and(EACH_LOG * k * n * n.max(1.0).log2());
        if dims.len() > 1 {
            for &d in dims {
                terms = terms.and(EACH * k * d as f64);
            }
        }
        terms
    }
}
