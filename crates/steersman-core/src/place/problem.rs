//! A graph made ready for the methods: who reads what, where each node may run, and what a labelling costs.

use super::graph::{Graph, bits};

/// A place index for every node.
pub(super) type Labels = Vec<u8>;

pub(super) struct Problem<'a> {
    pub(super) graph: &'a Graph,
    /// `users[starts[n]..starts[n + 1]]` read the value of `n`.
    starts: Vec<u32>,
    users: Vec<u32>,
    /// Places where each node can run, as bits.
    allowed: Vec<u32>,
}

impl<'a> Problem<'a> {
    pub(super) fn new(graph: &'a Graph) -> Problem<'a> {
        let n = graph.len();
        let mut starts = vec![0u32; n + 1];
        for node in 0..n {
            graph.inputs(node).iter().for_each(|&i| starts[i as usize + 1] += 1);
        }
        for i in 0..n {
            starts[i + 1] += starts[i];
        }
        let mut fill = starts.clone();
        let mut users = vec![0; starts[n] as usize];
        for node in 0..n {
            for &i in graph.inputs(node) {
                users[fill[i as usize] as usize] = node as u32;
                fill[i as usize] += 1;
            }
        }
        let places = graph.links.count() as u8;
        let possible =
            |node| (0..places).filter(|&p| graph.cost(node, p).is_finite()).fold(0, |m, p| m | 1 << p);
        Problem { graph, starts, users, allowed: (0..n).map(possible).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.graph.len()
    }

    pub(super) fn places(&self) -> u8 {
        self.graph.links.count() as u8
    }

    pub(super) fn users(&self, node: usize) -> &[u32] {
        &self.users[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    pub(super) fn allowed(&self, node: usize) -> u32 {
        self.allowed[node]
    }

    /// Seconds for the copies of `value`, made at `home`, that the places in `needed` lack.
    pub(super) fn copies(&self, value: usize, home: u8, needed: u32) -> f64 {
        bits(needed).map(|to| self.graph.carry(value, home, to).1).sum()
    }

    /// Where `value` is needed: its readers' places and where its result is wanted.
    pub(super) fn needed(&self, value: usize, labels: &[u8]) -> u32 {
        self.users(value).iter().fold(self.graph.wanted(value), |m, &u| m | 1 << labels[u as usize])
    }

    /// The sum of all work and all copies.
    pub(super) fn cost(&self, labels: &[u8]) -> f64 {
        (0..self.len())
            .map(|v| self.graph.cost(v, labels[v]) + self.copies(v, labels[v], self.needed(v, labels)))
            .sum()
    }

    /// The nodes that can run in more than one place.
    pub(super) fn undecided(&self) -> Vec<u32> {
        (0..self.len() as u32).filter(|&v| self.allowed(v as usize).count_ones() > 1).collect()
    }

    /// Each node where its own work is cheapest, moves left out of account.
    pub(super) fn cheapest(&self) -> Labels {
        let best = |v: usize| {
            let cost = |p: &u8| self.graph.cost(v, *p);
            bits(self.allowed(v)).min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or(0)
        };
        (0..self.len()).map(best).collect()
    }
}
