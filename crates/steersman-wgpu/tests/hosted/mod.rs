//! The device's kernels as kernels of the host: operands go up, results come down, so that the tests written
//! for the CPU hold the device to the same reference.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::{Arc, LazyLock};
use steersman_core::cost::{Machine, Terms};
use steersman_core::memory::Block;
use steersman_core::{
    Address, DeviceId, Io, Kernel, KernelError, Memory, NumericClass, Op, Operand, ParamList, Params, Ran,
    Refusal, Workload,
};
use steersman_cpu::{context::Context, host::Host, threads::Team};
use steersman_wgpu::{DeviceOptions, Found, Gpu, adapters};

/// The adapters of this machine. None: the tests say so and pass, unless the environment says that there must
/// be one.
pub fn found() -> Vec<Found> {
    let found = adapters();
    let required = std::env::var_os("STEERSMAN_REQUIRE_ADAPTER").is_some_and(|v| v != "0");
    assert!(!found.is_empty() || !required, "STEERSMAN_REQUIRE_ADAPTER is set and there is no adapter");
    if found.is_empty() {
        println!("skipped: no WebGPU adapter");
    }
    found
}

/// An adapter opened with these options.
pub fn open(options: DeviceOptions) -> Option<Arc<Gpu>> {
    // A software adapter if there is one: what CI has.
    let mut found = found();
    found.sort_by_key(|f| !f.software);
    found.first().map(|f| Gpu::open(f, options).expect("an adapter that was listed opens"))
}

/// One device for all tests of a file.
pub fn gpu() -> Option<Arc<Gpu>> {
    static GPU: LazyLock<Option<Arc<Gpu>>> = LazyLock::new(|| open(DeviceOptions::default()));
    GPU.clone()
}

/// Whether it may flush what is below the normal numbers also as operand and on the way. An H200 does; software has the CPU's
/// own arithmetic, and no such excuse.
pub fn flushes_anywhere() -> bool {
    gpu().is_some_and(|gpu| !gpu.software())
}

/// A context of the CPU, for its reference kernels.
pub fn cpu() -> Context {
    Context { device: DeviceId(0), team: Arc::new(Team::new(1)), host: Arc::new(Host::detect()) }
}

/// The reference kernels and this device's, all of them with operands in host memory.
pub fn with_reference(reference: Vec<Arc<dyn Kernel>>, margin: usize) -> Option<Vec<Arc<dyn Kernel>>> {
    let gpu = gpu()?;
    let mut all: Vec<Arc<dyn Kernel>> =
        reference.into_iter().filter(|k| k.name().ends_with("-scalar")).collect();
    for kernel in gpu.kernels(DeviceId(1)) {
        all.push(Arc::new(Hosted { gpu: gpu.clone(), kernel, margin }));
    }
    Some(all)
}

/// A kernel of the device with operands in host memory.
pub struct Hosted {
    pub gpu: Arc<Gpu>,
    pub kernel: Arc<dyn Kernel>,
    /// Bytes around each operand that belong to its memory too.
    pub margin: usize,
}

/// Bytes before and from the first element that strides reach.
fn reach(o: &Operand) -> (usize, usize) {
    let (mut low, mut high) = (0usize, 0usize);
    for (&d, &s) in o.dims.iter().zip(&o.strides).filter(|(d, _)| **d > 0) {
        let far = (d - 1) * s.unsigned_abs() * o.dtype.size();
        if s < 0 { low += far } else { high += far }
    }
    (low, high + o.dtype.size())
}

impl Hosted {
    /// A block with the operand's memory, and where its first element is.
    fn place(&self, o: &Operand, at: Address) -> Result<(Block, Address), KernelError> {
        let (before, after) = reach(o);
        let (before, after) = (before + self.margin, after + self.margin);
        let first = before.next_multiple_of(64);
        let failed = |e: steersman_core::memory::MemoryError| KernelError::Failed(e.to_string());
        let block = self.gpu.clone().take(first + after).map_err(failed)?;
        let start = Address(block.address().0 + (first - before) as u64);
        // SAFETY: the tests' memory reaches as far as strides and margin do.
        let bytes = unsafe { std::slice::from_raw_parts(at.as_ptr::<u8>().sub(before), before + after) };
        self.gpu.upload(bytes, start)?;
        let address = Address(block.address().0 + first as u64);
        Ok((block, address))
    }
}

impl Kernel for Hosted {
    fn name(&self) -> &str {
        self.kernel.name()
    }
    fn device(&self) -> DeviceId {
        self.kernel.device()
    }
    fn handles(&self, op: Op) -> bool {
        self.kernel.handles(op)
    }
    fn numerics(&self, w: &Workload) -> NumericClass {
        self.kernel.numerics(w)
    }
    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        if self.kernel.handles(w.op()) { self.kernel.supports(w) } else { Err(Refusal::new("another op")) }
    }
    fn params(&self, w: &Workload) -> ParamList {
        self.kernel.params(w)
    }
    fn space(&self, w: &Workload) -> Vec<Params> {
        self.kernel.space(w)
    }
    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        self.kernel.terms(w, p, machine)
    }
    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let mut blocks = Vec::new();
        let mut inputs: Vec<Address> = Vec::new();
        for (k, (o, at)) in w.inputs().iter().zip(io.inputs).enumerate() {
            // An operand that is there twice lies in one place.
            if let Some(same) = (0..k).find(|&j| io.inputs[j] == *at && w.inputs()[j] == *o) {
                inputs.push(inputs[same]);
                continue;
            }
            let (block, address) = self.place(o, *at)?;
            blocks.push(block);
            inputs.push(address);
        }
        let mut outputs = Vec::new();
        for (o, at) in w.outputs().iter().zip(io.outputs()) {
            match io.inputs.iter().position(|i| *i == at) {
                Some(k) => outputs.push(inputs[k]),
                None => {
                    let (block, address) = self.place(o, at)?;
                    blocks.push(block);
                    outputs.push(address);
                }
            }
        }
        let there = Io { inputs: &inputs, output: outputs[0], more: &outputs[1..], scalars: io.scalars };
        // SAFETY: the blocks hold what the strides reach.
        let ran = unsafe { self.kernel.run(w, p, there) }?;
        for ((o, at), from) in w.outputs().iter().zip(io.outputs()).zip(&outputs) {
            let (before, after) = reach(o);
            let (before, after) = (before + self.margin, after + self.margin);
            // SAFETY: as for `place`.
            let bytes =
                unsafe { std::slice::from_raw_parts_mut(at.as_mut_ptr::<u8>().sub(before), before + after) };
            self.gpu.download(Address(from.0 - before as u64), bytes)?;
        }
        Ok(ran)
    }
}

/// Writes `f(i)`, an element's bits, as element `i` in logical order of an operand that lies at `at`.
pub fn put(o: &Operand, at: Address, mut f: impl FnMut(usize) -> u64) {
    for i in 0..o.elements() {
        let (mut rest, mut offset) = (i, 0isize);
        for (&d, &s) in o.dims.iter().zip(&o.strides).rev() {
            offset += (rest % d) as isize * s;
            rest /= d;
        }
        let size = o.dtype.size();
        let bits = f(i).to_le_bytes();
        // SAFETY: the tests' memory was made for this operand.
        unsafe {
            let to = at.as_mut_ptr::<u8>().offset(offset * size as isize);
            std::ptr::copy_nonoverlapping(bits.as_ptr(), to, size);
        }
    }
}
