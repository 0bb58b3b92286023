//! Calibration over kernels that hang, panic, fail or lie: each is put away with what it did, and the rest is learned.

use crate::simulated::{Line, Script, World, exp, honest};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use steersman_core::guard::Offence;
use steersman_core::measure::Rig;
use steersman_core::tune::{Bench, Calibration, Progress, Report, Wanted, calibrate};
use steersman_core::{KernelError, Ran, Settings, Variant, Workload};

/// What a kernel does when it is run, on a workload that was laid out so many times.
type Act = fn(u16, usize) -> Result<Ran, KernelError>;

#[derive(Clone)]
struct Stage {
    act: Act,
    laid_out: Arc<Mutex<HashMap<String, usize>>>,
}

struct Scene(Act, usize);

impl Rig for Scene {
    fn run(&mut self, v: Variant) -> Result<Ran, KernelError> {
        (self.0)(v.kernel, self.1)
    }
    fn check(&mut self, v: Variant) -> Result<(), String> {
        if v.kernel == LIAR { Err("3 where 4 was expected".into()) } else { Ok(()) }
    }
}

impl Bench for Stage {
    fn rig(&self, w: &Workload) -> Result<Box<dyn Rig>, String> {
        let mut all = self.laid_out.lock().unwrap();
        let times = all.entry(w.to_string()).or_default();
        *times += 1;
        Ok(Box::new(Scene(self.act, *times)))
    }
}

const HANGS: u16 = 1;
const PANICS: u16 = 2;
const FAILS: u16 = 3;
const LIAR: u16 = 4;

/// Longer than any test lasts.
fn hang() {
    std::thread::sleep(Duration::from_secs(3600));
}

fn busy(time: Duration) -> Result<Ran, KernelError> {
    let started = Instant::now();
    while started.elapsed() < time {}
    Ok(Ran::Clean)
}

fn wanted() -> Vec<Wanted> {
    [100, 1_000, 10_000].map(|n| Wanted { workload: exp(n), importance: 1.0 }).to_vec()
}

fn stage(act: Act) -> Stage {
    Stage { act, laid_out: Arc::default() }
}

fn run(world: &World, stage: &Stage, tell: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>) -> Report {
    let how = Calibration {
        // Far longer than a panic takes on a busy machine: its backtrace is printed first.
        timeout: Duration::from_secs(2),
        ..Calibration::default()
    };
    calibrate(&world.engine, stage, wanted(), &how, tell)
}

/// The kernels in quarantine, each with what it did.
fn put_away(world: &World) -> Vec<(u16, Offence)> {
    let mut all: Vec<_> =
        world.engine.guard().list().iter().map(|(case, q)| (case.kernel, q.offence)).collect();
    all.sort_by_key(|q| q.0);
    all
}

#[test]
fn what_hangs_panics_fails_or_lies_is_put_away_and_the_rest_is_learned() {
    let names = ["sound", "hangs", "panics", "fails", "lies"];
    let scripts = names.map(|name| honest(name, 1, Line(2e-5, 1e-12)));
    let world = World::new(&scripts, 0.0, 1, Settings::default());
    let stage = stage(|kernel, _| match kernel {
        HANGS => {
            hang();
            Ok(Ran::Clean)
        }
        PANICS => panic!("as scripted"),
        FAILS => Err(KernelError::Failed("as scripted".into())),
        _ => busy(Duration::from_micros(20)),
    });
    let report = run(&world, &stage, &mut |_| ControlFlow::Continue(()));
    assert_eq!(
        put_away(&world),
        [
            (HANGS, Offence::Hung),
            (PANICS, Offence::Panicked),
            (FAILS, Offence::Failed),
            (LIAR, Offence::Wrong)
        ]
    );
    assert_eq!(report.quarantined.len(), 4, "{:?}", report.quarantined);
    assert!(report.samples > 0 && !report.interrupted, "{report:?}");
    assert_eq!(world.choice(5_000), 0);
}

#[test]
fn what_has_no_room_or_no_device_now_is_not_blamed_and_it_is_said() {
    let names = ["sound", "crowded", "gone", "decides only"];
    let scripts = names.map(|name| honest(name, 1, Line(2e-5, 1e-12)));
    let world = World::new(&scripts, 0.0, 1, Settings::default());
    let stage = stage(|kernel, _| match kernel {
        1 => Err(KernelError::NoRoom("all is taken".into())),
        2 => Err(KernelError::Lost("unplugged".into())),
        3 => Err(KernelError::NotRunnable),
        _ => busy(Duration::from_micros(20)),
    });
    let report = run(&world, &stage, &mut |_| ControlFlow::Continue(()));
    assert_eq!(put_away(&world), []);
    assert!(report.skipped.iter().any(|(what, why)| what.contains("crowded") && why.contains("room")));
}

/// A kernel on one thread and one on two that lost to it, and so is timed again at the end.
fn doubted() -> World {
    let scripts: [Script; 2] =
        [honest("serial", 1, Line(5e-5, 1e-12)), honest("parallel", 2, Line(1e-4, 1e-12))];
    World::new(&scripts, 0.0, 1, Settings::default())
}

#[test]
fn what_hangs_when_it_is_timed_again_is_put_away_too() {
    let world = doubted();
    let stage = stage(|kernel, times| {
        if kernel == HANGS && times > 1 {
            hang();
        }
        busy(Duration::from_micros(50 + 50 * u64::from(kernel)))
    });
    let report = run(&world, &stage, &mut |_| ControlFlow::Continue(()));
    assert_eq!(put_away(&world), [(HANGS, Offence::Hung)]);
    assert!(report.quarantined[0].1.contains("holds its threads"), "{:?}", report.quarantined);
    assert_eq!(report.workloads, 3);
}

#[test]
fn broken_off_while_something_is_timed_again_it_stops_there_and_keeps_what_it_has() {
    let world = doubted();
    let stage = stage(|kernel, _| busy(Duration::from_micros(50 + 50 * u64::from(kernel))));
    let mut told = 0;
    let report = run(&world, &stage, &mut |_| {
        told += 1;
        if told > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(report.interrupted);
    assert_eq!((told, report.workloads), (4, 3), "three workloads, and the first of those to be timed again");
    assert_eq!(stage.laid_out.lock().unwrap().values().sum::<usize>(), 3);
    for n in [100, 1_000, 10_000] {
        let all = world.engine.estimates(&exp(n));
        assert!(all.iter().all(|c| c.estimate.evidence.samples > 0), "{all:?}");
    }
}
