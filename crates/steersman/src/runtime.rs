//! Owns everything: devices, engine, wisdom, log. No hidden globals.

mod accelerator;
mod carry;
mod execute;
mod keep;
mod lend;
mod rig;
#[cfg(feature = "webgpu")]
mod webgpu;

use crate::background::Background;
use crate::error::Error;
use crate::plan::Planner;
use crate::remember;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use steersman_core::knobs::{Knobs, LogLevel, PolicyKind};
use steersman_core::log::DecisionLog;
use steersman_core::measure::{Contest, Series, contest};
use steersman_core::policy::Threshold;
use steersman_core::track::Tracker;
use steersman_core::wisdom::{Kept, Notice, QuarantineRow, Wisdom};
use steersman_core::{DeviceId, Engine, Seconds, Settings, Variant, Workload, glob};
use steersman_cpu::Cpu;

pub(crate) use carry::{Carrier, Piece, Trouble, settle};
pub(crate) use keep::Keeper;
pub(crate) use rig::{at, rig};

pub(crate) struct Inner {
    pub(crate) engine: Arc<Engine>,
    pub(crate) cpu: Cpu,
    pub(crate) cpu_id: DeviceId,
    pub(crate) fingerprint: u64,
    pub(crate) knobs: Knobs,
    pub(crate) log: Arc<DecisionLog>,
    tracker: Tracker,
    pub(crate) keeper: Arc<Keeper>,
    notices: Arc<Mutex<Vec<Notice>>>,
    background: Mutex<Option<Background>>,
    pub(crate) planner: Arc<Planner>,
    pub(crate) carrier: Carrier,
    /// What writes down what a device's driver compiled.
    #[cfg(feature = "webgpu")]
    compiled: Arc<Mutex<Vec<webgpu::Compiled>>>,
    /// Whether devices are still being looked for.
    pub(crate) searching: Arc<AtomicBool>,
    /// Looks for devices that take their time to be found.
    arriving: Mutex<Option<JoinHandle<()>>>,
}

/// Owns devices, engine, wisdom and log. Cheap to clone; `Send + Sync`.
///
/// ```
/// use steersman::{Knobs, Runtime, View};
/// use steersman::core::{BinaryOp, Op};
///
/// let mut knobs = Knobs::default();
/// knobs.set("wisdom.enabled", "false")?;          // keep this example to itself
/// knobs.set("calibrate.background", "false")?;
/// let rt = Runtime::with_knobs(knobs)?;
/// let (a, b) = ([1.0f32, 2.0, 3.0], [10.0f32, 20.0, 30.0]);
/// let sum = rt.eval(Op::Binary(BinaryOp::Add), &[View::new(&a), View::new(&b)])?;
/// assert_eq!(sum.to_vec::<f32>(), Some(vec![11.0, 22.0, 33.0]));
/// # Ok::<(), steersman::Error>(())
/// ```
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

/// Assumed crossover of the threshold rule before anything was measured (numpy-style guess; the rule is a baseline).
const THRESHOLD_ELEMENTS: usize = 32_768;

impl Runtime {
    /// Finds devices and opens wisdom, with knobs from environment and configuration file. Never blocks, but for devices
    /// if it is frozen: decisions must not depend on when those arrive.
    pub fn new() -> Result<Runtime, Error> {
        Runtime::with_knobs(Knobs::load()?)
    }

    /// The same with given knobs.
    pub fn with_knobs(knobs: Knobs) -> Result<Runtime, Error> {
        let cpu = Cpu::new(knobs.threads_max, knobs.memory_idle_limit.0 as usize);
        cpu.memory.set_hard_limit(knobs.memory_limit.map(|b| b.0 as usize));
        let engine = Arc::new(Engine::new(Settings {
            explore_budget: knobs.explore_budget,
            tie_band: knobs.tie_band,
            frozen: knobs.frozen,
            drift: knobs.drift_enabled,
            small_batch: knobs.small_batch,
            observe_every: Seconds::micros(f64::from(knobs.observe_every)),
            force: knobs.force.clone(),
            disable: knobs.disable.clone(),
            weigh_all: knobs.weigh_all,
        }));
        let device = cpu.device();
        let fingerprint = device.identity.fingerprint();
        let cpu_id = engine.add_device(device);
        for kernel in cpu.kernels(cpu_id, knobs.blas_path.as_deref()) {
            // Names are unique by construction; a clash would only lose the second of two equals.
            let _ = engine.register(kernel);
        }
        let (wisdom, mut notices) =
            remember::open(knobs.wisdom_path().as_deref(), knobs.frozen, knobs.log_capacity);
        let mut snapshot = wisdom.load(fingerprint);
        let restored = remember::restore(&engine, cpu_id, fingerprint, &mut snapshot);
        notices.extend(restored.notice(&wisdom, &engine, cpu_id));
        let mut calibrated = restored.calibrated;
        if let Some(known) = engine.devices().get(cpu_id.0 as usize) {
            // A process with fewer cores may have learned what it could.
            calibrated &= known.machine.covers(cpu.team.max());
            cpu.calm.expect(known.machine.rest);
            engine.set_tick(cpu_id, cpu.tick(Duration::ZERO));
        }
        let tracker = Tracker::new();
        tracker.restore(&snapshot.usage);
        if knobs.policy == PolicyKind::Threshold {
            let elements = knobs
                .threshold_elements
                .unwrap_or_else(|| crate::crossover::parallel_from(&engine).unwrap_or(THRESHOLD_ELEMENTS));
            engine.set_policy(Arc::new(Threshold { elements }));
        }
        let carrier = Carrier::new(engine.clone(), cpu.clone());
        let keeper = Arc::new(Keeper {
            engine: engine.clone(),
            carrier: carrier.clone(),
            device: cpu_id,
            fingerprint,
            frozen: knobs.frozen,
            wisdom,
            calibrated: AtomicBool::new(calibrated),
            probed: AtomicBool::new(false),
            saved: AtomicU64::new(engine.with_model(|m| m.changes())),
            carried: AtomicU64::new(0),
            outdated: Mutex::default(),
        });
        let inner = Arc::new(Inner {
            log: Arc::new(DecisionLog::new(knobs.log_capacity)),
            tracker,
            cpu_id,
            fingerprint,
            keeper,
            notices: Arc::new(Mutex::new(notices)),
            background: Mutex::new(None),
            planner: Arc::default(),
            carrier,
            #[cfg(feature = "webgpu")]
            compiled: Arc::default(),
            searching: Arc::default(),
            arriving: Mutex::new(None),
            cpu,
            engine,
            knobs,
        });
        let runtime = Runtime { inner };
        #[cfg(feature = "webgpu")]
        if runtime.inner.knobs.webgpu_enabled {
            runtime.look_for_adapters();
            if runtime.inner.knobs.frozen {
                runtime.wait_for_devices();
            }
        }
        let k = &runtime.inner.knobs;
        // An adapter may come that was never calibrated, whatever is known of the host.
        let more_to_come = cfg!(feature = "webgpu") && k.webgpu_enabled;
        if k.calibrate_background && !k.frozen && (!calibrated || more_to_come) {
            let started = Background::start(&runtime.inner);
            *runtime.inner.background.lock().unwrap_or_else(|e| e.into_inner()) = started;
        }
        Ok(runtime)
    }

    /// Waits for devices that are still being looked for.
    pub fn wait_for_devices(&self) {
        if let Some(thread) = self.inner.arriving() {
            // A panic there has been printed already; there is nothing to add.
            let _ = thread.join();
        }
    }

    /// Has decisions know what the machine is like now: how fast its clock runs, and how far apart two cores lie. Runtimes look by
    /// themselves now and then; this is for who wants to be told of this moment. It may start a thread, which takes a tenth of a
    /// millisecond; a frozen runtime decides as before.
    ///
    /// ```
    /// # let mut knobs = steersman::core::Knobs::default();
    /// # knobs.set("wisdom.enabled", "false")?;
    /// # knobs.set("calibrate.background", "false")?;
    /// # let rt = steersman::Runtime::with_knobs(knobs)?;
    /// rt.look();
    /// let decision = rt.engine().decide(&"add f32 1000 1000".parse()?)?;
    /// # assert!(decision.predicted().0 > 0.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn look(&self) {
        if !self.inner.knobs.frozen {
            self.inner.look_at_clock();
            self.inner.look_at_cores();
        }
    }

    /// Whether this is the same runtime: a clone of the other one.
    pub fn is(&self, other: &Runtime) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The decision engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.inner.engine
    }

    /// The CPU.
    pub fn cpu(&self) -> &Cpu {
        &self.inner.cpu
    }

    /// The knobs in force.
    pub fn knobs(&self) -> &Knobs {
        &self.inner.knobs
    }

    /// Recent observed decisions of this process.
    pub fn log(&self) -> &DecisionLog {
        &self.inner.log
    }

    /// How often each kernel ran and failed in observed calls, and how good the predictions were.
    pub fn tracker(&self) -> &Tracker {
        &self.inner.tracker
    }

    /// What has been learned, on disk.
    pub fn wisdom(&self) -> &Wisdom {
        &self.inner.keeper.wisdom
    }

    /// What there is to say about the wisdom file; empty when all is well.
    pub fn notices(&self) -> Vec<Notice> {
        if self.inner.knobs.log_level == LogLevel::Off {
            return Vec::new();
        }
        let mut all = self.inner.notices.lock().unwrap_or_else(|e| e.into_inner());
        all.extend(self.inner.keeper.wisdom.take_notices());
        all.clone()
    }

    /// Whether this machine was calibrated, now or in an earlier process.
    pub fn calibrated(&self) -> bool {
        self.inner.keeper.calibrated.load(Ordering::Acquire)
    }

    /// Fingerprint of the CPU, the validity key of its wisdom.
    pub fn fingerprint(&self) -> u64 {
        self.inner.fingerprint
    }

    /// Writes what was learned, and says where it is then: if the file cannot be written, in memory until a later call.
    pub fn save(&self) -> Result<Kept, Error> {
        self.inner.save()
    }

    /// Lets kernels whose names match the pattern (`*` stands for anything) out of quarantine, here and in what is kept on disk
    /// of any device. Other processes that run now keep to what they know until they end.
    ///
    /// ```
    /// # let mut knobs = steersman::core::Knobs::default();
    /// # knobs.set("wisdom.enabled", "false")?;
    /// # knobs.set("calibrate.background", "false")?;
    /// # let rt = steersman::Runtime::with_knobs(knobs)?;
    /// assert!(rt.lift("cpu/*")?.is_empty(), "nobody misbehaved");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lift(&self, pattern: &str) -> Result<Vec<QuarantineRow>, Error> {
        // What happened here is written down first, so that it is among what is lifted.
        self.inner.save()?;
        let lifted = self.inner.keeper.wisdom.lift(|kernel| glob(pattern, kernel))?;
        self.inner.engine.lift(pattern);
        Ok(lifted)
    }

    /// Times variants of a workload in turns, on operands of this runtime's own. What a variant needs moved is part
    /// of its time.
    pub fn contest(&self, w: &Workload, variants: &[Variant], how: &Contest) -> Result<Vec<Series>, Error> {
        self.contest_while(w, variants, how, &mut |_| ControlFlow::Continue(()))
    }

    /// The same, until it is broken off between two runs.
    pub(crate) fn contest_while(
        &self,
        w: &Workload,
        variants: &[Variant],
        how: &Contest,
        running: &mut dyn FnMut(Variant) -> ControlFlow<()>,
    ) -> Result<Vec<Series>, Error> {
        let mut rig = rig(&self.inner.carrier, &self.inner.engine, w).map_err(|why| Error::Memory {
            workload: w.named(&self.inner.engine.places()).to_string(),
            why,
        })?;
        Ok(contest(&mut *rig, variants, how, running))
    }
}

impl Inner {
    pub(crate) fn save(&self) -> Result<Kept, Error> {
        if self.knobs.frozen {
            return Ok(self.keeper.wisdom.kept());
        }
        #[cfg(feature = "webgpu")]
        self.save_pipelines();
        self.keeper.save(self.log.take_new(), || self.tracker.take_unsaved())
    }
}

impl Inner {
    fn arriving(&self) -> Option<JoinHandle<()>> {
        self.arriving.lock().unwrap_or_else(|e| e.into_inner()).take()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Drivers do not like a process that ends while they start.
        if let Some(thread) = self.arriving() {
            let _ = thread.join();
        }
        if let Some(b) = self.background.get_mut().unwrap_or_else(|e| e.into_inner()).take() {
            b.stop();
        }
        // Nobody is left to tell; the notices said what was wrong with the file when it was opened.
        let _ = self.save();
    }
}
