//! Learning a machine: probe its limits, then its rates, then spend the rest where it teaches most.

mod probing;

use crate::error::Error;
use crate::refresh::Before;
use crate::remember;
use crate::runtime::{Carrier, Inner, Keeper, Runtime, at, rig};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use steersman_core::cost::Machine;
use steersman_core::measure::Rig;
use steersman_core::tune::{self, Bench, Calibration, Wanted};
use steersman_core::{DeviceId, Engine, Place, Workload};
use steersman_cpu::rig::CpuRig;
use steersman_cpu::{Cpu, plan, probe};

/// How to calibrate.
#[derive(Clone, Debug, Default)]
pub struct Calibrate {
    /// Only what matters most, in about two seconds.
    pub quick: bool,
    /// Forget what was known of this machine first. If it is broken off, what it did not get to stays known.
    pub refresh: bool,
    /// Time it may take; otherwise 13.2 s, and 8 more for each device that outruns the host, or 2.2 s if quick.
    pub budget: Option<Duration>,
}

/// How far it is.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does now: `probing`, `rates`, `measuring add f32 1000`.
    pub phase: String,
    /// Share of the time used, 0 to 1.
    pub done: f64,
    /// Time left.
    pub left: Duration,
}

/// What a calibration did.
#[derive(Clone, Debug, serde::Serialize)]
pub struct CalibrationReport {
    /// Seconds it took.
    pub seconds: f64,
    /// Workloads measured.
    pub workloads: usize,
    /// Samples learned from.
    pub samples: usize,
    /// Kernels put into quarantine, with why.
    pub quarantined: Vec<(String, String)>,
    /// Workloads passed over, with why.
    pub skipped: Vec<(String, String)>,
    /// Whether it was broken off.
    pub interrupted: bool,
    /// Share of the time in which the machine was disturbed, so that little could be learned of parallel kernels.
    pub disturbed: f64,
}

/// Budgets that leave room for start-up within 15 s and 3 s.
const FULL: Duration = Duration::from_millis(13_200);
const QUICK: Duration = Duration::from_millis(2_200);
/// Time for each device that moves bytes quicker than the host: its kernels take long to compile, and much depends on
/// them. (With 3 s for all that was to be learned of an H200 its 5 ms for a product of 4096 were thought to be 79.)
const EACH_DEVICE: Duration = Duration::from_secs(8);
/// How long a look at the CPU's clock stands meanwhile.
const CLOCK: Duration = Duration::from_millis(1);
/// The same of where cores lie, which takes 10 µs to see and stays for seconds.
const CORES: Duration = Duration::from_millis(5);
/// How often it is looked whether devices have come.
const LOOK: Duration = Duration::from_millis(10);
/// Time in the background for each device of its own: a search of parameters is part of it.
const EACH_IN_BACKGROUND: Duration = Duration::from_secs(3);
/// Samples needed before a calibration counts as one.
const ENOUGH_SAMPLES: usize = 300;
/// The same of one that was broken off: fewer are kept, and the next one goes on from there.
const ENOUGH_BROKEN_OFF: usize = 5_000;

/// Share of a device's time that looking for parameters of its kernels may take.
const SEARCH: f64 = 0.6;

/// What parameters are searched on, and how much of the time each is worth: products gain most and have most to
/// try. Those too large for a device's speed are passed over.
const SEARCHED: [(&str, f64); 13] = [
    ("matmul f32 2048x2048 2048x2048", 6.0),
    ("matmul f32 512x512 512x512", 6.0),
    ("matmul f32 128x128 128x128", 2.0),
    ("conv2d f32 1x32x32x32 32x32x3x3 pad=1", 3.0),
    ("add f32 8000000 8000000", 1.0),
    ("sum f32 8000000", 1.0),
    ("sum f32 3000x2500 axis=1", 1.0),
    ("transpose f32 3000x2500", 1.0),
    ("add f32 200000 200000", 1.0),
    ("tanh f32 200000", 1.0),
    ("sum f32 300000", 1.0),
    ("sum f32 1000x300 axis=1", 1.0),
    ("transpose f32 600x500", 1.0),
];

/// Bytes per second that it has to move at least, since the host may not have been probed yet.
const HOST_AT_LEAST: f64 = 100e9;

/// Bytes of the largest transfer that is timed.
const MOVED: usize = 64 << 20;
const MOVED_QUICK: usize = 8 << 20;

/// What such a device is there for, beyond what is measured on the host. It comes first: among two thousand others two of
/// these twelve had their turn on an H200.
const LARGE: [&str; 12] = [
    "matmul f32 1000x1000 1000x1000",
    "matmul f32 2000x2000 2000x2000",
    "matmul f32 4000x4000 4000x4000",
    "matmul f32 4000x300 300x4000",
    "matmul f64 1000x1000 1000x1000",
    "add f32 30000000 30000000",
    "exp f32 30000000",
    "add f64 20000000 20000000",
    "sum f32 60000000",
    "sum f32 6000x5000 axis=0",
    "sum f32 6000x5000 axis=1",
    "transpose f32 6000x5000",
];

/// Share of the time that the host has beside all other devices: most programs have their data there, and its kernels
/// differ more. It comes first, before drivers have anything to do in the background. (With all in one list a software
/// adapter took two thirds of the time, and the regret on the host went from 1% to 5%.)
const HOST: f64 = 0.88;

/// Work that is thought to take a device longer than this (seconds) is not what anybody has it for.
const LONGEST: f64 = 30e-3;
/// The same of what it is there for: who never ran anything large is thought far slower than it is. (An H200's 4 ms for a product
/// of 4096 were thought to be 38, and so it was never timed.)
const LONGEST_OF_LARGE: f64 = 300e-3;

/// All a calibration needs, without keeping its runtime alive.
pub(crate) struct Calibrator {
    engine: Arc<Engine>,
    cpu: Cpu,
    carrier: Carrier,
    device: DeviceId,
    keeper: Arc<Keeper>,
    searching: Arc<AtomicBool>,
    /// Whether what was calibrated before is left as it is, and devices that are still to come are waited for.
    rest_only: bool,
}

impl Bench for Calibrator {
    fn rig(&self, w: &Workload) -> Result<Box<dyn Rig>, String> {
        self.engine.set_tick(self.device, self.cpu.tick(CLOCK));
        if let Some(handoff) = self.cpu.handoff(CORES) {
            self.engine.set_handoff(self.device, handoff);
        }
        // Nothing is moved while calibrating: what lives on the host runs there.
        if w.inputs().iter().chain(w.outputs()).all(|o| o.place == Place::Host) {
            return Ok(Box::new(CpuRig::new(&self.cpu, &self.engine, w)?));
        }
        rig(&self.carrier, &self.engine, w)
    }
}

impl Calibrator {
    pub(crate) fn of(inner: &Inner) -> Calibrator {
        Calibrator {
            engine: inner.engine.clone(),
            cpu: inner.cpu.clone(),
            carrier: inner.carrier.clone(),
            device: inner.cpu_id,
            keeper: inner.keeper.clone(),
            searching: inner.searching.clone(),
            rest_only: true,
        }
    }

    /// The places of devices with memory of their own that are there and have a part in this.
    fn away(&self) -> Vec<Place> {
        let there = |id: &DeviceId| self.engine.guard().lost(*id).is_none();
        let all = self.carrier.accelerators.iter();
        let wanted = all.filter(|(_, a)| !(self.rest_only && a.calibrated.load(Ordering::Acquire)));
        wanted.map(|(id, _)| id).filter(there).map(Place::Device).collect()
    }

    /// Devices that may still come are waited for, in the background alone; whether to go on.
    fn wait_for_devices(&self, go_on: &mut dyn FnMut() -> bool) -> bool {
        while self.rest_only && self.searching.load(Ordering::Acquire) {
            if !go_on() {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// Whether a device was seen to move bytes quicker than the host does.
    fn outruns_host(&self, place: Place) -> bool {
        let devices = self.engine.devices();
        let best = |device: DeviceId| {
            let level = devices.get(device.0 as usize).and_then(|d| d.machine.levels.last());
            level.into_iter().flat_map(|l| &l.copy).copied().fold(0.0, f64::max)
        };
        let Place::Device(device) = place else { return false };
        best(device) > best(self.device).max(HOST_AT_LEAST)
    }

    pub(crate) fn run(
        &self,
        how: &Calibrate,
        progress: &mut dyn FnMut(&Step) -> ControlFlow<()>,
    ) -> CalibrationReport {
        let started = Instant::now();
        let away = self.away();
        let quicker = away.iter().filter(|p| self.outruns_host(**p)).count();
        let extra =
            if how.quick || how.budget.is_some() { Duration::ZERO } else { EACH_DEVICE * quicker as u32 };
        let budget = how.budget.unwrap_or(if how.quick { QUICK } else { FULL }) + extra;
        let mut broken = false;
        let mut tell = |phase: String, broken: &mut bool| {
            let used = started.elapsed();
            let done = (used.as_secs_f64() / budget.as_secs_f64().max(1e-9)).min(1.0);
            *broken |= progress(&Step { phase, done, left: budget.saturating_sub(used) }).is_break();
            !*broken
        };
        let host_too = !(self.rest_only && self.keeper.calibrated.load(Ordering::Acquire));
        if host_too {
            let slice = probe::DEFAULT_BUDGET.min(budget.mul_f64(0.15));
            self.probe(how, slice, &mut |phase| tell(phase, &mut broken));
        }
        // After the probes: what was learned with other rates is gone by then, and not put back.
        let before = how.refresh.then(|| {
            let there = away.iter().filter_map(|p| if let Place::Device(id) = p { Some(*id) } else { None });
            let devices = std::iter::once(self.device).chain(there).collect();
            Before::take(&self.engine, devices, !how.quick)
        });
        let left = || budget.saturating_sub(started.elapsed());
        let host = left().saturating_sub(extra);
        let host = if away.is_empty() { host } else { host.mul_f64(HOST) };
        let mut report = match host_too {
            true => self.measure(plan::workloads(how.quick), host, &mut |phase| tell(phase, &mut broken)),
            false => tune::Report::default(),
        };
        let enough = if report.interrupted || broken { ENOUGH_BROKEN_OFF } else { ENOUGH_SAMPLES };
        if !report.interrupted {
            let looking = "looking for devices".to_string();
            report.interrupted |= !self.wait_for_devices(&mut || tell(looking.clone(), &mut broken));
        }
        // Those that came meanwhile, too.
        let away = self.away();
        for (i, &place) in away.iter().enumerate() {
            if report.interrupted {
                break;
            }
            let name = self.engine.places().name(place);
            tell(format!("timing the way to {name}"), &mut broken);
            self.carrier.probe_link(place, if how.quick { MOVED_QUICK } else { MOVED });
            let own = if self.rest_only { EACH_IN_BACKGROUND } else { Duration::ZERO };
            let share = (left() / (away.len() - i) as u32).max(own);
            let begun = Instant::now();
            if !how.quick || self.rest_only {
                self.search(place, share.mul_f64(SEARCH), &mut |w| {
                    tell(format!("searching parameters on {name} for {w}"), &mut broken)
                });
            }
            // The same work with everything there: what its kernels take, without the way.
            let there = |w: &Wanted| Wanted { workload: at(&w.workload, place), ..w.clone() };
            let quick = |w: &Wanted| {
                let all = self.engine.estimates(&w.workload);
                let most = if w.importance == Wanted::FIRST { LONGEST_OF_LARGE } else { LONGEST };
                all.iter().any(|c| !c.is_moved() && c.estimate.mean.0 < most)
            };
            let large = if how.quick || !self.outruns_host(place) { &[][..] } else { &LARGE[..] };
            let large = large.iter().filter_map(|text| text.parse().ok());
            let mut wanted: Vec<Wanted> =
                large.map(|workload| Wanted { workload, importance: Wanted::FIRST }).collect();
            wanted.extend(plan::workloads(how.quick));
            let workloads = wanted.iter().map(there).filter(quick).collect();
            // Compilers may have taken longer than the search was given.
            let rest = share.saturating_sub(begun.elapsed()).max(share.mul_f64((1.0 - SEARCH) / 2.0));
            let there = self.measure(workloads, rest, &mut |phase| tell(phase, &mut broken));
            let Place::Device(id) = place else { continue };
            if let Some(device) = self.carrier.accelerators.get(id).filter(|_| !there.interrupted) {
                device.calibrated.store(true, Ordering::Release);
                self.keeper.probed.store(true, Ordering::Release);
            }
            report += there;
        }
        if let Some(device) = self.engine.devices().get(self.device.0 as usize).filter(|_| host_too) {
            let machine = Machine { rest: self.cpu.calm.rest(), ..device.machine.clone() };
            self.engine.set_machine(self.device, machine);
        }
        report.interrupted |= broken;
        if let Some(before) = before {
            let anew = before.end(&self.engine, report.interrupted);
            self.keeper.outdate(remember::outdated(&self.engine, &anew));
        }
        if host_too && report.samples >= enough {
            self.keeper.calibrated.store(true, Ordering::Release);
        }
        self.engine.forget_incumbents();
        let seconds = started.elapsed().as_secs_f64();
        CalibrationReport {
            seconds,
            disturbed: (report.disturbed.as_secs_f64() / seconds.max(1e-9)).min(1.0),
            workloads: report.workloads,
            samples: report.samples,
            quarantined: report.quarantined,
            skipped: report.skipped,
            interrupted: report.interrupted,
        }
    }
}

impl Calibrator {
    /// Writes what was learned so far. What goes wrong with the file is said in the notices, as ever.
    pub(crate) fn save(&self) {
        let _ = self.keeper.save(Vec::new(), Vec::new);
    }

    fn measure(
        &self,
        workloads: Vec<Wanted>,
        budget: Duration,
        tell: &mut dyn FnMut(String) -> bool,
    ) -> tune::Report {
        let calibration = Calibration { budget, ..Calibration::default() };
        tune::calibrate(&self.engine, self, workloads, &calibration, &mut |p| match tell(format!(
            "measuring {}",
            p.workload
        )) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    }

    /// Searches the parameters of a device's kernels.
    fn search(&self, place: Place, budget: Duration, tell: &mut dyn FnMut(&Workload) -> bool) {
        let parsed = SEARCHED.iter().filter_map(|(text, share)| Some((text.parse().ok()?, *share)));
        let searched: Vec<Wanted> =
            parsed.map(|(w, importance)| Wanted { workload: at(&w, place), importance }).collect();
        tune::settle(&self.engine, self, &searched, budget, &mut |w| tell(&at(w, Place::Host)));
        self.keeper.probed.store(true, Ordering::Release);
    }
}

impl Runtime {
    /// Learns this machine. `progress` may break it off at any point; what was learned stays and is saved. An error for
    /// a frozen runtime, whose decisions must stay as they are.
    pub fn calibrate(
        &self,
        how: &Calibrate,
        progress: &mut dyn FnMut(&Step) -> ControlFlow<()>,
    ) -> Result<CalibrationReport, Error> {
        if self.inner.knobs.frozen || self.inner.engine.is_frozen() {
            return Err(Error::Frozen { doing: "calibrate" });
        }
        let all = Calibrator { rest_only: false, ..Calibrator::of(&self.inner) };
        let report = all.run(how, progress);
        self.save()?;
        Ok(report)
    }
}
