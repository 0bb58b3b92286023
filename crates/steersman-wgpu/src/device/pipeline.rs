//! Sources to pipelines: compiled once, kept in memory, and on disk where the driver takes part.

use super::fault::caught;
use super::kept;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant};
use steersman_core::{KernelError, Ran, Seconds};

/// What a source is made from, exactly: equal keys are equal sources.
pub(crate) type Key = SmallVec<[u32; 32]>;

/// A compute shader with one entry point `main`.
pub(crate) struct Source {
    pub text: String,
    /// Storage buffers from binding 1 on: whether each is written.
    pub written: SmallVec<[bool; 8]>,
    /// Words of the uniform block at binding 0.
    pub words: usize,
}

/// A compiled source.
pub(crate) struct Pipeline {
    pub id: u64,
    pub pipeline: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
    /// Bytes of the uniform block.
    pub params: u64,
    pub took: Seconds,
    used: AtomicBool,
    /// Why the driver would not have a dispatch of it.
    condemned: OnceLock<String>,
}

impl Pipeline {
    /// A dispatch of it failed: who next asks for one is told at once.
    pub fn condemn(&self, why: &str) {
        let _ = self.condemned.set(why.to_string());
    }

    pub fn condemned(&self) -> Option<&str> {
        self.condemned.get().map(String::as_str)
    }

    /// How a run with it counts: the first had to compile, and says nothing of the next.
    pub fn ran(&self) -> Ran {
        if self.used.load(Ordering::Relaxed) || self.used.swap(true, Ordering::Relaxed) {
            Ran::Clean
        } else {
            Ran::Cold
        }
    }
}

/// Pipelines kept at most: programs that make new expressions without end must not fill memory with them.
const MOST: usize = 4096;

/// Failures to compile that are kept at most.
const MOST_FAILED: usize = 256;

/// Why a source did not become a pipeline.
struct Uncompiled {
    why: String,
    /// Whether it may do another time: there was no memory.
    passing: bool,
}

/// Every pipeline of a device.
pub(super) struct Pipelines {
    known: RwLock<HashMap<Key, Arc<Pipeline>>>,
    /// Sources that would not compile, with the reason: trying again would take as long and end the same.
    failed: Mutex<HashMap<Key, String>>,
    /// Structures of work that has run, whose pipelines are therefore here.
    ready: RwLock<HashSet<u64>>,
    cache: Option<(wgpu::PipelineCache, Option<PathBuf>)>,
    /// Bytes of earlier processes' pipelines that the driver was given.
    found: u64,
    /// Whether shaders check their indices and loops.
    checked: bool,
    took: Mutex<(u64, Duration)>,
    /// Pipelines there were when they were last saved.
    saved: AtomicU64,
}

impl Pipelines {
    /// With what `path` holds from earlier, if the device can use such a thing.
    pub fn new(device: &wgpu::Device, path: Option<PathBuf>, checked: bool) -> Pipelines {
        let mut found = 0;
        let cache = device.features().contains(wgpu::Features::PIPELINE_CACHE).then(|| {
            let data = path.as_deref().and_then(kept::read);
            let how = wgpu::PipelineCacheDescriptor { label: None, data: data.as_deref(), fallback: true };
            found = data.as_ref().map_or(0, Vec::len) as u64;
            // SAFETY: these bytes are what `get_data` gave, by their sum; their header names adapter and driver, and what
            // does not match is not used.
            (unsafe { device.create_pipeline_cache(&how) }, path)
        });
        Pipelines {
            found,
            checked,
            known: RwLock::default(),
            failed: Mutex::default(),
            ready: RwLock::default(),
            cache,
            took: Mutex::default(),
            saved: AtomicU64::new(0),
        }
    }

    /// The pipeline of `key`, made from `source` the first time.
    pub fn get(
        &self,
        device: &wgpu::Device,
        key: &Key,
        source: impl FnOnce() -> Result<Source, String>,
    ) -> Result<Arc<Pipeline>, KernelError> {
        if let Some(p) = self.known.read().unwrap_or_else(|e| e.into_inner()).get(key) {
            return Ok(p.clone());
        }
        if let Some(why) = lock(&self.failed).get(key) {
            return Err(KernelError::Failed(why.clone()));
        }
        let started = Instant::now();
        let lasting = |why: String| Uncompiled { why, passing: false };
        let made = source().map_err(lasting).and_then(|s| {
            catch_unwind(AssertUnwindSafe(|| self.compile(device, &s, started)))
                .unwrap_or_else(|_| Err(lasting("the shader compiler panicked".into())))
        });
        match made {
            Ok(p) => {
                let mut known = self.known.write().unwrap_or_else(|e| e.into_inner());
                if known.len() >= MOST {
                    known.clear();
                    self.ready.write().unwrap_or_else(|e| e.into_inner()).clear();
                }
                Ok(known.entry(key.clone()).or_insert_with(|| Arc::new(p)).clone())
            }
            Err(Uncompiled { why, passing }) => {
                if !passing {
                    self.note_failed(key, &why);
                }
                Err(KernelError::Failed(why))
            }
        }
    }

    fn note_failed(&self, key: &Key, why: &str) {
        let mut failed = lock(&self.failed);
        if failed.len() >= MOST_FAILED {
            failed.clear();
        }
        failed.insert(key.clone(), why.to_string());
    }

    fn compile(
        &self,
        device: &wgpu::Device,
        source: &Source,
        started: Instant,
    ) -> Result<Pipeline, Uncompiled> {
        let ((pipeline, layout, params), mishap) = caught(device, || self.make(device, source));
        if let Some(mishap) = mishap {
            let why = format!("the shader did not compile: {}", mishap.why);
            return Err(Uncompiled { why, passing: mishap.memory });
        }
        let took = started.elapsed();
        let mut all = lock(&self.took);
        all.0 += 1;
        all.1 += took;
        let used = AtomicBool::new(false);
        let condemned = OnceLock::new();
        Ok(Pipeline { id: all.0, pipeline, layout, params, took: took.into(), used, condemned })
    }

    fn make(
        &self,
        device: &wgpu::Device,
        source: &Source,
    ) -> (wgpu::ComputePipeline, wgpu::BindGroupLayout, u64) {
        let how = wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(source.text.as_str().into()),
        };
        let checks = match self.checked {
            true => wgpu::ShaderRuntimeChecks::checked(),
            false => wgpu::ShaderRuntimeChecks::unchecked(),
        };
        // SAFETY: sources are made here, of expressions that cannot index. Every kernel stays within what the
        // workload's strides reach, which its caller promised to be there, and its loops end.
        let module = unsafe { device.create_shader_module_trusted(how, checks) };
        let params = (source.words * 4).next_multiple_of(16) as u64;
        let entry = |binding: u32, ty: wgpu::BufferBindingType, dynamic: bool| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: dynamic, min_binding_size: None },
            count: None,
        };
        let mut entries = vec![entry(0, wgpu::BufferBindingType::Uniform, true)];
        for (i, &w) in source.written.iter().enumerate() {
            entries.push(entry(i as u32 + 1, wgpu::BufferBindingType::Storage { read_only: !w }, false));
        }
        let how = wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries };
        let layout = device.create_bind_group_layout(&how);
        let whole = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            bind_group_layouts: &[Some(&layout)],
            ..Default::default()
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&whole),
            module: &module,
            entry_point: Some("main"),
            // Kernels write all of the workgroup memory they read.
            compilation_options: wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: self.cache.as_ref().map(|(c, _)| c),
        });
        (pipeline, layout, params)
    }

    /// Whether work of this structure has run.
    pub fn is_ready(&self, structure: u64) -> bool {
        self.ready.read().unwrap_or_else(|e| e.into_inner()).contains(&structure)
    }

    /// Notes that work of this structure has run.
    pub fn note_ready(&self, structure: u64) {
        if !self.is_ready(structure) {
            self.ready.write().unwrap_or_else(|e| e.into_inner()).insert(structure);
        }
    }

    /// Pipelines compiled and the time it took.
    pub fn compiled(&self) -> (u64, Duration) {
        *lock(&self.took)
    }

    /// Bytes of earlier processes' pipelines that the driver was given.
    pub fn found(&self) -> u64 {
        self.found
    }

    /// Writes what the driver would like to find again.
    pub fn save(&self) -> std::io::Result<()> {
        let Some((cache, Some(path))) = &self.cache else { return Ok(()) };
        let compiled = self.compiled().0;
        if self.saved.swap(compiled, Ordering::AcqRel) == compiled {
            return Ok(());
        }
        let Some(data) = cache.get_data() else { return Ok(()) };
        kept::write(path, &data)
    }
}

fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_forgotten_before_they_fill_memory() {
        let Some(found) = crate::adapters().into_iter().next() else {
            return println!("skipped: no WebGPU adapter");
        };
        let gpu = crate::Gpu::open(&found, crate::DeviceOptions::default())
            .expect("an adapter that was listed opens");
        let pipelines = gpu.pipelines();
        for i in 0..=MOST_FAILED as u32 {
            let key: Key = smallvec::smallvec![u32::MAX, i];
            assert!(pipelines.get(&gpu.device, &key, || Err("no source".into())).is_err());
            assert!(lock(&pipelines.failed).len() <= MOST_FAILED);
        }
    }
}
