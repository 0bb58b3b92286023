//! A variant as the engine sees it: a name, threads and counted work. The closure stays with its owner.

use steersman_core::cost::{Machine, Terms};
use steersman_core::{DeviceId, Kernel, Op, OpClass, ParamList, Params, Refusal, Workload};

/// Nothing is known about user code, so these only rank one thread against several until the first
/// run: a nanosecond an element, a tenth of one per element and doubling, 10 µs to get threads going.
const CALL: f64 = 50e-9;
const FORK: f64 = 10e-6;
const EACH: f64 = 1e-9;
const EACH_LOG: f64 = 0.1e-9;

pub(super) struct VariantKernel {
    pub name: String,
    pub function: &'static str,
    pub device: DeviceId,
    pub params: Params,
}

impl Kernel for VariantKernel {
    fn name(&self) -> &str {
        &self.name
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn class(&self) -> OpClass {
        OpClass::Custom
    }

    fn handles(&self, op: Op) -> bool {
        op == Op::Custom(self.function)
    }

    fn supports(&self, _w: &Workload) -> Result<(), Refusal> {
        Ok(())
    }

    fn params(&self, _w: &Workload) -> ParamList {
        ParamList::from_slice(&[self.params])
    }

    /// A call, all sizes multiplied (n), n·log n; with several sizes also each by itself.
    fn terms(&self, w: &Workload, p: Params, _machine: &Machine) -> Terms {
        let threads = f64::from(p.threads.max(1));
        let dims = &w.inputs()[0].dims;
        let n = dims.iter().map(|&d| d as f64).product::<f64>();
        let launch = if p.threads > 1 { FORK } else { CALL };
        let mut terms =
            Terms::launch(launch).and(EACH * n / threads).and(EACH_LOG * n * n.max(1.0).log2() / threads);
        if dims.len() > 1 {
            for &d in dims {
                terms = terms.and(EACH * d as f64 / threads);
            }
        }
        terms
    }
}
