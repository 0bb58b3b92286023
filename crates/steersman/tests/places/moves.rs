//! What is moved and what is not, what attracts work, and what happens when a device fails.

use crate::simulated::{INSTANT, Sim, Speed, Transfer, add, wire};
use std::sync::Arc;
use steersman::core::candidate::{Move, Moved};
use steersman::core::place::Wire;
use steersman::core::{
    Address, BinaryOp, Bytes, DeviceId, KernelError, Op, Place, Seconds, UnaryOp, Workload,
};
use steersman::{Array, Axis, Calibrate, Knobs, Runtime, View};

pub fn runtime_with(knobs: &[(&str, &str)]) -> Runtime {
    let mut k = Knobs::default();
    k.set("webgpu.enabled", "false").unwrap();
    for (name, value) in [("wisdom.enabled", "false"), ("calibrate.background", "false")].iter().chain(knobs)
    {
        k.set(name, value).unwrap();
    }
    Runtime::with_knobs(k).unwrap()
}

/// A runtime with a device that is quickest at everything, behind a quick link, and stays so.
pub fn away() -> (Runtime, DeviceId, Arc<Sim>) {
    let rt = runtime_with(&[("frozen", "true")]);
    let (id, sim) = add(&rt, "sim", INSTANT);
    rt.engine().set_wire(id, wire(1e-12, 1e18));
    (rt, id, sim)
}

pub fn ramp(rt: &Runtime, n: usize) -> Array {
    rt.from_vec((0..n).map(|i| (i % 17) as f32 * 0.125).collect(), [n]).unwrap()
}

fn square(rt: &Runtime, n: usize) -> Array {
    ramp(rt, n * n).reshape([n as isize, n as isize])
}

/// The same on a runtime that has only the CPU.
pub fn at_home(f: impl Fn(&Runtime) -> Vec<f32>) -> Vec<f32> {
    f(&runtime_with(&[("frozen", "true")]))
}

pub fn close(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-4 * y.abs().max(1.0), "{x} {y}");
    }
}

#[test]
fn a_chain_goes_over_once_and_comes_home_once() {
    let chain = |x: &Array| ((x * 2.0 + 1.0).exp().sqrt() - 0.5).tanh();
    let want = at_home(|rt| chain(&ramp(rt, 1000)).to_vec().unwrap());
    let (rt, _, sim) = away();
    let x = ramp(&rt, 1000);
    close(&chain(&x).to_vec::<f32>().unwrap(), &want);
    assert_eq!(sim.transfers(), (1, 1));
    assert_eq!(sim.runs(), 1, "one fused stage");
    close(&chain(&x).to_vec::<f32>().unwrap(), &want);
    assert_eq!(sim.transfers(), (1, 2), "x is there already");
}

#[test]
fn dependent_products_of_resident_operands_move_nothing_in_between() {
    let want = at_home(|rt| {
        let b = square(rt, 20) + 1.0;
        b.matmul(&b).matmul(&b).matmul(&b).to_vec().unwrap()
    });
    let (rt, _, sim) = away();
    let b = square(&rt, 20) + 1.0;
    b.eval().unwrap();
    let before = (sim.transfers(), sim.runs());
    let c = b.matmul(&b);
    c.eval().unwrap();
    let e = c.matmul(&b).matmul(&b);
    e.eval().unwrap();
    assert_eq!(sim.transfers(), before.0);
    assert_eq!(sim.runs(), before.1 + 3);
    close(&e.to_vec::<f32>().unwrap(), &want);
    assert_eq!(sim.transfers(), (before.0.0, before.0.1 + 1));
}

#[test]
fn results_stay_where_they_were_computed_until_someone_reads_them() {
    let (rt, _, sim) = away();
    let y = ramp(&rt, 100).exp();
    y.eval().unwrap();
    assert_eq!(sim.transfers(), (1, 0));
    let sum = y.sum(..).item::<f32>().unwrap();
    assert_eq!(sim.transfers(), (1, 1), "only the sum came home");
    let all = y.to_vec::<f32>().unwrap();
    assert!((all.iter().sum::<f32>() - sum).abs() < sum * 1e-5);
    assert_eq!((y.to_vec::<f32>().unwrap(), sim.transfers()), (all, (1, 2)), "once");
}

#[test]
fn where_operands_live_changes_the_choice_and_explain_shows_the_move() {
    let rt = runtime_with(&[("frozen", "true")]);
    // Ten times as quick as any CPU at this, behind a link that takes far longer than the work.
    let (id, _) = add(&rt, "sim", Speed { launch: 1e-7, element: 1e-12 });
    rt.engine().set_wire(id, wire(1e-3, 1e9));
    let places = rt.engine().places();
    let on = |text: &str| {
        let w = Workload::parse(text, &places).unwrap();
        let e = rt.engine().explain(&w).unwrap();
        assert_eq!(w.named(&places).to_string(), text);
        (rt.engine().place_of(e.decision.variant().kernel).unwrap(), e, w)
    };
    let (place, e, w) = on("add f32 1000000 1000000");
    assert_eq!(place, Place::Host);
    let away =
        |c: &&steersman::core::Candidate| rt.engine().place_of(c.variant.kernel) == Some(Place::Device(id));
    let c = *e.candidates.iter().find(away).expect("explain shows those that could not win too");
    assert_eq!(c.moved.0, 12_000_000);
    let x = c.estimate;
    assert!((x.moves.0 / (3e-3 + 12e-3) - 1.0).abs() < 0.05, "{x:?}");
    assert!((x.mean.0 - (x.launch + x.moves + x.work).0).abs() < 1e-9, "{x:?}");
    assert_eq!(x.evidence.transfers, Some(64));
    let moves = rt.engine().moves(&w, c.variant.kernel).unwrap();
    let listed: Vec<_> = moves.iter().map(|m| (m.operand, m.from, m.to, m.bytes.0)).collect();
    let (host, there) = (Place::Host, Place::Device(id));
    let each = 4_000_000;
    assert_eq!(
        listed,
        [
            (Moved::Input(0), host, there, each),
            (Moved::Input(1), host, there, each),
            (Moved::Output(0), there, host, each)
        ]
    );
    assert_eq!(on("add f32 1000000@sim:0 1000000@sim:0 -> sim:0").0, there);
    // What is already there does not hold the work if its result is wanted at home, and costs the CPU a move.
    let (place, e, _) = on("sum f32 1000000@sim:0");
    assert_eq!(place, there, "four bytes come home");
    let c = e.candidates.iter().find(|c| !away(c)).unwrap();
    assert_eq!(c.moved.0, 4_000_000);
}

#[test]
fn a_result_that_comes_home_right_after_the_work_is_waited_for_once() {
    let (rt, id, _) = away();
    let w = Workload::parse("add f32 1000 1000", &rt.engine().places()).unwrap();
    let moves = |joined: Option<f64>| {
        rt.engine().set_wire(id, Wire { joined, ..wire(50e-6, 1e9) });
        let large = Workload::parse("exp f32 25000000", &rt.engine().places()).unwrap();
        let late = |m: &Move| rt.engine().link(m.from, m.to).unwrap().0.time(m.bytes).0 - m.seconds.0;
        let kernel = rt.engine().registry().find("sim1/map-scalar").unwrap();
        let saved: f64 = rt.engine().moves(&large, kernel).unwrap().iter().map(late).sum();
        assert!((saved - joined.unwrap_or(0.0).min(50e-6)).abs() < 1e-7, "{saved} of a large result");
        let e = rt.engine().explain(&w).unwrap();
        let c = *e.candidates.iter().find(|c| c.is_moved()).unwrap();
        let each = rt.engine().moves(&w, c.variant.kernel).unwrap();
        assert!((each.iter().map(|m| m.seconds.0).sum::<f64>() - c.estimate.moves.0).abs() < 1e-9);
        each.iter().map(|m| (m.seconds.0 * 1e6).round()).collect::<Vec<_>>()
    };
    assert_eq!(moves(None), [54.0; 3]);
    assert_eq!(moves(Some(30e-6)), [54.0, 54.0, 24.0]);
    assert_eq!(moves(Some(1.0)), [54.0, 54.0, 4.0], "bytes take what they take");
}

#[test]
fn a_link_nobody_measured_is_said_to_be_supposed() {
    let rt = runtime_with(&[("frozen", "true")]);
    let (id, _) = add(&rt, "sim", INSTANT);
    let e = rt.engine().explain(&"exp f32 1000".parse().unwrap()).unwrap();
    let there = |k: u16| rt.engine().place_of(k) == Some(Place::Device(id));
    let c = e.candidates.iter().find(|c| there(c.variant.kernel)).unwrap();
    assert_eq!(c.estimate.evidence.transfers, Some(0));
    let here = e.candidates.iter().find(|c| !there(c.variant.kernel)).unwrap();
    assert_eq!(here.estimate.evidence.transfers, None);
}

#[test]
fn single_ops_on_the_callers_data_run_away_and_leave_inputs_alone() {
    let (rt, _, sim) = away();
    let x: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let copy = x.clone();
    let columns = View::strided(&x, &[4, 6], &[1, 4]).unwrap();
    let sums = rt.eval(Op::Binary(BinaryOp::Add), &[columns.clone(), columns]).unwrap();
    let want: Vec<f32> = (0..24).map(|i| 2.0 * ((i % 6) * 4 + i / 6) as f32).collect();
    assert_eq!(sums.to_vec::<f32>().unwrap(), want);
    assert_eq!(sim.transfers(), (1, 1), "the same operand twice is carried once");
    assert_eq!(x, copy);
    let w = Workload::parse("neg f32 6@sim:0 -> sim:0", &rt.engine().places()).unwrap();
    let bytes: Vec<u8> = x[..6].iter().flat_map(|v| v.to_ne_bytes()).collect();
    let mut out = vec![0; 24];
    rt.run_raw(&w, &[&bytes], &mut out, None).unwrap();
    let got: Vec<f32> = out.chunks(4).map(|c| f32::from_ne_bytes(c.try_into().unwrap())).collect();
    assert_eq!(got, [-0.0, -1.0, -2.0, -3.0, -4.0, -5.0]);
}

#[test]
fn a_kernel_that_fails_there_is_put_away_and_the_work_is_redone() {
    let (rt, _, sim) = away();
    sim.fail("map");
    let x = [1.0f32, 4.0, 9.0];
    let roots = rt.eval(Op::Unary(UnaryOp::Sqrt), &[View::new(&x)]).unwrap();
    assert_eq!(roots.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    let notes: Vec<String> = rt.log().entries().into_iter().filter_map(|e| e.note).collect();
    assert!(!notes.is_empty() && notes.iter().all(|n| n.contains("quarantine: told to")), "{notes:?}");
    // Everything there fails: arrays end up on the host.
    sim.fail("sim");
    let y = (ramp(&rt, 50).exp() + 1.0).sum(..);
    close(&[y.item().unwrap()], &at_home(|rt| vec![(ramp(rt, 50).exp() + 1.0).sum(..).item().unwrap()]));
}

#[test]
fn an_operand_in_place_is_whole_when_the_way_home_breaks_off() {
    for lost in [true, false] {
        let (rt, id, sim) = away();
        sim.overlap(move |t| match t {
            Transfer::Up => Ok(()),
            Transfer::Down if lost => Err(KernelError::Lost("the cable was pulled".into())),
            Transfer::Down => Err(KernelError::Failed("the bus is full".into())),
        });
        let mut x = [1.0f32, 4.0, 9.0, 16.0];
        let at = Address::host(x.as_mut_ptr());
        let w: Workload = "sqrt f32 4".parse().unwrap();
        // SAFETY: four elements, in place.
        let decision = unsafe { rt.run_at(&w, &[at], at) }.unwrap();
        assert_eq!(rt.engine().place_of(decision.variant().kernel), Some(Place::Host));
        assert_eq!(x, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(rt.engine().guard().lost(id).is_some(), lost);
    }
}

#[test]
fn a_device_lost_in_the_middle_of_a_plan_is_done_without() {
    let work = |rt: &Runtime| {
        let a = square(rt, 16);
        let b = a.matmul(&a);
        let c = (b.matmul(&a) * 0.01).exp();
        (b, c.sum(Axis(0)))
    };
    let want = at_home(|rt| work(rt).1.to_vec().unwrap());
    for runs in 0..3 {
        let (rt, id, sim) = away();
        sim.lose_after(runs);
        let (held, sums) = work(&rt);
        close(&sums.to_vec::<f32>().unwrap(), &want);
        assert!(rt.engine().guard().lost(id).is_some());
        let said = rt.log().entries().into_iter().filter_map(|e| e.note);
        assert_eq!(said.filter(|n| n.contains("sim:0 was lost")).count(), 1);
        held.to_vec::<f32>().unwrap();
        let e = rt.engine().explain(&"exp f32 10".parse().unwrap()).unwrap();
        assert!(e.refused.iter().any(|(_, why)| why.to_string().contains("pulled the cable")));
    }
}

#[test]
fn a_full_device_is_done_without_and_the_plan_says_why() {
    let work = |x: &Array| (x.exp() + 1.0).sum(..);
    let want = at_home(|rt| vec![work(&ramp(rt, 10_000)).item().unwrap()]);
    let (rt, _, sim) = away();
    let x = ramp(&rt, 10_000);
    close(&[work(&x).item().unwrap()], &want);
    // The plan is known by now, and fits no more.
    let runs = sim.runs();
    sim.limit_to(1000);
    let other = ramp(&rt, 10_000);
    close(&[work(&other).item().unwrap()], &want);
    assert_eq!(sim.runs(), runs);
    let said = rt.log().entries().into_iter().filter_map(|e| e.note);
    assert!(said.filter(|n| n.contains("sim:0 could not be used for a plan")).count() > 0);
    let fresh = ramp(&rt, 20_000).exp();
    let plan = rt.explain(&fresh).unwrap();
    assert!(plan.stages.iter().all(|s| s.place == "host"), "{plan}");
    assert!(plan.notes.iter().any(|n| n.contains("sim:0 has no room")), "{plan}");
    // Single ops too, each time it is tried.
    let data = vec![1.0f32; 5000];
    let e = rt.eval(Op::Unary(UnaryOp::Exp), &[View::new(&data)]).unwrap();
    assert!((e.as_slice::<f32>().unwrap()[0] - 1f32.exp()).abs() < 1e-5);
    assert_eq!(rt.engine().guard().list().len(), 0, "no kernel is to blame");
}

#[test]
fn copies_are_let_go_when_room_is_short() {
    let (rt, _, sim) = away();
    sim.limit_to(100_000);
    // Each fits alone, all together do not; their owners live on.
    let all: Vec<Array> = (0..8).map(|_| ramp(&rt, 10_000)).collect();
    let runs = sim.runs();
    for x in &all {
        x.sum(..).item::<f32>().unwrap();
    }
    assert!(sim.runs() >= runs + 8, "all ran there");
}

#[test]
fn work_is_learned_without_the_moves_and_links_from_what_was_moved() {
    let rt = runtime_with(&[]);
    let speed = Speed { launch: 1e-9, element: 1e-12 };
    let (id, _) = add(&rt, "sim", speed);
    rt.engine().set_wire(id, wire(1e-9, 1e15));
    let known = rt.engine().wire(id).unwrap();
    for _ in 0..12 {
        ramp(&rt, 4096).exp().sum(..).item::<f32>().unwrap();
    }
    let learned = rt.engine().wire(id).unwrap();
    assert!(learned.out.samples() > known.out.samples() && learned.home.samples() > known.home.samples());
    // Copying takes longer than that link promised.
    assert!(learned.out.link().latency.0 > known.out.link().latency.0);
    let seen = rt.engine().with_model(|m| {
        m.cells().any(|(k, c)| {
            let there = rt.engine().place_of(k.variant.kernel) == Some(Place::Device(id));
            there && c.samples() > 0
        })
    });
    assert!(seen, "its kernels were timed");
    let logged = rt.log().entries();
    assert!(
        logged.iter().any(|e| e.kernel.starts_with("sim") && e.workload.contains("@sim:0")),
        "{logged:?}"
    );
}

#[test]
fn values_go_from_device_to_device_by_the_host() {
    let rt = runtime_with(&[("frozen", "true")]);
    let (a, sim_a) = add(&rt, "sim", INSTANT);
    rt.engine().set_wire(a, wire(1e-12, 1e18));
    let y = ramp(&rt, 64).exp();
    y.eval().unwrap();
    assert_eq!(sim_a.runs(), 1);
    // From now on another one is the quickest, and the first fails at everything.
    let (b, sim_b) = add(&rt, "sim", Speed { launch: 1e-16, element: 1e-24 });
    rt.engine().set_wire(b, wire(1e-14, 1e20));
    sim_a.fail("sim");
    let z = y.sqrt();
    let plan = rt.explain(&z).unwrap();
    close(&z.to_vec::<f32>().unwrap(), &at_home(|rt| ramp(rt, 64).exp().sqrt().to_vec().unwrap()));
    assert_eq!(rt.engine().places().name(Place::Device(b)), "sim:1");
    if plan.stages[0].place == "sim:1" {
        assert_eq!((sim_a.transfers().1, sim_b.transfers().0), (1, 1), "{plan}");
    }
    assert!(sim_b.runs() + sim_a.runs() >= 1);
}

#[test]
fn plans_show_what_is_moved_in_every_form() {
    let (rt, _, _) = away();
    let a = square(&rt, 32);
    let y = a.matmul(&a).exp();
    y.to_vec::<f32>().unwrap();
    let plan = y.plan().unwrap();
    let moved: Vec<_> =
        plan.transfers.iter().map(|t| (&*t.value, &*t.from, &*t.to, t.bytes, t.before)).collect();
    let last = plan.stages.len();
    assert_eq!(
        moved,
        [("in0", "host", "sim:0", 4096, 0), (&*format!("s{}", last - 1), "sim:0", "host", 4096, last)]
    );
    assert!(plan.transfers.iter().all(|t| t.measured_s.is_some()), "{plan}");
    let text = plan.to_string();
    assert!(text.contains("move in0 from host to sim:0, 4.10 kB"), "{text}");
    assert!(text.contains("measured"), "{text}");
    let dot = plan.to_dot();
    for edge in ["in0 -> m0", "m0 -> s0", &format!("s{} -> m1", last - 1)] {
        assert!(dot.contains(edge), "{edge}: {dot}");
    }
    assert!(plan.to_svg().contains("move in0 · host → sim:0 · 4.10 kB"));
    let json: serde_json::Value = serde_json::from_str(&plan.to_json()).unwrap();
    assert_eq!(json["transfers"][0]["to"], "sim:0");
}

#[test]
fn a_calibration_learns_devices_and_their_links() {
    let rt = runtime_with(&[]);
    let (id, _) = add(&rt, "sim", Speed { launch: 1e-6, element: 1e-9 });
    // The host is probed first, which takes seconds where nothing is optimised and others build.
    let budget = std::time::Duration::from_secs(4);
    let how = Calibrate { quick: true, budget: Some(budget), ..Calibrate::default() };
    let report = rt.calibrate(&how, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    assert!(report.quarantined.is_empty(), "{:?}", report.quarantined);
    let wire = rt.engine().wire(id).unwrap();
    assert!(wire.out.samples() > 0 && wire.home.samples() > 0);
    let there = |k: u16| rt.engine().place_of(k) == Some(Place::Device(id));
    let samples: u64 = rt
        .engine()
        .with_model(|m| m.cells().filter(|(k, _)| there(k.variant.kernel)).map(|(_, c)| c.samples()).sum());
    assert!(samples > 0);
}

#[test]
fn a_device_may_come_while_others_compute() {
    let rt = runtime_with(&[]);
    std::thread::scope(|s| {
        s.spawn(|| {
            for n in 1..200 {
                let y = (ramp(&rt, n).exp() + 1.0).sum(..).item::<f32>().unwrap();
                assert!(y >= 2.0 * n as f32 - 1e-3);
            }
        });
        s.spawn(|| add(&rt, "sim", INSTANT));
    });
    assert_eq!(rt.engine().places().find("sim:0"), Some(Place::Device(DeviceId(1))));
}

#[test]
fn transfers_alone_are_worth_saving() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("wisdom.db");
    let rt = runtime_with(&[("wisdom.enabled", "true"), ("wisdom.path", file.to_str().unwrap())]);
    let (id, _) = add(&rt, "sim", INSTANT);
    let known = || {
        let meta = rt.wisdom().load(rt.fingerprint()).meta;
        meta.into_iter().find(|(key, _)| key.starts_with(steersman::core::wisdom::WIRE)).map(|(_, v)| v)
    };
    rt.save().unwrap();
    assert_eq!(known(), None, "nothing was learned");
    let mut before = None;
    for micros in [30.0, 60.0] {
        let took = Seconds::micros(micros);
        rt.engine().observe_transfer(Place::Host, Place::Device(id), Bytes(4096), took);
        rt.save().unwrap();
        assert_ne!(known(), before);
        before = known();
    }
}
