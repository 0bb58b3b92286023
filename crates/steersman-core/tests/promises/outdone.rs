//! Kernels that others always outdo are not weighed, and run where they are asked for or the others must not.

use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::guard::Offence;
use steersman_core::{DeviceId, Engine, Kernel, NumericClass, Op, Params, Refusal, Settings, Workload};

struct Width {
    name: &'static str,
    outdone: bool,
    narrower: Option<&'static str>,
}

impl Kernel for Width {
    fn name(&self) -> &str {
        self.name
    }
    fn device(&self) -> DeviceId {
        DeviceId(0)
    }
    fn handles(&self, _: Op) -> bool {
        true
    }
    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        if w.dims().len() > 2 { Err(Refusal::new("it takes two dimensions at most")) } else { Ok(()) }
    }
    fn outdone(&self, _: &Workload) -> Option<&'static str> {
        self.outdone.then_some("the wide one does the same")
    }
    fn narrower(&self) -> Option<String> {
        self.narrower.map(String::from)
    }
    fn terms(&self, _: &Workload, _: Params, _: &Machine) -> Terms {
        Terms::launch(1e-6)
    }
}

fn engine(settings: Settings) -> Engine {
    let engine = Engine::new(settings);
    engine.register(Arc::new(Width { name: "narrow", outdone: true, narrower: None })).unwrap();
    engine.register(Arc::new(Width { name: "wide", outdone: false, narrower: Some("narrow") })).unwrap();
    engine
}

fn weighed(engine: &Engine, w: &Workload) -> Vec<String> {
    engine.estimates(w).iter().map(|c| engine.name(c.variant.kernel)).collect()
}

#[test]
fn it_is_not_weighed_but_can_be_run_and_says_why() {
    let (engine, w) = (engine(Settings::default()), "exp f32 1000".parse().unwrap());
    assert_eq!(weighed(&engine, &w), ["wide"]);
    assert_eq!(engine.runnable(&w).len(), 2);
    let refused = engine.explain(&w).unwrap().refused;
    assert!(matches!(&refused[..], [(0, why)] if why.to_string().contains("the same")), "{refused:?}");
    let narrow = engine.runnable(&w)[0].variant;
    assert_eq!(engine.judge_as(&w, narrow).map(|d| d.variant()), Ok(narrow), "by name it runs");
    assert_eq!(engine.registry().wider(0), Some(1));
    assert_eq!(engine.registry().wider(1), None);
}

#[test]
fn what_it_cannot_do_at_all_is_said_rather_than_who_outdoes_it() {
    let (engine, w) = (engine(Settings::default()), "exp f32 10x10x10".parse().unwrap());
    let refused = engine.explain(&w).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(refused.contains("two dimensions") && !refused.contains("the same"), "{refused}");
}

#[test]
fn it_is_weighed_where_another_must_not_run_or_the_caller_wants_all() {
    let w: Workload = "exp f32 1000".parse().unwrap();
    let with = |change: fn(&mut Settings)| {
        let mut settings = Settings::default();
        change(&mut settings);
        engine(settings)
    };
    assert_eq!(weighed(&with(|s| s.weigh_all = true), &w), ["narrow", "wide"]);
    assert_eq!(weighed(&with(|s| s.disable = vec!["wide".into()]), &w), ["narrow"]);
    let forced = with(|s| s.force = Some("narrow".into()));
    assert_eq!(forced.name(forced.decide(&w).unwrap().variant().kernel), "narrow");
    let exact = w.clone().with_numerics(NumericClass::Exact);
    assert_eq!(weighed(&with(|_| ()), &exact), ["narrow", "wide"], "the wide one may not be exact");
    let failed = with(|_| ());
    failed.quarantine(1, &w, Offence::Panicked, "boom");
    assert_eq!(weighed(&failed, &w), ["narrow"]);
}
