//! Against brute force, on random graphs and on small ones made by hand.

mod exact;
mod rules;
mod side_by_side;

use super::*;
use crate::{Bytes, DeviceId};

const HOST: Place = Place::Host;

fn device(i: u16) -> Place {
    Place::Device(DeviceId(i))
}

fn places(k: usize) -> Vec<Place> {
    (0..k as u16).map(|i| if i == 0 { HOST } else { device(i) }).collect()
}

fn uniform(k: usize, seconds: f64) -> Links {
    let link = Link::new(Seconds(seconds), f64::INFINITY);
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
    let all = places(k);
    let scale = [1, 10, 100][dice.below(3) as usize];
    let links = Links::new(&all, |_, _| {
        let link = Link::new(Seconds(dice.below(10) as f64), 1.0 / (1 + dice.below(scale)) as f64);
        Link { overlap: dice.chance(50), ..link }
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

/// The least cost by trying everything, added up as the module's docs define it and not by its code. A
/// branch is left when it already costs more than the best so far.
fn brute(graph: &Graph) -> f64 {
    let mut least = f64::INFINITY;
    let mut homes = Vec::new();
    branch(graph, &mut homes, &mut vec![0; graph.len()], 0.0, &mut least);
    least
}

fn branch(graph: &Graph, homes: &mut Vec<u8>, copies: &mut [u32], so_far: f64, least: &mut f64) {
    let node = homes.len();
    if so_far >= *least {
        return;
    }
    if node == graph.len() {
        *least = so_far;
        return;
    }
    for place in (0..graph.links.count() as u8).filter(|&p| graph.cost(node, p).is_finite()) {
        homes.push(place);
        let before = copies.to_vec();
        let mut cost = so_far + graph.cost(node, place);
        let asked = graph.inputs(node).iter().map(|&i| (i as usize, place));
        for (value, to) in asked.chain(bits(graph.wanted(node)).map(|to| (node, to))) {
            if copies[value] >> to & 1 == 0 {
                copies[value] |= 1 << to;
                cost += copy_time(graph, value, homes[value], to);
            }
        }
        branch(graph, homes, copies, cost, least);
        copies.copy_from_slice(&before);
        homes.pop();
    }
}

fn copy_time(graph: &Graph, value: usize, home: u8, to: u8) -> f64 {
    let sources: Vec<u8> =
        if graph.held[value] != 0 { bits(graph.held[value]).collect() } else { vec![home] };
    let time = |&from: &u8| graph.links.between(from, to).time(Bytes(graph.bytes[value])).0;
    let times = sources.iter().map(|from| if *from == to { 0.0 } else { time(from) });
    times.fold(f64::INFINITY, f64::min)
}

fn within(found: f64, least: f64, share: f64) -> bool {
    found >= least * (1.0 - 1e-9) && found <= least * (1.0 + share) + 1e-9
}
