//! Operands elsewhere are a cost, not a rule; what is not there or lost is a reason.

use std::cell::Cell;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::place::Wire;
use steersman_core::{
    Bytes, Device, DeviceId, Engine, EngineError, Identity, Kernel, Op, Params, Place, Refusal, Seconds,
    Workload,
};

struct Timed(&'static str, DeviceId, f64);

impl Kernel for Timed {
    fn name(&self) -> &str {
        self.0
    }
    fn device(&self) -> DeviceId {
        self.1
    }
    fn handles(&self, op: Op) -> bool {
        op.is_elementwise()
    }
    fn supports(&self, _: &Workload) -> Result<(), Refusal> {
        Ok(())
    }
    fn terms(&self, _: &Workload, _: Params, _: &Machine) -> Terms {
        ASKED.with(|asked| asked.set(asked.get() + usize::from(self.0 == "gpu/one")));
        Terms::launch(self.2)
    }
}

thread_local! {
    /// How often the device's kernel was asked on this thread what it costs.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

fn device(family: &str, place: Place) -> Device {
    let identity = Identity {
        family: family.into(),
        part: String::new(),
        driver: String::new(),
        memory: None,
        parallelism: 1,
        isa: Vec::new(),
    };
    Device { identity, place, machine: Machine::default() }
}

/// A host that takes 1 ms and a device that takes 1 µs, with 10 ms between them.
fn engine() -> (Engine, DeviceId) {
    let engine = Engine::default();
    let host = engine.add_device(device("cpu", Place::Host));
    let gpu = engine.add_device(device("gpu", Place::Device(DeviceId(77))));
    engine.register(Arc::new(Timed("cpu/one", host, 1e-3))).unwrap();
    engine.register(Arc::new(Timed("gpu/one", gpu, 1e-6))).unwrap();
    let mut wire = Wire::default();
    for lane in [&mut wire.out, &mut wire.home] {
        for kib in [1u64, 16, 256, 4096] {
            lane.add(Bytes(kib << 10), Seconds(10e-3 + (kib << 10) as f64 / 1e9));
        }
    }
    engine.set_wire(gpu, wire);
    (engine, gpu)
}

fn parse(engine: &Engine, text: &str) -> Workload {
    Workload::parse(text, &engine.places()).unwrap()
}

fn chosen(engine: &Engine, text: &str) -> String {
    engine.name(engine.judge(&parse(engine, text)).unwrap().variant().kernel)
}

#[test]
fn residency_attracts_work_and_the_way_home_repels_it() {
    let (engine, gpu) = engine();
    assert_eq!(engine.devices()[1].place, Place::Device(gpu), "the engine gives the place its id");
    assert_eq!(chosen(&engine, "exp f32 1000"), "cpu/one");
    assert_eq!(chosen(&engine, "exp f32 1000@gpu:0 -> gpu:0"), "gpu/one");
    // One move either way for both: the work decides.
    assert_eq!(chosen(&engine, "exp f32 1000@gpu:0"), "gpu/one");
    assert_eq!(chosen(&engine, "exp f32 1000 -> gpu:0"), "gpu/one");
    assert!(engine.decide(&parse(&engine, "exp f32 1000@gpu:0")).unwrap().is_away());
    assert!(!engine.decide(&parse(&engine, "exp f32 1000")).unwrap().is_away());
}

#[test]
fn what_cannot_win_for_its_moves_is_not_estimated_but_shown() {
    let (engine, _) = engine();
    // Known well, the host's time leaves no room for 20 ms of moves.
    let w = parse(&engine, "exp f32 1000");
    let host = engine.judge(&w).unwrap();
    (0..20).for_each(|_| engine.learn(host.variant(), &w, 1e-3, 1.0));
    let asked = ASKED.get();
    assert_eq!(chosen(&engine, "exp f32 1000"), "cpu/one");
    assert_eq!(ASKED.get(), asked, "nobody asks what it would cost");
    let shown = engine.explain(&w).unwrap().candidates;
    assert_eq!(shown.len(), 2);
    assert_eq!(shown[1].moved.0, 8000);
    assert!((shown[1].estimate.moves.0 - 20e-3).abs() < 1e-3);
    assert_eq!(shown[1].estimate.evidence.transfers, Some(4));
    engine.configure(|s| s.force = Some("gpu/one".into()));
    assert_eq!(chosen(&engine, "exp f32 1000"), "gpu/one", "what is asked for by name is found");
}

#[test]
fn kernels_learn_from_their_work_and_not_from_what_was_moved_for_it() {
    let (engine, _) = engine();
    let w = parse(&engine, "exp f32 1000@gpu:0");
    for _ in 0..50 {
        let d = engine.decide(&w).unwrap();
        if engine.name(d.variant().kernel) == "gpu/one" {
            engine.observe(&d, Seconds(2e-6));
        }
    }
    let here = parse(&engine, "exp f32 1000@gpu:0 -> gpu:0");
    let all = engine.explain(&here).unwrap().candidates;
    let gpu = all.iter().find(|c| engine.name(c.variant.kernel) == "gpu/one").unwrap();
    assert!((gpu.estimate.mean.0 / 2e-6).ln().abs() < 0.3, "{:?}", gpu.estimate);
}

#[test]
fn a_place_that_is_not_there_or_was_lost_is_a_reason() {
    let (engine, gpu) = engine();
    let nowhere: Workload = "exp f32 10@device:9".parse().unwrap();
    let Err(EngineError::NoCandidate { refused, .. }) = engine.decide(&nowhere) else {
        panic!("nothing can fetch that")
    };
    assert!(refused.iter().all(|(_, why)| why.contains("no device at device:9")), "{refused:?}");
    let there = parse(&engine, "exp f32 10@gpu:0");
    engine.decide(&there).unwrap();
    assert!(engine.lose_device(gpu, "it caught fire"));
    assert!(!engine.lose_device(gpu, "again"), "no news");
    let why = engine.decide(&there).unwrap_err().to_string();
    assert!(why.contains("it caught fire"), "{why}");
    assert_eq!(chosen(&engine, "exp f32 10"), "cpu/one");
}

#[test]
fn between_two_devices_the_way_is_by_the_host() {
    let (engine, gpu) = engine();
    let other = engine.add_device(device("gpu", Place::Device(DeviceId(0))));
    let (direct, _) = engine.link(Place::Device(gpu), Place::Host).unwrap();
    let (detour, samples) = engine.link(Place::Device(gpu), Place::Device(other)).unwrap();
    assert!(detour.latency.0 > direct.latency.0 && detour.bandwidth < direct.bandwidth);
    assert_eq!(samples, 0, "half of the way is only supposed");
}
