//! A device made of scripted costs. Nothing sleeps: a call takes what the script says, times noise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use steersman_core::cost::{Machine, Terms};
use steersman_core::{
    Decision, DeviceId, Engine, Kernel, Op, OpClass, ParamList, Params, ReasonCode, Refusal, Seconds,
    Settings, Workload,
};

/// Deterministic noise.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }

    /// A factor whose logarithm is normal with this deviation.
    pub fn lognormal(&mut self, deviation: f64) -> f64 {
        let (u, v) = (self.uniform().max(1e-300), self.uniform());
        (deviation * (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()).exp()
    }
}

/// Seconds to start, and seconds an element.
#[derive(Clone, Copy)]
pub struct Line(pub f64, pub f64);

impl Line {
    pub fn at(self, n: usize) -> f64 {
        self.0 + self.1 * n as f64
    }
}

/// A kernel: what it says it costs, and what it does cost.
#[derive(Clone, Copy)]
pub struct Script {
    pub name: &'static str,
    pub threads: usize,
    pub prior: Line,
    pub truth: Line,
}

/// A kernel whose word is its truth.
pub fn honest(name: &'static str, threads: usize, truth: Line) -> Script {
    Script { name, threads, prior: truth, truth }
}

struct Scripted {
    script: Script,
    class: OpClass,
    legal: Arc<AtomicBool>,
}

impl Kernel for Scripted {
    fn name(&self) -> &str {
        self.script.name
    }
    fn device(&self) -> DeviceId {
        DeviceId(0)
    }
    fn handles(&self, op: Op) -> bool {
        op.class() == self.class
    }
    fn supports(&self, _w: &Workload) -> Result<(), Refusal> {
        if self.legal.load(Ordering::Relaxed) { Ok(()) } else { Err(Refusal::new("not now")) }
    }
    fn params(&self, _w: &Workload) -> ParamList {
        ParamList::from_slice(&[Params::threads(self.script.threads)])
    }
    fn terms(&self, w: &Workload, _p: Params, _m: &Machine) -> Terms {
        Terms::launch(self.script.prior.0).and(self.script.prior.1 * w.output().elements() as f64)
    }
}

/// An engine over scripted kernels.
pub struct World {
    pub engine: Engine,
    pub scripts: Vec<Script>,
    pub legal: Vec<Arc<AtomicBool>>,
    pub random: Random,
    pub noise: f64,
    /// How much slower each kernel runs now.
    pub slowed: Vec<f64>,
    /// Virtual seconds spent.
    pub total: f64,
    /// Calls the engine learned from.
    pub observed: u64,
    pub explored: u64,
}

/// What became of one call.
pub struct Called {
    pub decision: Decision,
    pub kernel: usize,
}

impl World {
    pub fn new(scripts: &[Script], noise: f64, seed: u64, settings: Settings) -> World {
        World::of(OpClass::Unary, scripts, noise, seed, settings)
    }

    /// Kernels of user code, to be called with [`custom`] workloads.
    pub fn of_user_code(scripts: &[Script], noise: f64, seed: u64, settings: Settings) -> World {
        World::of(OpClass::Custom, scripts, noise, seed, settings)
    }

    fn of(class: OpClass, scripts: &[Script], noise: f64, seed: u64, settings: Settings) -> World {
        let engine = Engine::new(settings);
        let mut legal = Vec::new();
        for &script in scripts {
            let flag = Arc::new(AtomicBool::new(true));
            legal.push(flag.clone());
            engine.register(Arc::new(Scripted { script, class, legal: flag })).unwrap();
        }
        World {
            engine,
            legal,
            scripts: scripts.to_vec(),
            random: Random::new(seed),
            noise,
            slowed: vec![1.0; scripts.len()],
            total: 0.0,
            observed: 0,
            explored: 0,
        }
    }

    pub fn true_seconds(&self, kernel: usize, n: usize) -> f64 {
        self.scripts[kernel].truth.at(n) * self.slowed[kernel]
    }

    pub fn sample(&mut self, kernel: usize, n: usize) -> f64 {
        self.true_seconds(kernel, n) * self.random.lognormal(self.noise)
    }

    pub fn call(&mut self, w: &Workload) -> Called {
        let decision = self.engine.decide(w).unwrap();
        let kernel = decision.kernel();
        let seconds = self.sample(kernel, w.output().elements());
        self.total += seconds;
        self.explored += u64::from(decision.reason() == ReasonCode::Explore);
        if decision.wants_timing() {
            self.engine.observe(&decision, Seconds(seconds));
            self.observed += 1;
        }
        Called { decision, kernel }
    }

    pub fn calls(&mut self, w: &Workload, times: usize) {
        for _ in 0..times {
            self.call(w);
        }
    }

    /// Lets every kernel be measured a few times at these sizes, as calibration does.
    pub fn calibrate(&mut self, sizes: &[usize], times: usize) {
        for _ in 0..times {
            for &n in sizes {
                let w = exp(n);
                for kernel in 0..self.scripts.len() {
                    let seconds = self.sample(kernel, n);
                    let variant = self.variant(kernel);
                    self.engine.learn(variant, &w, seconds, 1.0);
                }
            }
        }
        self.engine.with_model_mut(|m| m.refit());
    }

    pub fn variant(&self, kernel: usize) -> steersman_core::Variant {
        steersman_core::Variant {
            kernel: kernel as u16,
            params: Params::threads(self.scripts[kernel].threads),
        }
    }

    /// The kernel the engine would choose now, exploring aside.
    pub fn choice(&self, n: usize) -> usize {
        self.engine.judge(&exp(n)).unwrap().kernel()
    }
}

/// The op all scripted kernels are about.
pub fn exp(n: usize) -> Workload {
    format!("exp f32 {n}").parse().unwrap()
}

/// User code on an input of this size.
pub fn custom(n: usize) -> Workload {
    Workload::custom("scripted", &[n]).unwrap()
}
