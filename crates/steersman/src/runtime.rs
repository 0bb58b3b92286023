//! Owns everything: devices, engine, wisdom, log. No hidden globals.

use crate::background::Background;
use crate::error::Error;
use crate::plan::Planner;
use crate::remember;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};
use steersman_core::guard::Offence;
use steersman_core::knobs::{Knobs, LogLevel, PolicyKind};
use steersman_core::log::{DecisionLog, Entry};
use steersman_core::measure::{Contest, Series, contest};
use steersman_core::policy::Threshold;
use steersman_core::track::{Tracker, Use};
use steersman_core::wisdom::{Notice, Wisdom};
use steersman_core::{Address, Decision, DeviceId, Engine, Io, Ran, Seconds, Settings, Variant, Workload};
use steersman_cpu::Cpu;
use steersman_cpu::rig::CpuRig;

pub(crate) struct Inner {
    pub(crate) engine: Arc<Engine>,
    pub(crate) cpu: Cpu,
    pub(crate) cpu_id: DeviceId,
    pub(crate) fingerprint: u64,
    pub(crate) knobs: Knobs,
    pub(crate) log: DecisionLog,
    tracker: Tracker,
    pub(crate) wisdom: Wisdom,
    notices: Mutex<Vec<Notice>>,
    pub(crate) calibrated: Arc<AtomicBool>,
    /// Changes of the model that are on disk.
    saved: AtomicU64,
    /// Whether rates were probed since the last save.
    pub(crate) probed: Arc<AtomicBool>,
    background: Mutex<Option<Background>>,
    pub(crate) planner: Planner,
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
    /// Finds devices and opens wisdom, with knobs from environment and configuration file. Never blocks.
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
        }));
        let device = cpu.device();
        let fingerprint = device.identity.fingerprint();
        let cpu_id = engine.add_device(device);
        for kernel in cpu.kernels(cpu_id, knobs.blas_path.as_deref()) {
            // Names are unique by construction; a clash would only lose the second of two equals.
            let _ = engine.register(kernel);
        }
        let (wisdom, notices) = remember::open(knobs.wisdom_path().as_deref(), knobs.frozen);
        let snapshot = wisdom.load(fingerprint);
        let calibrated = remember::restore(&engine, cpu_id, fingerprint, &snapshot);
        let tracker = Tracker::new();
        tracker.restore(&snapshot.usage);
        if knobs.policy == PolicyKind::Threshold {
            let elements = knobs
                .threshold_elements
                .unwrap_or_else(|| crate::crossover::parallel_from(&engine).unwrap_or(THRESHOLD_ELEMENTS));
            engine.set_policy(Arc::new(Threshold { elements }));
        }
        let inner = Arc::new(Inner {
            log: DecisionLog::new(knobs.log_capacity),
            tracker,
            cpu,
            cpu_id,
            fingerprint,
            wisdom,
            notices: Mutex::new(notices),
            probed: Arc::new(AtomicBool::new(false)),
            saved: AtomicU64::new(engine.with_model(|m| m.changes())),
            calibrated: Arc::new(AtomicBool::new(calibrated)),
            background: Mutex::new(None),
            planner: Planner::default(),
            engine,
            knobs,
        });
        let runtime = Runtime { inner };
        let k = &runtime.inner.knobs;
        if k.calibrate_background && !k.frozen && !calibrated {
            let started = Background::start(&runtime.inner);
            *runtime.inner.background.lock().unwrap_or_else(|e| e.into_inner()) = started;
        }
        Ok(runtime)
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
        &self.inner.wisdom
    }

    /// What there is to say about the wisdom file; empty when all is well.
    pub fn notices(&self) -> Vec<Notice> {
        if self.inner.knobs.log_level == LogLevel::Off {
            return Vec::new();
        }
        let mut all = self.inner.notices.lock().unwrap_or_else(|e| e.into_inner());
        all.extend(self.inner.wisdom.take_notices());
        all.clone()
    }

    /// Whether this machine was calibrated, now or in an earlier process.
    pub fn calibrated(&self) -> bool {
        self.inner.calibrated.load(Ordering::Acquire)
    }

    /// Fingerprint of the CPU, the validity key of its wisdom.
    pub fn fingerprint(&self) -> u64 {
        self.inner.fingerprint
    }

    /// Writes what was learned.
    pub fn save(&self) -> Result<(), Error> {
        self.inner.save()
    }

    /// Runs a workload at these addresses where it is quickest; on failure on the next best.
    ///
    /// # Safety
    /// The addresses must be host pointers valid for the workload's operands, the output not overlapping any
    /// input (except exactly, for element-wise ops in place).
    pub unsafe fn run_at(
        &self,
        w: &Workload,
        inputs: &[Address],
        output: Address,
    ) -> Result<Decision, Error> {
        // SAFETY: passed on.
        unsafe { self.inner.run_io(w, Io::new(inputs, output)) }
    }

    /// Runs a workload on contiguous bytes in host memory; `forced` names the variant, else the engine decides.
    pub fn run_raw(
        &self,
        w: &Workload,
        inputs: &[&[u8]],
        output: &mut [u8],
        forced: Option<Variant>,
    ) -> Result<Decision, Error> {
        let check = |what: String, need: usize, got: usize| match need == got {
            true => Ok(()),
            false => Err(Error::Bytes { workload: w.to_string(), what, need, got }),
        };
        if inputs.len() != w.inputs().len() {
            check("all operands together".into(), w.inputs().len(), inputs.len())?;
        }
        for (i, (o, bytes)) in w.inputs().iter().zip(inputs).enumerate() {
            let need = if o.is_contiguous() { o.bytes() } else { o.distinct_bytes() };
            check(format!("operand {i}"), need, bytes.len())?;
        }
        check("the result".into(), w.output().bytes(), output.len())?;
        let inner = &*self.inner;
        let memory = |why: steersman_cpu::memory::MemoryError| Error::Memory {
            workload: w.to_string(),
            why: why.to_string(),
        };
        // Copied into aligned memory: what people hand over may start anywhere.
        let mut blocks = Vec::new();
        for bytes in inputs {
            let mut block = inner.cpu.memory.take(bytes.len().max(1)).map_err(memory)?;
            block.as_uninit_mut().iter_mut().zip(*bytes).for_each(|(to, from)| _ = to.write(*from));
            blocks.push(block);
        }
        let mut result = inner.cpu.memory.take(output.len().max(1)).map_err(memory)?;
        result.as_uninit_mut().fill(std::mem::MaybeUninit::new(0));
        let addresses: Vec<Address> = blocks.iter().map(|b| Address::host(b.as_ptr())).collect();
        let io = Io::new(&addresses, Address::host(result.as_mut_ptr()));
        let decision = match forced {
            Some(v) => inner.engine.judge(w)?.with_variant(v),
            None => inner.engine.decide(w)?,
        };
        // SAFETY: the blocks have the sizes the workload needs, checked above.
        let decision = unsafe { inner.run_decided(w, decision, io) }?;
        // SAFETY: the result block was filled and is as long as `output`.
        unsafe { std::ptr::copy_nonoverlapping(result.as_ptr(), output.as_mut_ptr(), output.len()) };
        Ok(decision)
    }

    /// Times variants of a workload in turns, on operands of this runtime's own.
    pub fn contest(&self, w: &Workload, variants: &[Variant], how: &Contest) -> Result<Vec<Series>, Error> {
        let mut rig = CpuRig::new(&self.inner.cpu, &self.inner.engine, w)
            .map_err(|why| Error::Memory { workload: w.to_string(), why })?;
        Ok(contest(&mut rig, variants, how, &mut |_| {}))
    }
}

impl Inner {
    pub(crate) fn save(&self) -> Result<(), Error> {
        if self.knobs.frozen {
            return Ok(());
        }
        let changes = self.engine.with_model(|m| m.changes());
        let log = self.log.take_new();
        if changes == self.saved.load(Ordering::Acquire)
            && log.is_empty()
            && !self.probed.swap(false, Ordering::AcqRel)
        {
            return Ok(());
        }
        let mut batch = remember::collect(
            &self.engine,
            self.cpu_id,
            self.fingerprint,
            self.calibrated.load(Ordering::Acquire),
        );
        batch.log = log;
        batch.usage = self.tracker.take_unsaved();
        self.wisdom.save(batch)?;
        self.saved.store(changes, Ordering::Release);
        Ok(())
    }

    /// Runs a workload where it is quickest; on failure on the next best.
    ///
    /// # Safety
    /// As for [`Runtime::run_at`].
    pub(crate) unsafe fn run_io(&self, w: &Workload, io: Io<'_>) -> Result<Decision, Error> {
        let decision = self.engine.decide(w)?;
        // SAFETY: passed on.
        unsafe { self.run_decided(w, decision, io) }
    }

    /// Runs what was decided; whoever fails is put away and the next best runs.
    unsafe fn run_decided(
        &self,
        w: &Workload,
        mut decision: Decision,
        io: Io<'_>,
    ) -> Result<Decision, Error> {
        let mut last: Option<String> = None;
        // Each failure puts one kernel away, so this ends.
        loop {
            let Some(kernel) = self.engine.registry().get(decision.variant().kernel) else {
                return Err(Error::AllFailed { workload: w.to_string(), last: last.unwrap_or_default() });
            };
            let started = decision.wants_timing().then(Instant::now);
            // SAFETY: the caller's promise; the engine only decides for legal candidates.
            let ran = catch_unwind(AssertUnwindSafe(|| unsafe { kernel.run(w, decision.params(), io) }));
            let (offence, why) = match ran {
                Ok(Ok(ran)) => {
                    if let Some(started) = started {
                        let took = started.elapsed();
                        self.observed(w, &decision, took.into(), ran);
                    }
                    return Ok(decision);
                }
                Ok(Err(e)) => (Offence::Failed, e.to_string()),
                Err(panic) => (Offence::Panicked, format!("panicked: {}", crate::panic_text(&*panic))),
            };
            let name = kernel.name().to_string();
            self.engine.quarantine(decision.variant().kernel, w, offence, why.clone());
            self.tracker.failed(self.usage(w, &decision, &name));
            self.note(w, &decision, None, Some(format!("{name} was put into quarantine: {why}")));
            if io.in_place() {
                return Err(Error::HalfDone { workload: w.to_string(), kernel: name, why });
            }
            last = Some(why);
            decision = match self.engine.decide(w) {
                Ok(d) => d.as_fallback(),
                Err(_) => {
                    return Err(Error::AllFailed { workload: w.to_string(), last: last.unwrap_or_default() });
                }
            };
        }
    }

    #[cold]
    fn observed(&self, w: &Workload, decision: &Decision, took: Seconds, ran: Ran) {
        if ran == Ran::Disturbed {
            self.note(
                w,
                decision,
                Some(took),
                Some("its threads were busy elsewhere: not learned from".into()),
            );
            return;
        }
        let name = self.engine.name(decision.variant().kernel);
        let (low, high) = decision.interval();
        self.tracker.ran(self.usage(w, decision, &name), 1, took.0);
        self.tracker.foretold(&name, decision.predicted().0, low.0, high.0, took.0);
        let news = self.engine.observe(decision, took);
        let shift =
            news.and_then(|n| n.shift).map(|s| format!("the machine runs {s:?} than learned").to_lowercase());
        self.note(w, decision, Some(took), shift);
    }

    fn usage<'a>(&self, w: &Workload, d: &Decision, kernel: &'a str) -> Use<'a> {
        Use { device: self.fingerprint, kernel, params: d.params(), op: w.op().name() }
    }

    fn note(&self, w: &Workload, d: &Decision, measured: Option<Seconds>, note: Option<String>) {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64());
        self.log.push(Entry {
            seq: 0,
            time,
            workload: w.to_string(),
            kernel: self.engine.name(d.variant().kernel),
            params: d.params(),
            reason: d.reason(),
            predicted_s: d.predicted().0,
            low_s: d.interval().0.0,
            high_s: d.interval().1.0,
            measured_s: measured.map(|s| s.0),
            confidence: d.confidence(),
            note,
        });
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(b) = self.background.get_mut().unwrap_or_else(|e| e.into_inner()).take() {
            b.stop();
        }
        // Nobody is left to tell; the notices said what was wrong with the file when it was opened.
        let _ = self.save();
    }
}
