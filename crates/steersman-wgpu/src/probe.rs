//! How quick a device is: a launch, its memory, its arithmetic, and the way to it and back.

use crate::device::Gpu;
use crate::kernels::PEAK;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steersman_core::cost::{Level, Machine};
use steersman_core::expr::{Expr, ExprError};
use steersman_core::memory::Block;
use steersman_core::{
    DType, DeviceId, Io, Kernel, KernelError, Memory, Operand, Params, Seconds, TernaryOp, Workload,
};

/// Times of transfers by size, both directions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// Host to device: bytes, and the time until they are there.
    pub upload: Vec<(usize, Seconds)>,
    /// Device to host.
    pub download: Vec<(usize, Seconds)>,
    /// What a small download takes less right after work than if that is waited for first.
    pub joined: Option<Seconds>,
}

/// What was measured; what there was no time for is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probed {
    /// Launch cost (`handoff`), bandwidth (one level) and peak, as kernels' prior costs use them.
    pub machine: Machine,
    /// The way there and back.
    pub link: Link,
}

/// Bytes of the transfers that are timed.
const SIZES: [usize; 6] = [256, 4 << 10, 64 << 10, 512 << 10, 2 << 20, 8 << 20];
/// Floats of the arrays that bandwidth is measured with, to begin with and at most.
const STREAM: [usize; 2] = [2 << 20, 128 << 20];
/// The same of arithmetic, and its steps.
const ARITHMETIC: [usize; 2] = [1 << 16, 16 << 20];
const STEPS: usize = 128;
/// Work is made larger until it takes so many launches. (With 17 Mflop an H200, which launches in 70 µs, was thought to
/// do 1200 Tflop/s.)
const LAUNCHES: f64 = 4.0;

impl Gpu {
    /// Measures for about `budget` once the clock is up; launch first, then links, bandwidth, peak.
    pub fn probe(self: &Arc<Gpu>, budget: Duration) -> Result<Probed, KernelError> {
        self.clone().rouse();
        let end = Instant::now() + budget;
        let mut probed = Probed::default();
        let kernels = self.kernels(DeviceId(0));
        let tiny = Laid::new(self, parsed("add f32 64 64")?, &[])?;
        probed.machine.handoff = best(end, 20, || tiny.run(&kernels, "map"))?.map(|s| s.0);
        let mut sum = vec![0u8; tiny.workload.output().bytes()];
        let apart = best(end, 20, || tiny.run(&kernels, "map").and_then(|()| tiny.fetch(&mut sum)))?;
        let joined = best(end, 20, || tiny.enqueue(&kernels, "map").and_then(|()| tiny.fetch(&mut sum)))?;
        probed.link.joined = apart.zip(joined).map(|(apart, joined)| Seconds((apart.0 - joined.0).max(0.0)));
        for bytes in SIZES {
            let block = take(self, bytes)?;
            let mut host = vec![0x3fu8; bytes];
            let up = best(end, 8, || self.upload(&host, block.address()).and_then(|()| self.wait()))?;
            probed.link.upload.extend(up.map(|s| (bytes, s)));
            let down = best(end, 8, || self.download(block.address(), &mut host))?;
            probed.link.download.extend(down.map(|s| (bytes, s)));
        }
        let launch = probed.machine.handoff;
        let stream = |n: usize| {
            let stream = Laid::new(self, parsed(&format!("copy f32 {n}"))?, &[])?;
            let took = best(end, 8, || stream.run(&kernels, "copy-vec4"))?;
            Ok(took.map(|s| (s, stream.workload.bytes())))
        };
        if let Some(bytes) = rate(STREAM, launch, stream)? {
            probed.machine.levels = vec![Level {
                name: "main".into(),
                capacity: None,
                private: false,
                copy: vec![bytes],
                // Nothing is only read here.
                read: Vec::new(),
                stream: Vec::new(),
            }];
        }
        let failed = |e: ExprError| KernelError::Failed(e.to_string());
        let expr = chain(STEPS).map_err(failed)?;
        let scalars = [0.999f32, 0.001].map(|s| u64::from(s.to_bits()));
        let arithmetic = |n: usize| {
            let operand = Operand::new(DType::F32, &[n]).map_err(|e| KernelError::Failed(e.to_string()))?;
            let group = Workload::fused(&expr, &[n], [operand]);
            let group = group.map_err(|e| KernelError::Failed(e.to_string()))?;
            let arithmetic = Laid::new(self, group, &scalars)?;
            let took = best(end, 8, || arithmetic.run(&kernels, "fused-vec4"))?;
            Ok(took.map(|s| (s, arithmetic.workload.flops())))
        };
        if let Some(rate) = rate(ARITHMETIC, launch, arithmetic)? {
            probed.machine.peak_f32.insert(PEAK.into(), rate);
        }
        Ok(probed)
    }
}

/// Large pieces for each invocation, where the adapter takes them; else what it would be run with.
fn point(kernel: &dyn Kernel, w: &Workload) -> Params {
    let large = Params { threads: 1, variant: 3 };
    match kernel.space(w).contains(&large) {
        true => large,
        false => kernel.params(w).first().copied().unwrap_or(Params::SERIAL),
    }
}

/// Bytes or operations a second, from the time of work on so many floats, which grows until a launch is a small part of it.
fn rate(
    [first, most]: [usize; 2],
    launch: Option<f64>,
    time: impl Fn(usize) -> Result<Option<(Seconds, f64)>, KernelError>,
) -> Result<Option<f64>, KernelError> {
    let launch = launch.unwrap_or(0.0);
    let mut found = None;
    let mut n = first;
    while n <= most {
        let (took, work) = match time(n) {
            Ok(Some(timed)) => timed,
            Ok(None) => break,
            // No room for more.
            Err(_) if found.is_some() => break,
            Err(why) => return Err(why),
        };
        // At least a tenth is work, lest noise leave nothing of it.
        found = Some(work / (took.0 - launch).max(took.0 / 10.0));
        if took.0 >= LAUNCHES * launch {
            break;
        }
        n *= 8;
    }
    Ok(found)
}

/// The quickest of up to `runs` after one to warm up; `None` if the time was up before.
fn best(
    end: Instant,
    runs: usize,
    mut work: impl FnMut() -> Result<(), KernelError>,
) -> Result<Option<Seconds>, KernelError> {
    let mut least: Option<Seconds> = None;
    for i in 0..=runs {
        if Instant::now() >= end {
            break;
        }
        let started = Instant::now();
        work()?;
        let took: Seconds = started.elapsed().into();
        if i > 0 {
            least = Some(least.map_or(took, |l| if took.0 < l.0 { took } else { l }));
        }
    }
    Ok(least)
}

fn parsed(text: &str) -> Result<Workload, KernelError> {
    text.parse().map_err(|e: steersman_core::WorkloadError| KernelError::Failed(e.to_string()))
}

fn take(gpu: &Arc<Gpu>, bytes: usize) -> Result<Block, KernelError> {
    Ok(gpu.clone().take(bytes)?)
}

/// `x ← x·a + b`, so many times.
fn chain(steps: usize) -> Result<Arc<Expr>, ExprError> {
    let mut b = Expr::builder([DType::F32]);
    let mut x = b.input(0)?;
    let (a, c) = (b.scalar(0, DType::F32)?, b.scalar(1, DType::F32)?);
    for _ in 0..steps {
        x = b.ternary(TernaryOp::Fma, x, a, c)?;
    }
    b.output(x)?;
    Ok(Arc::new(b.finish()?))
}

/// A workload with operands on the device.
struct Laid {
    gpu: Arc<Gpu>,
    workload: Workload,
    inputs: Vec<Block>,
    output: Block,
    scalars: Vec<u64>,
}

impl Laid {
    fn new(gpu: &Arc<Gpu>, workload: Workload, scalars: &[u64]) -> Result<Laid, KernelError> {
        let inputs = workload.inputs().iter().map(|o| take(gpu, o.bytes())).collect::<Result<_, _>>()?;
        let output = take(gpu, workload.output().bytes())?;
        Ok(Laid { gpu: gpu.clone(), workload, inputs, output, scalars: scalars.to_vec() })
    }

    /// Runs the kernel of this name and waits.
    fn run(&self, kernels: &[Arc<dyn Kernel>], name: &str) -> Result<(), KernelError> {
        self.enqueue(kernels, name)?;
        self.gpu.wait()
    }

    /// Brings the result home.
    fn fetch(&self, to: &mut [u8]) -> Result<(), KernelError> {
        self.gpu.download(self.output.address(), to)
    }

    fn enqueue(&self, kernels: &[Arc<dyn Kernel>], name: &str) -> Result<(), KernelError> {
        let is = |k: &&Arc<dyn Kernel>| k.name().split_once('/').is_some_and(|(_, n)| n == name);
        let kernel =
            kernels.iter().find(is).ok_or_else(|| KernelError::Failed(format!("there is no {name}")))?;
        let inputs: Vec<_> = self.inputs.iter().map(Block::address).collect();
        let io = Io { scalars: &self.scalars, ..Io::new(&inputs, self.output.address()) };
        // SAFETY: the blocks have the workload's sizes, and the kernels here take these workloads.
        unsafe { kernel.run(&self.workload, point(&**kernel, &self.workload), io) }.map(drop)
    }
}
