//! The best of all choices between two labels per node, as a minimum cut.
//!
//! A node on the source's side takes its first label, on the sink's side its second. For each value and
//! each place that some of its readers may choose, one extra vertex stands for "a copy is needed there":
//! it is tied to those readers by edges that cannot be cut, so the copy is paid once however many readers
//! there are. With two places this is the whole problem, and exact.

use super::flow::{Network, SINK, SOURCE, UNCUTTABLE};
use super::graph::bits;
use super::problem::{Labels, Problem};

/// The exact answer for two places.
pub(super) fn two_places(problem: &Problem) -> Labels {
    let first: Labels = (0..problem.len()).map(|v| problem.allowed(v).trailing_zeros() as u8).collect();
    let last: Labels = (0..problem.len()).map(|v| problem.allowed(v).ilog2() as u8).collect();
    choose(problem, &first, &last)
}

/// Everything at `a` or `b` decided anew between these two, the rest left alone. Exact.
pub(super) fn swap(problem: &Problem, labels: &[u8], a: u8, b: u8) -> Labels {
    let both = 1 << a | 1 << b;
    let pair = |v: usize, side: u8| {
        let free = both >> labels[v] & 1 == 1 && problem.allowed(v) & both == both;
        if free { side } else { labels[v] }
    };
    let side = |side| (0..problem.len()).map(|v| pair(v, side)).collect::<Labels>();
    choose(problem, &side(a), &side(b))
}

/// Every node keeps its place or goes to `a`. Never worse than before; exact where links obey the
/// triangle inequality and each value has one reader.
pub(super) fn expand(problem: &Problem, labels: &[u8], a: u8) -> Labels {
    let to = |v: usize| if problem.allowed(v) >> a & 1 == 1 { a } else { labels[v] };
    choose(problem, labels, &(0..problem.len()).map(to).collect::<Labels>())
}

/// The cheapest labelling that gives each node its label of `first` or of `second`. No place may be the
/// first label of one free node and the second of another. Where a term has no cut that stands for it, it
/// is overrated away from `first`: the answer then is not best, but not worse than `first`.
fn choose(problem: &Problem, first: &[u8], second: &[u8]) -> Labels {
    let free = |v: usize| first[v] != second[v];
    let mut terms = Terms::new(problem.len());
    let mut readers = Vec::new();
    for v in 0..problem.len() {
        let graph = problem.graph;
        let (p, q) = (first[v], second[v]);
        terms.single(v, graph.cost(v, p), graph.cost(v, q));
        let mut always = graph.wanted(v);
        readers.clear();
        for &u in problem.users(v) {
            if free(u as usize) {
                readers.push(u as usize);
            } else {
                always |= 1 << first[u as usize];
            }
        }
        if let [u] = readers[..] {
            let cost = |home: u8, reader: &[u8]| problem.copies(v, home, always | 1 << reader[u]);
            let rows = [[cost(p, first), cost(p, second)], [cost(q, first), cost(q, second)]];
            terms.reader(free(v).then_some(v), u, rows);
            continue;
        }
        terms.single(v, problem.copies(v, p, always), problem.copies(v, q, always));
        for (labels, on_second) in [(first, false), (second, true)] {
            let places = readers.iter().fold(0u32, |m, &u| m | 1 << labels[u]) & !always;
            for place in bits(places) {
                let asking: Vec<usize> = readers.iter().copied().filter(|&u| labels[u] == place).collect();
                let needed = terms.any_of(&asking, on_second);
                let (a, b) = (graph.carry(v, p, place).1, graph.carry(v, q, place).1);
                let rows = if on_second { [[0.0, a], [0.0, b]] } else { [[a, 0.0], [b, 0.0]] };
                terms.reader(free(v).then_some(v), needed, rows);
            }
        }
    }
    let stays = terms.cut();
    (0..problem.len()).map(|v| if stays[v] { first[v] } else { second[v] }).collect()
}

/// A sum of terms over yes/no choices, each of them one vertex of a network.
struct Terms {
    /// What each choice costs by itself: the first label, the second.
    singles: Vec<[f64; 2]>,
    /// Cost of `a` taking its first and `b` its second label.
    edges: Vec<(u32, u32, f64)>,
}

impl Terms {
    fn new(nodes: usize) -> Terms {
        Terms { singles: vec![[0.0; 2]; nodes], edges: Vec::new() }
    }

    fn single(&mut self, v: usize, first: f64, second: f64) {
        self.singles[v][0] += first;
        self.singles[v][1] += second;
    }

    /// A cost by the choices of `v` (row) and `u` (column); with no choice for `v` the rows are alike.
    fn reader(&mut self, v: Option<usize>, u: usize, cost: [[f64; 2]; 2]) {
        let [[both_first, u_second], [v_second, both_second]] = cost;
        let Some(v) = v else { return self.single(u, both_first, u_second) };
        let edge = u_second + v_second - both_first - both_second;
        // Below zero no cut stands for the term: `v_second` is raised until one does.
        let v_second = v_second + (-edge).max(0.0);
        self.single(v, both_first, v_second);
        self.single(u, 0.0, both_second - v_second);
        if edge > 0.0 {
            self.edges.push((v as u32, u as u32, edge));
        }
    }

    /// A choice that is on the second side if any of `of` is (or on the first if any is).
    fn any_of(&mut self, of: &[usize], second: bool) -> usize {
        if let [one] = of {
            return *one;
        }
        let any = self.singles.len();
        self.singles.push([0.0; 2]);
        for &u in of {
            let (a, b) = if second { (any, u) } else { (u, any) };
            self.edges.push((a as u32, b as u32, f64::INFINITY));
        }
        any
    }

    /// Which choices take the first label.
    fn cut(self) -> Vec<bool> {
        let finite = self.edges.iter().map(|e| e.2).filter(|c| c.is_finite());
        let total: f64 = finite.sum::<f64>() + self.singles.iter().map(|s| (s[0] - s[1]).abs()).sum::<f64>();
        // 2^60 leaves room for rounding below `UNCUTTABLE` and resolves a 10^-18th of the total.
        let scale = if total > 0.0 { (1u64 << 60) as f64 / total } else { 0.0 };
        let whole = |c: f64| if c.is_finite() { (c * scale).round() as u64 } else { UNCUTTABLE };
        let mut network = Network::new(self.singles.len() + 2);
        for (v, [first, second]) in self.singles.iter().enumerate() {
            let vertex = v as u32 + 2;
            if second > first {
                network.edge(SOURCE, vertex, whole(second - first), 0);
            } else {
                network.edge(vertex, SINK, whole(first - second), 0);
            }
        }
        for (a, b, cost) in self.edges {
            network.edge(a + 2, b + 2, whole(cost), 0);
        }
        let mut stays = network.cut();
        stays.drain(..2);
        stays
    }
}
