//! Values that only a lost device held: computed again while what they were made from is there, else a clear error.

use crate::moves::{at_home, away, close, ramp};
use steersman::array::Seed;
use steersman::core::Memory;
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
