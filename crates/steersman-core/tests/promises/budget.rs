//! Exploring is paid from a ledger that never overdraws, and the total stays near the best in hindsight.

use crate::simulated::{Line, Script, World, custom, exp, honest};
use steersman_core::{ReasonCode, Seconds, Settings};

/// Priors up to four times off either way: the quickest is thought the slowest.
const MISJUDGED: [Script; 4] = [
    Script { name: "a", threads: 1, prior: Line(1e-6, 1e-9), truth: Line(1e-6, 2e-9) },
    Script { name: "b", threads: 1, prior: Line(1e-6, 2e-9), truth: Line(1e-6, 1e-9) },
    Script { name: "c", threads: 1, prior: Line(2e-6, 4e-9), truth: Line(1e-6, 1.2e-9) },
    Script { name: "d", threads: 2, prior: Line(4e-6, 1.5e-9), truth: Line(4e-6, 6e-9) },
];

const SIZES: [usize; 6] = [1_000, 4_000, 10_000, 30_000, 60_000, 100_000];

#[test]
fn a_million_noisy_calls_come_within_two_percent_of_the_best_in_hindsight_plus_the_budget() {
    let mut world = World::new(&MISJUDGED, 0.05, 1, Settings::default());
    let workloads: Vec<_> = SIZES.iter().map(|&n| exp(n)).collect();
    let (mut best, mut truly_lost) = (0.0, 0.0);
    for _ in 0..1_000_000 {
        let at = world.random.below(SIZES.len());
        let called = world.call(&workloads[at]);
        let least = (0..4).map(|k| world.true_seconds(k, SIZES[at])).fold(f64::INFINITY, f64::min);
        best += least;
        if called.decision.reason() == ReasonCode::Explore {
            truly_lost += world.true_seconds(called.kernel, SIZES[at]) - least;
        }
        let ledger = world.engine.ledger();
        assert!(ledger.lost <= ledger.budget * ledger.spent, "{ledger:?}");
        assert!(ledger.spent <= world.total * 1.000_001, "{ledger:?} of {}", world.total);
    }
    println!(
        "total {:.5} of the best, {:.5} lost exploring, {} explored",
        world.total / best,
        truly_lost / best,
        world.explored
    );
    assert!(world.total <= (1.02 + 0.01) * best, "{} of {best}", world.total);
    assert!(truly_lost <= 0.01 * world.total, "{truly_lost} of {}", world.total);
    assert!(world.explored > 0);
}

#[test]
fn explorations_under_way_at_once_fit_the_budget_together_and_failed_ones_are_paid_for() {
    let mut world = World::new(&MISJUDGED, 0.05, 8, Settings { explore_budget: 0.05, ..Settings::default() });
    for i in 0..100 {
        world.call(&exp(SIZES[i % SIZES.len()]));
    }
    // Many callers that have not come back yet.
    let mut under_way = Vec::new();
    for i in 0..5_000 {
        let decision = world.engine.decide(&exp(1_000 + 20 * i)).unwrap();
        under_way.extend(decision.explores().then_some(decision));
        let ledger = world.engine.ledger();
        assert!(ledger.lost + ledger.set_aside <= ledger.budget * ledger.spent, "{ledger:?}");
    }
    assert!(!under_way.is_empty());
    let (before, waiting) = (world.engine.ledger(), under_way.len() as u64);
    assert!(before.set_aside > 0.0);
    // One in a hundred of them failed at once; of the others some had to be compiled.
    for (i, decision) in under_way.iter().enumerate() {
        match i % 100 {
            0 => world.engine.book(decision, Seconds(1e-6), true),
            1 => world.engine.book(decision, decision.predicted(), false),
            _ => drop(world.engine.observe(decision, decision.predicted())),
        }
    }
    let after = world.engine.ledger();
    assert!(after.set_aside < 1e-12 && after.lost > before.lost, "{after:?} after {before:?}");
    assert_eq!(after.explored, before.explored + waiting);
    assert!(after.lost <= after.budget * after.spent, "{after:?}");
}

#[test]
fn a_budget_of_zero_never_explores() {
    let mut world = World::new(&MISJUDGED, 0.05, 2, Settings { explore_budget: 0.0, ..Settings::default() });
    for i in 0..100_000 {
        world.call(&exp(SIZES[i % SIZES.len()]));
    }
    assert_eq!((world.explored, world.engine.ledger().explored), (0, 0));
}

#[test]
fn a_larger_budget_is_held_to_as_well() {
    for budget in [0.001, 0.05, 0.2] {
        let mut world =
            World::new(&MISJUDGED, 0.05, 3, Settings { explore_budget: budget, ..Settings::default() });
        for i in 0..50_000 {
            world.call(&exp(SIZES[i % SIZES.len()]));
            let ledger = world.engine.ledger();
            assert!(ledger.lost <= budget * ledger.spent, "{ledger:?}");
        }
    }
}

#[test]
fn measuring_is_asked_for_as_often_as_the_settings_say() {
    let observed = |every: f64| {
        let settings = Settings { observe_every: Seconds(every), ..Settings::default() };
        let mut world = World::new(&[honest("only", 1, Line(10e-6, 0.0))], 0.01, 4, settings);
        world.calls(&exp(10), 10_000);
        world.observed
    };
    // 10,000 calls of 10 µs are 0.1 s; what counts is the lower end of the expected time.
    let (often, seldom) = (observed(100e-6), observed(5e-3));
    assert!((700..=1_100).contains(&often), "{often}");
    assert!((12..=25).contains(&seldom), "{seldom}");
}

#[test]
fn engines_that_take_turns_on_a_thread_both_get_their_measurements() {
    let world = |seed| World::new(&[honest("only", 1, Line(10e-6, 0.0))], 0.01, seed, Settings::default());
    let (mut one, mut two) = (world(5), world(6));
    for _ in 0..10_000 {
        one.call(&exp(10));
        two.call(&exp(10));
    }
    // 10,000 calls of 10 µs, one measurement every 500 µs.
    assert!(one.observed > 150 && two.observed > 150, "{} and {}", one.observed, two.observed);
}

#[test]
fn user_code_a_thousand_times_slower_than_supposed_stays_within_the_budget_and_is_learned() {
    let supposed = Line(50e-9, 1e-9);
    let script = |name, rate: f64| Script { name, threads: 1, prior: supposed, truth: Line(1e-6, rate) };
    let scripts = [script("first", 1e-6), script("slower", 8e-6), script("quicker", 0.4e-6)];
    let mut world = World::of_user_code(&scripts, 0.05, 7, Settings::default());
    let mut found = None;
    for i in 0..60_000 {
        let called = world.call(&custom(100 + i % 5 * 200));
        if called.kernel == 2 && called.decision.reason() != ReasonCode::Explore {
            found.get_or_insert(i);
        }
        let ledger = world.engine.ledger();
        assert!(ledger.lost <= ledger.budget * ledger.spent, "call {i}: {ledger:?}");
    }
    println!("the quicker one was found after {found:?} calls, {} explored", world.explored);
    assert!(found.is_some_and(|i| i < 20_000), "{found:?}");
}
