//! WebGPU adapters as devices. Drivers take 30 to 300 ms to start, so that they arrive while work goes on; a frozen runtime
//! waits for them.

use super::accelerator::Door;
use super::lend::lending;
use super::{Inner, Runtime};
use crate::remember;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use steersman_core::cost::Machine;
use steersman_core::knobs::Knobs;
use steersman_core::log::{DecisionLog, Entry};
use steersman_core::place::Wire;
use steersman_core::{Bytes, Device, Memory, Place, glob};
use steersman_wgpu::{DeviceOptions, Found, Gpu, Probed, adapters};

/// Time to find out how fast a device is, if nothing is remembered of it.
const PROBE: Duration = Duration::from_millis(300);

/// What was compiled for one device, which can be written down. (With the device itself here, the compiler gives up on
/// whether runtimes may be shared: wgpu's types nest too deep for it.)
pub(super) struct Compiled {
    part: String,
    save: Box<dyn Fn() -> std::io::Result<()> + Send + Sync>,
}

/// Looks for adapters and opens them, without keeping the runtime alive.
struct Search {
    door: Door,
    knobs: Knobs,
    compiled: Arc<Mutex<Vec<Compiled>>>,
    /// For whom.
    runtime: Weak<Inner>,
    /// Whether there is more to come, for those who wait for it.
    searching: Arc<AtomicBool>,
}

impl Drop for Search {
    fn drop(&mut self) {
        self.searching.store(false, Ordering::Release);
    }
}

impl Runtime {
    /// Looks for adapters on a thread of its own.
    pub(super) fn look_for_adapters(&self) {
        let inner = &self.inner;
        let search = Search {
            door: Door::of(inner),
            knobs: inner.knobs.clone(),
            compiled: inner.compiled.clone(),
            runtime: Arc::downgrade(inner),
            searching: inner.searching.clone(),
        };
        inner.searching.store(true, Ordering::Release);
        let work = move || {
            for found in adapters() {
                if search.is_over() {
                    return;
                }
                let name = &found.identity.part;
                // One driver's mistake is not the next adapter's.
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| search.add(&found))) {
                    search.say(format!("{name} cannot be used: it panicked: {}", crate::panic_text(&*panic)));
                }
            }
        };
        let thread = std::thread::Builder::new().name("steersman-webgpu".into()).spawn(work);
        *self.inner.arriving.lock().unwrap_or_else(|e| e.into_inner()) = thread.ok();
    }
}

impl Search {
    /// Whether nobody is left to use what is found.
    fn is_over(&self) -> bool {
        self.runtime.strong_count() == 0
    }

    /// Opens one adapter, unless the knobs are against it. What goes wrong is said in the log.
    fn add(&self, found: &Found) {
        let knobs = &self.knobs;
        let name = &found.identity.part;
        if found.software && !knobs.webgpu_software {
            return self.say(format!("{name} is software on this CPU, and webgpu.software is false"));
        }
        let wanted = &knobs.webgpu_adapters;
        let is_wanted = |pattern: &String| glob(&pattern.to_lowercase(), &name.to_lowercase());
        if !wanted.is_empty() && !wanted.iter().any(is_wanted) {
            return self.say(format!("{name} is not among webgpu.adapters={}", wanted.join(",")));
        }
        let memory_limit = knobs.webgpu_memory_limit.map(|b| b.0 as usize);
        let fingerprint = found.identity.fingerprint();
        let pipeline_cache = self.pipelines(fingerprint);
        let options = DeviceOptions { memory_limit, pipeline_cache, ..Default::default() };
        let gpu = match Gpu::open(found, options) {
            Ok(gpu) => gpu,
            Err(why) => return self.say(format!("{name} cannot be used: {why}")),
        };
        if self.is_over() {
            return;
        }
        // What cannot be read is probed again.
        let known = matches!(remember::machine(&self.door.keeper.wisdom.load(fingerprint)), Ok(Some(_)));
        let (machine, wire) = match known || knobs.frozen {
            true => Default::default(),
            false => self.probed(&gpu),
        };
        let device = Device { identity: gpu.identity().clone(), place: Place::Host, machine };
        // Two adapters of one family need two names.
        let family = &gpu.identity().family;
        let same = self.door.engine.devices().iter().filter(|d| &d.identity.family == family).count();
        let prefix = if same == 0 { family.clone() } else { format!("{family}{same}") };
        let kernels = gpu.clone();
        let (part, keeps) = (name.clone(), gpu.clone());
        let compiled = Compiled { part, save: Box::new(move || keeps.save_pipelines()) };
        self.compiled.lock().unwrap_or_else(|e| e.into_inner()).push(compiled);
        self.door.add(device, gpu, wire, |id| kernels.kernels_as(id, &prefix));
    }

    /// How fast a device is and the way to it, as far as there was time to find out.
    fn probed(&self, gpu: &Arc<Gpu>) -> (Machine, Option<Wire>) {
        let probed = gpu.probe(PROBE).unwrap_or_else(|why| {
            self.say(format!("{} could not be timed: {why}", gpu.identity().part));
            Probed::default()
        });
        let counts = gpu.counts();
        let each = counts.compiling.checked_div(counts.compiled as u32);
        let mut wire = Wire::default();
        for (lane, times) in [(&mut wire.out, &probed.link.upload), (&mut wire.home, &probed.link.download)] {
            times.iter().for_each(|(bytes, took)| lane.add(Bytes(*bytes as u64), *took));
        }
        let memory: Arc<dyn Memory> = gpu.clone();
        wire.lent = lending(&memory);
        wire.joined = probed.link.joined.map(|s| s.0);
        let seen = !wire.out.is_supposed() || !wire.home.is_supposed();
        (Machine { setup: each.map(|t| t.as_secs_f64()), ..probed.machine }, seen.then_some(wire))
    }

    /// Where compiled pipelines are kept: beside the wisdom, if that is kept at all. Two equal parts share the file: what
    /// was compiled for one is what the other would compile, and the last to save wins.
    fn pipelines(&self, fingerprint: u64) -> Option<PathBuf> {
        let folder = self.door.keeper.wisdom.path()?.parent()?;
        Some(folder.join(format!("pipelines-{fingerprint:016x}.bin")))
    }

    fn say(&self, note: String) {
        say(&self.door.log, note);
    }
}

impl Inner {
    /// Writes what drivers compiled, where they let it be kept.
    pub(super) fn save_pipelines(&self) {
        for Compiled { part, save } in self.compiled.lock().unwrap_or_else(|e| e.into_inner()).iter() {
            if let Err(why) = save() {
                say(&self.log, format!("what was compiled for {part} was not kept: {why}"));
            }
        }
    }
}

fn say(log: &DecisionLog, note: String) {
    log.push(Entry { note: Some(note), ..Entry::default() });
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
