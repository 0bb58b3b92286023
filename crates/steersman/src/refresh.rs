//! What a refreshing calibration forgets of the devices that it measures anew. Users' functions are not among it:
//! nobody but they can measure those.

use std::collections::HashSet;
use steersman_core::cost::{CellKey, Taken};
use steersman_core::tune::Winner;
use steersman_core::{DeviceId, Engine};

/// What was known before, in case nothing takes its place.
pub(crate) struct Before {
    devices: Vec<DeviceId>,
    kernels: Vec<(u16, DeviceId)>,
    known: Taken,
    winners: Vec<(u16, Vec<Winner>)>,
}

/// What was learned anew, so that what is stored of it is to be deleted.
#[derive(Default)]
pub(crate) struct Anew {
    /// Kernels of devices that were measured to the end.
    pub kernels: Vec<u16>,
    /// Single cells.
    pub cells: Vec<CellKey>,
}

impl Before {
    /// Takes what is known of these devices' kernels out of the engine; what searches found only if they are made
    /// anew.
    pub fn take(engine: &Engine, devices: Vec<DeviceId>, searched: bool) -> Before {
        let all = engine.registry().iter();
        let here = all.filter(|(_, k)| devices.contains(&k.device()) && k.function().is_none());
        let kernels: Vec<(u16, DeviceId)> = here.map(|(i, k)| (i, k.device())).collect();
        let of: HashSet<u16> = kernels.iter().map(|(i, _)| *i).collect();
        let known = engine.with_model_mut(|m| m.take_out(|v| of.contains(&v.kernel)));
        let found = |i: &u16| {
            let list = engine.registry().get(*i)?.winners()?.list();
            (!list.is_empty()).then_some((*i, list))
        };
        let winners: Vec<_> = of.iter().filter(|_| searched).filter_map(found).collect();
        for winners in winners.iter().filter_map(|(i, _)| engine.registry().get(*i)?.winners()) {
            winners.restore(&[]);
        }
        Before { devices, kernels, known, winners }
    }

    /// At the end of the calibration. If it was broken off, only what was measured anew takes the place of what was
    /// known, cell by cell, and the rest is put back: who stops it has asked for no less to be known than before. (Both
    /// lean on the machine as it was probed now; two probes differ by less than cells correct.) The same for a device
    /// that nothing was learned of.
    pub fn end(self, engine: &Engine, interrupted: bool) -> Anew {
        let mut cells = engine.with_model(|m| m.cells().map(|(key, _)| key).collect::<Vec<_>>());
        let learned: HashSet<u16> = cells.iter().map(|key| key.variant.kernel).collect();
        let whole = |device: &DeviceId| {
            let mut kernels = self.kernels.iter().filter(|(_, d)| d == device);
            !interrupted && kernels.any(|(i, _)| learned.contains(i))
        };
        let whole: Vec<DeviceId> = self.devices.iter().copied().filter(whole).collect();
        let (done, open): (Vec<_>, Vec<_>) = self.kernels.into_iter().partition(|(_, d)| whole.contains(d));
        let open: HashSet<u16> = open.into_iter().map(|(i, _)| i).collect();
        cells.retain(|key| open.contains(&key.variant.kernel));
        engine.with_model_mut(|m| m.put_back(self.known, |v| open.contains(&v.kernel)));
        for (kernel, before) in self.winners.into_iter().filter(|(i, _)| open.contains(i)) {
            let Some(winners) = engine.registry().get(kernel).and_then(|k| k.winners()) else { continue };
            before.into_iter().filter(|w| winners.of(w.kind).is_none()).for_each(|w| winners.set(w));
        }
        Anew { kernels: done.into_iter().map(|(i, _)| i).collect(), cells }
    }
}
