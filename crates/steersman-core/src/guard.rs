//! Kernels that must not be chosen: those that failed, panicked, hung or lied.

use crate::device::DeviceId;
use crate::dtype::DType;
use std::collections::HashMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What a kernel did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offence {
    /// Returned an error.
    Failed,
    /// Panicked.
    Panicked,
    /// Gave another answer than the reference.
    Wrong,
    /// Did not come back in time.
    Hung,
}

/// One quarantined kernel, for one op and element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// What it did.
    pub offence: Offence,
    /// In words.
    pub detail: String,
}

/// Everything in quarantine, by kernel index, op name and element type.
#[derive(Default)]
pub struct Guard {
    /// So that the usual case, nothing in quarantine, is one relaxed load.
    count: AtomicUsize,
    kept: RwLock<HashMap<(u16, &'static str, DType), Quarantined>>,
    /// Devices that are gone, with why.
    lost: RwLock<HashMap<DeviceId, String>>,
    any_lost: AtomicBool,
}

impl Guard {
    /// Why this kernel must not run this op, if it must not.
    #[inline]
    pub fn check(&self, kernel: u16, op: &'static str, dtype: DType) -> Option<Quarantined> {
        if self.is_empty() {
            return None;
        }
        self.read().get(&(kernel, op, dtype)).cloned()
    }

    /// Whether nobody is in quarantine.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Puts a kernel away. Returns whether it was not there before.
    pub fn quarantine(
        &self,
        kernel: u16,
        op: &'static str,
        dtype: DType,
        offence: Offence,
        detail: String,
    ) -> bool {
        let mut kept = self.kept.write().unwrap_or_else(|e| e.into_inner());
        let new = kept.insert((kernel, op, dtype), Quarantined { offence, detail }).is_none();
        self.count.store(kept.len(), Ordering::Release);
        new
    }

    /// Puts a whole device away. Returns whether it was not gone before.
    pub fn lose(&self, device: DeviceId, why: String) -> bool {
        let mut lost = self.lost.write().unwrap_or_else(|e| e.into_inner());
        let new = !lost.contains_key(&device);
        lost.entry(device).or_insert(why);
        self.any_lost.store(true, Ordering::Release);
        new
    }

    /// Why this device is gone, if it is.
    #[inline]
    pub fn lost(&self, device: DeviceId) -> Option<String> {
        if !self.any_lost.load(Ordering::Acquire) {
            return None;
        }
        self.lost.read().unwrap_or_else(|e| e.into_inner()).get(&device).cloned()
    }

    /// Lets every kernel out; devices stay lost.
    pub fn clear(&self) {
        let mut kept = self.kept.write().unwrap_or_else(|e| e.into_inner());
        kept.clear();
        self.count.store(0, Ordering::Release);
    }

    /// Everything in quarantine.
    pub fn list(&self) -> Vec<((u16, &'static str, DType), Quarantined)> {
        self.read().iter().map(|(k, v)| (*k, v.clone())).collect()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<(u16, &'static str, DType), Quarantined>> {
        self.kept.read().unwrap_or_else(|e| e.into_inner())
    }
}
