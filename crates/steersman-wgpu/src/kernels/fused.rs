//! `fused` and `fused-vec4`: element-wise programs in one dispatch.

use super::elementwise::{addressable, cut, cuts, in_fours};
use super::map::run;
use super::{cost, single};
use crate::device::Gpu;
use crate::wgsl::computable;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::expr::{Expr, Output};
use steersman_core::{
    DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran, Refusal, Workload,
};

struct Fused {
    gpu: Arc<Gpu>,
    device: DeviceId,
    name: String,
    wide: bool,
}

/// What is known of an expression, kept with it.
struct Note {
    computable: Result<(), Refusal>,
    class: NumericClass,
}

/// Whose notes they are: any number that no other kernel uses.
const OWNER: u64 = 0x7767_7075;

pub(super) fn kernels(gpu: &Arc<Gpu>, device: DeviceId) -> Vec<Arc<dyn Kernel>> {
    let family = &gpu.identity().family;
    let kernel = |name: &str, wide: bool| -> Arc<dyn Kernel> {
        Arc::new(Fused { gpu: gpu.clone(), device, name: format!("{family}/{name}"), wide })
    };
    vec![kernel("fused", false), kernel("fused-vec4", true)]
}

impl Fused {
    fn note<'a>(&self, expr: &'a Expr) -> &'a Note {
        let f64 = self.gpu.can().f64;
        expr.notes().get(OWNER + u64::from(f64), || Note {
            computable: computable(expr, f64),
            class: single::class(expr),
        })
    }
}

impl Kernel for Fused {
    fn name(&self) -> &str {
        &self.name
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Fused(_))
    }

    fn numerics(&self, w: &Workload) -> NumericClass {
        w.expr().map_or(NumericClass::Reassociated, |e| self.note(e).class)
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        let Some(expr) = w.expr() else { return Err(Refusal::new("not a fused group")) };
        self.note(expr).computable.clone()?;
        addressable(w)?;
        if expr.outputs().iter().any(|o| matches!(o, Output::Reduce { .. })) {
            return Err(Refusal::new("reductions of fused groups are not for this kernel"));
        }
        let most = self.gpu.limits().max_storage_buffers_per_shader_stage as usize;
        if w.inputs().len() + w.outputs().len() > most {
            return Err(Refusal::new(format!("a dispatch sees at most {most} buffers")));
        }
        if self.wide { in_fours(w) } else { Ok(()) }
    }

    fn params(&self, w: &Workload) -> ParamList {
        cuts(&self.gpu, w.dims().iter().product())
    }

    fn terms(&self, w: &Workload, _: Params, machine: &Machine) -> Terms {
        cost::terms(&self.gpu, w, machine, 1.0, 1.0, if self.wide { 1.0 } else { 1.5 })
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let Some(expr) = w.expr() else { return Err(KernelError::Failed("not a fused group".into())) };
        run(&self.gpu, w, expr, io, self.wide, cut(p)).map(|()| Ran::Clean)
    }
}
