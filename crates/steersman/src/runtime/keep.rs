//! What writes down what was learned: for the runtime, and for a calibration in the background, which does not keep the
//! runtime alive.

use super::carry::Carrier;
use crate::error::Error;
use crate::remember;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use steersman_core::log::Entry;
use steersman_core::wisdom::{Batch, Kept, Outdated, UsageRow, Wisdom};
use steersman_core::{DeviceId, Engine};

/// Between the engine and its wisdom.
pub(crate) struct Keeper {
    pub engine: Arc<Engine>,
    pub carrier: Carrier,
    /// The host.
    pub device: DeviceId,
    pub fingerprint: u64,
    pub frozen: bool,
    pub wisdom: Wisdom,
    pub calibrated: AtomicBool,
    /// Whether rates were probed since the last save.
    pub probed: AtomicBool,
    /// Changes of the model that are on disk.
    pub saved: AtomicU64,
    /// The same of transfers.
    pub carried: AtomicU64,
    /// What is stored and no longer counts.
    pub outdated: Mutex<Vec<Outdated>>,
}

impl Keeper {
    /// With the next save, what is stored of this is deleted.
    pub fn outdate(&self, outdated: Vec<Outdated>) {
        self.outdated.lock().unwrap_or_else(|e| e.into_inner()).extend(outdated);
    }

    /// Writes what was learned since the last time, with these entries of the log and with usage, which is asked for if
    /// there is anything to write. Says where it is then.
    pub fn save(&self, log: Vec<Entry>, usage: impl FnOnce() -> Vec<UsageRow>) -> Result<Kept, Error> {
        if self.frozen {
            return Ok(self.wisdom.kept());
        }
        let changes = self.engine.with_model(|m| m.changes());
        let transfers = self.engine.transfers();
        let saved = self.saved.load(Ordering::Acquire);
        let learned = changes != saved || transfers != self.carried.load(Ordering::Acquire);
        let probed = self.probed.swap(false, Ordering::AcqRel);
        let outdated = std::mem::take(&mut *self.outdated.lock().unwrap_or_else(|e| e.into_inner()));
        let put_away = self.engine.guard().has_changed();
        if !learned && log.is_empty() && !probed && !put_away && outdated.is_empty() {
            // What waits in memory for a file that could not be written goes with any save.
            return match self.wisdom.kept() {
                Kept::Waiting(_) => Ok(self.wisdom.save(Batch::default())?),
                kept => Ok(kept),
            };
        }
        let calibrated = self.calibrated.load(Ordering::Acquire);
        let mut batch = remember::collect(&self.engine, self.device, self.fingerprint, calibrated, saved);
        for (id, device) in self.carrier.accelerators.iter() {
            let calibrated = device.calibrated.load(Ordering::Acquire);
            remember::add_accelerator(&mut batch, &self.engine, id, device.fingerprint, calibrated, saved);
        }
        batch.outdated = outdated;
        batch.log = log;
        batch.usage = usage();
        let kept = self.wisdom.save(batch)?;
        self.saved.fetch_max(changes, Ordering::AcqRel);
        self.carried.fetch_max(transfers, Ordering::AcqRel);
        Ok(kept)
    }
}
