//! Hits allocate nothing, and several threads may have them at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::{DeviceId, Engine, Kernel, Op, OpClass, Params, Refusal, Settings, Workload};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is handed to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(p, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

struct PerElement(&'static str, f64);

impl Kernel for PerElement {
    fn name(&self) -> &str {
        self.0
    }
    fn device(&self) -> DeviceId {
        DeviceId(0)
    }
    fn handles(&self, op: Op) -> bool {
        op.class() == OpClass::Unary
    }
    fn supports(&self, _w: &Workload) -> Result<(), Refusal> {
        Ok(())
    }
    fn terms(&self, w: &Workload, _p: Params, _m: &Machine) -> Terms {
        Terms::launch(1e-7).and(self.1 * w.output().elements() as f64)
    }
}

fn engine(frozen: bool) -> Engine {
    let engine = Engine::new(Settings { frozen, ..Settings::default() });
    engine.register(Arc::new(PerElement("slow", 2e-9))).unwrap();
    engine.register(Arc::new(PerElement("quick", 1e-9))).unwrap();
    engine
}

#[test]
fn a_hit_allocates_nothing() {
    // Frozen, every repeated decision is a hit; otherwise one in some would ask for a measurement.
    let engine = engine(true);
    let workloads: Vec<Workload> = (1..50).map(|n| format!("exp f32 {n}00").parse().unwrap()).collect();
    workloads.iter().for_each(|w| drop(engine.decide(w)));
    let before = ALLOCATIONS.get();
    for _ in 0..1_000 {
        for w in &workloads {
            assert_eq!(engine.decide(w).map(|d| d.kernel()), Ok(1));
        }
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

#[test]
fn unobserved_hits_of_a_learning_engine_allocate_nothing_either() {
    let engine = engine(false);
    let w: Workload = "exp f32 1000".parse().unwrap();
    drop(engine.decide(&w));
    let mut hits = 0;
    for _ in 0..5_000 {
        let before = ALLOCATIONS.get();
        let decision = engine.decide(&w).unwrap();
        if !decision.wants_timing() {
            assert_eq!(ALLOCATIONS.get() - before, 0);
            hits += 1;
        }
    }
    assert!(hits > 4_000, "{hits}");
}

#[test]
fn four_threads_get_right_answers_at_once_while_the_model_learns() {
    let engine = engine(false);
    std::thread::scope(|s| {
        for t in 0..4usize {
            let engine = &engine;
            s.spawn(move || {
                for i in 0..50_000usize {
                    let n = 100 * (1 + (i * (t + 1)) % 40);
                    let w: Workload = format!("exp f32 {n}").parse().unwrap();
                    let decision = engine.decide(&w).unwrap();
                    let rate = [2e-9, 1e-9][decision.kernel()];
                    if decision.wants_timing() {
                        engine.observe(&decision, steersman_core::Seconds(1e-7 + rate * n as f64));
                    } else {
                        assert_eq!(decision.kernel(), 1, "{n}");
                    }
                }
            });
        }
    });
}
