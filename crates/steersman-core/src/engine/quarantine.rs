//! Putting kernels away and letting them go; what earlier processes put away waits for its kernels.

use super::{Engine, glob, lock};
use crate::dtype::DType;
use crate::guard::{Case, Offence, Quarantined};
use crate::kernel::Kernel;
use crate::op::{FUSED, Op};
use crate::workload::Workload;

/// One quarantine, with names instead of indices: those change from process to process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convicted {
    /// The kernel's name.
    pub kernel: String,
    /// The revision that misbehaved; another one is innocent.
    pub revision: u32,
    /// The op, as [`Case::op_text`] has it.
    pub op: String,
    /// The element type.
    pub dtype: DType,
    /// Why.
    pub why: Quarantined,
}

impl Convicted {
    /// What the kernel must not do, if its code is still the same and it is about that op.
    fn case(&self, index: u16, kernel: &dyn Kernel) -> Option<Case> {
        let name = |text: &str| match kernel.function() {
            Some(function) => (function == text).then_some(function),
            // Groups were told apart by their expressions only later: whoever failed in one of them may go.
            None if text == FUSED => (self.why.offence == Offence::Wrong).then_some(FUSED),
            None => Op::from_name(text).map(Op::name),
        };
        let (op, expr) = Case::op_of(&self.op, name)?;
        (kernel.revision() == self.revision).then_some(Case { kernel: index, op, dtype: self.dtype, expr })
    }
}

impl Engine {
    /// A kernel failed, panicked, hung or lied: it is put away, and the next decision is another.
    pub fn quarantine(&self, kernel: u16, w: &Workload, offence: Offence, detail: impl Into<String>) -> bool {
        let why = Quarantined { offence, detail: detail.into() };
        let new = self.guard.quarantine(Case::of(kernel, w, offence), why);
        self.invalidate();
        new
    }

    /// Lets kernels whose names match the pattern (`*` stands for anything) out of quarantine, those too that are not
    /// registered yet, and says which: from the next decision on they are candidates again.
    ///
    /// ```
    /// # use steersman_core::Engine;
    /// # let engine = Engine::default();
    /// assert!(engine.lift("cpu/*").is_empty());
    /// ```
    pub fn lift(&self, pattern: &str) -> Vec<Convicted> {
        let mut lifted: Vec<Convicted> = {
            let mut waiting = lock(&self.convicted);
            waiting.extract_if(|name, _| glob(pattern, name)).flat_map(|(_, all)| all).collect()
        };
        let kernel = |index: u16| self.registry.get(index);
        let here = self.guard.lift(|c, _| kernel(c.kernel).is_some_and(|k| glob(pattern, k.name())));
        lifted.extend(here.into_iter().filter_map(|(case, why)| {
            let k = kernel(case.kernel)?;
            let (kernel, revision, op) = (k.name().into(), k.revision(), case.op_text());
            Some(Convicted { kernel, revision, op, dtype: case.dtype, why })
        }));
        self.invalidate();
        lifted
    }

    /// Lets kernels go that a caller finds innocent after all. Returns whether there were any.
    pub fn acquit(&self, whom: impl Fn(&Case, &Quarantined) -> bool) -> bool {
        let any = !self.guard.lift(whom).is_empty();
        if any {
            self.invalidate();
        }
        any
    }

    /// Puts kernels away that were put away in earlier processes, unless their code has changed since. Those that are not
    /// registered are when they come.
    pub fn recall_quarantines(&self, all: impl IntoIterator<Item = Convicted>) {
        // Held throughout: a kernel that comes meanwhile looks after this.
        let mut waiting = lock(&self.convicted);
        for convicted in all {
            match self.registry.find(&convicted.kernel) {
                Some(index) => self.convict(index, convicted),
                None => waiting.entry(convicted.kernel.clone()).or_default().push(convicted),
            }
        }
        drop(waiting);
        self.invalidate();
    }

    /// What waited for this kernel.
    pub(super) fn recall_quarantines_of(&self, index: u16) {
        let Some(kernel) = self.registry.get(index) else { return };
        let waiting = lock(&self.convicted).remove(kernel.name()).unwrap_or_default();
        waiting.into_iter().for_each(|convicted| self.convict(index, convicted));
    }

    fn convict(&self, index: u16, convicted: Convicted) {
        let kernel = self.registry.get(index);
        if let Some(case) = kernel.and_then(|k| convicted.case(index, &**k)) {
            self.guard.restore(case, convicted.why);
        }
    }
}
