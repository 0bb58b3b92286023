//! Where each part of a graph should run, and what has to be moved for it.
//!
//! Write down the work with its time on each place, who reads what, and where results are wanted; get back a
//! place for every node, the moves, and what it all takes.
//!
//! ```
//! use steersman_core::place::{Graph, Link, Links, Method};
//! use steersman_core::{Bytes, DeviceId, Place, Seconds};
//!
//! let (host, gpu) = (Place::Host, Place::Device(DeviceId(1)));
//! let pcie = Link::new(Seconds(10e-6), 20e9);
//! let mut graph = Graph::new(Links::new(&[host, gpu], |_, _| pcie)?);
//!
//! // 40 MB on the host: 2.01 ms to move, which the product earns back and the sum alone would not.
//! let x = graph.leaf(&[host], Bytes(40_000_000))?;
//! let product =
//!     graph.node(&[(host, Seconds(30e-3)), (gpu, Seconds(1e-3))], &[x], Bytes(40_000_000))?;
//! let sum = graph.node(&[(host, Seconds(2e-3)), (gpu, Seconds(0.1e-3))], &[product], Bytes(4))?;
//! graph.want(sum, host)?;
//!
//! let placement = graph.place();
//! assert_eq!(placement.place(product), gpu);
//! assert_eq!(placement.place(sum), gpu); // its 4 bytes come home, not the product's 40 MB
//! let moved: Vec<_> = placement.transfers.iter().map(|t| (t.value, t.from, t.to)).collect();
//! assert_eq!(moved, [(x, host, gpu), (sum, gpu, host)]);
//! assert!((placement.cost.0 - 3.12e-3).abs() < 1e-8);
//! assert_eq!(placement.method, Method::Elimination);
//! # Ok::<(), steersman_core::place::PlaceError>(())
//! ```
//!
//! The cost of a placement is the sum of all work and all moves. A value is moved to a place at most once,
//! from where it was made, however many nodes read it there. Placement minimises that sum;
//! [`Placement::schedule`] says how long it lasts when places and links work side by side.
//!
//! Methods, tried in this order: dynamic programming while the graph is narrow enough (chains, and trees in
//! which each value has one reader, always are), a minimum cut for two places, moves by minimum cut and small dynamic programs beyond. The
//! first two are exact. The same graph always gets the same answer. Memory limits of places are not
//! modelled, nor is computing a value twice to save moving it.

mod cut;
mod eliminate;
mod error;
mod flow;
mod graph;
mod link;
mod moves;
mod order;
mod problem;
mod schedule;
#[cfg(test)]
mod tests;
mod wire;

pub use error::PlaceError;
pub use graph::{Graph, NodeId};
pub use link::{Link, Links};
pub use schedule::Schedule;
pub use wire::{Lane, Wire};

use crate::{Place, Seconds};
use graph::bits;
use order::Budget;
use problem::{Labels, Problem};

/// The most places a graph can have.
pub const MAX_PLACES: usize = 32;

/// How a placement was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Dynamic programming: exact.
    Elimination,
    /// A minimum cut between two places: exact.
    MinCut,
    /// Repeated improvement from several starts: good, not proved best.
    Moves,
}

/// A value that goes from one place to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Whose result.
    pub value: NodeId,
    /// From where.
    pub from: Place,
    /// To where.
    pub to: Place,
    /// How long it takes.
    pub time: Seconds,
}

/// Where everything runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// The place of each node, in the order they were added; for a leaf, the first place that holds it.
    pub places: Vec<Place>,
    /// What must be moved, in the order of the values.
    pub transfers: Vec<Transfer>,
    /// All work and all transfers, one after the other.
    pub cost: Seconds,
    /// How it was found.
    pub method: Method,
}

impl Placement {
    /// Where a node runs.
    ///
    /// # Panics
    /// If the node is not of the graph that was placed.
    pub fn place(&self, node: NodeId) -> Place {
        self.places[node.0 as usize]
    }
}

impl Graph {
    /// Places every node so that all work and all moves together take least.
    pub fn place(&self) -> Placement {
        let problem = Problem::new(self);
        let (labels, method) = solve(&problem);
        let places = self.links.places();
        let mut transfers = Vec::new();
        for value in 0..self.len() {
            for to in bits(problem.needed(value, &labels)) {
                let (from, time) = self.carry(value, labels[value], to);
                if from != to {
                    let (from, to) = (places[from as usize], places[to as usize]);
                    transfers.push(Transfer { value: NodeId(value as u32), from, to, time: Seconds(time) });
                }
            }
        }
        Placement {
            cost: Seconds(problem.cost(&labels)),
            places: labels.iter().map(|&l| places[l as usize]).collect(),
            transfers,
            method,
        }
    }
}

fn solve(problem: &Problem) -> (Labels, Method) {
    let mut labels = problem.cheapest();
    let free = problem.undecided();
    if eliminate::solve(problem, &mut labels, &free, budget(problem.places() as usize, free.len())) {
        (labels, Method::Elimination)
    } else if problem.places() == 2 {
        (cut::two_places(problem), Method::MinCut)
    } else {
        (moves::search(problem), Method::Moves)
    }
}

/// How much of dynamic programming is worth it before the other methods are quicker. At 10,000 nodes (one
/// Zen 4 core): a chain takes 11 ms, a residual network on four places 0.1 s, where a cut takes 15 to 170 ms
/// and the moves 0.1 to 3 s. A chain or a tree
/// of values with one reader is never refused.
fn budget(places: usize, nodes: usize) -> Budget {
    let tree = places * places;
    let per_node = if places == 2 { 256 } else { 4096 };
    // The most keeps memory below some 200 MB.
    let total = (nodes * per_node).clamp(1 << 18, 1 << 27);
    Budget { table: tree.max(1 << 14), total: total.max(2 * nodes * tree) }
}
