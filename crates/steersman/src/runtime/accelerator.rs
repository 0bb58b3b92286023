//! Devices with memory of their own. They may come at any time: start-up does not wait for them.
//!
//! ```
//! use std::sync::Arc;
//! use steersman::Runtime;
//! use steersman::core::{Device, DeviceId, Kernel, Memory};
//!
//! /// Adds what `find` finds, which may take its time.
//! fn look_for<K>(rt: &Runtime, find: impl FnOnce() -> Option<(Device, Arc<dyn Memory>, K)> + Send + 'static)
//! where
//!     K: FnOnce(DeviceId) -> Vec<Arc<dyn Kernel>>,
//! {
//!     let later = rt.clone();
//!     std::thread::spawn(move || {
//!         if let Some((device, memory, kernels)) = find() {
//!             later.add_accelerator(device, memory, kernels);
//!         }
//!     });
//! }
//! ```

use crate::plan::Planner;
use crate::remember;
use crate::runtime::{Inner, Keeper, Runtime};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use steersman_core::log::{DecisionLog, Entry};
use steersman_core::place::Wire;
use steersman_core::wisdom::Notice;
use steersman_core::{Device, DeviceId, Engine, Kernel, Memory, Place};

/// Devices beyond this number are known to the engine and never used.
const MOST: usize = 256;

/// One device with memory of its own.
pub(crate) struct Accelerator {
    pub memory: Arc<dyn Memory>,
    pub fingerprint: u64,
    /// Whether it was calibrated, now or in an earlier process.
    pub calibrated: AtomicBool,
}

/// All of them, by device id. Append-only, so that reading takes no lock.
pub(crate) struct Accelerators {
    slots: Box<[OnceLock<Accelerator>]>,
    count: AtomicUsize,
}

impl Default for Accelerators {
    fn default() -> Accelerators {
        Accelerators { slots: (0..MOST).map(|_| OnceLock::new()).collect(), count: AtomicUsize::new(0) }
    }
}

impl Accelerators {
    pub fn get(&self, device: DeviceId) -> Option<&Accelerator> {
        self.slots.get(device.0 as usize).and_then(|s| s.get())
    }

    /// The memory of a place; none for the host.
    pub fn memory(&self, place: Place) -> Option<&Arc<dyn Memory>> {
        match place {
            Place::Host => None,
            Place::Device(id) => self.get(id).map(|a| &a.memory),
        }
    }

    /// How many there are; each that comes makes it one more.
    #[inline]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub fn iter(&self) -> impl Iterator<Item = (DeviceId, &Accelerator)> {
        self.slots.iter().enumerate().filter_map(|(i, s)| Some((DeviceId(i as u16), s.get()?)))
    }
}

/// What a device needs to join. It does not keep the runtime alive: the last handle is always some caller's, who then
/// waits for devices that are still being looked for, and saves.
pub(super) struct Door {
    pub engine: Arc<Engine>,
    pub log: Arc<DecisionLog>,
    pub keeper: Arc<Keeper>,
    notices: Arc<Mutex<Vec<Notice>>>,
    accelerators: Arc<Accelerators>,
    planner: Arc<Planner>,
}

impl Door {
    pub fn of(inner: &Inner) -> Door {
        Door {
            engine: inner.engine.clone(),
            log: inner.log.clone(),
            keeper: inner.keeper.clone(),
            notices: inner.notices.clone(),
            accelerators: inner.carrier.accelerators.clone(),
            planner: inner.planner.clone(),
        }
    }

    /// Lets a device in, with the way to it if that was timed; what earlier processes saw of it counts more.
    pub fn add(
        &self,
        device: Device,
        memory: Arc<dyn Memory>,
        wire: Option<Wire>,
        kernels: impl FnOnce(DeviceId) -> Vec<Arc<dyn Kernel>>,
    ) -> DeviceId {
        let fingerprint = device.identity.fingerprint();
        // The engine puts the right id in.
        let device = Device { place: Place::Device(DeviceId(u16::MAX)), ..device };
        let id = self.engine.add_device(device);
        let all = &self.accelerators;
        let Some(slot) = all.slots.get(id.0 as usize) else { return id };
        if slot.set(Accelerator { memory, fingerprint, calibrated: AtomicBool::new(false) }).is_err() {
            return id;
        }
        for kernel in kernels(id) {
            let name = kernel.name().to_string();
            if let Err(why) = self.engine.register(kernel) {
                self.log.push(Entry { kernel: name, note: Some(why.to_string()), ..Entry::default() });
            }
        }
        if let Some(wire) = wire {
            self.engine.set_wire(id, wire);
        }
        let wisdom = &self.keeper.wisdom;
        let restored = remember::restore(&self.engine, id, fingerprint, &mut wisdom.load(fingerprint));
        if let Some(accelerator) = all.get(id) {
            accelerator.calibrated.store(restored.calibrated, Ordering::Release);
        }
        let notice = restored.notice(wisdom, &self.engine, id);
        self.notices.lock().unwrap_or_else(|e| e.into_inner()).extend(notice);
        all.count.fetch_add(1, Ordering::AcqRel);
        // Plans made without it stand until they are made anew.
        self.planner.forget();
        id
    }
}

impl Runtime {
    /// Adds a device with memory of its own, and its kernels. From then on it takes part in decisions and plans,
    /// with what earlier processes learned of it. Kernels need names that no other device's kernels have.
    pub fn add_accelerator(
        &self,
        device: Device,
        memory: Arc<dyn Memory>,
        kernels: impl FnOnce(DeviceId) -> Vec<Arc<dyn Kernel>>,
    ) -> DeviceId {
        Door::of(&self.inner).add(device, memory, None, kernels)
    }
}
