//! `reduce-each`, `reduce-tree`, `reduce-subgroup`, `reduce-two-pass`: reductions over any axes; and the same
//! at the end of fused groups.

mod launch;
mod room;
mod shader;
mod shape;
mod state;

pub(crate) use launch::{Form, run, scratch};

use super::elementwise::bindable;
use super::method::{Method, on};
use super::nest::MOST;
use super::space::{space, weighed};
use super::{cost, single};
use crate::device::Gpu;
use room::Room;
use std::collections::HashMap;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::tune::Winners;
use steersman_core::{
    DType, DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran, ReduceOp, Refusal,
    Workload,
};

/// Every form with its name.
pub(crate) const FORMS: [(Form, &str); 4] =
    [(Form::Each, "each"), (Form::Tree, "tree"), (Form::Subgroup, "subgroup"), (Form::TwoPass, "two-pass")];

/// How a reduction is cut: invocations of a workgroup, and elements of a result that one of several workgroups takes
/// at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub workgroup: u32,
    pub chunk: u32,
}

const fn of(workgroup: u32, chunk: u32) -> Cut {
    Cut { workgroup, chunk }
}

/// Cuts by variant. The order is what is remembered of them: new ones go at the end.
const CUTS: [Cut; 10] = [
    of(64, 2048),
    of(256, 2048),
    of(32, 2048),
    of(128, 2048),
    of(512, 2048),
    of(1024, 2048),
    of(64, 16384),
    of(256, 16384),
    of(512, 16384),
    of(256, 131_072),
];

/// Those with the first one's chunk differ in the workgroup alone.
const ONE_PASS: usize = 6;

/// Which cuts a device takes for a form, and which of them won.
pub(crate) struct Cuts {
    form: Form,
    winners: Winners,
}

impl Cuts {
    pub fn new(form: Form) -> Cuts {
        Cuts { form, winners: Winners::default() }
    }

    pub fn form(&self) -> Form {
        self.form
    }

    /// Whether a variant is legal for results of `each` elements, with states of so many bytes, and worth it.
    fn fits(&self, gpu: &Gpu, variant: usize, (each, state): (usize, usize)) -> bool {
        let room = Room::of(gpu);
        CUTS.get(variant).filter(|c| room.takes(self.form, c.workgroup, state)).is_some_and(|c| {
            let worth = match self.form {
                Form::Each => variant < ONE_PASS && c.workgroup <= 256,
                Form::Tree | Form::Subgroup => variant < ONE_PASS && each > 4 * c.workgroup as usize,
                Form::TwoPass => each > 4 * c.workgroup as usize && each > 2 * c.chunk as usize,
            };
            worth || room.smallest(self.form, state) == Ok(variant)
        })
    }

    pub fn params(&self, gpu: &Gpu, w: &Workload, (each, state): (usize, usize)) -> ParamList {
        let usual = || match self.form != Form::Each && self.fits(gpu, 1, (each, state)) {
            true => 1,
            false => Room::of(gpu).smallest(self.form, state).unwrap_or(0),
        };
        weighed(&self.winners, w, |v| self.fits(gpu, v, (each, state)), usual)
    }

    pub fn space(&self, gpu: &Gpu, (each, state): (usize, usize)) -> Vec<Params> {
        space(0..CUTS.len(), |v| self.fits(gpu, v, (each, state)))
    }

    pub fn winners(&self) -> &Winners {
        &self.winners
    }
}

/// The cut of a variant.
pub(crate) fn cut(p: Params) -> Cut {
    CUTS[usize::from(p.variant).min(CUTS.len() - 1)]
}

/// Bytes that a reduction keeps for each invocation, or why there is none.
type States = HashMap<(ReduceOp, DType), Result<usize, Refusal>>;

struct Reduce {
    gpu: Arc<Gpu>,
    form: Form,
    /// Bytes of the state of a kind and type, or why they are not taken.
    states: Arc<States>,
    cuts: Arc<Cuts>,
}

/// Every kernel this device can run.
pub(super) fn kernels(
    gpu: &Arc<Gpu>,
    device: DeviceId,
    prefix: &str,
    forms: &[(Arc<Cuts>, &'static str)],
) -> Vec<Arc<dyn Kernel>> {
    let all = ReduceOp::ALL.iter().flat_map(|k| DType::ALL.map(|d| (*k, d)));
    let states: States = all.map(|(k, d)| ((k, d), takes(k, d, gpu.can().f64))).collect();
    let states = Arc::new(states);
    forms
        .iter()
        .map(|(cuts, name)| -> Arc<dyn Kernel> {
            let (gpu, cuts, states) = (gpu.clone(), cuts.clone(), Arc::clone(&states));
            on(device, prefix, &format!("reduce-{name}"), Reduce { gpu, form: cuts.form, states, cuts })
        })
        .collect()
}

/// The forms this device has, each with its name. What wins at the end of a fused group is what wins alone.
pub(super) fn forms(gpu: &Gpu) -> Vec<(Arc<Cuts>, &'static str)> {
    let subgroup = gpu.can().subgroup;
    let there = FORMS.into_iter().filter(|(f, _)| *f != Form::Subgroup || subgroup);
    there.map(|(form, name)| (Arc::new(Cuts::new(form)), name)).collect()
}

/// Bytes of what a kind keeps over elements of a type, or why it is not computed.
pub(crate) fn takes(kind: ReduceOp, d: DType, f64: bool) -> Result<usize, Refusal> {
    if d == DType::F64 && !f64 {
        return Err(Refusal::new("this adapter does not compute in f64, and nothing is rounded silently"));
    }
    match shader::state_bytes(kind, d) {
        Some(bytes) => Ok(bytes),
        None => Err(Refusal::new(format!(
            "there is no {} of {d} in WGSL: it has no 64-bit integers",
            kind.name()
        ))),
    }
}

/// What a form does not take of `outputs` results of `each` elements of `d`, with states of so many bytes. `element`
/// is the turns that one element takes.
pub(crate) fn fits(
    gpu: &Gpu,
    form: Form,
    d: DType,
    (outputs, each): (usize, usize),
    state: usize,
    element: usize,
) -> Result<(), Refusal> {
    let groups = gpu.limits().max_compute_workgroups_per_dimension as usize;
    if form == Form::Subgroup && d == DType::F64 {
        return Err(Refusal::new("lanes of a subgroup do not exchange f64"));
    }
    let smallest = CUTS[Room::of(gpu).smallest(form, state)?].workgroup as usize;
    // A turn each element, one more each block of 32, and a few to join.
    let turns = |results: usize, elements: usize| results * (elements * element + elements / 32 + 16);
    let turns = match form {
        Form::Each => turns(outputs.div_ceil(groups * smallest), each),
        Form::Tree | Form::Subgroup => turns(outputs.div_ceil(groups), each.div_ceil(smallest)),
        Form::TwoPass => turns(
            outputs.div_ceil(groups),
            each.div_ceil(smallest * launch::chunks(each as u32, CUTS[0].chunk) as usize),
        ),
    };
    if turns > gpu.most_turns() {
        return Err(Refusal::new("so many elements a result are more turns than one invocation may take"));
    }
    match form {
        Form::TwoPass if each < 4096 => Err(Refusal::new("too few elements a result to share it")),
        _ => Ok(()),
    }
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

    /// Bytes of the workload's state.
    fn state(&self, w: &Workload) -> Result<usize, Refusal> {
        let known = self.states.get(&(Self::kind(w)?, w.dtype()));
        known.cloned().unwrap_or_else(|| Err(Refusal::new("it only reduces")))
    }

    /// Elements of a result, and bytes of their state.
    fn sizes(&self, w: &Workload) -> (usize, usize) {
        (Self::each(w), self.state(w).unwrap_or(0))
    }

    fn each(w: &Workload) -> usize {
        w.inputs()[0].elements() / w.output().elements().max(1)
    }
}

impl Method for Reduce {
    fn gpu(&self) -> &Gpu {
        &self.gpu
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
        let state = self.state(w)?;
        bindable(&self.gpu, w)?;
        if w.inputs()[0].elements() >= MOST {
            return Err(Refusal::new("positions in a shader have 31 bits"));
        }
        fits(&self.gpu, self.form, w.dtype(), (w.output().elements(), Self::each(w)), state, 1)
    }

    fn params(&self, w: &Workload) -> ParamList {
        self.cuts.params(&self.gpu, w, self.sizes(w))
    }

    fn space(&self, w: &Workload) -> Vec<Params> {
        self.cuts.space(&self.gpu, self.sizes(w))
    }

    fn winners(&self) -> &Winners {
        self.cuts.winners()
    }

    fn terms(&self, w: &Workload, _: Params, machine: &Machine) -> Terms {
        terms(&self.gpu, w, machine, self.form, w.output().elements())
    }

    fn scratch(&self, w: &Workload, p: Params) -> usize {
        if self.form == Form::TwoPass {
            scratch(w.output().elements(), Self::each(w), cut(p).chunk)
        } else {
            0
        }
    }

    fn enqueue(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let expr = single::of_op(w.op(), w.dtype()).map_err(|e| KernelError::Failed(e.to_string()))?;
        run(&self.gpu, w, &expr, 0, io, self.form, cut(p))
    }
}
