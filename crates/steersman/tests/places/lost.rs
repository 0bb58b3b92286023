//! Values that only a lost device held: computed again while what they were made from is there, else a clear error.

use crate::moves::{at_home, away, close, ramp};
use steersman::array::Seed;
use steersman::core::{Memory, Place, Workload};
use steersman::{Array, Error, Runtime};

fn lost(a: &Array) {
    let why = a.to_vec::<f32>().unwrap_err();
    assert!(matches!(why, Error::Lost { .. }), "{why}");
    assert!(why.to_string().contains("sim:0") && why.to_string().contains("compute it again"), "{why}");
}

#[test]
fn what_was_made_from_arrays_that_are_held_is_computed_again() {
    let work = |x: &Array| {
        let y = x.exp();
        y.eval().unwrap();
        // From what only the device has; and a look at something that nobody holds.
        let z = (&y + 1.0).sqrt().reshape([10, 10]).t();
        z.eval().unwrap();
        (y, z)
    };
    let want = at_home(|rt| work(&ramp(rt, 100)).1.to_vec().unwrap());
    let (rt, id, sim) = away();
    let x = ramp(&rt, 100);
    let (y, z) = work(&x);
    sim.lose();
    close(&z.to_vec::<f32>().unwrap(), &want);
    close(&(&z + 1.0).to_vec::<f32>().unwrap(), &want.iter().map(|v| v + 1.0).collect::<Vec<_>>());
    close(&y.to_vec::<f32>().unwrap(), &at_home(|rt| ramp(rt, 100).exp().to_vec().unwrap()));
    assert!(rt.engine().guard().lost(id).is_some());
    let said = rt.log().entries().into_iter().filter_map(|e| e.note);
    assert_eq!(said.filter(|n| n.contains("is computed again")).count(), 2, "each once");
}

#[test]
fn plans_that_start_from_what_was_lost_go_on() {
    let (rt, _, sim) = away();
    let x = ramp(&rt, 64);
    let y = x.exp();
    y.eval().unwrap();
    sim.lose_after(0);
    // It is found out in the middle of this plan, which needs what the device had.
    let sum = (y.sqrt() * 2.0).sum(..);
    let want = at_home(|rt| vec![(ramp(rt, 64).exp().sqrt() * 2.0).sum(..).item().unwrap()]);
    close(&[sum.item().unwrap()], &want);
}

#[test]
fn random_numbers_come_again_as_they_were() {
    let draw = |rt: &Runtime| {
        let z = rt.normal([1000], Seed(5)) * 2.0;
        z.eval().unwrap();
        z
    };
    let want = at_home(|rt| draw(rt).to_vec().unwrap());
    let (rt, _, sim) = away();
    let z = draw(&rt);
    sim.lose();
    close(&z.to_vec::<f32>().unwrap(), &want);
}

#[test]
fn a_long_line_of_values_made_from_each_other_is_computed_again() {
    let (rt, _, sim) = away();
    let mut line = vec![ramp(&rt, 4)];
    for i in 0..600 {
        let next = &line[i] + 1.0;
        next.eval().unwrap();
        line.push(next);
    }
    sim.lose();
    let read = move || {
        let last = line[600].to_vec::<f32>().unwrap();
        assert_eq!(last, [600.0, 600.125, 600.25, 600.375]);
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(read).unwrap().join().unwrap();
}

#[test]
fn what_nobody_knows_how_to_make_again_is_a_clear_error_and_the_rest_goes_on() {
    let (rt, _, sim) = away();
    let x = ramp(&rt, 100);
    let gone = {
        let inputs = ramp(&rt, 100);
        let y = inputs.exp();
        y.eval().unwrap();
        y
    };
    sim.lose_after(0);
    let home = x.sqrt().to_vec::<f32>().unwrap();
    close(&home, &at_home(|rt| ramp(rt, 100).sqrt().to_vec().unwrap()));
    lost(&gone);
    lost(&(&gone + 1.0));
}

#[test]
fn knowing_how_to_make_it_again_keeps_nothing_in_memory() {
    let (rt, _, sim) = away();
    let host = || rt.cpu().memory.stats().in_use;
    let before = (host(), sim.in_use());
    let mut state = rt.from_slice(&vec![1.0f32; 10_000], [10_000]).unwrap();
    for _ in 0..20 {
        state = (&state * 0.5 + 1.0).sqrt();
        state.eval().unwrap();
    }
    assert_eq!(host(), before.0, "the first state is gone");
    assert!(sim.in_use() - before.1 <= 2 * 40_960, "and so are all but the last");
}

#[test]
fn what_a_driver_refused_is_done_by_the_next_best() {
    let work = |x: &Array| ((x * 2.0 + 1.0).exp().sqrt()).sum(..);
    let want = at_home(|rt| vec![work(&ramp(rt, 100)).item().unwrap()]);
    let (rt, _, sim) = away();
    sim.refuse("fused");
    // It comes out when the number is read, which is in the same plan.
    close(&[work(&ramp(&rt, 100)).item().unwrap()], &want);
    assert!(!rt.engine().guard().list().is_empty(), "who was refused is put away");
}

#[test]
fn what_a_driver_refused_unnoticed_is_computed_again_when_it_is_read_and_the_device_goes_on() {
    let work = |x: &Array| {
        let y = x.exp();
        y.eval().unwrap();
        let z = (&y + 1.0).sqrt();
        z.eval().unwrap();
        (y, z)
    };
    let want = at_home(|rt| {
        let (y, z) = work(&ramp(rt, 100));
        [y.to_vec::<f32>().unwrap(), z.to_vec().unwrap()].concat()
    });
    // Read first what is made of it, or what was refused, or what is yet to be made.
    for first in 0..3 {
        let (rt, id, sim) = away();
        let x = ramp(&rt, 100);
        // First runs are waited for, so as to time them: of what is carried, then of what is there.
        (0..2).for_each(|_| drop(work(&x)));
        sim.refuse("sim1/map");
        let (y, z) = work(&x);
        if first == 2 {
            sim.wait().unwrap();
            let sum = (&z + &y).sum(..).item::<f32>().unwrap();
            close(&[sum], &[want.iter().sum()]);
        }
        let read = |a: &Array| a.to_vec::<f32>().unwrap();
        let got = if first == 0 { [read(&z), read(&y)] } else { [read(&y), read(&z)] };
        let [a, b] = got;
        close(&if first == 0 { [b, a].concat() } else { [a, b].concat() }, &want);
        let said: Vec<_> = rt.log().entries().into_iter().filter_map(|e| e.note).collect();
        assert!(said.iter().filter(|n| n.contains("is computed again")).count() >= 2, "{first}: {said:?}");
        assert!(rt.engine().guard().lost(id).is_none());
        let before = (sim.runs(), sim.transfers().0);
        let more = (&y * 2.0).sum(..).item::<f32>().unwrap();
        close(&[more], &[want[..100].iter().sum::<f32>() * 2.0]);
        assert!(sim.runs() > before.0, "other kernels there go on");
        assert_eq!(sim.transfers().0, before.1, "with what it has again");
    }
}

#[test]
fn what_was_refused_and_nobody_knows_how_to_make_is_a_clear_error() {
    let (rt, _, sim) = away();
    sim.refuse("sim1/");
    let gone = {
        let y = ramp(&rt, 100).exp();
        y.eval().unwrap();
        y
    };
    lost(&gone);
    lost(&(&gone + 1.0));
}

#[test]
fn results_wanted_there_are_made_by_the_next_best_where_a_driver_refuses_them() {
    let (rt, id, sim) = away();
    sim.refuse("sim1/map");
    let there = Place::Device(id);
    let w: Workload = "exp f32 100".parse().unwrap();
    let w = w.with_input_at(0, there).with_output_at(there);
    let (x, mut y) = (vec![0u8; 400], vec![0u8; 400]);
    rt.run_raw(&w, &[&x], &mut y, None).unwrap();
    assert!(y.chunks(4).all(|c| c == 1f32.to_ne_bytes()));
    assert!(!rt.engine().guard().list().is_empty());
}
