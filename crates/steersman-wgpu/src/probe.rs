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
/// Floats of the arrays that bandwidth is measured with.
const STREAM: usize = 2 << 20;
/// Floats and steps that arithmetic is measured with.
const ARITHMETIC: (usize, usize) = (1 << 16, 128);

impl Gpu {
    /// Measures for about `budget` once the clock is up; launch first, then links, bandwidth, peak.
    pub fn probe(self: &Arc<Gpu>, budget: Duration) -> Result<Probed, KernelError> {
        self.clone().rouse();
        let end = Instant::now() + budget;
        let mut probed = Probed::default();
        let kernels = self.kernels(DeviceId(0));
        let tiny = Laid::new(self, parsed("add f32 64 64")?, &[])?;
        probed.machine.handoff = best(end, 20, || tiny.run(&kernels, "map"))?.map(|s| s.0);
        for bytes in SIZES {
            let block = take(self, bytes)?;
            let mut host = vec![0x3fu8; bytes];
            let up = best(end, 8, || self.upload(&host, block.address()).and_then(|()| self.wait()))?;
            probed.link.upload.extend(up.map(|s| (bytes, s)));
            let down = best(end, 8, || self.download(block.address(), &mut host))?;
            probed.link.download.extend(down.map(|s| (bytes, s)));
        }
        let stream = Laid::new(self, parsed(&format!("copy f32 {STREAM}"))?, &[])?;
        if let Some(s) = best(end, 8, || stream.run(&kernels, "copy-vec4"))? {
            let bytes = stream.workload.bytes() / net(s, probed.machine.handoff);
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
        let (n, steps) = ARITHMETIC;
        let operand = Operand::new(DType::F32, &[n]).map_err(|e| KernelError::Failed(e.to_string()))?;
        let group = Workload::fused(&chain(steps).map_err(failed)?, &[n], [operand])
            .map_err(|e| KernelError::Failed(e.to_string()))?;
        let flops = group.flops();
        let scalars = [0.999f32, 0.001].map(|s| u64::from(s.to_bits()));
        let arithmetic = Laid::new(self, group, &scalars)?;
        if let Some(s) = best(end, 8, || arithmetic.run(&kernels, "fused-vec4"))? {
            let rate = flops / net(s, probed.machine.handoff);
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

/// What is left of a time without the launch: at least a tenth, lest noise make it nothing.
fn net(s: Seconds, launch: Option<f64>) -> f64 {
    (s.0 - launch.unwrap_or(0.0)).max(s.0 / 10.0)
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
        let is = |k: &&Arc<dyn Kernel>| k.name().split_once('/').is_some_and(|(_, n)| n == name);
        let kernel =
            kernels.iter().find(is).ok_or_else(|| KernelError::Failed(format!("there is no {name}")))?;
        let inputs: Vec<_> = self.inputs.iter().map(Block::address).collect();
        let io = Io { scalars: &self.scalars, ..Io::new(&inputs, self.output.address()) };
        // SAFETY: the blocks have the workload's sizes, and the kernels here take these workloads.
        unsafe { kernel.run(&self.workload, point(&**kernel, &self.workload), io) }?;
        self.gpu.wait()
    }
}
