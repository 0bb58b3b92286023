//! Against brute force, on random graphs and on small ones made by hand.

use super::cut;
use super::problem::{Labels, Problem};
use super::*;
use crate::{Bytes, DeviceId};
use proptest::prelude::*;

const HOST: Place = Place::Host;

fn device(i: u16) -> Place {
    Place::Device(DeviceId(i))
}

fn places(k: usize) -> Vec<Place> {
    (0..k as u16).map(|i| if i == 0 { HOST } else { device(i) }).collect()
}

fn uniform(k: usize, seconds: f64) -> Links {
    let link = Link { latency: Seconds(seconds), bandwidth: f64::INFINITY, overlap: true };
    Links::new(&places(k), |_, _| link).unwrap()
}

/// Small, quick and the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A random graph: `nodes` nodes over `k` places, links uneven in both directions, some leaves (some held
/// twice), some places impossible, some results wanted. Inputs come from the last `reach` nodes.
fn random(seed: u64, nodes: usize, k: usize, reach: u64, share: u64) -> Graph {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..4).for_each(|_| drop(dice.below(2)));
    let all = places(k);
    let scale = [1, 10, 100][dice.below(3) as usize];
    let links = Links::new(&all, |_, _| Link {
        latency: Seconds(dice.below(10) as f64),
        bandwidth: 1.0 / (1 + dice.below(scale)) as f64,
        overlap: dice.chance(50),
    });
    let mut graph = Graph::new(links.unwrap());
    for n in 0..nodes as u32 {
        let bytes = Bytes(dice.below(10));
        if n == 0 || dice.chance(20) {
            let mut held = vec![all[dice.below(k as u64) as usize]];
            if dice.chance(20) {
                held.push(all[dice.below(k as u64) as usize]);
            }
            let leaf = graph.leaf(&held, bytes).unwrap();
            if dice.chance(10) {
                graph.want(leaf, all[dice.below(k as u64) as usize]).unwrap();
            }
            continue;
        }
        let mut inputs = Vec::new();
        loop {
            inputs.push(NodeId(n - 1 - dice.below(reach.min(n as u64)) as u32));
            if !dice.chance(share) {
                break;
            }
        }
        let mut costs: Vec<_> = all.iter().map(|&p| (p, Seconds(dice.below(100) as f64))).collect();
        let must = dice.below(k as u64) as usize;
        let mut i = 0;
        costs.retain(|_| {
            i += 1;
            i - 1 == must || !dice.chance(10)
        });
        let node = graph.node(&costs, &inputs, bytes).unwrap();
        if dice.chance(15) {
            graph.want(node, all[dice.below(k as u64) as usize]).unwrap();
        }
    }
    graph
}

/// The least cost by trying everything; costs are added up from the definition, not by the code under test.
fn brute(graph: &Graph) -> f64 {
    let k = graph.links.count() as u8;
    let choices: Vec<Vec<u8>> =
        (0..graph.len()).map(|v| (0..k).filter(|&p| graph.cost(v, p).is_finite()).collect()).collect();
    let mut at = vec![0; graph.len()];
    let mut least = f64::INFINITY;
    loop {
        let labels: Vec<u8> = at.iter().zip(&choices).map(|(&i, c)| c[i]).collect();
        least = least.min(defined_cost(graph, &labels));
        let Some(d) = (0..at.len()).find(|&d| at[d] + 1 < choices[d].len()) else { return least };
        at[d] += 1;
        at[..d].fill(0);
    }
}

fn defined_cost(graph: &Graph, labels: &[u8]) -> f64 {
    let mut copies = std::collections::BTreeSet::new();
    let mut sum = 0.0;
    for v in 0..graph.len() {
        sum += graph.cost(v, labels[v]);
        graph.inputs(v).iter().for_each(|&i| drop(copies.insert((i as usize, labels[v]))));
        bits(graph.wanted(v)).for_each(|p| drop(copies.insert((v, p))));
    }
    let sources = |v: usize| {
        if graph.held[v] != 0 { bits(graph.held[v]).collect() } else { vec![labels[v]] }
    };
    for (v, to) in copies {
        let time = |from: u8| {
            if from == to { 0.0 } else { graph.links.between(from, to).time(Bytes(graph.bytes[v])).0 }
        };
        sum += sources(v).into_iter().map(time).fold(f64::INFINITY, f64::min);
    }
    sum
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

#[test]
fn two_places_are_exact_by_cut() {
    for seed in 0..400 {
        let graph = random(seed, 12, 2, 12, 50);
        let problem = Problem::new(&graph);
        let found = problem.cost(&cut::two_places(&problem));
        assert!(close(found, brute(&graph)), "seed {seed}: {found} but {} is possible", brute(&graph));
    }
}

#[test]
fn probe_moves() {
    for (k, n) in [(3usize, 9usize), (4, 7)] {
        for window in [1, 3, 16] {
            let (mut worst, mut off, mut sum) = (1.0f64, 0, 0.0);
            for seed in 0..500 {
                let graph = random(seed, n, k, 12, 50);
                let problem = Problem::new(&graph);
                let b = brute(&graph);
                let f = problem.cost(&moves::search_with(&problem, window));
                let r = if b > 0.0 { f / b } else { 1.0 };
                worst = worst.max(r);
                sum += r - 1.0;
                off += (r > 1.0 + 1e-9) as u32;
                let e = graph.place();
                assert!(close(e.cost.0, b), "{k} seed {seed} {:?} {} {}", e.method, e.cost.0, b);
            }
            println!("k {k} window {window}: worst {worst:.4} off {off} mean {:.5}", sum / 500.0);
        }
    }
}
