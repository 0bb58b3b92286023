//! A device that is none: host memory behind addresses of its own, CPU kernels behind other names, and scripted
//! seconds. Addresses are shifted so far that nobody who takes them for host pointers survives it.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use steersman::Runtime;
use steersman::core::cost::{Machine, Terms};
use steersman::core::memory::{Block, Lent, MemoryError};
use steersman::core::place::Wire;
use steersman::core::{
    Address, Bytes, Device, DeviceId, Identity, Io, Kernel, KernelError, Memory, NumericClass, Op, ParamList,
    Params, Place, Ran, Refusal, Seconds, Workload,
};

/// Not canonical on any 64-bit machine.
const SHIFT: u64 = 1 << 62;

/// What a simulated device says it takes: to start, and for each element of the result.
#[derive(Clone, Copy)]
pub struct Speed {
    pub launch: f64,
    pub element: f64,
}

/// Quicker than any CPU at anything.
pub const INSTANT: Speed = Speed { launch: 1e-13, element: 1e-20 };

/// The device's memory, and its switches.
#[derive(Default)]
pub struct Sim {
    blocks: Mutex<HashMap<u64, usize>>,
    in_use: AtomicUsize,
    limit: Mutex<Option<usize>>,
    clock: Mutex<f64>,
    pub uploads: AtomicUsize,
    pub downloads: AtomicUsize,
    pub moved: AtomicUsize,
    pub runs: AtomicUsize,
    lost: Mutex<Option<String>>,
    /// Runs until it is lost.
    lose_after: Mutex<Option<usize>>,
    failing: Mutex<Option<&'static str>>,
    refused: Mutex<Refused>,
    /// Whether transfers go on beside work, and what happens in the middle of each.
    overlaps: AtomicBool,
    /// Whether the host may work on its memory, and how often it did.
    lends: AtomicBool,
    lent: AtomicUsize,
    on_transfer: Mutex<Option<OnTransfer>>,
}

/// What the driver does not take, which it says when it next hands over or waits.
#[derive(Default)]
struct Refused {
    /// Kernels by a part of their name, and those of them that were told so.
    whose: Option<&'static str>,
    condemned: Vec<String>,
    /// Blocks that were not written: why, whether by their own kernel's fault, and whether that is known yet.
    blocks: HashMap<u64, (String, bool, bool)>,
}

impl Refused {
    /// All that was enqueued is looked at.
    fn find_out(&mut self) {
        self.blocks.values_mut().for_each(|b| b.2 = true);
    }

    /// Why a block is not what it should be, if that is known.
    fn known(&self, start: u64) -> Option<KernelError> {
        let (why, own, _) = self.blocks.get(&start).filter(|b| b.2)?;
        Some(if *own { KernelError::Failed(why.clone()) } else { KernelError::Operand(why.clone()) })
    }
}

/// What happens in the middle of a transfer: may wait, and may say that it fails.
pub type OnTransfer = Arc<dyn Fn(Transfer) -> Result<(), KernelError> + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transfer {
    Up,
    Down,
}

impl Sim {
    /// From now on there are only so many bytes.
    pub fn limit_to(&self, bytes: usize) {
        *self.limit.lock().unwrap() = Some(bytes);
    }

    /// Kernels whose names contain this fail from now on.
    pub fn fail(&self, name: &'static str) {
        *self.failing.lock().unwrap() = Some(name);
    }

    /// The driver refuses what kernels whose names contain this enqueue from now on, and says so later.
    pub fn refuse(&self, name: &'static str) {
        self.refused.lock().unwrap().whose = Some(name);
    }

    /// The first address of the block that this one lies in.
    fn block_of(&self, at: u64) -> u64 {
        let blocks = self.blocks.lock().unwrap();
        let inside = blocks.iter().find(|&(&start, &len)| (start..start + len as u64).contains(&at));
        inside.map_or(at, |(&start, _)| start)
    }

    /// Enqueues a kernel that reads and writes these addresses; says whether it will really run.
    fn enqueue(&self, name: &str, reads: &[Address], writes: &[Address]) -> Result<bool, KernelError> {
        let starts = |all: &[Address]| all.iter().map(|at| self.block_of(at.0)).collect::<Vec<_>>();
        let (reads, writes) = (starts(reads), starts(writes));
        let mut refused = self.refused.lock().unwrap();
        if refused.condemned.iter().any(|c| c == name) {
            return Err(KernelError::Failed("the driver refused it".into()));
        }
        for read in &reads {
            if let Some(why) = refused.known(*read) {
                return Err(KernelError::Operand(why.to_string()));
            }
        }
        let own = refused.whose.is_some_and(|part| name.contains(part));
        let spoilt = reads.iter().any(|r| refused.blocks.contains_key(r));
        if own {
            refused.condemned.push(name.into());
        }
        for write in writes {
            match own || spoilt {
                true => drop(refused.blocks.insert(write, ("the driver refused it".into(), own, false))),
                false => drop(refused.blocks.remove(&write)),
            }
        }
        Ok(!own && !spoilt)
    }

    /// It is lost when it has run so many kernels more.
    pub fn lose_after(&self, runs: usize) {
        *self.lose_after.lock().unwrap() = Some(runs);
    }

    /// It is lost now.
    pub fn lose(&self) {
        *self.lost.lock().unwrap() = Some("someone pulled the cable".into());
    }

    /// From now on transfers go on beside work, and this happens in the middle of each.
    pub fn overlap(&self, on: impl Fn(Transfer) -> Result<(), KernelError> + Send + Sync + 'static) {
        self.overlaps.store(true, SeqCst);
        *self.on_transfer.lock().unwrap() = Some(Arc::new(on));
    }

    /// From now on the host may work on its memory.
    pub fn lend_to_host(&self) {
        self.lends.store(true, SeqCst);
    }

    /// How often the host worked on its memory.
    pub fn lent(&self) -> usize {
        self.lent.load(SeqCst)
    }

    fn in_the_middle(&self, of: Transfer) -> Result<(), KernelError> {
        let on = self.on_transfer.lock().unwrap().clone();
        on.map_or(Ok(()), |on| on(of))
    }

    /// Transfers to it and from it so far.
    pub fn transfers(&self) -> (usize, usize) {
        (self.uploads.load(SeqCst), self.downloads.load(SeqCst))
    }

    pub fn runs(&self) -> usize {
        self.runs.load(SeqCst)
    }

    fn here(&self) -> Result<(), KernelError> {
        match &*self.lost.lock().unwrap() {
            Some(why) => Err(KernelError::Lost(why.clone())),
            None => Ok(()),
        }
    }

    fn check(&self, at: Address, bytes: usize) {
        let blocks = self.blocks.lock().unwrap().clone();
        let inside =
            blocks.iter().any(|(&start, &len)| at.0 >= start && at.0 + bytes as u64 <= start + len as u64);
        assert!(inside, "{bytes} bytes at {:x} are not of this device", at.0);
    }

    fn begin(&self, name: &str) -> Result<(), KernelError> {
        self.here()?;
        if self.failing.lock().unwrap().is_some_and(|part| name.contains(part)) {
            return Err(KernelError::Failed("told to".into()));
        }
        let mut left = self.lose_after.lock().unwrap();
        match *left {
            Some(0) => {
                self.lose();
                self.here()
            }
            Some(n) => {
                *left = Some(n - 1);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        let left = self.blocks.get_mut().unwrap_or_else(|e| e.into_inner());
        assert!(left.is_empty() || std::thread::panicking(), "blocks are left");
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 256).unwrap()
}

impl Memory for Sim {
    fn take(self: Arc<Self>, bytes: usize) -> Result<Block, MemoryError> {
        if let Err(KernelError::Lost(why)) = self.here() {
            return Err(MemoryError::Lost(why));
        }
        let in_use = self.in_use.load(SeqCst);
        if let Some(limit) = *self.limit.lock().unwrap()
            && in_use + bytes > limit
        {
            return Err(MemoryError::Full { need: bytes, in_use, limit });
        }
        self.in_use.fetch_add(bytes, SeqCst);
        // SAFETY: nobody takes no bytes.
        let at = unsafe { alloc(layout(bytes)) } as u64 + SHIFT;
        self.blocks.lock().unwrap().insert(at, bytes);
        Ok(Block::new(self, Address(at), bytes))
    }

    fn give_back(&self, at: Address, bytes: usize) {
        assert_eq!(self.blocks.lock().unwrap().remove(&at.0), Some(bytes));
        self.refused.lock().unwrap().blocks.remove(&at.0);
        self.in_use.fetch_sub(bytes, SeqCst);
        // SAFETY: it was taken with this layout.
        unsafe { dealloc((at.0 - SHIFT) as *mut u8, layout(bytes)) };
    }

    fn upload(&self, from: &[u8], to: Address) -> Result<(), KernelError> {
        self.here()?;
        self.check(to, from.len());
        self.refused.lock().unwrap().blocks.remove(&to.0);
        self.in_the_middle(Transfer::Up)?;
        self.uploads.fetch_add(1, SeqCst);
        self.moved.fetch_add(from.len(), SeqCst);
        // SAFETY: checked to be of this device.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), (to.0 - SHIFT) as *mut u8, from.len()) };
        Ok(())
    }

    fn download(&self, from: Address, to: &mut [u8]) -> Result<(), KernelError> {
        self.here()?;
        self.check(from, to.len());
        self.refused.lock().unwrap().find_out();
        if let Some(why) = self.refused.lock().unwrap().known(self.block_of(from.0)) {
            return Err(why);
        }
        // SAFETY: checked to be of this device.
        let data = unsafe { std::slice::from_raw_parts((from.0 - SHIFT) as *const u8, to.len()) };
        let half = to.len() / 2;
        to[..half].copy_from_slice(&data[..half]);
        self.in_the_middle(Transfer::Down)?;
        to[half..].copy_from_slice(&data[half..]);
        self.downloads.fetch_add(1, SeqCst);
        self.moved.fetch_add(to.len(), SeqCst);
        Ok(())
    }

    fn wait(&self) -> Result<(), KernelError> {
        self.here()?;
        self.refused.lock().unwrap().find_out();
        Ok(())
    }

    fn unwritten(&self, at: Address) -> Option<String> {
        self.refused.lock().unwrap().known(self.block_of(at.0)).map(|why| why.to_string())
    }

    fn lend(&self, what: &[Lent], work: &mut dyn FnMut(&[Address])) -> Result<bool, KernelError> {
        self.here()?;
        what.iter().for_each(|l| self.check(l.at, l.bytes));
        let block = |l: &Lent| self.block_of(l.at.0);
        let twice = |a: &Lent| what.iter().filter(|b| block(a) == block(b)).count() > 1;
        if !self.lends.load(SeqCst) || what.iter().any(|l| l.written && twice(l)) {
            return Ok(false);
        }
        {
            let mut refused = self.refused.lock().unwrap();
            refused.find_out();
            if let Some(why) = what.iter().filter(|l| !l.written).find_map(|l| refused.known(block(l))) {
                return Err(why);
            }
            what.iter().filter(|l| l.written).for_each(|l| drop(refused.blocks.remove(&block(l))));
        }
        let found: Vec<Address> = what.iter().map(|l| Address(l.at.0 - SHIFT)).collect();
        work(&found);
        self.lent.fetch_add(1, SeqCst);
        Ok(true)
    }

    fn overlaps(&self) -> bool {
        self.overlaps.load(SeqCst)
    }

    fn timed(
        &self,
        work: &mut dyn FnMut() -> Result<Ran, KernelError>,
    ) -> Result<(Ran, Seconds), KernelError> {
        let before = *self.clock.lock().unwrap();
        let ran = work()?;
        Ok((ran, Seconds(*self.clock.lock().unwrap() - before)))
    }

    fn in_use(&self) -> usize {
        self.in_use.load(SeqCst)
    }

    fn limit(&self) -> Option<usize> {
        *self.limit.lock().unwrap()
    }
}

/// A CPU kernel on the device's memory.
struct SimKernel {
    name: String,
    inner: Arc<dyn Kernel>,
    sim: Arc<Sim>,
    speed: Speed,
    ops: fn(Op) -> bool,
}

impl Kernel for SimKernel {
    fn name(&self) -> &str {
        &self.name
    }
    fn device(&self) -> DeviceId {
        self.inner.device()
    }
    fn handles(&self, op: Op) -> bool {
        (self.ops)(op) && self.inner.handles(op)
    }
    fn numerics(&self, w: &Workload) -> NumericClass {
        self.inner.numerics(w)
    }
    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        self.inner.supports(w)
    }
    fn params(&self, w: &Workload) -> ParamList {
        self.inner.params(w).into_iter().filter(|p| p.threads == 1).take(1).collect()
    }
    fn terms(&self, w: &Workload, _: Params, _: &Machine) -> Terms {
        let elements = w.output().elements() as f64;
        Terms::launch(self.speed.launch).and(self.speed.element * elements)
    }
    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        self.sim.begin(&self.name)?;
        let writes: Vec<Address> = io.outputs().collect();
        if !self.sim.enqueue(&self.name, io.inputs, &writes)? {
            return Ok(Ran::Clean);
        }
        let here = |(o, at): (&steersman::core::Operand, Address)| match o.span() {
            (0, _) => at,
            (bytes, first) => {
                self.sim.check(Address(at.0 - first as u64), bytes);
                Address(at.0 - SHIFT)
            }
        };
        let inputs: Vec<Address> = w.inputs().iter().zip(io.inputs.iter().copied()).map(here).collect();
        let outputs: Vec<Address> = w.outputs().iter().zip(io.outputs()).map(here).collect();
        let io = Io { inputs: &inputs, output: outputs[0], more: &outputs[1..], scalars: io.scalars };
        // SAFETY: every operand was checked to be of this device; behind the shift is ordinary memory.
        let ran = unsafe { self.inner.run(w, p, io) };
        self.sim.runs.fetch_add(1, SeqCst);
        let elements = w.output().elements() as f64;
        *self.sim.clock.lock().unwrap() += self.speed.launch + self.speed.element * elements;
        ran
    }
}

/// Adds a simulated device of this family and speed, which has every kernel that the CPU has.
pub fn add(rt: &Runtime, family: &str, speed: Speed) -> (DeviceId, Arc<Sim>) {
    add_for(rt, family, speed, |_| true)
}

/// The same with the kernels for these ops only.
pub fn add_for(rt: &Runtime, family: &str, speed: Speed, ops: fn(Op) -> bool) -> (DeviceId, Arc<Sim>) {
    let sim = Arc::new(Sim::default());
    let device = Device {
        identity: Identity {
            family: family.into(),
            part: "simulated".into(),
            driver: "1".into(),
            memory: None,
            parallelism: 1,
            isa: Vec::new(),
        },
        place: Place::Host,
        machine: Machine::default(),
    };
    let nth = rt.engine().devices().len();
    let kernels = |id: DeviceId| {
        let all = rt.cpu().kernels(id, None).into_iter();
        let wrap = |inner: Arc<dyn Kernel>| {
            let name = inner.name().replace("cpu/", &format!("{family}{nth}/"));
            Arc::new(SimKernel { name, inner, sim: sim.clone(), speed, ops }) as Arc<dyn Kernel>
        };
        all.map(wrap).collect()
    };
    let id = rt.add_accelerator(device, sim.clone(), kernels);
    (id, sim)
}

/// A link that was measured to have this latency and bandwidth in both directions.
pub fn wire(latency: f64, bandwidth: f64) -> Wire {
    let mut wire = Wire::default();
    for lane in [&mut wire.out, &mut wire.home] {
        for i in 0..64u64 {
            let bytes = 4096u64 << (i % 12);
            lane.add(Bytes(bytes), Seconds(latency + bytes as f64 / bandwidth));
        }
    }
    wire
}
