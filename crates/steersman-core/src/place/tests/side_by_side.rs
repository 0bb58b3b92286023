//! Schedules: what overlaps, what cannot, and what always holds.

use super::*;
use proptest::prelude::*;

/// Two rounds of move-then-compute on a device; the second move can hide behind the first computation.
fn pipeline(overlap: bool) -> Graph {
    let link = Link { overlap, ..Link::new(Seconds(2.0), f64::INFINITY) };
    let mut graph = Graph::new(Links::new(&places(2), |_, _| link).unwrap());
    for _ in 0..2 {
        let x = graph.leaf(&[HOST], Bytes(1)).unwrap();
        graph.node(&[(device(1), Seconds(3.0))], &[x], Bytes(1)).unwrap();
    }
    graph
}

#[test]
fn a_transfer_hides_behind_compute_only_where_the_link_can() {
    for (overlap, makespan) in [(true, 8.0), (false, 10.0)] {
        let graph = pipeline(overlap);
        let placement = graph.place();
        assert_eq!(placement.cost, Seconds(10.0));
        assert_eq!(placement.schedule(&graph).makespan, Seconds(makespan));
    }
}

#[test]
fn the_longest_way_goes_first() {
    let mut graph = Graph::new(uniform(2, 1.0));
    let here = |s| [(HOST, Seconds(s))];
    let short = graph.node(&here(1.0), &[], Bytes(1)).unwrap();
    let long = graph.node(&here(1.0), &[], Bytes(1)).unwrap();
    graph.node(&[(device(1), Seconds(5.0))], &[long], Bytes(1)).unwrap();
    let placement = graph.place();
    let schedule = placement.schedule(&graph);
    assert_eq!(
        (schedule.nodes[long.0 as usize], schedule.nodes[short.0 as usize]),
        (Seconds(0.0), Seconds(1.0))
    );
    assert_eq!(schedule.makespan, Seconds(7.0));
    assert_eq!(schedule.transfers, [Seconds(1.0)]);
}

proptest! {
    #[test]
    fn inputs_are_there_first_and_nothing_is_in_two_jobs_at_once(seed: u64, nodes in 1usize..40, k in 1usize..=4) {
        let graph = random(seed, nodes, k, 20, 50);
        let placement = graph.place();
        let schedule = placement.schedule(&graph);
        let cost = |n: usize| graph.cost(n, graph.links.index(placement.places[n]).unwrap());
        let mut busy: std::collections::BTreeMap<Vec<Place>, Vec<(f64, f64)>> = Default::default();
        let mut book = |what: Vec<Place>, start: f64, time: f64| busy.entry(what).or_default().push((start, start + time));
        for n in 0..graph.len() {
            book(vec![placement.places[n]], schedule.nodes[n].0, cost(n));
        }
        for (t, start) in placement.transfers.iter().zip(&schedule.transfers) {
            prop_assert!(start.0 >= schedule.nodes[t.value.0 as usize].0 + cost(t.value.0 as usize));
            let (from, to) = (graph.links.index(t.from).unwrap(), graph.links.index(t.to).unwrap());
            if graph.links.between(from, to).overlap {
                book(vec![t.from, t.to], start.0, t.time.0);
            } else {
                book(vec![t.from], start.0, t.time.0);
                book(vec![t.to], start.0, t.time.0);
            }
        }
        for n in 0..graph.len() {
            for &i in graph.inputs(n) {
                let moved = placement.transfers.iter().zip(&schedule.transfers);
                let arrival = moved.filter(|(t, _)| t.value.0 == i && t.to == placement.places[n]);
                let ready = arrival.map(|(t, s)| s.0 + t.time.0).next();
                let ready = ready.unwrap_or(schedule.nodes[i as usize].0 + cost(i as usize));
                prop_assert!(schedule.nodes[n].0 >= ready, "node {n} starts before {i} is there");
            }
        }
        let last = busy.values().flatten().map(|job| job.1).fold(0.0, f64::max);
        prop_assert_eq!(schedule.makespan.0, last);
        prop_assert!(last <= placement.cost.0 * (1.0 + 1e-9));
        for jobs in busy.values_mut() {
            jobs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            prop_assert!(jobs.windows(2).all(|w| w[0].1 <= w[1].0), "two jobs at once: {jobs:?}");
        }
    }
}
