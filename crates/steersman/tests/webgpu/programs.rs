//! What programs see of an adapter that the runtime found itself.

use steersman::core::cost::Machine;
use steersman::core::place::Wire;
use steersman::core::{Bytes, Device, DeviceId, Operand, Place, Seconds, Workload};
use steersman::webgpu::DeviceOptions;
use steersman::{Array, Axis, Knobs, Runtime, Seed};

fn runtime(more: &[(&str, &str)]) -> Runtime {
    let mut knobs = Knobs::default();
    let own = [("wisdom.enabled", "false"), ("calibrate.background", "false"), ("webgpu.enabled", "true")];
    for (name, value) in own.iter().chain(more) {
        knobs.set(name, value).expect("a knob");
    }
    let rt = Runtime::with_knobs(knobs).expect("a runtime");
    rt.wait_for_devices();
    rt
}

/// A runtime with an adapter on which everything it can do is done; `None` where there is none.
fn away() -> Option<Runtime> {
    // A BLAS too, where the machine has one under any of its names.
    let on_the_cpu = "cpu/map*,cpu/reduce*,cpu/fused*,cpu/mat*,cpu/gem*,cpu/move*,cpu/amx*,cpu/*blas*,cpu/mkl*,cpu/blis*,cpu/accelerate*";
    let rt = runtime(&[("disable", on_the_cpu)]);
    if rt.engine().devices().len() < 2 {
        let required = std::env::var_os("STEERSMAN_REQUIRE_ADAPTER").is_some_and(|v| v != "0");
        assert!(!required, "STEERSMAN_REQUIRE_ADAPTER is set and there is no adapter");
        println!("skipped: no WebGPU adapter");
        return None;
    }
    Some(rt)
}

fn host() -> Runtime {
    runtime(&[("webgpu.enabled", "false")])
}

/// The same on the adapter and on the host, to within rounding.
fn same(what: &str, make: impl Fn(&Runtime) -> Array) {
    let Some(rt) = away() else { return };
    let here: Vec<f32> = make(&host()).to_vec().expect("the host computes it");
    let there: Vec<f32> = make(&rt).to_vec().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(here.len(), there.len());
    for (i, (a, b)) in here.iter().zip(&there).enumerate() {
        let close = (a - b).abs() <= 1e-4 * a.abs().max(1.0) || a.is_nan() && b.is_nan() || a == b;
        assert!(close, "{what}: element {i} is {b} there and {a} here");
    }
}

#[test]
fn programs_give_on_the_adapter_what_they_give_on_the_host() {
    same("a chain", |rt| {
        let x = rt.normal([300, 41], Seed(3));
        ((&x * 2.0 + 1.0).tanh() - &x).relu().sqrt()
    });
    same("reductions", |rt| {
        let x = rt.uniform([70, 33], Seed(5));
        x.exp().sum(Axis(0)) + x.mean(..) + x.max(Axis(0))
    });
    same("a layer", |rt| {
        let (x, w) = (rt.normal([37, 64], Seed(1)), rt.normal([64, 29], Seed(2)));
        (x.matmul(&w) + rt.linspace(0.0f32, 1.0, 29)).relu()
    });
    same("views", |rt| {
        let x = rt.arange(0.0f32, 60.0, 1.0).reshape([3, 4, 5]);
        x.permute([2, 0, 1]).contiguous() * 0.5
    });
}

#[test]
fn what_is_there_already_is_not_moved_again() {
    let Some(rt) = away() else { return };
    let a = rt.normal([48, 48], Seed(9));
    // Three products that depend on each other, one after the other, and one number of it all.
    let plan_of = |y: &Array| rt.explain(y).expect("a plan");
    let y = a.matmul(&a).matmul(&a).matmul(&a).sum(..);
    let _: f32 = y.item().expect("it runs");
    let home: Vec<_> = plan_of(&y).transfers.iter().map(|t| t.to.clone()).collect();
    assert_eq!(home, ["host"], "only the sum comes home");
}

#[test]
fn a_choice_counts_the_way_to_the_adapter_and_shows_it() {
    let rt = runtime(&[]);
    if away().is_none() {
        return;
    }
    let there = Place::Device(DeviceId(1));
    let w: Workload = "add f32 1000 1000".parse().expect("well formed");
    let explained = rt.engine().explain(&w).expect("candidates");
    let moved = explained.candidates.iter().filter(|c| rt.engine().place_of(c.variant.kernel) == Some(there));
    assert!(moved.clone().count() > 0, "the adapter's kernels are shown");
    assert!(moved.into_iter().all(|c| c.moved.0 == 12_000 && c.estimate.moves.0 > 0.0));
    assert_eq!(rt.engine().place_of(explained.decision.variant().kernel), Some(Place::Host));
}

/// What is chosen for work with operands and result on the host or on an adapter, with this way to it.
fn chosen(wire: Wire, there: bool) -> Option<Place> {
    let gpu = crate::adapter(Default::default())?;
    let rt = runtime(&[("webgpu.enabled", "false"), ("frozen", "true")]);
    let device = Device { identity: gpu.identity().clone(), place: Place::Host, machine: Machine::default() };
    let id = rt.add_accelerator(device, gpu.clone(), |id| gpu.kernels_as(id, "gpu"));
    rt.engine().set_wire(id, wire);
    let place = Place::Device(id);
    let mut w: Workload = "add f32 1000000 1000000".parse().expect("well formed");
    if there {
        let inputs: Vec<_> = w.inputs().iter().map(|o| Operand { place, ..o.clone() }).collect();
        let output = Operand { place, ..w.output().clone() };
        w = Workload::new(w.op(), inputs).and_then(|w| w.with_output(output)).expect("the same work");
    }
    let e = rt.engine().explain(&w).expect("candidates");
    for c in &e.candidates {
        let moved = (rt.engine().place_of(c.variant.kernel) == Some(place)) != there;
        assert_eq!(
            (c.moved.0, c.estimate.moves.0 > 0.0),
            if moved { (12_000_000, true) } else { (0, false) }
        );
    }
    rt.engine().place_of(e.decision.variant().kernel)
}

#[test]
fn with_operands_there_the_choice_changes_if_the_way_costs_more_than_the_work() {
    let slow = || {
        let mut wire = Wire::default();
        for lane in [&mut wire.out, &mut wire.home] {
            (12..26).for_each(|i| lane.add(Bytes(1 << i), Seconds(1e-4 + f64::from(1 << i) / 100e6)));
        }
        wire
    };
    let Some(at_home) = chosen(slow(), false) else { return };
    assert_eq!(at_home, Place::Host);
    assert!(chosen(slow(), true).is_some_and(|p| p != Place::Host), "bringing it home takes longer");
    // A software adapter's kernels are slower than fetching what lies in memory that both see.
    if crate::adapter(Default::default()).is_some_and(|gpu| gpu.software()) {
        assert_eq!(chosen(crate::no_way(), true), Some(Place::Host));
    }
}

#[test]
fn ten_ops_are_one_dispatch_and_three_products_move_nothing_in_between() {
    let Some(gpu) = crate::adapter(Default::default()) else { return };
    let rt = crate::with_adapter(&gpu, &[("frozen", "true")]);
    let x = rt.uniform([500, 41], Seed(4)).add(1.0).to_vec::<f32>().expect("numbers");
    let x = rt.from_vec(x, [500, 41]).expect("an array");
    let before = gpu.counts();
    let y = ((((&x * 2.0 + 1.0).sqrt() - 0.5).abs().exp() + &x).ln() * 3.0).tanh().neg();
    y.eval().expect("it runs");
    assert_eq!(gpu.counts().dispatches - before.dispatches, 1, "{}", y.plan().expect("its plan"));
    let a = rt.from_vec((0..48 * 48).map(|i| (i % 7) as f32 * 0.01).collect(), [48, 48]).expect("a matrix");
    let before = gpu.counts();
    let product = a.matmul(&a).matmul(&a).matmul(&a).sum(..);
    let _: f32 = product.item().expect("it runs");
    let after = gpu.counts();
    assert_eq!(after.uploaded - before.uploaded, 48 * 48 * 4, "the matrix, once");
    assert_eq!(after.downloaded - before.downloaded, 4, "the sum");
}

#[test]
fn the_way_to_an_adapter_is_known_from_its_first_probe() {
    let rt = runtime(&[]);
    if rt.engine().devices().len() < 2 {
        return;
    }
    // Loaded machines leave no time for all of it, but for some.
    let wire = rt.engine().wire(DeviceId(1)).expect("there is a way to it");
    assert!(!wire.out.is_supposed(), "what the probe measured was thrown away");
    let gpu = &rt.engine().devices()[1];
    assert!(gpu.machine.handoff.is_some());
}

#[test]
fn errors_name_places_as_people_do() {
    let Some(gpu) = crate::adapter(DeviceOptions { memory_limit: Some(1 << 16), ..Default::default() })
    else {
        return;
    };
    let rt = crate::with_adapter(&gpu, &[]);
    let place = Place::Device(DeviceId(1));
    let w: Workload = "exp f32 100000".parse().expect("well formed");
    let w = w.with_input_at(0, place);
    let how = steersman::core::measure::Contest::default();
    let why = rt.contest(&w, &[], &how).expect_err("there is no room").to_string();
    let name = rt.engine().places().name(place);
    assert!(why.contains(&name) && !why.contains("device:1"), "{why}");
}

#[test]
fn software_adapters_are_done_without_where_a_knob_says_so() {
    let Some(gpu) = crate::adapter(Default::default()) else { return };
    if !gpu.software() {
        return;
    }
    let rt = runtime(&[("webgpu.software", "false")]);
    let said = rt.log().entries().into_iter().filter_map(|e| e.note);
    assert!(said.filter(|n| n.contains("webgpu.software is false")).count() > 0);
    assert!(rt.engine().devices().iter().all(|d| d.identity.part != gpu.identity().part));
}

#[test]
fn f64_stays_f64_where_the_adapter_has_none() {
    let Some(gpu) = crate::adapter(DeviceOptions { plain: true, ..Default::default() }) else { return };
    let rt = crate::with_adapter(&gpu, &[("frozen", "true")]);
    let third = 1.0f64 / 3.0;
    let x = rt.from_vec(vec![third; 100], [100]).expect("an array");
    let all = (&x + 1e-12).to_vec::<f64>().expect("it runs");
    assert!(all.iter().all(|y| *y == third + 1e-12));
    let sum = x.matmul(&x).item::<f64>().expect("it runs");
    assert!((sum - 100.0 * third * third).abs() < 1e-13);
    assert_eq!(gpu.counts().dispatches, 0);
}

#[test]
fn a_knob_says_which_adapters_take_part_and_the_log_says_which_do_not() {
    let Some(gpu) = crate::adapter(Default::default()) else { return };
    let none = runtime(&[("webgpu.adapters", "nosuch*")]);
    assert_eq!(none.engine().devices().len(), 1);
    let noted = |rt: &Runtime, what: &str| {
        rt.log().entries().iter().any(|e| e.note.as_deref().is_some_and(|n| n.contains(what)))
    };
    assert!(noted(&none, "not among webgpu.adapters"));
    let first: String = gpu.identity().part.chars().take(4).collect();
    let some = runtime(&[("webgpu.adapters", &format!("nobody,{}*", first.to_uppercase()))]);
    assert!(some.engine().devices().len() > 1);
}
