//! `fused` and `fused-vec4`: element-wise programs in one dispatch. `fused-each`, `fused-tree`, ..: groups that
//! end in reductions, a dispatch (or two) for each of those and one for all arrays.

use super::elementwise::{addressable, cut, cuts, in_fours};
use super::reduce::{self, Form};
use super::{cost, map, single};
use crate::device::Gpu;
use crate::wgsl::{computable, turns};
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::expr::{Expr, Output};
use steersman_core::{
    DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran, Refusal, Workload,
};

/// What comes out.
#[derive(Clone, Copy)]
enum Way {
    /// Arrays, four elements at a time or one.
    Arrays { wide: bool },
    /// Reductions, and perhaps arrays.
    Reductions(Form),
}

struct Fused {
    gpu: Arc<Gpu>,
    device: DeviceId,
    name: String,
    way: Way,
}

/// What is known of an expression, kept with it.
struct Note {
    computable: Result<(), Refusal>,
    class: NumericClass,
    reduces: bool,
    /// Turns of loops an element takes.
    turns: usize,
}

/// Whose notes they are: any number that no other kernel uses.
const OWNER: u64 = 0x7767_7075;

pub(super) fn kernels(gpu: &Arc<Gpu>, device: DeviceId, prefix: &str) -> Vec<Arc<dyn Kernel>> {
    let kernel = |name: String, way: Way| -> Arc<dyn Kernel> {
        Arc::new(Fused { gpu: gpu.clone(), device, name: format!("{prefix}/fused{name}"), way })
    };
    let mut all = vec![
        kernel(String::new(), Way::Arrays { wide: false }),
        kernel("-vec4".into(), Way::Arrays { wide: true }),
    ];
    all.extend(reduce::forms(gpu).map(|(form, name)| kernel(format!("-{name}"), Way::Reductions(form))));
    all
}

impl Fused {
    fn note<'a>(&self, expr: &'a Expr) -> &'a Note {
        let f64 = self.gpu.can().f64;
        expr.notes().get(OWNER + u64::from(f64), || Note {
            computable: computable(expr, f64).and_then(|()| reducible(expr, f64)),
            class: single::class(expr),
            reduces: expr.outputs().iter().any(|o| matches!(o, Output::Reduce { .. })),
            turns: turns(expr),
        })
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

fn reducible(expr: &Expr, f64: bool) -> Result<(), Refusal> {
    expr.outputs().iter().try_for_each(|o| match *o {
        Output::Reduce { kind, value, .. } => reduce::takes(kind, expr.dtype_of(value), f64),
        Output::Array(_) => Ok(()),
    })
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
        let note = self.note(expr);
        note.computable.clone()?;
        addressable(w)?;
        let most = self.gpu.limits().max_storage_buffers_per_shader_stage as usize;
        if w.inputs().len() + w.outputs().len() + 1 > most {
            return Err(Refusal::new(format!("a dispatch sees at most {most} buffers")));
        }
        // Offsets, dimensions and strides of each operand, scalars in two words.
        let words = (w.inputs().len() + w.outputs().len()) * 9 + 32 + 2 * expr.scalars().len();
        if words * 4 > self.gpu.limits().max_uniform_buffer_binding_size.min(1 << 16) as usize {
            return Err(Refusal::new("it has more scalars than a dispatch is told"));
        }
        match self.way {
            Way::Arrays { .. } if note.reduces => Err(Refusal::new("it does not reduce")),
            Way::Arrays { wide: true } => in_fours(w),
            Way::Arrays { wide: false } => Ok(()),
            Way::Reductions(_) if !note.reduces => Err(Refusal::new("there is nothing to reduce")),
            Way::Reductions(form) => {
                reduce::fits(&self.gpu, form, expr.dtype(), Self::least(w, expr), note.turns)
            }
        }
    }

    fn params(&self, w: &Workload) -> ParamList {
        match (self.way, w.expr()) {
            (Way::Reductions(form), Some(expr)) => reduce::params(&self.gpu, form, Self::least(w, expr).1),
            _ => cuts(&self.gpu, w.dims().iter().product()),
        }
    }

    fn terms(&self, w: &Workload, _: Params, machine: &Machine) -> Terms {
        match (self.way, w.expr()) {
            (Way::Reductions(form), Some(expr)) => {
                reduce::terms(&self.gpu, w, machine, form, Self::least(w, expr).0)
            }
            (Way::Arrays { wide: true }, _) => cost::terms(&self.gpu, w, machine, 1.0, 1.0, 1.0),
            _ => cost::terms(&self.gpu, w, machine, 1.0, 1.0, 1.5),
        }
    }

    fn scratch(&self, w: &Workload, _: Params) -> usize {
        match (self.way, w.expr()) {
            (Way::Reductions(Form::TwoPass), Some(expr)) => {
                let (outputs, each) = Self::least(w, expr);
                reduce::scratch(outputs, each)
            }
            _ => 0,
        }
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let Some(expr) = w.expr() else { return Err(KernelError::Failed("not a fused group".into())) };
        match self.way {
            Way::Arrays { wide } => map::run(&self.gpu, w, expr, io, wide, cut(p)),
            Way::Reductions(form) => {
                let outputs = || expr.outputs().iter().enumerate();
                let reduces = |o: &Output| matches!(o, Output::Reduce { .. });
                // Arrays come last: one may replace an operand that the reductions read.
                let replaced = |i: usize| io.outputs().nth(i).is_some_and(|a| io.inputs.contains(&a));
                if expr.outputs().len() > 1 && outputs().any(|(i, o)| reduces(o) && replaced(i)) {
                    return Err(KernelError::Failed("a reduction replaces what others read".into()));
                }
                let mut clean = true;
                for (i, _) in outputs().filter(|(_, o)| reduces(o)) {
                    let ran = reduce::run(&self.gpu, w, expr, i, io, form, reduce::workgroup(p))?;
                    clean &= ran == Ran::Clean;
                }
                let ran = map::run(&self.gpu, w, expr, io, false, map::CUTS[0])?;
                Ok(if clean { ran } else { Ran::Disturbed })
            }
        }
    }
}
