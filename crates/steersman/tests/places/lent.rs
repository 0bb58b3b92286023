//! Devices whose memory the host works on where it lies.

use crate::moves::{at_home, close, ramp, runtime_with};
use crate::simulated::{INSTANT, Sim, add_for, wire};
use std::sync::Arc;
use steersman::core::place::Lane;
use steersman::core::{Bytes, DeviceId, Op, Place, Seconds, Workload};
use steersman::{Array, Axis, Runtime};

/// A runtime with a device that multiplies matrices at once and can do nothing else, and is thought to lend.
fn multiplier() -> (Runtime, DeviceId, Arc<Sim>) {
    let rt = runtime_with(&[("frozen", "true")]);
    let (id, sim) = add_for(&rt, "sim", INSTANT, |op| op == Op::MatMul);
    rt.engine().set_wire(id, wire(1e-9, 1e15));
    let mut lane = Lane::default();
    lane.add(Bytes(0), Seconds(1e-9));
    rt.engine().set_lent(id, Some(lane));
    (rt, id, sim)
}

/// Products of products' sums: over there, here, over there.
fn chain(rt: &Runtime) -> Array {
    let x = ramp(rt, 60 * 70).reshape([60, 70]);
    let sums = x.matmul(&x.t()).sum(Axis(1)).reshape([1, 60]);
    sums.matmul(&x)
}

fn wanted() -> Vec<f32> {
    at_home(|rt| chain(rt).to_vec().unwrap())
}

#[test]
fn the_host_reads_and_writes_what_a_device_lends_and_nothing_is_carried_in_between() {
    let (rt, _, sim) = multiplier();
    sim.lend_to_host();
    let y = chain(&rt);
    close(&y.to_vec::<f32>().unwrap(), &wanted());
    assert_eq!((sim.runs(), sim.lent()), (2, 1), "two products there, one sum here");
    assert_eq!(sim.transfers(), (1, 1), "x there, the result home");
    let plan = rt.explain(&y).unwrap();
    assert_eq!(plan.transfers.len(), 2, "{plan}");
    let sum = plan.stages.iter().find(|s| s.place == "host").expect("the sum");
    assert!(sum.workload.contains("@sim:0") && sum.workload.contains("-> sim:0"), "{}", sum.workload);
}

#[test]
fn what_is_not_lent_after_all_is_carried() {
    let (rt, _, sim) = multiplier();
    close(&chain(&rt).to_vec::<f32>().unwrap(), &wanted());
    assert_eq!((sim.runs(), sim.lent()), (2, 0));
    assert_eq!(sim.transfers(), (2, 2), "the product home, its sums there");
}

#[test]
fn what_was_never_written_is_not_lent_but_made_again() {
    let (rt, _, sim) = multiplier();
    sim.lend_to_host();
    sim.refuse("matmul");
    close(&chain(&rt).to_vec::<f32>().unwrap(), &wanted());
    assert_eq!(sim.lent(), 0);
    let notes: Vec<String> = rt.log().entries().into_iter().filter_map(|e| e.note).collect();
    assert!(
        !notes.iter().any(|n| n.contains("could not be used")),
        "the device is as good as ever: {notes:?}"
    );
}

#[test]
fn a_device_lost_before_it_lends_is_done_without() {
    let (rt, _, sim) = multiplier();
    sim.lend_to_host();
    sim.lose_after(1);
    close(&chain(&rt).to_vec::<f32>().unwrap(), &wanted());
}

#[test]
fn moves_say_what_is_lent_and_long_work_gets_copies() {
    let (rt, id, _) = multiplier();
    let places = rt.engine().places();
    let lent = |text: &str| {
        let w = Workload::parse(text, &places).unwrap();
        let e = rt.engine().explain(&w).unwrap();
        let here =
            |c: &&steersman::core::Candidate| rt.engine().place_of(c.variant.kernel) == Some(Place::Host);
        let c = *e.candidates.iter().find(here).unwrap();
        let moves = rt.engine().moves(&w, c.variant.kernel).unwrap();
        assert_eq!(rt.engine().lends(&w, id), moves.iter().all(|m| m.lent));
        let seconds: f64 = moves.iter().map(|m| m.seconds.0).sum();
        assert!((seconds - c.estimate.moves.0).abs() < 1e-6 * seconds, "{seconds} {:?}", c.estimate.moves);
        (moves.iter().map(|m| m.lent).collect::<Vec<_>>(), seconds)
    };
    let (all, together) = lent("matmul f32 100x100@sim:0 100x100@sim:0 -> sim:0");
    assert_eq!(all, [true; 3]);
    let (all, one) = lent("matmul f32 100x100@sim:0 100x100");
    assert_eq!(all, [true]);
    assert!((together / one - 1.0).abs() < 1e-9, "they are lent together: {together} {one}");
    let (all, _) = lent("matmul f32 4000x4000@sim:0 4000x4000@sim:0");
    assert_eq!(all, [false; 2]);
}
