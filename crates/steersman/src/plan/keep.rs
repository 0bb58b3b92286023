//! Which values of groups are written to memory though nobody asked for them, and which are computed again.

use super::group::{Groups, Role};
use crate::array::node::{NodeOp, Spread};
use steersman_core::expr::Dist;

/// Operations per element up to which a value is computed again rather than written to memory and read back:
/// 8 bytes of traffic take about as long as this many.
const CHEAP: f64 = 16.0;

impl Groups<'_> {
    /// What an earlier read computed on the way and this one needs again is kept, at the latest point that both
    /// share: else a loop that reads something of a state it carries on would compute the state from its
    /// beginning every time.
    pub fn keep_what_was_passed_twice(&mut self) {
        let mut wanted = vec![false; self.items.len()];
        for item in self.items.iter().filter(|item| !item.passed) {
            for a in item.args.iter().filter_map(|a| a.node()) {
                wanted[a as usize] |= self.items[a as usize].passed;
            }
        }
        let mut cost = vec![0.0; self.items.len()];
        for i in 0..self.items.len() {
            cost[i] = self.cost(i, &cost);
            if wanted[i] && matches!(self.roles[i], Role::Step(_)) && cost[i] > CHEAP {
                self.must[i] = true;
            }
        }
    }

    /// Values that a later group takes are written to memory unless they are quickly computed again.
    pub fn keep_what_is_dear(&mut self) {
        let mut cost = vec![0.0; self.items.len()];
        // Arrays of the group's size that computing it again would read.
        let mut reads = vec![0usize; self.items.len()];
        for i in 0..self.items.len() {
            let Role::Step(g) = self.roles[i] else { continue };
            let g = self.find(g);
            for a in self.items[i].args.iter().filter_map(|a| a.node()) {
                let a = a as usize;
                match self.roles[a] {
                    Role::Step(h) if self.find(h) != g => {
                        let other = self.items[a].dims != self.items[i].dims;
                        if other || cost[a] > CHEAP || reads[a] > 2 {
                            self.must[a] = true;
                        }
                    }
                    _ => {}
                }
                let inline = matches!(self.roles[a], Role::Step(_)) && !self.must[a];
                let full = self.items[a].dims == self.items[i].dims;
                reads[i] = reads[i].saturating_add(if inline { reads[a] } else { usize::from(full) });
            }
            cost[i] = self.cost(i, &cost);
        }
    }

    /// Operations per element to compute an item from what is in memory.
    fn cost(&self, i: usize, cost: &[f64]) -> f64 {
        if !matches!(self.roles[i], Role::Step(_)) {
            return 0.0;
        }
        let args = self.items[i].args.iter().filter_map(|a| a.node());
        let inline: f64 = args.filter(|&a| !self.must[a as usize]).map(|a| cost[a as usize]).sum();
        // A long chain's cost need not be known exactly, and must not overflow.
        (flops(&self.items[i].op) + inline).min(1e9)
    }
}

fn flops(op: &NodeOp) -> f64 {
    match op {
        NodeOp::Unary(u) => u.flops(),
        NodeOp::Binary(b) => b.flops(),
        NodeOp::Ternary(t) => t.flops(),
        NodeOp::Random(Spread::Uniform) => Dist::Uniform.flops(),
        NodeOp::Random(Spread::Normal) => Dist::Normal.flops(),
        _ => 1.0,
    }
}
