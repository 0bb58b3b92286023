//! What a placement always keeps to, and what is refused.

use super::*;
use proptest::prelude::*;

const KB: Bytes = Bytes(1000);

fn both(host: f64, other: f64) -> [(Place, Seconds); 2] {
    [(HOST, Seconds(host)), (device(1), Seconds(other))]
}

#[test]
fn a_value_read_twice_moves_once() {
    let mut graph = Graph::new(uniform(2, 5.0));
    let x = graph.leaf(&[HOST], KB).unwrap();
    // Either alone would rather stay: 4 saved, 5 to move. Together they save 8.
    let a = graph.node(&both(4.0, 0.0), &[x, x], KB).unwrap();
    let b = graph.node(&both(4.0, 0.0), &[x], KB).unwrap();
    let placement = graph.place();
    assert_eq!((placement.place(a), placement.place(b)), (device(1), device(1)));
    assert_eq!(placement.transfers.len(), 1);
    assert_eq!(placement.cost, Seconds(5.0));
}

#[test]
fn results_come_home_only_when_wanted() {
    let mut graph = Graph::new(uniform(2, 5.0));
    let a = graph.node(&both(50.0, 1.0), &[], KB).unwrap();
    assert_eq!(graph.place().transfers, []);
    graph.want(a, HOST).unwrap();
    let placement = graph.place();
    let home = Transfer { value: a, from: device(1), to: HOST, time: Seconds(5.0) };
    assert_eq!(placement.transfers, [home]);
    assert_eq!(placement.cost, Seconds(6.0));
}

#[test]
fn the_way_back_may_cost_something_else() {
    let uneven = |from, _| {
        let seconds = if from == HOST { 1.0 } else { 100.0 };
        Link { overlap: false, ..Link::new(Seconds(seconds), f64::INFINITY) }
    };
    let mut graph = Graph::new(Links::new(&places(2), uneven).unwrap());
    let x = graph.leaf(&[HOST], KB).unwrap();
    let a = graph.node(&both(10.0, 1.0), &[x], KB).unwrap();
    assert_eq!(graph.place().place(a), device(1));
    graph.want(a, HOST).unwrap();
    assert_eq!(graph.place().place(a), HOST);
}

#[test]
fn a_leaf_held_in_two_places_is_free_in_both() {
    let mut graph = Graph::new(uniform(3, 5.0));
    let x = graph.leaf(&[HOST, device(2)], KB).unwrap();
    graph.node(&[(HOST, Seconds(1.0))], &[x], KB).unwrap();
    graph.node(&[(device(2), Seconds(1.0))], &[x], KB).unwrap();
    assert_eq!(graph.place().cost, Seconds(2.0));
    graph.node(&[(device(1), Seconds(1.0))], &[x], KB).unwrap();
    assert_eq!(graph.place().cost, Seconds(8.0));
}

#[test]
fn a_deep_chain_over_many_places_overflows_nothing() {
    let mut graph = Graph::new(uniform(20, 3.0));
    let all = places(20);
    let mut last = graph.leaf(&[HOST], KB).unwrap();
    for n in 0..10_000 {
        let costs: Vec<_> =
            all.iter().map(|&p| (p, Seconds(if p == all[n % 20] { 1.0 } else { 2.0 }))).collect();
        last = graph.node(&costs, &[last], KB).unwrap();
    }
    let placement = graph.place();
    assert_eq!(placement.method, Method::Elimination);
    // Staying put is quickest at one node in twenty; no single gain of 1 pays for a move of 3.
    assert_eq!(placement.cost, Seconds(19_500.0));
    assert_eq!(placement.schedule(&graph).makespan, Seconds(19_500.0));
}

#[test]
fn an_empty_graph_costs_nothing() {
    let placement = Graph::new(uniform(2, 1.0)).place();
    assert_eq!((placement.cost, placement.places.len()), (Seconds::ZERO, 0));
}

#[test]
fn what_cannot_be_placed_is_refused_with_the_reason() {
    let mut graph = Graph::new(uniform(2, 1.0));
    let (first, later) = (NodeId(0), NodeId(7));
    assert_eq!(graph.node(&[], &[], KB), Err(PlaceError::NoPlace(first)));
    assert_eq!(graph.leaf(&[], KB), Err(PlaceError::NoPlace(first)));
    assert_eq!(
        graph.node(&both(1.0, 1.0), &[first], KB),
        Err(PlaceError::Order { node: first, input: first })
    );
    assert_eq!(
        graph.node(&both(1.0, 1.0), &[later], KB),
        Err(PlaceError::Order { node: first, input: later })
    );
    let unknown = PlaceError::UnknownPlace { node: first, place: device(9) };
    assert_eq!(graph.node(&[(device(9), Seconds(1.0))], &[], KB), Err(unknown));
    for cost in [f64::INFINITY, -1.0] {
        let bad = PlaceError::BadCost { node: first, place: HOST, cost };
        assert_eq!(graph.node(&both(cost, 1.0), &[], KB), Err(bad));
    }
    assert!(graph.node(&both(f64::NAN, 1.0), &[], KB).is_err());
    assert_eq!(graph.want(later, HOST), Err(PlaceError::UnknownNode(later)));
    assert!(graph.is_empty(), "nothing that was refused is left behind");
}

#[test]
fn link_tables_that_make_no_sense_are_refused() {
    let link = Link::new(Seconds(1.0), 0.0);
    assert!(matches!(Links::new(&places(2), |_, _| link), Err(PlaceError::BadLink { .. })));
    let stuck = Link { beyond: f64::NAN, ..Link::new(Seconds(1.0), 1.0) };
    assert!(matches!(Links::new(&places(2), |_, _| stuck), Err(PlaceError::BadLink { .. })));
    assert!(matches!(Links::new(&[], |_, _| link), Err(PlaceError::PlaceCount(0))));
    assert!(matches!(Links::new(&places(33), |_, _| link), Err(PlaceError::PlaceCount(33))));
    let twice = Links::new(&[HOST, HOST], |_, _| Link { bandwidth: 1.0, beyond: 1.0, ..link });
    assert!(matches!(twice, Err(PlaceError::TwicePlace(HOST))));
}

proptest! {
    #[test]
    fn nodes_run_only_where_they_can_and_the_parts_add_up(seed: u64, nodes in 1usize..60, k in 1usize..=4) {
        let graph = random(seed, nodes, k, 20, 50);
        let placement = graph.place();
        let mut sum = 0.0;
        for (node, &place) in placement.places.iter().enumerate() {
            let cost = graph.cost(node, graph.links.index(place).unwrap());
            prop_assert!(cost.is_finite(), "node {node} cannot run on {place}");
            sum += cost;
        }
        let mut moved: Vec<_> = placement.transfers.iter().map(|t| (t.value, t.to)).collect();
        sum += placement.transfers.iter().map(|t| t.time.0).sum::<f64>();
        prop_assert!(within(sum, placement.cost.0, 1e-9), "parts {sum}, said {}", placement.cost.0);
        prop_assert!(placement.transfers.iter().all(|t| t.from != t.to));
        moved.sort_unstable();
        moved.dedup();
        prop_assert_eq!(moved.len(), placement.transfers.len(), "a value moved twice to one place");
    }
}
