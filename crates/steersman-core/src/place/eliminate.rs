//! Dynamic programming over places: variables are minimised away one after the other, cheapest first.
//!
//! On a chain this is the textbook recurrence, on a tree its natural extension; graphs that are merely
//! narrow (a chain that reads the same weights at each step, residual connections) are solved exactly as
//! well, for any number of places, as long as the tables stay small. What is too wide is refused before any
//! work is done.
//!
//! A value with several readers gets a variable of its own: the set of places that need a copy. Readers
//! then only depend on that set, not on each other, and the copy is paid once.

use super::graph::bits;
use super::order::{Budget, order};
use super::problem::Problem;

/// A table of costs by the states of some variables; the first of `scope` runs fastest.
struct Factor {
    scope: Vec<u32>,
    costs: Vec<f64>,
}

/// What to take for a variable, by the states of those that outlive it.
struct Choice {
    variable: u32,
    scope: Vec<u32>,
    best: Vec<u16>,
}

/// Puts the nodes of `free` (in order) where all is cheapest, the others staying where `labels` has them.
/// Answers false, with nothing changed, where that takes more than `budget`.
pub(super) fn solve(problem: &Problem, labels: &mut [u8], free: &[u32], budget: Budget) -> bool {
    let Some(model) = Model::new(problem, labels, free, budget.table) else { return false };
    let scopes: Vec<&[u32]> = model.factors.iter().map(|f| &f.scope[..]).collect();
    let Some(order) = order(&model.domains, &scopes, budget) else { return false };
    let states = minimise(&model.domains, model.factors, &order);
    for (i, &node) in free.iter().enumerate() {
        labels[node as usize] = model.places[i][states[i] as usize];
    }
    true
}

/// The problem as variables and tables. Variable `i` is the place of `free[i]`; sets of copies come after.
struct Model {
    /// The place behind each state of each node.
    places: Vec<Vec<u8>>,
    domains: Vec<usize>,
    factors: Vec<Factor>,
}

impl Model {
    /// None where a value could be needed at more sets of places than `most`.
    fn new(problem: &Problem, labels: &[u8], free: &[u32], most: usize) -> Option<Model> {
        let places: Vec<Vec<u8>> =
            free.iter().map(|&v| bits(problem.allowed(v as usize)).collect()).collect();
        let domains = places.iter().map(Vec::len).collect();
        let mut model = Model { places, domains, factors: Vec::new() };
        let mut values: Vec<u32> = free.to_vec();
        free.iter().for_each(|&v| values.extend(problem.graph.inputs(v as usize)));
        values.sort_unstable();
        values.dedup();
        for v in values {
            model.value(problem, labels, free, v, most)?;
        }
        Some(model)
    }

    /// Adds what computing `value` and moving it about costs.
    fn value(
        &mut self,
        problem: &Problem,
        labels: &[u8],
        free: &[u32],
        value: u32,
        most: usize,
    ) -> Option<()> {
        let v = value as usize;
        let own = free.binary_search(&value).ok().map(|i| i as u32);
        let mut always = problem.graph.wanted(v);
        let mut readers = Vec::new();
        for u in problem.users(v) {
            match free.binary_search(u) {
                Ok(i) => readers.push(i as u32),
                Err(_) => always |= 1 << labels[*u as usize],
            }
        }
        let homes = own.map_or(vec![labels[v]], |i| self.places[i as usize].clone());
        let work = |home: u8| if own.is_some() { problem.graph.cost(v, home) } else { 0.0 };
        match readers[..] {
            [] => {
                let Some(own) = own else { return Some(()) };
                let costs = homes.iter().map(|&h| work(h) + problem.copies(v, h, always)).collect();
                self.factors.push(Factor { scope: vec![own], costs });
            }
            [reader] => {
                let at = self.places[reader as usize].clone();
                let cost = |home, to: u8| work(home) + problem.copies(v, home, always | 1 << to);
                self.table(own, reader, &homes, &at, cost);
            }
            _ => {
                let sets = self.sets(&readers, always, most)?;
                let set = self.domains.len() as u32;
                self.domains.push(sets.len());
                let cost = |home, set: u32| work(home) + problem.copies(v, home, always | set);
                self.table(own, set, &homes, &sets, cost);
                for reader in readers {
                    let at = self.places[reader as usize].clone();
                    let served = |to: u8, set: u32| (always | set) >> to & 1 == 1;
                    let cost = |to, set| if served(to, set) { 0.0 } else { f64::INFINITY };
                    self.table(Some(reader), set, &at, &sets, cost);
                }
            }
        }
        Some(())
    }

    /// Every set of places that readers may need beyond those that `always` has.
    fn sets(&self, readers: &[u32], always: u32, most: usize) -> Option<Vec<u32>> {
        let places = readers.iter().flat_map(|&r| &self.places[r as usize]).fold(0u32, |m, p| m | 1 << p);
        let open = places & !always;
        let widest = readers.iter().map(|&r| self.places[r as usize].len()).max().unwrap_or(1);
        // Some reader's table would be refused later, when the tables had been made. Nor do choices name
        // more states than 16 bits do.
        if open.count_ones() > 16 || widest << open.count_ones() > most {
            return None;
        }
        // Counting downwards through the subsets of a set of bits.
        let smaller = |&set: &u32| (set != 0).then(|| (set - 1) & open);
        Some(std::iter::successors(Some(open), smaller).collect())
    }

    /// A factor over one or two variables; without `a` its row has one state.
    fn table<A: Copy, B: Copy>(
        &mut self,
        a: Option<u32>,
        b: u32,
        rows: &[A],
        columns: &[B],
        cost: impl Fn(A, B) -> f64,
    ) {
        let costs = columns.iter().flat_map(|&c| rows.iter().map(move |&r| (r, c))).map(|(r, c)| cost(r, c));
        let costs = costs.collect();
        self.factors.push(Factor { scope: a.into_iter().chain([b]).collect(), costs });
    }
}

/// Minimises the variables away in `order`; answers the state of each in the cheapest assignment.
fn minimise(domains: &[usize], factors: Vec<Factor>, order: &[u32]) -> Vec<u16> {
    let mut turn = vec![0; domains.len()];
    order.iter().enumerate().for_each(|(i, &v)| turn[v as usize] = i);
    let soonest = |f: &Factor| f.scope.iter().map(|&v| turn[v as usize]).min();
    let mut waiting: Vec<Vec<Factor>> = domains.iter().map(|_| Vec::new()).collect();
    for factor in factors {
        if let Some(turn) = soonest(&factor) {
            waiting[turn].push(factor);
        }
    }
    let mut choices = Vec::with_capacity(order.len());
    for (i, &variable) in order.iter().enumerate() {
        let (rest, choice) = remove(domains, variable, std::mem::take(&mut waiting[i]));
        if let Some(turn) = soonest(&rest) {
            waiting[turn].push(rest);
        }
        choices.push(choice);
    }
    let mut states = vec![0; domains.len()];
    for choice in choices.iter().rev() {
        let mut at = 0;
        for &v in choice.scope.iter().rev() {
            at = at * domains[v as usize] + states[v as usize] as usize;
        }
        states[choice.variable as usize] = choice.best[at];
    }
    states
}

/// The sum of `factors` with `variable` at its best, by the states of all others.
fn remove(domains: &[usize], variable: u32, factors: Vec<Factor>) -> (Factor, Choice) {
    let mut scope: Vec<u32> =
        factors.iter().flat_map(|f| &f.scope).copied().filter(|&v| v != variable).collect();
    scope.sort_unstable();
    scope.dedup();
    let size = scope.iter().map(|&v| domains[v as usize]).product();
    let steps: Vec<Vec<usize>> = factors.iter().map(|f| strides(domains, f, &scope)).collect();
    let own: Vec<usize> = factors.iter().map(|f| strides(domains, f, &[variable])[0]).collect();
    let mut offsets = vec![0; factors.len()];
    let mut counter = vec![0; scope.len()];
    let mut costs = Vec::with_capacity(size);
    let mut best = Vec::with_capacity(size);
    for _ in 0..size {
        let (mut least, mut state) = (f64::INFINITY, 0);
        for s in 0..domains[variable as usize] {
            let mut sum = 0.0;
            for ((factor, offset), own) in factors.iter().zip(&offsets).zip(&own) {
                sum += factor.costs[offset + s * own];
            }
            if sum < least {
                (least, state) = (sum, s as u16);
            }
        }
        costs.push(least);
        best.push(state);
        for (d, count) in counter.iter_mut().enumerate() {
            *count += 1;
            offsets.iter_mut().zip(&steps).for_each(|(o, s)| *o += s[d]);
            if *count < domains[scope[d] as usize] {
                break;
            }
            offsets.iter_mut().zip(&steps).for_each(|(o, s)| *o -= s[d] * *count);
            *count = 0;
        }
    }
    (Factor { scope: scope.clone(), costs }, Choice { variable, scope, best })
}

/// How far apart the states of each variable of `scope` stand in the table of `factor`; 0 if not in it.
fn strides(domains: &[usize], factor: &Factor, scope: &[u32]) -> Vec<usize> {
    let mut strides = vec![0; scope.len()];
    let mut stride = 1;
    for v in &factor.scope {
        if let Some(i) = scope.iter().position(|s| s == v) {
            strides[i] = stride;
        }
        stride *= domains[*v as usize];
    }
    strides
}
