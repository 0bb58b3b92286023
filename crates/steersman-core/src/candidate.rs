//! Kernels × parameters that are legal for a workload, and the refused ones with their reasons.

use crate::cost::{Estimate, Variant};
use crate::device::Place;
use crate::kernel::{Kernel, NumericClass, Refusal};
use crate::registry::Registry;
use crate::units::Seconds;
use crate::workload::Workload;
use smallvec::SmallVec;

/// One legal way to run a workload, with what it is expected to cost.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Kernel and parameters.
    pub variant: Variant,
    /// What it is expected to cost.
    pub estimate: Estimate,
    /// What its kernel says it costs, before anything was measured.
    pub prior: Seconds,
}

/// Relative spread up to which a time counts as known: within about a factor of two either way. A prior
/// alone has 1.0 to 1.5, one measured size 0.1 near it and over 0.5 a hundred times larger.
const KNOWN: f64 = 0.5;

impl Candidate {
    /// Whether its time here is known rather than supposed: measured near this size, and clear.
    pub fn proven(&self) -> bool {
        self.estimate.spread <= KNOWN && !self.estimate.evidence.extrapolated
    }
}

/// Candidates of one workload; 24 fit without touching the heap.
pub type Candidates = SmallVec<[Candidate; 24]>;

/// The exact part of legality that is the same for every kernel, then the kernel's own word.
pub fn legality(kernel: &dyn Kernel, w: &Workload, place: Place) -> Result<(), Refusal> {
    let class = kernel.numerics(w);
    if class > w.numerics() {
        return Err(match class {
            NumericClass::Relaxed => {
                Refusal::new("relaxed numerics were not allowed (numerics=relaxed allows them)")
            }
            _ => Refusal::new(format!("its results are {class}, the caller asked for {}", w.numerics())),
        });
    }
    if let Some(o) = w.inputs().iter().chain(w.outputs()).find(|o| o.place != place) {
        return Err(Refusal::new(format!(
            "an operand lives at {} and no link from there to {place} is known",
            o.place
        )));
    }
    kernel.supports(w)
}

/// Legal variants of a workload, and refusals of the kernels that are about its op.
pub fn variants(
    registry: &Registry,
    w: &Workload,
    mut barred: impl FnMut(u16, &dyn Kernel) -> Option<Refusal>,
    place_of: impl Fn(&dyn Kernel) -> Place,
    mut legal: impl FnMut(u16, &dyn Kernel),
    mut refused: impl FnMut(u16, Refusal),
) {
    for (index, kernel) in registry.about(w.op()) {
        match legality(&**kernel, w, place_of(&**kernel)) {
            Err(why) => refused(index, why),
            Ok(()) => match barred(index, &**kernel) {
                Some(why) => refused(index, why),
                None => legal(index, &**kernel),
            },
        }
    }
}
