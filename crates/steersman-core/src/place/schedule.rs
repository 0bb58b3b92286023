//! How long a placement lasts when places and links work side by side.

use super::{Graph, Placement};
use crate::{Place, Seconds};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When everything starts and when all is done, by simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// When the last node and the last transfer are done.
    pub makespan: Seconds,
    /// When each node starts.
    pub nodes: Vec<Seconds>,
    /// When each of the placement's transfers starts.
    pub transfers: Vec<Seconds>,
}

impl Placement {
    /// Simulates the placement: each place does one thing at a time, each direction of each link moves one
    /// value at a time, and whoever is free takes the ready task with the longest way still to go. A
    /// transfer over a link that cannot overlap occupies both of its ends instead.
    ///
    /// `graph` must be the graph that was placed. The makespan never exceeds the placement's cost.
    ///
    /// ```
    /// use steersman_core::place::{Graph, Link, Links};
    /// use steersman_core::{Bytes, DeviceId, Place, Seconds};
    /// let (host, gpu) = (Place::Host, Place::Device(DeviceId(1)));
    /// let link = Link::new(Seconds(1.0), f64::INFINITY);
    /// let mut graph = Graph::new(Links::new(&[host, gpu], |_, _| link)?);
    /// let x = graph.leaf(&[host], Bytes(8))?;
    /// graph.node(&[(gpu, Seconds(2.0))], &[x], Bytes(8))?; // waits 1 s for x
    /// graph.node(&[(host, Seconds(3.0))], &[x], Bytes(8))?; // runs meanwhile
    /// let placement = graph.place();
    /// assert_eq!(placement.cost, Seconds(6.0));
    /// assert_eq!(placement.schedule(&graph).makespan, Seconds(3.0));
    /// # Ok::<(), steersman_core::place::PlaceError>(())
    /// ```
    ///
    /// # Panics
    /// If the graph is smaller than the one that was placed.
    pub fn schedule(&self, graph: &Graph) -> Schedule {
        let mut plan = Plan::new(self, graph);
        let starts = plan.simulate();
        let ends = starts.iter().zip(&plan.tasks).map(|(start, task)| start + task.time);
        let makespan = Seconds(ends.fold(0.0, f64::max));
        let (nodes, transfers) = starts.split_at(self.places.len());
        let seconds = |starts: &[f64]| starts.iter().map(|&s| Seconds(s)).collect();
        Schedule { makespan, nodes: seconds(nodes), transfers: seconds(transfers) }
    }
}

/// A node or a transfer: what it keeps busy and for how long.
struct Task {
    time: f64,
    /// The resource it queues for.
    on: usize,
    /// Another one it occupies as well.
    also: Option<usize>,
    /// Tasks that must end first and have not.
    pending: u32,
    /// The longest way from its start to the end of everything.
    rest: f64,
    after: Vec<u32>,
}

/// All tasks, nodes first, then transfers. Resources are the places, then the links by (from, to).
struct Plan {
    tasks: Vec<Task>,
    resources: usize,
}

impl Plan {
    fn new(placement: &Placement, graph: &Graph) -> Plan {
        let places = graph.links.count();
        // Placements are made of the links' own places.
        let index = |place: Place| graph.links.index(place).unwrap_or(0);
        let task = |time, on, also| Task { time, on, also, pending: 0, rest: 0.0, after: Vec::new() };
        let nodes = placement.places.len();
        let mut tasks = Vec::with_capacity(nodes + placement.transfers.len());
        for (node, &place) in placement.places.iter().enumerate() {
            let place = index(place);
            tasks.push(task(graph.cost(node, place), place as usize, None));
        }
        for t in &placement.transfers {
            let (from, to) = (index(t.from), index(t.to));
            let apart = places + from as usize * places + to as usize;
            let overlap = graph.links.between(from, to).overlap;
            let (on, also) = if overlap { (apart, None) } else { (from as usize, Some(to as usize)) };
            tasks.push(task(t.time.0, on, also));
        }
        let mut plan = Plan { tasks, resources: places + places * places };
        // Transfers are in the order of their values, so those of one value stand together.
        let of = |value: usize| {
            let transfers = &placement.transfers;
            let first = transfers.partition_point(|t| (t.value.0 as usize) < value);
            let count = transfers[first..].iter().take_while(|t| t.value.0 as usize == value).count();
            first..first + count
        };
        for node in 0..nodes {
            for &input in graph.inputs(node) {
                let here = |t: &usize| placement.transfers[*t].to == placement.places[node];
                let before = of(input as usize).find(here).map_or(input as usize, |t| nodes + t);
                plan.link(before, node);
            }
            of(node).for_each(|t| plan.link(node, nodes + t));
        }
        for node in (0..nodes).rev() {
            of(node).for_each(|t| plan.measure_rest(nodes + t));
            plan.measure_rest(node);
        }
        plan
    }

    fn link(&mut self, before: usize, after: usize) {
        self.tasks[before].after.push(after as u32);
        self.tasks[after].pending += 1;
    }

    /// Needs all that comes after `task` to be measured.
    fn measure_rest(&mut self, task: usize) {
        let longest = self.tasks[task].after.iter().map(|&a| self.tasks[a as usize].rest).fold(0.0, f64::max);
        self.tasks[task].rest = self.tasks[task].time + longest;
    }

    /// When each task starts.
    fn simulate(&mut self) -> Vec<f64> {
        // Times are not negative, and such floats are ordered as their bits are.
        let mut queues: Vec<BinaryHeap<(u64, Reverse<usize>)>> = vec![BinaryHeap::new(); self.resources];
        let mut free_at = vec![0.0; self.resources];
        let mut starts = vec![0.0; self.tasks.len()];
        let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut idle: Vec<usize> = (0..self.resources).collect();
        for (i, task) in self.tasks.iter().enumerate().filter(|(_, t)| t.pending == 0) {
            queues[task.on].push((task.rest.to_bits(), Reverse(i)));
        }
        let mut now = 0.0f64;
        loop {
            idle.sort_unstable();
            for resource in idle.drain(..) {
                if free_at[resource] > now {
                    continue;
                }
                let Some((_, Reverse(i))) = queues[resource].pop() else { continue };
                let task = &self.tasks[i];
                starts[i] = task.also.map_or(now, |also| now.max(free_at[also]));
                let end = starts[i] + task.time;
                free_at[resource] = end;
                task.also.into_iter().for_each(|also| free_at[also] = end);
                ends.push(Reverse((end.to_bits(), i)));
            }
            // Whatever ends at the same time frees its resources together.
            let Some(&Reverse((time, _))) = ends.peek() else { return starts };
            now = f64::from_bits(time);
            while let Some(&Reverse((end, i))) = ends.peek()
                && end == time
            {
                ends.pop();
                idle.push(self.tasks[i].on);
                idle.extend(self.tasks[i].also);
                for next in std::mem::take(&mut self.tasks[i].after) {
                    let next = next as usize;
                    self.tasks[next].pending -= 1;
                    if self.tasks[next].pending == 0 {
                        let Task { on, rest, .. } = self.tasks[next];
                        queues[on].push((rest.to_bits(), Reverse(next)));
                        idle.push(on);
                    }
                }
            }
        }
    }
}
