//! A kernel and a bench for tests of this module.

use super::{Bench, Kind, Winners};
use crate::cost::{Machine, Terms, Variant};
use crate::device::DeviceId;
use crate::kernel::{Kernel, KernelError, ParamList, Params, Ran, Refusal};
use crate::measure::Rig;
use crate::op::Op;
use crate::workload::Workload;

/// Thought to take so many seconds for everything.
#[derive(Default)]
pub struct Plain {
    pub seconds: f64,
    /// With these it has a space of five points.
    pub winners: Option<Winners>,
}

impl Kernel for Plain {
    fn name(&self) -> &str {
        "test/plain"
    }
    fn device(&self) -> DeviceId {
        DeviceId(0)
    }
    fn handles(&self, _: Op) -> bool {
        true
    }
    fn supports(&self, _: &Workload) -> Result<(), Refusal> {
        Ok(())
    }
    fn params(&self, w: &Workload) -> ParamList {
        let kept = self.winners.as_ref().and_then(|all| all.near(Kind::of(w)));
        smallvec::smallvec![kept.unwrap_or(Params::SERIAL)]
    }
    fn space(&self, w: &Workload) -> Vec<Params> {
        match self.winners {
            Some(_) => (0..5).map(|variant| Params { threads: 1, variant }).collect(),
            None => self.params(w).to_vec(),
        }
    }
    fn winners(&self) -> Option<&Winners> {
        self.winners.as_ref()
    }
    fn terms(&self, _: &Workload, _: Params, _: &Machine) -> Terms {
        Terms::launch(self.seconds)
    }
}

/// Runs this for every run.
#[derive(Clone)]
pub struct Script<F>(pub F);

struct Scene<F>(Workload, F);

impl<F: Fn(&Workload, Variant) -> Result<Ran, KernelError> + Send> Rig for Scene<F> {
    fn run(&mut self, v: Variant) -> Result<Ran, KernelError> {
        self.1(&self.0, v)
    }
    fn check(&mut self, _: Variant) -> Result<(), String> {
        Ok(())
    }
}

impl<F: Fn(&Workload, Variant) -> Result<Ran, KernelError> + Clone + Send + 'static> Bench for Script<F> {
    fn rig(&self, w: &Workload) -> Result<Box<dyn Rig>, String> {
        Ok(Box::new(Scene(w.clone(), self.0.clone())))
    }
}
