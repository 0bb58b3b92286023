//! Frozen, a decision is a function of what is known and of what is asked, and of nothing else.

use crate::simulated::{Line, Script, World, exp};
use steersman_core::{ReasonCode, Settings};

fn scripts() -> [Script; 3] {
    [
        Script { name: "a", threads: 1, prior: Line(1e-7, 1e-9), truth: Line(2e-7, 2e-9) },
        Script { name: "b", threads: 1, prior: Line(5e-7, 0.8e-9), truth: Line(1e-6, 1.1e-9) },
        Script { name: "c", threads: 2, prior: Line(5e-6, 0.5e-9), truth: Line(8e-6, 0.6e-9) },
    ]
}

#[test]
fn two_engines_that_know_the_same_decide_the_same_in_any_order() {
    let mut teacher = World::new(&scripts(), 0.05, 1, Settings::default());
    teacher.calibrate(&[100, 1_000, 10_000, 100_000], 4);
    for i in 0..20_000 {
        teacher.call(&exp(1 + i % 977 * 101));
    }

    let frozen = Settings { frozen: true, ..Settings::default() };
    let worlds = [2, 3].map(|seed| World::new(&scripts(), 0.05, seed, frozen.clone()));
    for world in &worlds {
        let cells: Vec<_> = teacher.engine.with_model(|m| m.cells().collect());
        world.engine.with_model_mut(|m| {
            cells.into_iter().for_each(|(key, stats)| m.restore(key, stats));
            m.refit();
        });
    }
    let mut sizes: Vec<usize> = (0..1_000).map(|i| 10 + i * i / 4).collect();
    let forward: Vec<_> = sizes.iter().map(|&n| worlds[0].engine.decide(&exp(n)).unwrap()).collect();
    sizes.reverse();
    for pass in 0..2 {
        for (n, first) in sizes.iter().zip(forward.iter().rev()) {
            let second = worlds[1].engine.decide(&exp(*n)).unwrap();
            assert_eq!(second, *first, "pass {pass}, size {n}");
            assert_eq!(second.reason(), ReasonCode::Frozen);
            assert!(!second.wants_timing());
        }
    }
    let chosen: std::collections::HashSet<_> = forward.iter().map(|d| d.kernel()).collect();
    assert_eq!(chosen.len(), 3, "the sizes should span every crossover");
}
