//! A plan as it is kept: stages in order, with their memory.

use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
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

impl Base {
    pub fn slot(self) -> Option<u32> {
        match self {
            Base::Slot(slot) => Some(slot),
            _ => None,
        }
    }
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
    /// How messages call it.
    pub fn named(&self) -> String {
        format!("a value of {} bytes", self.bytes)
    }

    pub fn measure(&self, took: Duration) {
        self.measured.store(took.as_secs_f64().to_bits(), Relaxed);
    }

    pub fn measured(&self) -> Option<f64> {
        Some(f64::from_bits(self.measured.load(Relaxed))).filter(|&s| s > 0.0)
    }
}

/// A transfer that starts before it is needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Early {
    /// The stage before which it starts.
    pub start: usize,
    /// The stage that it is for, and which of that stage's transfers it is; one past the last stage for a result that
    /// comes home.
    pub stage: usize,
    pub index: usize,
}

/// Where things of a plan are that are not all on the host.
#[derive(Default)]
pub(super) struct Placed {
    /// The place of each slot; none if all are on the host.
    pub slots: Vec<Place>,
    /// Results that the host is about to read, carried at the end.
    pub homeward: Vec<Carry>,
    /// Transfers that go on beside other stages, in the order in which they start.
    pub early: Vec<Early>,
    /// Seconds that all is expected to last with those beside; none if nothing goes on beside anything.
    pub lasts: Option<f64>,
    /// Slots whose values outlive the plan away from the host, with the nodes of the walk that they are the values of.
    pub makers: Vec<(u32, u32)>,
    /// The most bytes alive at once on each device that takes part.
    pub peaks: Vec<(Place, usize)>,
    /// What there is to say about it: devices that were left out, and why.
    pub notes: Vec<String>,
}

impl Placed {
    pub fn slot(&self, slot: u32) -> Place {
        self.slots.get(slot as usize).copied().unwrap_or(Place::Host)
    }

    /// Whether a transfer starts before it is needed, and before which stage.
    pub fn starts(&self, stage: usize, index: usize) -> Option<usize> {
        self.early.iter().find(|e| (e.stage, e.index) == (stage, index)).map(|e| e.start)
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
    /// The values it starts from: element type and shape, and bytes.
    pub(super) inputs: Vec<(String, usize)>,
    /// Nodes of the graph, and expressions once equal ones are one.
    pub(super) nodes: usize,
    pub(super) expressions: usize,
    /// How often it ran.
    pub(super) runs: AtomicU64,
    /// Bits of the seconds that the last run took in which transfers went on beside other stages.
    pub(super) lasted: AtomicU64,
}

impl Compiled {
    /// A transfer of a stage; of results that come home for the stage past the last.
    pub(super) fn carry(&self, stage: usize, index: usize) -> &Carry {
        match self.stages.get(stage) {
            Some(stage) => &stage.carries[index],
            None => &self.placed.homeward[index],
        }
    }

    /// How long a run took in which transfers went on beside other stages.
    pub(super) fn lasted(&self) -> Option<f64> {
        Some(f64::from_bits(self.lasted.load(Relaxed))).filter(|&s| s > 0.0)
    }

    /// Whether it is time to plan anew with what was learned since: after 4 runs, 32, 256, ...
    pub(super) fn is_stale(&self) -> bool {
        let runs = self.runs.load(Relaxed);
        runs.is_power_of_two() && runs.trailing_zeros() % 3 == 2
    }
}
