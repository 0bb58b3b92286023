//! What was learned in earlier processes, put back: at once for kernels that are here, on registration for
//! those that come later (a user's own kernels and functions mostly do).

use super::{Engine, lock};
use crate::cost::{CellKey, Knowledge, Variant};
use crate::dtype::DType;
use crate::kernel::{Kernel, Params};
use crate::op::{FUSED, Op, OpClass, ReduceOp};
use crate::workload::Layout;
use std::collections::HashMap;

/// Older code or an older driver: its data has a tenth of the say.
const FADE: f64 = 0.1;

/// One remembered cell of the model. Names instead of indices: those change from process to process.
#[derive(Clone, Debug)]
pub struct Remembered {
    /// The kernel's revision when it was measured.
    pub revision: u32,
    /// The parameters it was measured with.
    pub params: Params,
    /// The op's name, or `None` for the pool of its class.
    pub op: Option<String>,
    /// The op's class.
    pub class: OpClass,
    /// Element type.
    pub dtype: DType,
    /// Layout of the operands.
    pub layout: Layout,
    /// What was learned.
    pub knowledge: Knowledge,
}

impl Remembered {
    /// Where it belongs, if the kernel is about that op.
    fn key(&self, index: u16, kernel: &dyn Kernel) -> Option<CellKey> {
        let op = match (&self.op, self.class) {
            (None, _) => None,
            (Some(name), OpClass::Custom) => Some(kernel.function().filter(|f| f == name)?),
            // A name of the op's class: `max` is both a binary op and a reduction.
            (Some(name), OpClass::Reduce) => Some(ReduceOp::ALL.iter().find(|r| r.name() == name)?.name()),
            (Some(name), _) if name == FUSED => Some(FUSED),
            (Some(name), _) => Some(Op::from_name(name)?.name()),
        };
        let variant = Variant { kernel: index, params: self.params };
        Some(CellKey { variant, op, class: self.class, dtype: self.dtype, layout: self.layout })
    }
}

impl Engine {
    /// Puts remembered cells back, each with its kernel's name. Those of kernels that are not registered wait.
    pub fn recall<'a>(&self, cells: impl IntoIterator<Item = (&'a str, Remembered)>) {
        let kernels: HashMap<&str, u16> = self.registry.iter().map(|(i, k)| (k.name(), i)).collect();
        let mut absent = lock(&self.absent);
        self.with_model_mut(|model| {
            for (name, cell) in cells {
                match kernels.get(name).and_then(|&i| Some((i, self.registry.get(i)?))) {
                    Some((index, kernel)) => restore(model, index, &**kernel, cell),
                    None => absent.entry(name.into()).or_default().push(cell),
                }
            }
        });
    }

    /// What waited for this kernel.
    pub(super) fn recall_for(&self, index: u16) {
        let Some(kernel) = self.registry.get(index) else { return };
        let Some(waiting) = lock(&self.absent).remove(kernel.name()) else { return };
        self.with_model_mut(|model| {
            for cell in waiting {
                restore(model, index, &**kernel, cell);
            }
        });
    }
}

fn restore(model: &mut crate::cost::Model, index: u16, kernel: &dyn Kernel, cell: Remembered) {
    if let Some(key) = cell.key(index, kernel) {
        let same = cell.revision == kernel.revision();
        model.restore(key, if same { cell.knowledge } else { cell.knowledge.faded(FADE) });
    }
}
