//! `reduce-each`, `reduce-tree`, `reduce-subgroup`, `reduce-two-pass`: reductions over any axes; and the same
//! at the end of fused groups.

mod launch;
mod shader;
mod shape;
mod state;

pub(crate) use launch::{Form, run, scratch};

use super::nest::MOST;
use super::{cost, single};
use crate::device::Gpu;
use std::collections::HashMap;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::{
    DType, DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran, ReduceOp, Refusal,
    Workload,
};

/// Every form with its name.
pub(crate) const FORMS: [(Form, &str); 4] =
    [(Form::Each, "each"), (Form::Tree, "tree"), (Form::Subgroup, "subgroup"), (Form::TwoPass, "two-pass")];

/// Invocations of a workgroup by variant.
const WORKGROUPS: [u32; 2] = [64, 256];

struct Reduce {
    gpu: Arc<Gpu>,
    device: DeviceId,
    name: String,
    form: Form,
    /// Why a kind and type are not taken; what is absent is.
    refused: Arc<HashMap<(ReduceOp, DType), Refusal>>,
}

/// Every kernel this device can run.
pub(super) fn kernels(gpu: &Arc<Gpu>, device: DeviceId, prefix: &str) -> Vec<Arc<dyn Kernel>> {
    let all = ReduceOp::ALL.iter().flat_map(|k| DType::ALL.map(|d| (*k, d)));
    let refused = all.filter_map(|(k, d)| Some(((k, d), takes(k, d, gpu.can().f64).err()?))).collect();
    let refused = Arc::new(refused);
    forms(gpu)
        .map(|(form, name)| -> Arc<dyn Kernel> {
            let name = format!("{prefix}/reduce-{name}");
            Arc::new(Reduce { gpu: gpu.clone(), device, name, form, refused: Arc::clone(&refused) })
        })
        .collect()
}

/// The forms this device has.
pub(super) fn forms(gpu: &Gpu) -> impl Iterator<Item = (Form, &'static str)> {
    let subgroup = gpu.can().subgroup;
    FORMS.into_iter().filter(move |(f, _)| *f != Form::Subgroup || subgroup)
}

/// Whether a kind can be computed over elements of a type.
pub(crate) fn takes(kind: ReduceOp, d: DType, f64: bool) -> Result<(), Refusal> {
    if d == DType::F64 && !f64 {
        return Err(Refusal::new("this adapter does not compute in f64, and nothing is rounded silently"));
    }
    match shader::state_bytes(kind, d) {
        Some(_) => Ok(()),
        None => Err(Refusal::new(format!(
            "there is no {} of {d} in WGSL: it has no 64-bit integers",
            kind.name()
        ))),
    }
}

/// What a form does not take of `outputs` results of `each` elements of `d`, of which each takes so many turns.
pub(crate) fn fits(
    gpu: &Gpu,
    form: Form,
    d: DType,
    (outputs, each): (usize, usize),
    element: usize,
) -> Result<(), Refusal> {
    let groups = gpu.limits().max_compute_workgroups_per_dimension as usize;
    let smallest = WORKGROUPS[0] as usize;
    // A turn each element, one more each block of 32, and a few to join.
    let turns = |results: usize, elements: usize| results * (elements * element + elements / 32 + 16);
    let turns = match form {
        Form::Each => turns(outputs.div_ceil(groups * smallest), each),
        Form::Tree | Form::Subgroup => turns(outputs.div_ceil(groups), each.div_ceil(smallest)),
        Form::TwoPass => {
            turns(outputs.div_ceil(groups), each.div_ceil(smallest * launch::chunks(each as u32) as usize))
        }
    };
    if turns > gpu.most_turns() {
        return Err(Refusal::new("so many elements a result are more turns than one invocation may take"));
    }
    match form {
        Form::Subgroup if d == DType::F64 => Err(Refusal::new("lanes of a subgroup do not exchange f64")),
        Form::TwoPass if each < 4096 => Err(Refusal::new("too few elements a result to share it")),
        _ => Ok(()),
    }
}

/// The parameters of a form.
pub(crate) fn params(gpu: &Gpu, form: Form, each: usize) -> ParamList {
    let most = gpu.limits().max_compute_invocations_per_workgroup;
    let long = |size: u32| form != Form::Each && each > 4 * size as usize;
    let list = WORKGROUPS.iter().enumerate().filter(|(v, s)| *v == 0 || **s <= most && long(**s));
    list.map(|(v, _)| Params { threads: 1, variant: v as u16 }).collect()
}

/// The workgroup of a variant.
pub(crate) fn workgroup(p: Params) -> u32 {
    WORKGROUPS[usize::from(p.variant).min(WORKGROUPS.len() - 1)]
}

/// Prior costs of reducing `each` elements to each of `outputs` results: a form that leaves most of the
/// device idle takes as many times longer.
pub(crate) fn terms(gpu: &Gpu, w: &Workload, machine: &Machine, form: Form, outputs: usize) -> Terms {
    let wanted = if gpu.software() { 16.0 } else { 16384.0 };
    let busy = match form {
        Form::Each => outputs as f64,
        Form::Tree | Form::Subgroup => outputs as f64 * 64.0,
        Form::TwoPass => wanted,
    };
    let idle = (wanted / busy.max(1.0)).max(1.0);
    let dispatches = if form == Form::TwoPass { 1.5 } else { 1.0 };
    cost::terms(gpu, w, machine, dispatches, idle, idle)
}

impl Reduce {
    fn kind(w: &Workload) -> Result<ReduceOp, Refusal> {
        match w.op() {
            Op::Reduce { kind, .. } => Ok(kind),
            _ => Err(Refusal::new("it only reduces")),
        }
    }

    fn each(w: &Workload) -> usize {
        w.inputs()[0].elements() / w.output().elements().max(1)
    }
}

impl Kernel for Reduce {
    fn name(&self) -> &str {
        &self.name
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Reduce { .. })
    }

    fn numerics(&self, w: &Workload) -> NumericClass {
        let exact = !w.dtype().is_float()
            || w.dtype() != DType::F64 && Self::kind(w).is_ok_and(|k| !k.has_identity())
            || matches!(w.output().dtype, DType::Bool | DType::I64);
        if exact { NumericClass::Exact } else { NumericClass::Reassociated }
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        let kind = Self::kind(w)?;
        if let Some(why) = self.refused.get(&(kind, w.dtype())) {
            return Err(why.clone());
        }
        if w.inputs()[0].elements() >= MOST {
            return Err(Refusal::new("positions in a shader have 31 bits"));
        }
        fits(&self.gpu, self.form, w.dtype(), (w.output().elements(), Self::each(w)), 1)
    }

    fn params(&self, w: &Workload) -> ParamList {
        params(&self.gpu, self.form, Self::each(w))
    }

    fn terms(&self, w: &Workload, _: Params, machine: &Machine) -> Terms {
        terms(&self.gpu, w, machine, self.form, w.output().elements())
    }

    fn scratch(&self, w: &Workload, _: Params) -> usize {
        if self.form == Form::TwoPass { scratch(w.output().elements(), Self::each(w)) } else { 0 }
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let expr = single::of_op(w.op(), w.dtype()).map_err(|e| KernelError::Failed(e.to_string()))?;
        run(&self.gpu, w, &expr, 0, io, self.form, workgroup(p))
    }
}
