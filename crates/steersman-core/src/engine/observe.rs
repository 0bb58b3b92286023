//! What came of it: the ledger, the drift watch and the model take measurements in.

use super::{Engine, lock, read, write};
use crate::cost::{CellKey, Machine, Terms, Variant};
use crate::decision::Decision;
use crate::drift::Shift;
use crate::kernel::Kernel;
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

/// A calibration under way.
pub(crate) struct Calibrating<'a>(&'a Engine);

impl Drop for Calibrating<'_> {
    fn drop(&mut self) {
        write(&self.0.model).calibrating(false);
    }
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
        self.settle_up(decision, seconds + decision.moves as f64);
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
        if self.take_in(decision.variant, &workload, seconds, weight) {
            write(&self.model).settle_often_seen(decision.variant, &workload);
        }
        Some(Observed { shift, explored: decision.explores })
    }

    /// Books what a call took that shows nothing to learn: it failed, its threads were busy elsewhere, it had to be compiled
    /// first. A call that explores loses what it loses all the same; what a failed one took is lost whole.
    pub fn book(&self, decision: &Decision, seconds: impl Into<Seconds>, failed: bool) {
        let seconds = seconds.into().0;
        if decision.due && seconds.is_finite() && !self.frozen.load(Ordering::Acquire) {
            let instead = if failed { 0.0 } else { decision.instead };
            self.settle_up(&Decision { instead, ..*decision }, seconds.max(0.0));
        }
    }

    fn settle_up(&self, d: &Decision, seconds: f64) {
        let mut ledger = lock(&self.ledger);
        ledger.book(d.unbooked);
        match d.explores {
            true => ledger.book_exploration(seconds, d.instead, d.at_risk),
            false => ledger.book(seconds),
        }
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

    /// Takes in a measured time outside of any decision: calibration, imports. A frozen engine does not.
    pub fn learn(&self, variant: Variant, w: &Workload, seconds: f64, weight: f64) {
        if !self.is_frozen() {
            self.take_in(variant, w, seconds, weight);
        }
    }

    /// Says whether it may be settled by now.
    fn take_in(&self, variant: Variant, w: &Workload, seconds: f64, weight: f64) -> bool {
        let Some(kernel) = self.registry.get(variant.kernel) else { return false };
        let hash = w.key().hash64();
        let terms = self.terms(&**kernel, variant, w);
        let seconds = self.undisturbed(variant, seconds);
        write(&self.model).observe(variant, w, hash, &terms, seconds, weight)
    }

    /// Until this is dropped, what programs measure meanwhile is not settled by itself, but at the end with all the rest.
    pub(crate) fn calibrating(&self) -> Calibrating<'_> {
        write(&self.model).calibrating(true);
        Calibrating(self)
    }

    /// At the end of a calibration: settles every regression with samples enough, unless the engine is frozen.
    pub fn refit(&self) {
        if !self.is_frozen() {
            self.with_model_mut(|m| m.refit());
        }
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
