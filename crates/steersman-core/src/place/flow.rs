//! Maximum flow, and with it the cheapest cut, by Dinic's method without recursion.
//!
//! Capacities are whole numbers, so that the flow ends exactly and every machine finds the same cut.

/// Larger than any sum of finite capacities, which stay below 2^61.
pub(super) const UNCUTTABLE: u64 = 1 << 62;
/// The vertex all flow leaves from.
pub(super) const SOURCE: u32 = 0;
/// The vertex all flow ends at.
pub(super) const SINK: u32 = 1;
const NONE: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Network {
    /// First edge of each vertex's list; `next` goes on. Edge `e ^ 1` is the way back of `e`.
    first: Vec<u32>,
    next: Vec<u32>,
    head: Vec<u32>,
    left: Vec<u64>,
}

impl Network {
    /// A network of so many vertices, source and sink included.
    pub(super) fn new(vertices: usize) -> Network {
        Network { first: vec![NONE; vertices], ..Network::default() }
    }

    /// An edge that costs `there` to cut from `a` to `b` and `back` from `b` to `a`.
    pub(super) fn edge(&mut self, a: u32, b: u32, there: u64, back: u64) {
        for (from, to, capacity) in [(a, b, there), (b, a, back)] {
            self.next.push(self.first[from as usize]);
            self.first[from as usize] = self.head.len() as u32;
            self.head.push(to);
            self.left.push(capacity);
        }
    }

    /// Whether each vertex stays with the source when the cheapest cut is made.
    pub(super) fn cut(mut self) -> Vec<bool> {
        let mut depth = vec![NONE; self.first.len()];
        let mut queue = Vec::with_capacity(self.first.len());
        while self.layers(&mut depth, &mut queue) {
            self.fill(&depth);
        }
        depth.iter().map(|&d| d != NONE).collect()
    }

    /// Distances from the source through edges with room; answers whether the sink can be reached.
    fn layers(&self, depth: &mut [u32], queue: &mut Vec<u32>) -> bool {
        depth.fill(NONE);
        depth[SOURCE as usize] = 0;
        queue.clear();
        queue.push(SOURCE);
        let mut at = 0;
        while let Some(&vertex) = queue.get(at) {
            at += 1;
            let mut edge = self.first[vertex as usize];
            while edge != NONE {
                let to = self.head[edge as usize] as usize;
                if self.left[edge as usize] > 0 && depth[to] == NONE {
                    depth[to] = depth[vertex as usize] + 1;
                    queue.push(to as u32);
                }
                edge = self.next[edge as usize];
            }
        }
        depth[SINK as usize] != NONE
    }

    /// Sends flow along shortest paths until every one is blocked.
    fn fill(&mut self, depth: &[u32]) {
        let mut current = self.first.clone();
        let mut path: Vec<u32> = Vec::new();
        let mut vertex = SOURCE;
        loop {
            if vertex == SINK {
                vertex = self.send(&mut path);
                continue;
            }
            let edge = current[vertex as usize];
            if edge == NONE {
                // A dead end: step back and do not come this way again.
                let Some(last) = path.pop() else { return };
                vertex = self.head[last as usize ^ 1];
                current[vertex as usize] = self.next[last as usize];
                continue;
            }
            let to = self.head[edge as usize];
            // A vertex as deep as the sink, other than the sink, cannot be on a shortest path.
            let nearer = depth[to as usize] == depth[vertex as usize] + 1
                && (to == SINK || depth[to as usize] < depth[SINK as usize]);
            if self.left[edge as usize] > 0 && nearer {
                path.push(edge);
                vertex = to;
            } else {
                current[vertex as usize] = self.next[edge as usize];
            }
        }
    }

    /// Fills the path as far as it takes; keeps the part before its first full edge and answers where that ends.
    fn send(&mut self, path: &mut Vec<u32>) -> u32 {
        let room = path.iter().map(|&e| self.left[e as usize]).min().unwrap_or(0);
        let mut full = path.len();
        for (i, &edge) in path.iter().enumerate().rev() {
            self.left[edge as usize] -= room;
            self.left[edge as usize ^ 1] += room;
            if self.left[edge as usize] == 0 {
                full = i;
            }
        }
        let vertex = path.get(full).map_or(SOURCE, |&e| self.head[e as usize ^ 1]);
        path.truncate(full);
        vertex
    }
}
