//! Kernels × parameters that are legal for a workload, with the moves they need.

use crate::cost::{Estimate, Variant};
use crate::device::Place;
use crate::kernel::{Kernel, NumericClass, Refusal};
use crate::place::Link;
use crate::units::{Bytes, Seconds};
use crate::workload::Workload;
use smallvec::SmallVec;

/// One legal way to run a workload, with what it is expected to cost.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Kernel and parameters.
    pub variant: Variant,
    /// What it is expected to cost.
    pub estimate: Estimate,
    /// What its kernel says it costs, and its moves, before anything was measured.
    pub prior: Seconds,
    /// Bytes that have to be carried for it; its estimate says how long that takes and how well it is known.
    pub moved: Bytes,
    /// The kernel that runs the same loops in wider vectors.
    pub(crate) wider: Option<u16>,
    /// Whether its kernel is not on the host, or something lives elsewhere.
    pub(crate) away: bool,
}

/// Relative spread up to which a time counts as known: within about a factor of three either way. A prior
/// alone has 1.0 to 1.5, one measured size 0.1 near it and over 0.5 a hundred times larger. (With 0.5 a product
/// estimated at 1.2 µs, rightly, was passed over for one of 2.2.)
const KNOWN: f64 = 0.7;

impl Candidate {
    /// Whether something has to be carried for it.
    pub fn is_moved(&self) -> bool {
        self.moved.0 > 0
    }

    /// Whether its time here is known rather than supposed: measured near this size, and clear.
    pub fn proven(&self) -> bool {
        self.estimate.spread <= KNOWN && !self.estimate.evidence.extrapolated
    }
}

/// Candidates of one workload; 24 fit without touching the heap.
pub type Candidates = SmallVec<[Candidate; 24]>;

/// The exact part of legality that is the same for every kernel, then the kernel's own word.
pub fn legality(kernel: &dyn Kernel, w: &Workload) -> Result<(), Refusal> {
    let class = kernel.numerics(w);
    if class > w.numerics() {
        return Err(match class {
            NumericClass::Relaxed => {
                Refusal::new("relaxed numerics were not allowed (numerics=relaxed allows them)")
            }
            _ => Refusal::new(format!("its results are {class}, the caller asked for {}", w.numerics())),
        });
    }
    kernel.supports(w)
}

/// One operand or result that has to be carried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// Which: an input by its number, or the result with this number.
    pub operand: Moved,
    /// Its bytes, gaps between its elements included.
    pub bytes: Bytes,
    /// From where.
    pub from: Place,
    /// To where.
    pub to: Place,
    /// How long it takes.
    pub seconds: Seconds,
    /// Transfers behind that; 0 if it is only supposed.
    pub samples: u32,
    /// Whether nothing is copied: the host works on it where it lies.
    pub lent: bool,
}

/// What is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// An input, by its number.
    Input(usize),
    /// A result, by its number.
    Output(usize),
}

/// How bytes get from one place to another.
pub struct Way {
    /// What that costs.
    pub link: Link,
    /// Transfers behind it; 0 if it is only supposed.
    pub samples: u32,
    /// Whether they stay where they are and are lent.
    pub lent: bool,
    /// What is saved if a result goes this way right after the work.
    pub joined: Seconds,
}

/// Everything that has to be carried if `w` runs at `place`. `way` says how, or why not.
pub fn moves(
    w: &Workload,
    place: Place,
    way: impl Fn(Place, Place) -> Result<Way, Refusal>,
) -> Result<SmallVec<[Move; 4]>, Refusal> {
    let mut all: SmallVec<[Move; 4]> = SmallVec::new();
    let inputs = w.inputs().iter().enumerate().map(|(i, o)| (Moved::Input(i), o, o.place, place));
    let outputs = w.outputs().iter().enumerate().map(|(i, o)| (Moved::Output(i), o, place, o.place));
    for (operand, o, from, to) in inputs.chain(outputs) {
        let bytes = Bytes(o.span().0 as u64);
        if from == to || bytes.0 == 0 {
            continue;
        }
        if matches!(operand, Moved::Output(_)) && !o.is_contiguous() {
            return Err(Refusal::new("its result is wanted elsewhere, in memory with gaps"));
        }
        let Way { link, samples, lent, joined } = way(from, to)?;
        let mut seconds = link.time(bytes);
        if operand == Moved::Output(0) {
            seconds.0 -= joined.0.min(link.latency.0).max(0.0);
        }
        all.push(Move { operand, bytes, from, to, seconds, samples, lent });
    }
    // They are lent together, which takes about as long as lending one.
    let together = all.iter().filter(|m| m.lent).count() as f64;
    all.iter_mut().filter(|m| m.lent).for_each(|m| m.seconds.0 /= together);
    Ok(all)
}
