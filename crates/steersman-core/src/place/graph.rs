//! The problem as its caller writes it down: leaves, nodes, wanted results.

use super::{Links, PlaceError};
use crate::{Bytes, Place, Seconds};
use std::fmt;

/// A node of a [`Graph`], by the order in which it was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Work to be placed. Nodes are added after their inputs, so the graph is always in topological order.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(super) links: Links,
    /// Seconds by node and place, row by node; infinite where the node cannot run.
    costs: Vec<f64>,
    pub(super) bytes: Vec<u64>,
    /// Places that already hold a leaf, as bits; 0 for what must be computed.
    pub(super) held: Vec<u32>,
    /// Places where the result must end up, as bits.
    wanted: Vec<u32>,
    /// `inputs[starts[n]..starts[n + 1]]` are the inputs of `n`, each once.
    starts: Vec<u32>,
    inputs: Vec<u32>,
}

impl Graph {
    /// An empty graph over the places of `links`.
    pub fn new(links: Links) -> Graph {
        Graph {
            links,
            costs: Vec::new(),
            bytes: Vec::new(),
            held: Vec::new(),
            wanted: Vec::new(),
            starts: vec![0],
            inputs: Vec::new(),
        }
    }

    /// A value that exists already, in one place or several: reading it there is free.
    pub fn leaf(&mut self, held: &[Place], bytes: Bytes) -> Result<NodeId, PlaceError> {
        let node = self.next();
        let mut mask = 0;
        for &place in held {
            mask |= 1 << self.known(node, place)?;
        }
        let Some(&home) = held.first() else { return Err(PlaceError::NoPlace(node)) };
        let at = self.push(bytes, mask);
        let home = self.known(node, home)?;
        self.costs[at + home as usize] = 0.0;
        Ok(node)
    }

    /// Work with its time on each place where it can run (a place left out is impossible), the nodes it
    /// reads, and the bytes of its result. An input given twice is read once.
    pub fn node(
        &mut self,
        costs: &[(Place, Seconds)],
        inputs: &[NodeId],
        bytes: Bytes,
    ) -> Result<NodeId, PlaceError> {
        let node = self.next();
        if costs.is_empty() {
            return Err(PlaceError::NoPlace(node));
        }
        for &(place, Seconds(cost)) in costs {
            self.known(node, place)?;
            if !(cost.is_finite() && cost >= 0.0) {
                return Err(PlaceError::BadCost { node, place, cost });
            }
        }
        if let Some(&input) = inputs.iter().find(|i| **i >= node) {
            return Err(PlaceError::Order { node, input });
        }
        let mut reads: Vec<u32> = inputs.iter().map(|i| i.0).collect();
        reads.sort_unstable();
        reads.dedup();
        let at = self.push(bytes, 0);
        for &(place, cost) in costs {
            let place = self.known(node, place)?;
            self.costs[at + place as usize] = cost.0;
        }
        self.inputs.append(&mut reads);
        if let Some(end) = self.starts.last_mut() {
            *end = self.inputs.len() as u32;
        }
        Ok(node)
    }

    /// Asks for the result of `node` at `place`, once it is there. May be said for several places; a
    /// result of which nothing is said stays where it was made.
    pub fn want(&mut self, node: NodeId, place: Place) -> Result<(), PlaceError> {
        let bit = 1 << self.known(node, place)?;
        let wanted = self.wanted.get_mut(node.0 as usize).ok_or(PlaceError::UnknownNode(node))?;
        *wanted |= bit;
        Ok(())
    }

    /// How many nodes there are, leaves included.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn next(&self) -> NodeId {
        NodeId(self.len() as u32)
    }

    fn known(&self, node: NodeId, place: Place) -> Result<u8, PlaceError> {
        self.links.index(place).ok_or(PlaceError::UnknownPlace { node, place })
    }

    /// Adds a node that can run nowhere yet and reads nothing; answers where its row of costs starts.
    fn push(&mut self, bytes: Bytes, held: u32) -> usize {
        let at = self.costs.len();
        self.costs.resize(at + self.links.count(), f64::INFINITY);
        self.bytes.push(bytes.0);
        self.held.push(held);
        self.wanted.push(0);
        self.starts.push(self.inputs.len() as u32);
        at
    }

    pub(super) fn inputs(&self, node: usize) -> &[u32] {
        &self.inputs[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    pub(super) fn wanted(&self, node: usize) -> u32 {
        self.wanted[node]
    }

    /// Seconds `node` takes on `place`, infinite where it cannot run.
    pub(super) fn cost(&self, node: usize, place: u8) -> f64 {
        self.costs[node * self.links.count() + place as usize]
    }

    /// Where a copy of `value` for `to` comes from when it was made at `home`, and what it takes.
    pub(super) fn carry(&self, value: usize, home: u8, to: u8) -> (u8, f64) {
        let time = |from: u8| self.links.between(from, to).time(Bytes(self.bytes[value])).0;
        let held = self.held[value];
        if held.count_ones() < 2 {
            return (home, if home == to { 0.0 } else { time(home) });
        }
        if held >> to & 1 == 1 {
            return (to, 0.0);
        }
        bits(held)
            .map(|from| (from, time(from)))
            .fold((home, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a })
    }
}

/// The places in a set, in order.
pub(super) fn bits(mut mask: u32) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let place = (mask != 0).then(|| mask.trailing_zeros() as u8)?;
        mask &= mask - 1;
        Some(place)
    })
}
