//! The engine: decide, observe, explain. Usable alone.
//!
//! Hit: hash the workload, find its decision in a lock-free table, ask the kernel once more whether it is
//! legal. Miss: estimate every candidate and ask the policy. Measurements come back through
//! [`Engine::observe`]; how often they are wanted is bounded, so that observing costs under 1% of the time.

use crate::candidate::{self, Candidate, Candidates};
use crate::cost::{CellKey, Machine, Model, Source, Subject, Variant};
use crate::decision::{Crossover, Decision, Explanation};
use crate::device::{Device, DeviceId, Place};
use crate::drift::{Shift, Watch};
use crate::explore::Ledger;
use crate::guard::{Guard, Offence};
use crate::hits::Hits;
use crate::kernel::{Kernel, Refusal};
use crate::log::ReasonCode;
use crate::op::OpClass;
use crate::policy::{Adaptive, Choice, Exploration, Policy, Query};
use crate::registry::{Registry, RegistryError};
use crate::units::Seconds;
use crate::workload::{Key, Workload};
use smallvec::SmallVec;
use std::cell::Cell;
use std::collections::HashMap;
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
        }
    }
}

/// What became of an observed call, for logs and trackers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// The device group changed its speed just now.
    pub shift: Option<Shift>,
    /// Whether the call explored.
    pub explored: bool,
}

struct Known {
    workload: Workload,
    incumbent: Variant,
    observed: u64,
    /// Times it was decided at length.
    asked: u64,
}

/// An answer that nobody has measured yet is given at length this many times before it becomes a hit: a
/// supposed time says nothing about when to measure next (one that is 10 times too short was believed
/// for 800 calls). A caller that never measures has hits after that.
const ASKED_BEFORE_HIT: u64 = 8;

/// Runs of exactly one workload up to which another one is news.
const NEWS: u64 = 3;

/// A generation that never is: generations start at one.
const STALE: u32 = 0;

/// Spread above which a prediction is too vague to tell a change of the machine from its own error.
const WATCHED_SPREAD: f64 = 0.3;

/// Workloads whose incumbents are remembered at most.
const KNOWN_CAPACITY: usize = 8192;

/// Decides, learns, explains.
pub struct Engine {
    id: u64,
    settings: RwLock<Settings>,
    /// Two settings the hit path reads, where it can read them without a lock.
    frozen: AtomicBool,
    observe_every: AtomicU64,
    registry: Registry,
    devices: RwLock<Vec<Device>>,
    model: RwLock<Model>,
    policy: RwLock<Arc<dyn Policy>>,
    hits: Hits,
    generation: AtomicU32,
    known: Mutex<HashMap<u64, Known>>,
    ledger: Mutex<Ledger>,
    watches: Mutex<HashMap<(DeviceId, bool), Watch>>,
    /// Observations so far: the time that watches go by.
    observations: AtomicU64,
    guard: Guard,
    random: AtomicU64,
}

static NEXT_ENGINE: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// Engine, and the least run time this thread has had since it last asked for a measurement. Several,
    /// so that engines that take turns on a thread do not keep each other from ever asking.
    static UNOBSERVED: [Cell<(u64, f64)>; 4] = const { [const { Cell::new((0, 0.0)) }; 4] };
}

/// Run time of this engine on this thread since it last asked for a measurement.
#[inline]
fn unobserved(engine: u64) -> f64 {
    UNOBSERVED.with(|slots| match slots[engine as usize % slots.len()].get() {
        (id, seconds) if id == engine => seconds,
        _ => 0.0,
    })
}

#[inline]
fn set_unobserved(engine: u64, seconds: f64) {
    UNOBSERVED.with(|slots| slots[engine as usize % slots.len()].set((engine, seconds)));
}

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
            model: RwLock::new(Model::default()),
            policy: RwLock::new(Arc::new(Adaptive)),
            hits: Hits::default(),
            generation: AtomicU32::new(1),
            known: Mutex::new(HashMap::new()),
            watches: Mutex::new(HashMap::new()),
            observations: AtomicU64::new(0),
            guard: Guard::default(),
            random: AtomicU64::new(0x2545_F491_4F6C_DD1D),
        }
    }

    /// Adds a device.
    pub fn add_device(&self, device: Device) -> DeviceId {
        let mut devices = write(&self.devices);
        devices.push(device);
        self.invalidate();
        DeviceId(devices.len() as u16 - 1)
    }

    /// Adds a kernel. Built-in and custom ones are candidates alike.
    pub fn register(&self, kernel: Arc<dyn Kernel>) -> Result<u16, RegistryError> {
        let index = self.registry.register(kernel)?;
        self.invalidate();
        Ok(index)
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

    /// The exploration ledger as it stands.
    pub fn ledger(&self) -> Ledger {
        *lock(&self.ledger)
    }

    /// How much slower a device's serial or parallel kernels run than learned.
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

    /// What to run. Nanoseconds for a workload decided before.
    #[inline]
    pub fn decide(&self, w: &Workload) -> Result<Decision, EngineError> {
        let mut key = Key::default();
        let fits = w.write_key(&mut key);
        if fits && let Some(payload) = self.hits.get(&key) {
            let (decision, generation) = Decision::unpack(payload, key.hash64());
            if generation == self.generation.load(Ordering::Acquire)
                && self.registry.get(decision.variant.kernel).is_some_and(|k| k.supports(w).is_ok())
            {
                let low = unobserved(self.id) + decision.low as f64;
                let bound = f64::from_bits(self.observe_every.load(Ordering::Relaxed));
                if low < bound || self.frozen.load(Ordering::Relaxed) {
                    set_unobserved(self.id, low);
                    return Ok(decision);
                }
                return self.decide_slow(w, key.hash64(), low - decision.low as f64);
            }
        }
        self.decide_slow(w, if fits { key.hash64() } else { fallback_hash(w) }, 0.0)
    }

    /// Estimates everything, asks the policy, remembers the answer.
    fn decide_slow(&self, w: &Workload, hash: u64, unbooked: f64) -> Result<Decision, EngineError> {
        // Read before estimating: a change in between makes the stored answer stale, as it should.
        let generation = self.generation.load(Ordering::Acquire);
        let frozen = self.frozen.load(Ordering::Acquire);
        let candidates = self.candidates(w, hash);
        if candidates.is_empty() {
            return Err(self.no_candidate(w, hash));
        }
        let (incumbent, observed) = match lock(&self.known).get(&hash) {
            Some(k) if !frozen && k.workload == *w => (Some(k.incumbent), k.observed),
            _ => (None, 0),
        };
        let query = Query {
            workload: w,
            candidates: &candidates,
            incumbent,
            tie_band: read(&self.settings).tie_band,
        };
        let policy = read(&self.policy).clone();
        let choice = self.overridden(&candidates).unwrap_or_else(|| policy.choose(&query));
        let decision = make_decision(&candidates[choice.index], hash, choice, frozen);
        let keep = |generation: u32| {
            if let Some(key) = w.key() {
                self.hits.put(&key, decision.pack(generation));
            }
        };
        if frozen {
            keep(generation);
            return Ok(decision);
        }
        let asked = self.remember(w, hash, decision.variant);
        set_unobserved(self.id, 0.0);
        if choice.reason != ReasonCode::Forced {
            let ledger = self.ledger();
            // As many calls are to come as there have been: the best guess without knowing the program.
            let e = Exploration {
                chosen: choice.index,
                calls_to_come: (observed + 1) as f64,
                ledger: &ledger,
                random: self.random_word(),
            };
            if let Some(other) = policy.explore(&query, &e) {
                let evidence = candidates[other].estimate.evidence;
                // What a first run shows may change the choice: the next call asks again, rather than find
                // an answer from before it. (Calls of 1 µs among calls of 20 µs were not asked about again
                // for 1,200 calls.) Equals that are known well may wait for the next measurement.
                // A caller who never reports must not be asked for ever either.
                let news = evidence.exact < NEWS && asked < ASKED_BEFORE_HIT;
                keep(if news { STALE } else { generation });
                let trial = evidence.extrapolated && other == query.default();
                let reason = if trial { ReasonCode::Prior } else { ReasonCode::Explore };
                let choice = Choice { index: other, reason, ..choice };
                let tried = make_decision(&candidates[other], hash, choice, false);
                return Ok(Decision { due: true, unbooked, instead: decision.predicted, ..tried });
            }
        }
        if candidates[choice.index].proven() || asked >= ASKED_BEFORE_HIT {
            keep(generation);
        }
        Ok(Decision { due: true, unbooked, ..decision })
    }

    fn random_word(&self) -> u64 {
        let x = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^ (x >> 31)
    }

    /// Notes what was chosen; returns how often this workload has been decided at length.
    fn remember(&self, w: &Workload, hash: u64, variant: Variant) -> u64 {
        let mut known = lock(&self.known);
        if known.len() >= KNOWN_CAPACITY && !known.contains_key(&hash) {
            let mut n = 0;
            known.retain(|_, _| {
                n += 1;
                n % 2 == 0
            });
        }
        match known.get_mut(&hash) {
            Some(k) if k.workload == *w => {
                k.incumbent = variant;
                k.asked += 1;
                k.asked
            }
            _ => {
                known.insert(hash, Known { workload: w.clone(), incumbent: variant, observed: 0, asked: 1 });
                1
            }
        }
    }

    /// The forced kernel, where one is set and legal.
    fn overridden(&self, candidates: &Candidates) -> Option<Choice> {
        let settings = read(&self.settings);
        let name = settings.force.as_deref()?;
        let best =
            |i: &usize, j: &usize| candidates[*i].estimate.mean.0.total_cmp(&candidates[*j].estimate.mean.0);
        let index = (0..candidates.len())
            .filter(|&i| self.registry.get(candidates[i].variant.kernel).is_some_and(|k| k.name() == name))
            .min_by(best)?;
        Some(Choice { index, reason: ReasonCode::Forced, confidence: 1.0 })
    }

    /// Legal candidates with estimates.
    fn candidates(&self, w: &Workload, hash: u64) -> Candidates {
        let mut found = Candidates::new();
        self.survey(w, hash, &mut found, |_, _| {});
        found
    }

    /// Finds the legal candidates, with estimates, and tells of the refused.
    fn survey(&self, w: &Workload, hash: u64, found: &mut Candidates, refused: impl FnMut(u16, Refusal)) {
        let devices = read(&self.devices);
        let model = read(&self.model);
        let settings = read(&self.settings);
        let watches: SmallVec<[_; 4]> = lock(&self.watches).iter().map(|(k, w)| (*k, *w)).collect();
        let now = self.observations.load(Ordering::Relaxed);
        let shape = w.dims().iter().product();
        let elements = w.inputs().iter().map(|o| o.elements()).fold(shape, usize::max);
        let small = settings.small_batch.is_some_and(|limit| elements < limit);
        let subject = Subject::of(w, hash);
        let unknown = Machine::default();
        candidate::variants(
            &self.registry,
            w,
            |index, kernel| {
                if let Some(q) = self.guard.check(index, w.op().name(), w.dtype()) {
                    return Some(Refusal::new(format!("in quarantine: {}", q.detail)));
                }
                let off = settings.disable.iter().find(|pattern| glob(pattern, kernel.name()))?;
                Some(Refusal::new(format!("switched off by the knob disable={off}")))
            },
            |kernel| devices.get(kernel.device().0 as usize).map_or(Place::Host, |d| d.place),
            |index, kernel| {
                let device = kernel.device();
                let machine = devices.get(device.0 as usize).map_or(&unknown, |d| &d.machine);
                for params in kernel.params(w) {
                    if small && params.threads > 1 {
                        continue;
                    }
                    let variant = Variant { kernel: index, params };
                    let terms = kernel.terms(w, params, machine);
                    let group = (device, params.threads > 1);
                    let watch = watches.iter().find(|(k, _)| *k == group).map_or_else(Watch::default, |w| w.1);
                    let scratch = kernel.scratch(w, params) as u64;
                    let mut estimate = model.estimate(variant, &subject, &terms, watch.speed(), scratch);
                    // Doubt only reaches down: a slow-down that went on is in the estimate already.
                    let doubt = watch.doubt(now);
                    if doubt > 0.0 {
                        estimate.spread = estimate.spread.hypot(doubt);
                        estimate.low = estimate.low * (-1.645 * doubt).exp();
                    }
                    found.push(Candidate { variant, estimate, prior: Seconds(terms.total()) });
                }
            },
            refused,
        );
        if w.class() == OpClass::Custom {
            scale_priors(found);
        }
    }

    /// The same, and the refused ones with their reasons.
    fn all_candidates(&self, w: &Workload, hash: u64) -> (Candidates, Vec<(u16, Refusal)>) {
        let (mut found, mut refused) = (Candidates::new(), Vec::new());
        self.survey(w, hash, &mut found, |index, why| refused.push((index, why)));
        (found, refused)
    }

    fn no_candidate(&self, w: &Workload, hash: u64) -> EngineError {
        let (_, refused) = self.all_candidates(w, hash);
        let named = refused.into_iter().map(|(i, why)| (self.name(i), why.to_string())).collect();
        EngineError::NoCandidate { workload: w.to_string(), refused: named }
    }

    /// The name of a kernel.
    pub fn name(&self, kernel: u16) -> String {
        self.registry.get(kernel).map_or_else(|| format!("#{kernel}"), |k| k.name().to_string())
    }

    /// Takes in how long a decided call took. Calls nobody wants timed are ignored.
    pub fn observe(&self, decision: &Decision, seconds: impl Into<Seconds>) -> Option<Observed> {
        let seconds = seconds.into().0;
        let usable = decision.due && seconds > 0.0 && seconds.is_finite();
        if !usable || self.frozen.load(Ordering::Acquire) {
            return None;
        }
        let explored = decision.reason == ReasonCode::Explore;
        {
            let mut ledger = lock(&self.ledger);
            ledger.book(decision.unbooked);
            if explored {
                ledger.book_exploration(seconds, decision.instead);
            } else {
                ledger.book(seconds);
            }
        }
        let workload = {
            let mut known = lock(&self.known);
            let k = known.get_mut(&decision.hash)?;
            k.observed += 1;
            k.workload.clone()
        };
        let residual = (seconds / decision.predicted).ln();
        // From the upper end: the lower one also holds the doubt about a slow-down that may be over.
        let spread = ((decision.high as f64 / decision.predicted).ln() / 1.65).max(0.02);
        let now = self.observations.fetch_add(1, Ordering::Relaxed) + 1;
        let (shift, uneasy) = self.watch(decision.variant, residual, spread, now);
        // A run far outside its interval is more likely a hiccup than news: it counts less. Nor does the
        // model take in what may turn out to be a shift, which would then count twice.
        let weight = (3.0 * spread / residual.abs().max(1e-9)).min(if uneasy { 0.2 } else { 1.0 });
        self.learn(decision.variant, &workload, seconds, weight);
        Some(Observed { shift, explored })
    }

    /// Whether the group shifted just now, and whether a shift may be on.
    fn watch(&self, variant: Variant, residual: f64, spread: f64, now: u64) -> (Option<Shift>, bool) {
        // A supposed time that was wrong is no news about the machine.
        if spread > WATCHED_SPREAD || !read(&self.settings).drift {
            return (None, false);
        }
        let Some(device) = self.registry.get(variant.kernel).map(|k| k.device()) else {
            return (None, false);
        };
        let mut watches = lock(&self.watches);
        let watch = watches.entry((device, variant.params.threads > 1)).or_default();
        let shift = watch.observe(residual, spread, now);
        let uneasy = watch.uneasy();
        drop(watches);
        if shift.is_some() {
            self.invalidate();
        }
        (shift, uneasy)
    }

    /// Takes in a measured time outside of any decision: calibration, imports.
    pub fn learn(&self, variant: Variant, w: &Workload, seconds: f64, weight: f64) {
        let Some(kernel) = self.registry.get(variant.kernel) else { return };
        let hash = w.key().map_or_else(|| fallback_hash(w), |k| k.hash64());
        let terms = {
            let devices = read(&self.devices);
            let unknown = Machine::default();
            kernel.terms(
                w,
                variant.params,
                devices.get(kernel.device().0 as usize).map_or(&unknown, |d| &d.machine),
            )
        };
        let speed = self.speed(kernel.device(), variant.params.threads > 1);
        write(&self.model).observe(variant, w, hash, &terms, seconds / speed, weight);
    }

    /// A kernel failed, panicked, hung or lied: it is put away, and the next decision is another.
    pub fn quarantine(&self, kernel: u16, w: &Workload, offence: Offence, detail: impl Into<String>) -> bool {
        let new = self.guard.quarantine(kernel, w.op().name(), w.dtype(), offence, detail.into());
        self.invalidate();
        new
    }

    /// Samples behind a variant's model for this workload.
    pub fn samples(&self, variant: Variant, w: &Workload) -> u64 {
        read(&self.model).samples(&CellKey::of(variant, w))
    }

    /// Every legal candidate with its estimate, in registration order. Decides nothing.
    pub fn estimates(&self, w: &Workload) -> Candidates {
        let hash = w.key().map_or_else(|| fallback_hash(w), |k| k.hash64());
        self.candidates(w, hash)
    }

    /// The decision as it would be now, with learning, exploring and caching off.
    pub fn judge(&self, w: &Workload) -> Result<Decision, EngineError> {
        let hash = w.key().map_or_else(|| fallback_hash(w), |k| k.hash64());
        let candidates = self.candidates(w, hash);
        if candidates.is_empty() {
            return Err(self.no_candidate(w, hash));
        }
        let query = Query {
            workload: w,
            candidates: &candidates,
            incumbent: None,
            tie_band: read(&self.settings).tie_band,
        };
        let policy = read(&self.policy).clone();
        let choice = self.overridden(&candidates).unwrap_or_else(|| policy.choose(&query));
        Ok(make_decision(&candidates[choice.index], hash, choice, self.frozen.load(Ordering::Acquire)))
    }

    /// Everything behind the decision for this workload.
    pub fn explain(&self, w: &Workload) -> Result<Explanation, EngineError> {
        let decision = self.judge(w)?;
        let hash = decision.hash;
        let (candidates, refused) = self.all_candidates(w, hash);
        let mut candidates: Vec<Candidate> = candidates.into_iter().collect();
        candidates.sort_by(|a, b| a.estimate.mean.0.total_cmp(&b.estimate.mean.0));
        let crossovers = self.crossovers(w, decision.variant);
        Ok(Explanation { decision, candidates, refused, crossovers, policy: read(&self.policy).name() })
    }

    /// Along each dimension, the nearest size above and below at which another candidate wins.
    pub fn crossovers(&self, w: &Workload, winner: Variant) -> Vec<Crossover> {
        let mut found = Vec::new();
        for (dimension, size) in crate::vary::dimensions(w) {
            for above in [false, true] {
                // Steps of a quarter octave over five decades, then a bisection between the last two.
                let step = |i: i32| {
                    (size as f64 * 2f64.powf(f64::from(i) * if above { 0.25 } else { -0.25 })) as usize
                };
                let at = |n: usize| -> Option<Variant> {
                    self.judge(&crate::vary::resized(w, &dimension, n)?).ok().map(|d| d.variant)
                };
                let mut last = size;
                for i in 1..48 {
                    let n = step(i);
                    if n == last || n == 0 {
                        continue;
                    }
                    match at(n) {
                        None => break,
                        Some(v) if v != winner => {
                            let (mut same, mut other, mut who) = (last, n, v);
                            while same.abs_diff(other) > 1 && same.abs_diff(other) * 50 > same.max(other) {
                                let mid = same.midpoint(other);
                                match at(mid) {
                                    Some(v) if v != winner => (other, who) = (mid, v),
                                    _ => same = mid,
                                }
                            }
                            found.push(Crossover {
                                dimension: dimension.clone(),
                                at: other,
                                above,
                                winner: who,
                            });
                            break;
                        }
                        Some(_) => last = n,
                    }
                }
            }
        }
        found
    }
}

/// Nothing is known of a user's code before it ran, so a prior only ranks: what has been measured says
/// how long such a call takes at all, and the variants not yet known are supposed to take about that.
fn scale_priors(candidates: &mut Candidates) {
    let known = |c: &Candidate| c.estimate.evidence.samples > 0 && c.prior.0 > 0.0;
    let (sum, n) = candidates
        .iter()
        .filter(|c| known(c))
        .fold((0.0, 0.0), |(sum, n), c| (sum + (c.mean() / c.prior).ln(), n + 1.0));
    if n == 0.0 {
        return;
    }
    let scale = f64::exp(sum / n);
    for c in candidates.iter_mut().filter(|c| c.estimate.evidence.source == Source::Prior) {
        let e = &mut c.estimate;
        for t in [&mut e.mean, &mut e.low, &mut e.high, &mut e.launch, &mut e.work] {
            *t = *t * scale;
        }
    }
}

fn make_decision(c: &Candidate, hash: u64, choice: Choice, frozen: bool) -> Decision {
    Decision {
        variant: c.variant,
        hash,
        predicted: c.estimate.mean.0,
        low: c.estimate.low.0 as f32,
        high: c.estimate.high.0 as f32,
        confidence: choice.confidence as f32,
        reason: if frozen && choice.reason != ReasonCode::Forced {
            ReasonCode::Frozen
        } else {
            choice.reason
        },
        due: false,
        unbooked: 0.0,
        instead: 0.0,
    }
}

/// For the rare workload too large for a key: stable within the process, and never put into the table.
fn fallback_hash(w: &Workload) -> u64 {
    crate::device::fnv1a(w.to_string().as_bytes())
}

/// Whether `name` matches `pattern`, in which `*` stands for anything.
fn glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(p) = last.replace(part) {
            let p: &str = p;
            match rest.find(p) {
                Some(i) => rest = &rest[i + p.len()..],
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |tail| rest.ends_with(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_people_expect() {
        for (pattern, name, want) in [
            ("cpu/gemm", "cpu/gemm", true),
            ("cpu/gemm", "cpu/gemm-2", false),
            ("cpu/*", "cpu/gemm", true),
            ("*avx512*", "cpu/map-avx512", true),
            ("*avx512", "cpu/map-avx512-x", false),
            ("*", "anything", true),
        ] {
            assert_eq!(glob(pattern, name), want, "{pattern} {name}");
        }
    }
}
