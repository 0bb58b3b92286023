//! The engine: decide, observe, explain. Usable alone.
//!
//! Hit: hash the workload, find its decision in a lock-free table, ask the kernel once more whether it is
//! legal. Miss: estimate every candidate and ask the policy. Measurements come back through
//! [`Engine::observe`]; how often they are wanted is bounded, so that observing costs under 1% of the time.

mod cold;
mod decide;
mod explain;
mod links;
mod observe;
mod quarantine;
mod recall;
mod survey;

pub use observe::Observed;
pub use quarantine::Convicted;
pub use recall::{Remembered, Runs};
pub use survey::glob;

use crate::cost::{Machine, Mix, Model};
use crate::device::{Device, DeviceId, Place};
use crate::drift::Watch;
use crate::explore::Ledger;
use crate::guard::Guard;
use crate::hits::Hits;
use crate::kernel::Kernel;
use crate::place::Wire;
use crate::policy::{Adaptive, Policy};
use crate::registry::{Registry, RegistryError};
use crate::units::Seconds;
use crate::workload::Workload;
use decide::Known;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

/// Why no decision could be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// Nothing can run it.
    #[error("no kernel can run '{workload}': {}", reasons(.refused))]
    NoCandidate {
        /// What was asked.
        workload: String,
        /// Who refused, and why.
        refused: Vec<(String, String)>,
    },
    /// The forced kernel does not exist.
    #[error("there is no kernel '{0}'; `steer explain` lists those that can run a workload")]
    UnknownKernel(String),
}

fn reasons(refused: &[(String, String)]) -> String {
    match refused.len() {
        0 => "no registered kernel is about this op".into(),
        _ => refused.iter().map(|(k, why)| format!("{k}: {why}")).collect::<Vec<_>>().join("; "),
    }
}

/// How an engine behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Share of the time spent that exploring may cost.
    pub explore_budget: f64,
    /// Relative band inside which candidates are equals.
    pub tie_band: f64,
    /// No learning, no exploring: decisions are a function of what is known now.
    pub frozen: bool,
    /// Whether drift is watched.
    pub drift: bool,
    /// A thread asks for a measurement after this much (expected) run time without one.
    pub observe_every: Seconds,
    /// Below this many elements never more than one thread.
    pub small_batch: Option<usize>,
    /// Always this kernel where it is legal.
    pub force: Option<String>,
    /// Kernels never to use: names, `*` stands for anything.
    pub disable: Vec<String>,
    /// Whether kernels that others always outdo are weighed too.
    pub weigh_all: bool,
}

impl Settings {
    /// Whether it is too small for more than one thread.
    fn is_small(&self, w: &Workload) -> bool {
        self.small_batch.is_some_and(|limit| {
            let shape = w.dims().iter().product();
            w.inputs().iter().map(|o| o.elements()).fold(shape, usize::max) < limit
        })
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            explore_budget: 0.01,
            tie_band: 0.02,
            frozen: false,
            drift: true,
            // An observation costs 3 to 5 µs: under 1% of this.
            observe_every: Seconds(500e-6),
            small_batch: None,
            force: None,
            disable: Vec::new(),
            weigh_all: false,
        }
    }
}

/// Decides, learns, explains.
pub struct Engine {
    id: u64,
    settings: RwLock<Settings>,
    /// Two settings the hit path reads, where it can read them without a lock.
    frozen: AtomicBool,
    observe_every: AtomicU64,
    registry: Registry,
    devices: RwLock<Vec<Device>>,
    /// Between the host and each device, by its id.
    wires: RwLock<Vec<Wire>>,
    /// Transfers learned from.
    transfers: AtomicU64,
    model: RwLock<Model>,
    policy: RwLock<Arc<dyn Policy>>,
    hits: Hits,
    generation: AtomicU32,
    known: Mutex<HashMap<u64, Known, BuildHasherDefault<Mix>>>,
    ledger: Mutex<Ledger>,
    watches: Mutex<HashMap<(DeviceId, bool), Watch>>,
    /// Observations so far: the time that watches go by.
    observations: AtomicU64,
    guard: Guard,
    random: AtomicU64,
    /// What is remembered of kernels that are not registered, by name.
    absent: Mutex<HashMap<String, Vec<Remembered>>>,
    /// The same of quarantines.
    convicted: Mutex<HashMap<String, Vec<Convicted>>>,
}

static NEXT_ENGINE: AtomicU64 = AtomicU64::new(1);

fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}
fn read<T>(m: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    m.read().unwrap_or_else(|e| e.into_inner())
}
fn write<T>(m: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    m.write().unwrap_or_else(|e| e.into_inner())
}

impl Default for Engine {
    fn default() -> Engine {
        Engine::new(Settings::default())
    }
}

impl Engine {
    /// An engine with no devices and no kernels.
    pub fn new(settings: Settings) -> Engine {
        Engine {
            id: NEXT_ENGINE.fetch_add(1, Ordering::Relaxed),
            frozen: AtomicBool::new(settings.frozen),
            observe_every: AtomicU64::new(settings.observe_every.0.to_bits()),
            ledger: Mutex::new(Ledger::new(settings.explore_budget)),
            settings: RwLock::new(settings),
            registry: Registry::default(),
            devices: RwLock::new(Vec::new()),
            wires: RwLock::new(Vec::new()),
            transfers: AtomicU64::new(0),
            model: RwLock::new(Model::default()),
            policy: RwLock::new(Arc::new(Adaptive)),
            hits: Hits::default(),
            generation: AtomicU32::new(1),
            known: Mutex::default(),
            watches: Mutex::new(HashMap::new()),
            observations: AtomicU64::new(0),
            guard: Guard::default(),
            random: AtomicU64::new(0x2545_F491_4F6C_DD1D),
            absent: Mutex::default(),
            convicted: Mutex::default(),
        }
    }

    /// Adds a device. If it has memory of its own, that is the place by the id it gets.
    pub fn add_device(&self, mut device: Device) -> DeviceId {
        let mut devices = write(&self.devices);
        let id = DeviceId(devices.len() as u16);
        if device.place != Place::Host {
            device.place = Place::Device(id);
        }
        devices.push(device);
        write(&self.wires).push(Wire::default());
        self.invalidate();
        id
    }

    /// Adds a kernel. Built-in and custom ones are candidates alike; what is remembered of it is known at once.
    pub fn register(&self, kernel: Arc<dyn Kernel>) -> Result<u16, RegistryError> {
        let index = self.registry.register(kernel)?;
        self.recall_for(index);
        self.recall_quarantines_of(index);
        self.invalidate();
        Ok(index)
    }

    /// Adds the variants of a function, all or none: its name must be nobody else's, so that whoever is chosen for it is one
    /// of them.
    pub fn register_function(
        &self,
        function: &str,
        variants: &[Arc<dyn Kernel>],
    ) -> Result<Vec<u16>, RegistryError> {
        let indices = self.registry.register_function(function, variants)?;
        for &index in &indices {
            self.recall_for(index);
            self.recall_quarantines_of(index);
        }
        self.invalidate();
        Ok(indices)
    }

    /// Replaces the policy.
    pub fn set_policy(&self, policy: Arc<dyn Policy>) {
        *write(&self.policy) = policy;
        self.invalidate();
    }

    /// The kernels.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The kernels in quarantine.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The devices.
    pub fn devices(&self) -> Vec<Device> {
        read(&self.devices).clone()
    }

    /// The settings.
    pub fn settings(&self) -> Settings {
        read(&self.settings).clone()
    }

    /// Whether decisions are a function of what is known now, so that nothing may be learned.
    pub fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Acquire)
    }

    /// Changes the settings.
    pub fn configure(&self, change: impl FnOnce(&mut Settings)) {
        let mut s = write(&self.settings);
        change(&mut s);
        self.frozen.store(s.frozen, Ordering::Release);
        self.observe_every.store(s.observe_every.0.to_bits(), Ordering::Release);
        lock(&self.ledger).budget = s.explore_budget;
        drop(s);
        self.invalidate();
    }

    /// Replaces what is known of a device's rates.
    pub fn set_machine(&self, device: DeviceId, machine: Machine) {
        if let Some(d) = write(&self.devices).get_mut(device.0 as usize) {
            d.machine = machine;
        }
        self.invalidate();
    }

    /// Says what a tick of a device's clock takes now: all that was learned of it is expected to take so much longer or
    /// less than when [`Machine::tick`] was taken. Decisions stay as they are in a frozen engine, and where that is unknown.
    pub fn set_tick(&self, device: DeviceId, tick: f64) {
        if self.frozen.load(Ordering::Acquire) || !(tick > 0.0 && tick.is_finite()) {
            return;
        }
        let mut devices = write(&self.devices);
        let Some(machine) = devices.get_mut(device.0 as usize).map(|d| &mut d.machine) else { return };
        let Some(learned) = machine.tick.filter(|t| *t > 0.0) else { return };
        let pace = (tick / learned).clamp(1.0 / MOST_PACE, MOST_PACE);
        if (pace / machine.pace.unwrap_or(1.0)).ln().abs() < SAME_PACE {
            return;
        }
        machine.pace = Some(pace);
        drop(devices);
        self.invalidate();
    }

    /// Says what a hand-off between two of a device's threads takes now, as [`Machine::met`] counts it: runs on several of them are
    /// expected to take longer by that, or less. Decisions stay as they are in a frozen engine, and where that is unknown.
    pub fn set_handoff(&self, device: DeviceId, seconds: f64) {
        if self.frozen.load(Ordering::Acquire) || !(seconds > 0.0 && seconds.is_finite()) {
            return;
        }
        let mut devices = write(&self.devices);
        let Some(machine) = devices.get_mut(device.0 as usize).map(|d| &mut d.machine) else { return };
        let before = machine.lag(2);
        let known = machine.meets.replace(seconds);
        if (machine.lag(2) - before).abs() < SAME_LAG {
            machine.meets = known;
            return;
        }
        drop(devices);
        self.invalidate();
    }

    /// The exploration ledger as it stands.
    pub fn ledger(&self) -> Ledger {
        *lock(&self.ledger)
    }

    /// How much slower a device's serial or parallel kernels run than learned, beside what its clock makes of it.
    pub fn speed(&self, device: DeviceId, parallel: bool) -> f64 {
        lock(&self.watches).get(&(device, parallel)).map_or(1.0, |w| w.speed())
    }

    /// Reads the model.
    pub fn with_model<R>(&self, f: impl FnOnce(&Model) -> R) -> R {
        f(&read(&self.model))
    }

    /// Changes the model; every cached decision is made anew afterwards.
    pub fn with_model_mut<R>(&self, f: impl FnOnce(&mut Model) -> R) -> R {
        let r = f(&mut write(&self.model));
        self.invalidate();
        r
    }

    /// Has every cached decision made anew. Incumbents stay, and with them their hold on ties.
    pub fn invalidate(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Forgets which candidate ran last for each workload.
    pub fn forget_incumbents(&self) {
        lock(&self.known).clear();
        self.invalidate();
    }

    /// The name of a kernel.
    pub fn name(&self, kernel: u16) -> String {
        self.registry.get(kernel).map_or_else(|| format!("#{kernel}"), |k| k.name().to_string())
    }
}

/// Paces nearer than this (of their logs) are one: ticks differ by less than a hundredth at one clock.
const SAME_PACE: f64 = 0.02;
/// Lags nearer than this (seconds) are one: looks at cores that stay where they are differ by as much.
const SAME_LAG: f64 = 150e-9;
/// No clock changes by more: a tick that says so was not alone on its core.
const MOST_PACE: f64 = 4.0;
