//! What came of it: the ledger, the drift watch and the model take measurements in.

use super::{Engine, lock, read, write};
use crate::cost::{CellKey, Machine, Terms, Variant};
use crate::decision::Decision;
use crate::drift::Shift;
use crate::kernel::Kernel;
use crate::log::ReasonCode;
use crate::units::Seconds;
use crate::workload::Workload;
use std::sync::atomic::Ordering;

/// What became of an observed call, for logs and trackers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// The device group changed its speed just now.
    pub shift: Option<Shift>,
    /// Whether the call explored.
    pub explored: bool,
}

/// Spread above which a prediction is too vague to tell a change of the machine from its own error.
const WATCHED_SPREAD: f64 = 0.3;

impl Engine {
    /// Takes in how long a decided call took, without what was moved for it: that is for
    /// [`Engine::observe_transfer`]. Calls nobody wants timed are ignored.
    pub fn observe(&self, decision: &Decision, seconds: impl Into<Seconds>) -> Option<Observed> {
        let seconds = seconds.into().0;
        let usable = decision.due && seconds > 0.0 && seconds.is_finite();
        if !usable || self.frozen.load(Ordering::Acquire) {
            return None;
        }
        let explored = decision.reason == ReasonCode::Explore;
        {
            let mut ledger = lock(&self.ledger);
            ledger.book(decision.unbooked);
            let all = seconds + decision.moves as f64;
            if explored {
                ledger.book_exploration(all, decision.instead);
            } else {
                ledger.book(all);
            }
        }
        let workload = {
            let mut known = lock(&self.known);
            let k = known.get_mut(&decision.hash)?;
            k.observed += 1;
            k.workload.clone()
        };
        let work = (decision.predicted - decision.moves as f64).max(f64::MIN_POSITIVE);
        let residual = (seconds / work).ln();
        // From the upper end: the lower one also holds the doubt about a slow-down that may be over.
        let spread = ((decision.high as f64 / decision.predicted).ln() / 1.65).max(0.02);
        let now = self.observations.fetch_add(1, Ordering::Relaxed) + 1;
        let (shift, uneasy) = self.watch(decision.variant, residual, spread, now);
        // A run far outside its interval is more likely a hiccup than news: it counts less. Nor does the
        // model take in what may turn out to be a shift, which would then count twice.
        let weight = (3.0 * spread / residual.abs().max(1e-9)).min(if uneasy { 0.2 } else { 1.0 });
        self.learn(decision.variant, &workload, seconds, weight);
        Some(Observed { shift, explored })
    }

    /// Whether the group shifted just now, and whether a shift may be on.
    fn watch(&self, variant: Variant, residual: f64, spread: f64, now: u64) -> (Option<Shift>, bool) {
        // A supposed time that was wrong is no news about the machine.
        if spread > WATCHED_SPREAD || !read(&self.settings).drift {
            return (None, false);
        }
        let Some(device) = self.registry.get(variant.kernel).map(|k| k.device()) else {
            return (None, false);
        };
        let mut watches = lock(&self.watches);
        let watch = watches.entry((device, variant.params.threads > 1)).or_default();
        let shift = watch.observe(residual, spread, now);
        let uneasy = watch.uneasy();
        drop(watches);
        if shift.is_some() {
            self.invalidate();
        }
        (shift, uneasy)
    }

    /// Takes in a measured time outside of any decision: calibration, imports.
    pub fn learn(&self, variant: Variant, w: &Workload, seconds: f64, weight: f64) {
        let Some(kernel) = self.registry.get(variant.kernel) else { return };
        let hash = w.key().hash64();
        let terms = self.terms(&**kernel, variant, w);
        let seconds = self.undisturbed(variant, seconds);
        write(&self.model).observe(variant, w, hash, &terms, seconds, weight);
    }

    /// What a run that takes this long now would take at the speed that all is learned at.
    pub(crate) fn undisturbed(&self, variant: Variant, seconds: f64) -> f64 {
        let Some(kernel) = self.registry.get(variant.kernel) else { return seconds };
        let device = kernel.device();
        let threads = variant.params.threads;
        let of = |m: &Machine| (m.pace.unwrap_or(1.0), m.lag(threads.into()));
        let (pace, lag) = read(&self.devices).get(device.0 as usize).map_or((1.0, 0.0), |d| of(&d.machine));
        (seconds - lag).max(0.5 * seconds) / (self.speed(device, threads > 1) * pace)
    }

    /// What a run would be expected to take, at that speed, had this time not been learned of it. `None` where too little
    /// else is known.
    pub(crate) fn without(&self, variant: Variant, w: &Workload, seconds: f64) -> Option<f64> {
        let kernel = self.registry.get(variant.kernel)?;
        let terms = self.terms(&**kernel, variant, w);
        read(&self.model).without(variant, w, &terms, seconds)
    }

    /// Has this time, at that speed, be learned in place of another.
    pub(crate) fn replace(&self, variant: Variant, w: &Workload, was: f64, seconds: f64) {
        let Some(kernel) = self.registry.get(variant.kernel) else { return };
        let hash = w.key().hash64();
        let terms = self.terms(&**kernel, variant, w);
        let mut model = write(&self.model);
        model.take_back(variant, w, hash, was);
        model.observe(variant, w, hash, &terms, seconds, 1.0);
    }

    fn terms(&self, kernel: &dyn Kernel, variant: Variant, w: &Workload) -> Terms {
        let devices = read(&self.devices);
        let unknown = Machine::default();
        let machine = devices.get(kernel.device().0 as usize).map_or(&unknown, |d| &d.machine);
        kernel.terms(w, variant.params, machine)
    }

    /// Samples behind a variant's model for this workload.
    pub fn samples(&self, variant: Variant, w: &Workload) -> u64 {
        read(&self.model).samples(&CellKey::of(variant, w))
    }
}
