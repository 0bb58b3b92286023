//! How long placing graphs takes (the best of three), and what the answer costs.
//!
//! Arguments: nodes, GB/s of every link, the most places.
//!
//! ```sh
//! cargo run --release -p steersman-core --example place_scale -- 10000 20 4
//! ```

use std::time::Instant;
use steersman_core::place::{Graph, Link, Links, NodeId, PlaceError};
use steersman_core::{Bytes, DeviceId, Place, Seconds};

/// Which earlier nodes a node reads.
type Shape = fn(&mut Dice, u32) -> Vec<NodeId>;

const SHAPES: [(&str, Shape); 6] = [
    ("chain", |_, n| vec![NodeId(n - 1)]),
    ("shared weights", |_, n| vec![NodeId(0), NodeId(n - 1)]),
    ("residual", |_, n| vec![NodeId(n - 1), NodeId(n.saturating_sub(4))]),
    ("32 strands", |dice, n| {
        let straight = NodeId(n.saturating_sub(32));
        if dice.below(8) == 0 { vec![straight, dice.earlier(n, 32)] } else { vec![straight] }
    }),
    ("wide", |dice, n| vec![dice.earlier(n, 300), dice.earlier(n, 300)]),
    ("anything", |dice, n| vec![dice.earlier(n, n as u64), dice.earlier(n, n as u64)]),
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    fn earlier(&mut self, n: u32, reach: u64) -> NodeId {
        NodeId(n - 1 - self.below(reach.min(n as u64)) as u32)
    }
}

fn build(shape: Shape, nodes: u32, places: &[Place], bandwidth: f64) -> Result<Graph, PlaceError> {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let link = Link::new(Seconds(10e-6), bandwidth);
    let mut graph = Graph::new(Links::new(places, |_, _| link)?);
    graph.leaf(&places[..1], Bytes(1 << 20))?;
    for n in 1..nodes {
        // Kernels of 1 to 1000 µs, on each place up to three times slower or quicker than on the next.
        let work = 1e-6 * 10f64.powf(dice.below(3000) as f64 / 1000.0);
        let times: Vec<_> = places
            .iter()
            .map(|&p| (p, Seconds(work * 9f64.powf(dice.below(1000) as f64 / 1000.0))))
            .collect();
        graph.node(&times, &shape(&mut dice, n), Bytes(1 << dice.below(24)))?;
    }
    graph.want(NodeId(nodes - 1), places[0])?;
    Ok(graph)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nodes: u32 = std::env::args().nth(1).map_or(Ok(10_000), |n| n.parse())?;
    let bandwidth: f64 = std::env::args().nth(2).map_or(Ok(20.0), |n| n.parse())?;
    let places: u16 = std::env::args().nth(3).map_or(Ok(4), |n| n.parse())?;
    let all: Vec<Place> =
        std::iter::once(Place::Host).chain((1..places).map(|i| Place::Device(DeviceId(i)))).collect();
    println!(
        "{nodes} nodes\n{:<16}{:>7}{:>12}{:>14}{:>14}{:>12}",
        "shape", "places", "time", "cost", "makespan", "method"
    );
    for (name, shape) in SHAPES {
        for k in 2..=all.len() {
            let graph = build(shape, nodes, &all[..k], bandwidth * 1e9)?;
            let mut took = Seconds(f64::INFINITY);
            let mut placement = graph.place();
            for _ in 0..3 {
                let started = Instant::now();
                placement = graph.place();
                took = Seconds(took.0.min(started.elapsed().as_secs_f64()));
            }
            let makespan = placement.schedule(&graph).makespan;
            let method = format!("{:?}", placement.method);
            println!("{name:<16}{k:>7}{took:>12}{:>14}{makespan:>14}{method:>12}", placement.cost);
        }
    }
    Ok(())
}
