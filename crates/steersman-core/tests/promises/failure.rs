//! Kernels that fail, lie or become illegal are not chosen again; the next best is.

use crate::simulated::{Line, Script, World, exp, honest};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use steersman_core::cost::{Machine, Terms};
use steersman_core::guard::{Case, Offence, Quarantined};
use steersman_core::{
    Convicted, DeviceId, EngineError, Kernel, Op, OpClass, ParamList, Params, Refusal, Settings, Variant,
    Workload,
};

fn three() -> [Script; 3] {
    [
        honest("slow", 1, Line(1e-6, 4e-9)),
        honest("quick", 1, Line(1e-6, 1e-9)),
        honest("middling", 1, Line(1e-6, 2e-9)),
    ]
}

/// What a runtime does: runs the choice, and where that fails puts it away and asks again.
fn survive(world: &mut World, n: usize, mut fails: impl FnMut(usize) -> Option<Offence>) -> usize {
    let w = exp(n);
    loop {
        let kernel = world.engine.decide(&w).unwrap().kernel();
        match fails(kernel) {
            Some(offence) => assert!(world.engine.quarantine(kernel as u16, &w, offence, "as scripted")),
            None => return kernel,
        }
    }
}

#[test]
fn a_kernel_that_panics_fails_or_lies_is_put_away_and_the_next_best_runs() {
    for offence in [Offence::Panicked, Offence::Failed, Offence::Wrong, Offence::Hung] {
        let mut world = World::new(&three(), 0.05, 1, Settings::default());
        assert_eq!(survive(&mut world, 10_000, |k| (k == 1).then_some(offence)), 2);
        assert_eq!(world.engine.guard().list()[0].1.offence, offence);
        for i in 0..20_000 {
            assert_ne!(world.call(&exp(1_000 + i % 7 * 5_000)).kernel, 1);
        }
        assert_eq!(world.choice(10_000), 2);
    }
}

#[test]
fn when_all_are_put_away_the_error_says_who_and_why() {
    let mut world = World::new(&three(), 0.05, 2, Settings::default());
    for kernel in 0..3 {
        world.engine.quarantine(kernel, &exp(10), Offence::Panicked, "as scripted");
    }
    let Err(EngineError::NoCandidate { refused, .. }) = world.engine.decide(&exp(10)) else {
        panic!("a decision")
    };
    assert_eq!(refused.len(), 3);
    assert!(refused.iter().all(|(_, why)| why.contains("as scripted")), "{refused:?}");
    world.engine.guard().clear();
    world.engine.invalidate();
    assert_eq!(world.call(&exp(10_000)).kernel, 1);
}

#[test]
fn a_kernel_that_becomes_illegal_is_not_returned_even_by_a_hit() {
    let mut world = World::new(&three(), 0.05, 3, Settings::default());
    let w = exp(10_000);
    world.calls(&w, 1_000);
    assert_eq!(world.choice(10_000), 1);
    world.legal[1].store(false, Ordering::Relaxed);
    for _ in 0..10_000 {
        assert_ne!(world.call(&w).kernel, 1);
    }
    world.legal[1].store(true, Ordering::Relaxed);
    world.calls(&w, 1_000);
    assert_eq!(world.choice(10_000), 1);
}

/// Code of somebody's own that panics when it is asked this.
struct Rude(&'static str);

impl Rude {
    fn asked(&self, what: &str) {
        assert!(self.0 != what, "{what} is too much");
    }
}

impl Kernel for Rude {
    fn name(&self) -> &str {
        self.0
    }
    fn device(&self) -> DeviceId {
        DeviceId(0)
    }
    fn handles(&self, op: Op) -> bool {
        self.asked("handles");
        matches!(op, Op::Unary(_))
    }
    fn supports(&self, _: &Workload) -> Result<(), Refusal> {
        self.asked("supports");
        Ok(())
    }
    fn params(&self, _: &Workload) -> ParamList {
        self.asked("params");
        ParamList::from_slice(&[Params::SERIAL])
    }
    fn scratch(&self, _: &Workload, _: Params) -> usize {
        self.asked("scratch");
        0
    }
    fn terms(&self, _: &Workload, _: Params, _: &Machine) -> Terms {
        self.asked("terms");
        Terms::launch(1e-12)
    }
}

#[test]
fn a_kernel_that_panics_when_it_is_asked_is_put_away_and_the_others_are_weighed() {
    let all = ["handles", "supports", "params", "scratch", "terms"];
    let mut world = World::new(&three(), 0.05, 4, Settings::default());
    for name in all {
        world.engine.register(Arc::new(Rude(name))).unwrap();
    }
    assert_eq!(world.call(&exp(10_000)).kernel, 1);
    let put_away = world.engine.guard().list();
    assert_eq!(put_away.len(), all.len(), "{put_away:?}");
    assert!(put_away.iter().all(|(_, why)| why.offence == Offence::Panicked && why.detail.contains("asked")));
    assert_eq!(world.engine.estimates(&exp(10_000)).len(), 3, "each of the others once");
    let explained = world.engine.explain(&exp(10_000)).unwrap();
    assert_eq!(explained.refused.len(), all.len(), "{:?}", explained.refused);
}

fn convicted(kernel: &str, revision: u32, op: &str, offence: Offence) -> Convicted {
    let why = Quarantined { offence, detail: "as scripted".into() };
    Convicted { kernel: kernel.into(), revision, op: op.into(), dtype: exp(1).dtype(), why }
}

#[test]
fn what_an_earlier_process_put_away_is_when_its_kernel_comes_unless_its_code_has_changed() {
    let world = World::new(&three(), 0.05, 5, Settings::default());
    let all = [("quick", 1), ("slow", 2), ("late", 1), ("later", 2)];
    let rows = all.map(|(name, revision)| convicted(name, revision, "exp", Offence::Wrong));
    world.engine.recall_quarantines(rows);
    for name in ["late", "later"] {
        world.engine.register(Arc::new(Rude(name))).unwrap();
    }
    let mut kept = world.engine.guard().list();
    kept.sort_by_key(|(case, _)| case.kernel);
    let case = |kernel| Case::of(kernel, &exp(1), Offence::Wrong);
    assert_eq!(kept.iter().map(|(case, _)| *case).collect::<Vec<_>>(), [case(1), case(3)]);
    assert!(kept.iter().all(|(_, why)| why.offence == Offence::Wrong), "{kept:?}");
}

#[test]
fn whoever_is_lifted_is_a_candidate_again_and_not_put_away_when_it_comes() {
    let world = World::new(&three(), 0.05, 6, Settings::default());
    world.engine.recall_quarantines(["quick", "late"].map(|k| convicted(k, 1, "exp", Offence::Failed)));
    assert_ne!(world.choice(10_000), 1);
    assert!(world.engine.lift("nobody*").is_empty());
    assert_eq!(world.engine.lift("qui*"), [convicted("quick", 1, "exp", Offence::Failed)]);
    assert_eq!(world.choice(10_000), 1);
    assert_eq!(world.engine.lift("*"), [convicted("late", 1, "exp", Offence::Failed)]);
    world.engine.register(Arc::new(Rude("late"))).unwrap();
    assert!(world.engine.guard().is_empty());
}

/// Says that its work is nothing divided by nothing.
struct NoWork;

impl Kernel for NoWork {
    fn name(&self) -> &str {
        "none"
    }
    fn device(&self) -> DeviceId {
        DeviceId(0)
    }
    fn handles(&self, op: Op) -> bool {
        op.class() == OpClass::Unary
    }
    fn supports(&self, _: &Workload) -> Result<(), Refusal> {
        Ok(())
    }
    fn terms(&self, w: &Workload, _: Params, _: &Machine) -> Terms {
        let bad = if w.output().elements().is_multiple_of(2) { f64::NAN } else { -1.0 };
        Terms::launch(1e-9).and(bad)
    }
}

#[test]
fn a_kernel_whose_work_is_no_number_is_no_candidate_and_says_so() {
    let mut world = World::new(&three(), 0.05, 4, Settings::default());
    let none = world.engine.register(Arc::new(NoWork)).unwrap();
    for n in [10_000, 10_001] {
        let e = world.engine.explain(&exp(n)).unwrap();
        assert!(e.candidates.len() == 3 && e.candidates.iter().all(|c| c.variant.kernel != none));
        let why = e.refused.iter().find(|(k, _)| *k == none).map(|(_, why)| why.to_string());
        assert!(why.is_some_and(|w| w.contains("no number of seconds")), "{:?}", e.refused);
        // Nor is anything learned of it that others lean on.
        world.engine.learn(Variant { kernel: none, params: Params::SERIAL }, &exp(n), 1e-6, 1.0);
    }
    assert_eq!(world.engine.samples(Variant { kernel: none, params: Params::SERIAL }, &exp(10)), 0);
    world.calls(&exp(10_000), 1_000);
    assert_eq!(world.choice(10_000), 1);
}
