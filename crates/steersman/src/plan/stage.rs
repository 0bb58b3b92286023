//! A plan as it is kept: stages in order, with their memory.

use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use steersman_core::{Place, Strides, Workload};

/// Where an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Base {
    /// A value that was there before.
    Leaf(u32),
    /// Memory of this plan.
    Slot(u32),
    /// One of the run's scalars.
    Scalar(u32),
    /// No elements.
    Empty,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub base: Base,
    /// Bytes from the base's first element.
    pub offset: isize,
}

/// A value to hand to a node.
#[derive(Clone, Debug)]
pub(super) struct Keep {
    /// The node's place in the walk.
    pub node: u32,
    pub from: Source,
    pub strides: Strides,
}

/// A value that goes from one place to another. What was moved stays with the value: nobody moves it there twice.
pub(super) struct Carry {
    pub base: Base,
    pub from: Place,
    pub to: Place,
    pub bytes: usize,
    /// Seconds it was expected to take when it was planned.
    pub predicted: f64,
    /// Bits of the seconds it took last; 0 if it was not measured.
    pub measured: AtomicU64,
}

impl Carry {
    pub fn measured(&self) -> Option<f64> {
        Some(f64::from_bits(self.measured.load(Relaxed))).filter(|&s| s > 0.0)
    }
}

/// Where things of a plan are that are not all on the host.
#[derive(Default)]
pub(super) struct Placed {
    /// The place of each slot; none if all are on the host.
    pub slots: Vec<Place>,
    /// Results that the host is about to read, carried at the end.
    pub homeward: Vec<Carry>,
    /// The most bytes alive at once on each device that takes part.
    pub peaks: Vec<(Place, usize)>,
    /// What there is to say about it: devices that were left out, and why.
    pub notes: Vec<String>,
}

impl Placed {
    pub fn slot(&self, slot: u32) -> Place {
        self.slots.get(slot as usize).copied().unwrap_or(Place::Host)
    }
}

/// One workload of a plan.
pub(super) struct Stage {
    pub workload: Workload,
    pub inputs: SmallVec<[Source; 4]>,
    /// Slots written, and where in them.
    pub outputs: SmallVec<[(u32, usize); 1]>,
    /// The run's scalars, in the order of the workload's.
    pub scalars: Vec<u32>,
    pub place: Place,
    /// What has to be carried before it runs.
    pub carries: Vec<Carry>,
    /// Slots that get memory before it runs.
    pub take: SmallVec<[u32; 1]>,
    /// Slots that get another's memory: `(to, from)`.
    pub reuse: SmallVec<[(u32, u32); 1]>,
    /// Slots nobody needs afterwards.
    pub free: SmallVec<[u32; 2]>,
    pub keeps: SmallVec<[Keep; 1]>,
    /// Seconds it was expected to take when it was planned.
    pub predicted: f64,
    /// Which kernel was expected to run it.
    pub kernel: String,
    /// For a fused group the other way, one op at a time, and the other way round.
    pub instead: Option<f64>,
    /// How many ops of the graph it does.
    pub ops: usize,
    /// Bits of the seconds it took last; 0 if it was not measured.
    pub measured: AtomicU64,
}

impl Stage {
    pub fn measured(&self) -> Option<f64> {
        Some(f64::from_bits(self.measured.load(Relaxed))).filter(|&s| s > 0.0)
    }
}

/// A plan: what is the same for every graph of one structure.
pub(crate) struct Compiled {
    pub(super) key: Box<[u64]>,
    pub(super) stages: Vec<Stage>,
    /// Bytes of each slot.
    pub(super) slots: Vec<usize>,
    /// Values that are looks at what was there before.
    pub(super) finals: Vec<Keep>,
    pub(super) placed: Placed,
    /// The most bytes of slots alive at once on the host, as the pool counts them.
    pub(super) peak: usize,
    /// Bytes of the values it starts from.
    pub(super) input_bytes: usize,
    /// Nodes of the graph, and expressions once equal ones are one.
    pub(super) nodes: usize,
    pub(super) expressions: usize,
    /// How often it ran.
    pub(super) runs: AtomicU64,
}

impl Compiled {
    /// Whether it is time to plan anew with what was learned since: after 4 runs, 32, 256, ...
    pub(super) fn is_stale(&self) -> bool {
        let runs = self.runs.load(Relaxed);
        runs.is_power_of_two() && runs.trailing_zeros() % 3 == 2
    }
}
