//! An adapter opened.

use super::adapter::{Found, ready};
use super::batch::{Batch, Launch};
use super::fault::Faults;
use super::pipeline::{Key, Pipelines, Source};
use super::pool::{Held, Pool};
use super::staging::Staging;
use super::tempo::Tempo;
use crate::device::pipeline::Pipeline;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;
use steersman_core::{Address, Identity, KernelError, Ran, Seconds};

/// How to open an adapter.
#[derive(Clone, Debug, Default)]
pub struct DeviceOptions {
    /// The most bytes its memory may take, kept blocks included. `None`: 1 GiB for adapters that share the
    /// host's memory, 4 GiB for others (what a part has, `wgpu` cannot tell; the driver still says no earlier).
    pub memory_limit: Option<usize>,
    /// Where compiled pipelines are kept between processes, if the driver can.
    pub pipeline_cache: Option<PathBuf>,
    /// Whether shaders check every index and count every loop: to find mistakes in kernels, at a cost.
    pub checked: bool,
    /// Whether transfers always pass through buffers of their own, also where host and device share memory.
    pub staged: bool,
    /// Whether to do without what not every adapter has (f64, f16, subgroups, a clock of its own), as on one that has not.
    pub plain: bool,
}

/// Why an adapter could not be opened.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{part} could not be opened: {why}")]
pub struct OpenError {
    /// The adapter.
    pub part: String,
    /// What its driver said.
    pub why: String,
}

/// What an open adapter can do beyond the ordinary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Can {
    /// Arithmetic in f64.
    pub f64: bool,
    /// f16 in memory as such. (Arithmetic on them is in f32 everywhere.)
    pub f16: bool,
    /// Operations across the lanes of a subgroup.
    pub subgroup: bool,
    /// A clock of its own.
    pub timestamps: bool,
    /// Buffers that host and device both see.
    pub shared_buffers: bool,
}

/// What a device has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Dispatches enqueued.
    pub dispatches: u64,
    /// Submissions to the queue.
    pub submissions: u64,
    /// Bytes copied from the host.
    pub uploaded: u64,
    /// Bytes copied to the host.
    pub downloaded: u64,
    /// Pipelines compiled.
    pub compiled: u64,
    /// Time compiling took.
    pub compiling: Duration,
    /// Bytes of buffers there are, taken or kept for reuse.
    pub held: u64,
    /// Bytes of earlier processes' pipelines that the driver was given.
    pub found: u64,
}

/// An open adapter. Everything on it can be called from any thread.
pub struct Gpu {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) faults: Arc<Faults>,
    pub(super) pool: Mutex<Pool>,
    pub(super) batch: Mutex<Batch>,
    pub(super) staging: Staging,
    pub(super) uploaded: AtomicU64,
    pub(super) downloaded: AtomicU64,
    /// Held by who asks the device how far it is, and alone by who works on its memory: upon the answer that it is lost its
    /// driver takes all buffers back.
    pub(super) looking: RwLock<()>,
    /// Held by whoever has something timed: there is one clock, and one device to be alone on.
    pub(super) clock: Mutex<()>,
    tempo: Mutex<Tempo>,
    pipelines: Pipelines,
    identity: Identity,
    software: bool,
    can: Can,
    direct: bool,
    limits: wgpu::Limits,
    lanes: u32,
}

impl Gpu {
    /// Opens an adapter. Takes tens of milliseconds: not for a caller's first call to wait on.
    pub fn open(found: &Found, options: DeviceOptions) -> Result<Arc<Gpu>, OpenError> {
        let fail = |why: String| OpenError { part: found.identity.part.clone(), why };
        let opened = catch_unwind(AssertUnwindSafe(|| request(&found.adapter, options.plain)));
        let (device, queue) = opened.unwrap_or_else(|_| Err("its driver panicked".into())).map_err(fail)?;
        let faults = Arc::new(Faults::default());
        let (lost, uncaught) = (faults.clone(), faults.clone());
        device.set_device_lost_callback(move |reason, why| lost.lose(format!("{reason:?}: {why}")));
        device.on_uncaptured_error(Arc::new(move |e: wgpu::Error| uncaught.add(&e)));
        let (limits, features) = (device.limits(), device.features());
        let most = if found.shares_memory { 1 << 30 } else { 4u64 << 30 };
        let limit = options.memory_limit.map_or(most, |l| l as u64);
        let largest = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        let can = Can {
            f64: features.contains(wgpu::Features::SHADER_F64),
            f16: features.contains(wgpu::Features::SHADER_F16),
            subgroup: features.contains(wgpu::Features::SUBGROUP),
            timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY),
            shared_buffers: found.shares_memory
                && features.contains(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS),
        };
        let gpu = Gpu {
            pool: Mutex::new(Pool::new(limit, largest)),
            batch: Mutex::new(Batch::new(&device, &queue, &faults)),
            staging: Staging::default(),
            uploaded: AtomicU64::new(0),
            downloaded: AtomicU64::new(0),
            looking: RwLock::new(()),
            clock: Mutex::new(()),
            tempo: Mutex::default(),
            pipelines: Pipelines::new(&device, options.pipeline_cache, options.checked),
            direct: can.shared_buffers && !options.staged,
            identity: found.identity.clone(),
            software: found.software,
            can,
            limits,
            lanes: if can.subgroup { found.adapter.get_info().subgroup_max_size } else { 0 },
            faults,
            device,
            queue,
        };
        gpu.faults.take().map_err(|e| fail(e.to_string()))?;
        Ok(Arc::new(gpu))
    }

    /// What it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether it is the CPU in disguise.
    pub fn software(&self) -> bool {
        self.software
    }

    /// What it can do beyond the ordinary.
    pub fn can(&self) -> Can {
        self.can
    }

    /// Whether transfers may go straight to its buffers.
    pub(super) fn direct(&self) -> bool {
        self.direct
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        let (compiled, compiling) = self.pipelines.compiled();
        let batch = self.batch();
        let held = self.pool().held();
        Counts {
            dispatches: batch.dispatches,
            submissions: batch.submissions,
            uploaded: self.uploaded.load(Ordering::Relaxed),
            downloaded: self.downloaded.load(Ordering::Relaxed),
            compiled,
            compiling,
            held,
            found: self.pipelines.found(),
        }
    }

    /// Why it is gone, if it is.
    pub fn lost(&self) -> Option<String> {
        self.faults.lost()
    }

    /// Hands what was enqueued to the device, without waiting for it.
    pub fn submit(&self) -> Result<(), KernelError> {
        self.faults.alive()?;
        guarded(|| self.batch().submit()).map(drop)
    }

    /// The same if it has nothing to do: nothing is gained by waiting for more.
    pub(crate) fn submit_if_idle(&self) -> Result<(), KernelError> {
        guarded(|| {
            let mut batch = self.batch();
            if batch.idle() {
                batch.submit();
            }
        })
    }

    /// Writes compiled pipelines to where the options said, if the driver can.
    pub fn save_pipelines(&self) -> std::io::Result<()> {
        self.pipelines.save()
    }

    /// Gives the device up: what is called on it from now on says that it is lost.
    pub fn destroy(&self) {
        // Not while the host works on what it would take away.
        let _batch = self.batch();
        self.device.destroy();
        self.faults.lose("it was given up".into());
    }

    /// Compiles `source` outside of any kernel: whether it would do, and if not, why.
    #[doc(hidden)]
    pub fn try_compile(&self, text: &str) -> Result<Seconds, KernelError> {
        self.faults.alive()?;
        let key: Key = text.bytes().map(u32::from).collect();
        let source = Source { text: text.into(), written: smallvec::smallvec![], words: 4 };
        self.pipeline(&key, || Ok(source)).map(|p| p.took)
    }

    /// Enqueues a dispatch that writes at `to` by more workgroups than there may be, which no driver takes.
    #[doc(hidden)]
    pub fn try_overreach(&self, to: Address) -> Result<Ran, KernelError> {
        let text = "@group(0) @binding(1) var<storage, read_write> to_: array<u32>;
            @compute @workgroup_size(1) fn main() { to_[0] = 0u; }";
        let source = Source { text: text.into(), written: smallvec::smallvec![true], words: 4 };
        let key: Key = text.bytes().map(u32::from).collect();
        let groups = [self.limits.max_compute_workgroups_per_dimension + 1, 1, 1];
        self.launch(&Launch {
            pipeline: &self.pipeline(&key, || Ok(source))?,
            buffers: &[self.find(to)?.0],
            read: &[false],
            written: &[true],
            params: &[0; 4],
            groups,
        })
    }

    /// Turns that all loops of one invocation may take together. Mesa's software driver leaves loops after
    /// 65535 without a word; other drivers reset a device that does not come back for seconds.
    pub(crate) fn most_turns(&self) -> usize {
        if self.software { 60_000 } else { 1 << 24 }
    }

    /// Bytes of the largest operand.
    pub(crate) fn largest_block(&self) -> usize {
        self.limits.max_storage_buffer_binding_size.min(self.limits.max_buffer_size) as usize
    }

    /// Lanes of its widest subgroup; zero where it has none.
    pub(crate) fn lanes(&self) -> u32 {
        self.lanes
    }

    pub(crate) fn limits(&self) -> &wgpu::Limits {
        &self.limits
    }

    pub(crate) fn pipeline(
        &self,
        key: &Key,
        source: impl FnOnce() -> Result<Source, String>,
    ) -> Result<Arc<Pipeline>, KernelError> {
        self.pipelines.get(&self.device, key, source)
    }

    /// Whether work of this structure has run here, so that its pipelines are compiled.
    pub(crate) fn is_ready(&self, structure: u64) -> bool {
        self.pipelines.is_ready(structure)
    }

    pub(crate) fn note_ready(&self, structure: u64) {
        self.pipelines.note_ready(structure);
    }

    /// The buffer an address lies in, and how many bytes in.
    pub(crate) fn find(&self, at: Address) -> Result<(Arc<Held>, u64), KernelError> {
        let outside = || KernelError::Failed(format!("{:#x} is no address of {}", at.0, self.identity.part));
        self.pool().find(at).ok_or_else(outside)
    }

    /// Enqueues a dispatch; the first of its pipeline is no measurement. An error is this dispatch's own.
    pub(crate) fn launch(&self, launch: &Launch<'_>) -> Result<Ran, KernelError> {
        self.faults.alive()?;
        if let Some(why) = launch.pipeline.condemned() {
            return Err(KernelError::Failed(why.into()));
        }
        if let Some(spoilt) = launch.reads().find_map(|start| self.faults.spoilt(start)) {
            return Err(KernelError::Operand(spoilt.why().into()));
        }
        guarded(|| self.batch().add(launch))??;
        Ok(launch.pipeline.ran())
    }

    #[cfg(test)]
    pub(super) fn pipelines(&self) -> &Pipelines {
        &self.pipelines
    }

    pub(super) fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn tempo(&self) -> MutexGuard<'_, Tempo> {
        self.tempo.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Calls into the driver's library; a panic in there is an error here.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, KernelError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        KernelError::Failed(format!("the driver panicked: {}", text.unwrap_or_default()))
    })
}

fn request(adapter: &wgpu::Adapter, plain: bool) -> Result<(wgpu::Device, wgpu::Queue), String> {
    let rare = wgpu::Features::SHADER_F64
        | wgpu::Features::SHADER_F16
        | wgpu::Features::SUBGROUP
        | wgpu::Features::TIMESTAMP_QUERY;
    let mut wanted = wgpu::Features::PIPELINE_CACHE | wgpu::Features::MAPPABLE_PRIMARY_BUFFERS;
    if !plain {
        wanted |= rare;
    }
    let how = wgpu::DeviceDescriptor {
        label: None,
        required_features: adapter.features() & wanted,
        // All that it has: buffers as large as possible.
        required_limits: adapter.limits(),
        ..Default::default()
    };
    match ready(adapter.request_device(&how)) {
        Some(Ok(opened)) => Ok(opened),
        Some(Err(e)) => Err(e.to_string()),
        None => Err("its driver did not answer".into()),
    }
}
