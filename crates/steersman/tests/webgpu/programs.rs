//! What programs see of an adapter that the runtime found itself.

use steersman::core::{DeviceId, Place, Workload};
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
    let rt =
        runtime(&[("disable", "cpu/map*,cpu/reduce*,cpu/fused*,cpu/matmul*,cpu/gem*,cpu/matrix*,cpu/move*")]);
    if rt.engine().devices().len() < 2 {
        assert!(std::env::var_os("STEERSMAN_REQUIRE_ADAPTER").is_none(), "there is no WebGPU adapter");
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
