//! `fused` and `fused-vec4`: element-wise programs in one dispatch. `fused-each`, `fused-tree`, ..: groups that
//! end in reductions, a dispatch (or two) for each of those and one for all arrays.

use super::elementwise::{Cells, Cuts, addressable, cut, in_fours};
use super::method::{Method, on};
use super::reduce::{self, Form};
use super::{cost, map, single};
use crate::device::Gpu;
use crate::wgsl::{computable, turns};
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::expr::{Expr, Output};
use steersman_core::tune::Winners;
use steersman_core::{
    DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran, Refusal, Workload,
};

/// What comes out, and how it is cut: as by the kernels for single ops, whose code it is.
enum Way {
    /// Arrays, four elements at a time or one.
    Arrays { wide: bool, cuts: Arc<Cuts> },
    /// Reductions, and perhaps arrays.
    Reductions(Arc<reduce::Cuts>),
}

struct Fused {
    gpu: Arc<Gpu>,
    way: Way,
}

/// What is known of an expression, kept with it.
struct Note {
    /// Bytes of the largest state of its reductions, or why it is not computed.
    state: Result<usize, Refusal>,
    class: NumericClass,
    reduces: bool,
    /// Turns of loops an element takes.
    turns: usize,
}

/// Whose notes they are: any number that no other kernel uses.
const OWNER: u64 = 0x7767_7075;

pub(super) fn kernels(
    gpu: &Arc<Gpu>,
    device: DeviceId,
    prefix: &str,
    cuts: &[Arc<Cuts>; 2],
    forms: &[(Arc<reduce::Cuts>, &'static str)],
) -> Vec<Arc<dyn Kernel>> {
    let kernel = |name: &str, way: Way| -> Arc<dyn Kernel> {
        on(device, prefix, &format!("fused{name}"), Fused { gpu: gpu.clone(), way })
    };
    let [plain, wide] = cuts.clone();
    let mut all = vec![
        kernel("", Way::Arrays { wide: false, cuts: plain }),
        kernel("-vec4", Way::Arrays { wide: true, cuts: wide }),
    ];
    all.extend(forms.iter().map(|(c, name)| kernel(&format!("-{name}"), Way::Reductions(c.clone()))));
    all
}

impl Fused {
    fn note<'a>(&self, expr: &'a Expr) -> &'a Note {
        let f64 = self.gpu.can().f64;
        expr.notes().get(OWNER + u64::from(f64), || Note {
            state: computable(expr, f64).and_then(|()| reducible(expr, f64)),
            class: single::class(expr),
            reduces: expr.outputs().iter().any(|o| matches!(o, Output::Reduce { .. })),
            turns: turns(expr),
        })
    }

    /// Elements of a result, and bytes of the largest state.
    fn sizes(&self, w: &Workload, expr: &Expr) -> (usize, usize) {
        (Self::least(w, expr).1, self.note(expr).state.clone().unwrap_or(0))
    }

    /// Results and elements of each, of the reduction with the fewest results.
    fn least(w: &Workload, expr: &Expr) -> (usize, usize) {
        let elements: usize = w.dims().iter().product();
        let reduced = expr.outputs().iter().zip(w.outputs());
        let reduced = reduced.filter(|(o, _)| matches!(o, Output::Reduce { .. }));
        let outputs = reduced.map(|(_, spec)| spec.elements()).min().unwrap_or(1).max(1);
        (outputs, elements / outputs)
    }
}

fn reducible(expr: &Expr, f64: bool) -> Result<usize, Refusal> {
    expr.outputs().iter().try_fold(0, |most: usize, o| match *o {
        Output::Reduce { kind, value, .. } => Ok(most.max(reduce::takes(kind, expr.dtype_of(value), f64)?)),
        Output::Array(_) => Ok(most),
    })
}

impl Method for Fused {
    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Fused(_))
    }

    fn numerics(&self, w: &Workload) -> NumericClass {
        w.expr().map_or(NumericClass::Reassociated, |e| self.note(e).class)
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        let Some(expr) = w.expr() else { return Err(Refusal::new("not a fused group")) };
        let note = self.note(expr);
        let state = note.state.clone()?;
        addressable(&self.gpu, w)?;
        let most = self.gpu.limits().max_storage_buffers_per_shader_stage as usize;
        if w.inputs().len() + w.outputs().len() + 1 > most {
            return Err(Refusal::new(format!("a dispatch sees at most {most} buffers")));
        }
        // Offsets, dimensions and strides of each operand, scalars in two words.
        let words = (w.inputs().len() + w.outputs().len()) * 9 + 32 + 2 * expr.scalars().len();
        if words * 4 > self.gpu.limits().max_uniform_buffer_binding_size.min(1 << 16) as usize {
            return Err(Refusal::new("it has more scalars than a dispatch is told"));
        }
        match &self.way {
            Way::Arrays { .. } if note.reduces => Err(Refusal::new("it does not reduce")),
            Way::Arrays { wide, .. } => {
                let elements = w.dims().iter().product();
                Cells::of(elements, *wide, note.turns).within(&self.gpu)?;
                if *wide { in_fours(w) } else { Ok(()) }
            }
            Way::Reductions(_) if !note.reduces => Err(Refusal::new("there is nothing to reduce")),
            Way::Reductions(cuts) => {
                let least = Self::least(w, expr);
                reduce::fits(&self.gpu, cuts.form(), expr.dtype(), least, state, note.turns)
            }
        }
    }

    fn params(&self, w: &Workload) -> ParamList {
        let elements = w.dims().iter().product();
        match (&self.way, w.expr()) {
            (Way::Reductions(cuts), Some(expr)) => cuts.params(&self.gpu, w, self.sizes(w, expr)),
            (Way::Arrays { wide, cuts }, Some(expr)) => {
                cuts.params(&self.gpu, w, Cells::of(elements, *wide, self.note(expr).turns))
            }
            _ => ParamList::new(),
        }
    }

    fn space(&self, w: &Workload) -> Vec<Params> {
        let elements = w.dims().iter().product();
        match (&self.way, w.expr()) {
            (Way::Reductions(cuts), Some(expr)) => cuts.space(&self.gpu, self.sizes(w, expr)),
            (Way::Arrays { wide, cuts }, Some(expr)) => {
                cuts.space(&self.gpu, Cells::of(elements, *wide, self.note(expr).turns))
            }
            _ => Vec::new(),
        }
    }

    fn winners(&self) -> &Winners {
        match &self.way {
            Way::Reductions(cuts) => cuts.winners(),
            Way::Arrays { cuts, .. } => cuts.winners(),
        }
    }

    fn terms(&self, w: &Workload, _: Params, machine: &Machine) -> Terms {
        match (&self.way, w.expr()) {
            (Way::Reductions(cuts), Some(expr)) => {
                reduce::terms(&self.gpu, w, machine, cuts.form(), Self::least(w, expr).0)
            }
            (Way::Arrays { wide: true, .. }, _) => cost::terms(&self.gpu, w, machine, 1.0, 1.0, 1.0),
            _ => cost::terms(&self.gpu, w, machine, 1.0, 1.0, 1.5),
        }
    }

    fn scratch(&self, w: &Workload, p: Params) -> usize {
        match (&self.way, w.expr()) {
            (Way::Reductions(cuts), Some(expr)) if cuts.form() == Form::TwoPass => {
                let (outputs, each) = Self::least(w, expr);
                reduce::scratch(outputs, each, reduce::cut(p).chunk)
            }
            _ => 0,
        }
    }

    fn enqueue(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let Some(expr) = w.expr() else { return Err(KernelError::Failed("not a fused group".into())) };
        match &self.way {
            Way::Arrays { wide, .. } => map::run(&self.gpu, w, expr, io, *wide, cut(p)),
            Way::Reductions(cuts) => {
                let outputs = || expr.outputs().iter().enumerate();
                let reduces = |o: &Output| matches!(o, Output::Reduce { .. });
                // Arrays come last: one may replace an operand that the reductions read.
                let replaced = |i: usize| io.outputs().nth(i).is_some_and(|a| io.inputs.contains(&a));
                if expr.outputs().len() > 1 && outputs().any(|(i, o)| reduces(o) && replaced(i)) {
                    return Err(KernelError::Failed("a reduction replaces what others read".into()));
                }
                let mut clean = true;
                for (i, _) in outputs().filter(|(_, o)| reduces(o)) {
                    let ran = reduce::run(&self.gpu, w, expr, i, io, cuts.form(), reduce::cut(p))?;
                    clean &= ran == Ran::Clean;
                }
                let ran = map::run(&self.gpu, w, expr, io, false, map::CUTS[0])?;
                Ok(if clean { ran } else { Ran::Cold })
            }
        }
    }
}
