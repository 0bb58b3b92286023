//! The order in which variables are minimised away, and whether the tables on the way stay small.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// What an elimination may take.
#[derive(Clone, Copy)]
pub(super) struct Budget {
    /// Entries of the largest table.
    pub(super) table: usize,
    /// Entries of all tables together.
    pub(super) total: usize,
}

/// Logarithms as whole numbers, so that sums do not depend on the order in which they were made.
const ONE: f64 = 1024.0;

/// Always the variable next whose table is smallest, or none if that leaves the budget. A forest keeps to
/// tables of two variables this way, since it always has a leaf.
pub(super) fn order(domains: &[usize], scopes: &[&[u32]], budget: Budget) -> Option<Vec<u32>> {
    let size = |v: u32| ((domains[v as usize] as f64).log2() * ONE).round() as u64;
    let mut beside: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); domains.len()];
    for scope in scopes {
        for &a in *scope {
            beside[a as usize].extend(scope.iter().filter(|&&b| b != a));
        }
    }
    let mut weights: Vec<u64> = (0..domains.len() as u32)
        .map(|v| size(v) + beside[v as usize].iter().map(|&b| size(b)).sum::<u64>())
        .collect();
    let mut heap: BinaryHeap<Reverse<(u64, u32)>> =
        weights.iter().enumerate().map(|(v, &w)| Reverse((w, v as u32))).collect();
    let mut order = Vec::with_capacity(domains.len());
    let mut gone = vec![false; domains.len()];
    let mut total = 0.0;
    let most = ((budget.table as f64).log2() * ONE).round() as u64;
    while let Some(Reverse((weight, v))) = heap.pop() {
        if gone[v as usize] || weight != weights[v as usize] {
            continue;
        }
        total += (weight as f64 / ONE).exp2();
        if weight > most || total > budget.total as f64 {
            return None;
        }
        gone[v as usize] = true;
        order.push(v);
        let around = std::mem::take(&mut beside[v as usize]);
        for &a in &around {
            beside[a as usize].remove(&v);
            weights[a as usize] -= size(v);
            for &b in around.iter().filter(|&&b| b != a) {
                if beside[a as usize].insert(b) {
                    weights[a as usize] += size(b);
                }
            }
            heap.push(Reverse((weights[a as usize], a)));
        }
    }
    Some(order)
}
