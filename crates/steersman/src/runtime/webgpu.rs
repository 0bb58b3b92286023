//! WebGPU adapters as devices. Drivers take 30 to 300 ms to start, so that they arrive while work goes on; a frozen runtime
//! waits for them.

use super::{Inner, Runtime};
use crate::remember;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use steersman_core::cost::Machine;
use steersman_core::log::Entry;
use steersman_core::{Device, Place, glob};
use steersman_wgpu::{DeviceOptions, Found, Gpu, adapters};

/// Time to find out how fast a device is, if nothing is remembered of it.
const PROBE: Duration = Duration::from_millis(300);

/// What was compiled for one device, which can be written down. (With the device itself here, the compiler gives up on
/// whether runtimes may be shared: wgpu's types nest too deep for it.)
pub(super) struct Compiled {
    part: String,
    save: Box<dyn Fn() -> std::io::Result<()> + Send + Sync>,
}

impl Runtime {
    /// Looks for adapters on a thread of its own, which does not keep the runtime alive.
    pub(super) fn look_for_adapters(&self) {
        let inner = Arc::downgrade(&self.inner);
        let work = move || {
            for found in adapters() {
                // Nobody is left to use it.
                let Some(inner) = inner.upgrade() else { return };
                add(&Runtime { inner }, &found);
            }
        };
        let thread = std::thread::Builder::new().name("steersman-webgpu".into()).spawn(work);
        *self.inner.arriving.lock().unwrap_or_else(|e| e.into_inner()) = thread.ok();
    }
}

/// Opens one adapter, unless the knobs are against it. What goes wrong is said in the log.
fn add(runtime: &Runtime, found: &Found) {
    let inner = &*runtime.inner;
    let knobs = &inner.knobs;
    let name = &found.identity.part;
    if found.software && !knobs.webgpu_software {
        return say(inner, format!("{name} is software on this CPU, and webgpu.software is false"));
    }
    let wanted = &knobs.webgpu_adapters;
    if !wanted.is_empty() && !wanted.iter().any(|pattern| glob(&pattern.to_lowercase(), &name.to_lowercase()))
    {
        return say(inner, format!("{name} is not among webgpu.adapters={}", wanted.join(",")));
    }
    let memory_limit = knobs.webgpu_memory_limit.map(|b| b.0 as usize);
    let fingerprint = found.identity.fingerprint();
    let pipeline_cache = pipelines(inner, fingerprint);
    let gpu = match Gpu::open(found, DeviceOptions { memory_limit, pipeline_cache, ..Default::default() }) {
        Ok(gpu) => gpu,
        Err(why) => return say(inner, format!("{name} cannot be used: {why}")),
    };
    // What cannot be read is probed again.
    let known = matches!(remember::machine(&inner.keeper.wisdom.load(fingerprint)), Ok(Some(_)));
    let machine = match known || knobs.frozen {
        true => Machine::default(),
        false => {
            let machine = gpu.probe(PROBE).map(|p| p.machine).unwrap_or_default();
            let counts = gpu.counts();
            let each = counts.compiling.checked_div(counts.compiled as u32);
            Machine { setup: each.map(|t| t.as_secs_f64()), ..machine }
        }
    };
    let device = Device { identity: gpu.identity().clone(), place: Place::Host, machine };
    // Two adapters of one family need two names.
    let family = &gpu.identity().family;
    let same = inner.engine.devices().iter().filter(|d| &d.identity.family == family).count();
    let prefix = if same == 0 { family.clone() } else { format!("{family}{same}") };
    let kernels = gpu.clone();
    let (part, keeps) = (name.clone(), gpu.clone());
    let compiled = Compiled { part, save: Box::new(move || keeps.save_pipelines()) };
    inner.compiled.lock().unwrap_or_else(|e| e.into_inner()).push(compiled);
    runtime.add_accelerator(device, gpu, |id| kernels.kernels_as(id, &prefix));
}

/// Where compiled pipelines are kept: beside the wisdom, if that is kept at all. Drivers check what they find there.
fn pipelines(inner: &Inner, fingerprint: u64) -> Option<PathBuf> {
    let folder = inner.keeper.wisdom.path()?.parent()?;
    Some(folder.join(format!("pipelines-{fingerprint:016x}.bin")))
}

impl Inner {
    /// Writes what drivers compiled, where they let it be kept.
    pub(super) fn save_pipelines(&self) {
        for Compiled { part, save } in self.compiled.lock().unwrap_or_else(|e| e.into_inner()).iter() {
            if let Err(why) = save() {
                say(self, format!("what was compiled for {part} was not kept: {why}"));
            }
        }
    }
}

fn say(inner: &Inner, note: String) {
    inner.log.push(Entry { note: Some(note), ..Entry::default() });
}

#[cfg(test)]
mod tests {
    use super::*;
    use steersman_core::Knobs;

    #[test]
    fn a_frozen_runtime_has_all_its_devices_from_the_start() {
        let arriving = |frozen: &str| {
            let mut knobs = Knobs::default();
            let set = [("wisdom.enabled", "false"), ("calibrate.background", "false"), ("frozen", frozen)];
            for (name, value) in set.into_iter().chain([("webgpu.enabled", "true")]) {
                knobs.set(name, value).unwrap();
            }
            let rt = Runtime::with_knobs(knobs).unwrap();
            rt.inner.arriving().map(|thread| thread.join().unwrap()).is_some()
        };
        assert!(arriving("false"), "nobody waits otherwise");
        assert!(!arriving("true"));
    }
}
