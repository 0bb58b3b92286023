//! Every candidate of a workload with its estimate, and why the others are none.

use super::links::Carried;
use super::{Engine, EngineError, Settings, lock, read};
use crate::candidate::{self, Candidate, Candidates};
use crate::cost::{Machine, Source, Variant};
use crate::device::{DeviceId, Place};
use crate::drift::Watch;
use crate::guard::Offence;
use crate::kernel::{Kernel, NumericClass, Refusal};
use crate::measure::panic_text;
use crate::op::OpClass;
use crate::units::{Bytes, Seconds};
use crate::workload::Workload;
use smallvec::SmallVec;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;

/// Moves to each device of one workload, worked out when the first kernel there is met.
type Known = SmallVec<[(DeviceId, Result<Carried, Refusal>); 2]>;

/// What a survey is for.
enum Scope<'a> {
    /// Those that may win.
    Likely,
    /// All that are legal and worth it.
    Legal,
    /// All that are legal.
    Runnable,
    /// And why the others are not.
    All(&'a mut Vec<(u16, Refusal)>),
}

impl Scope<'_> {
    fn refused(&mut self, kernel: u16, why: impl FnOnce() -> Refusal) {
        if let Scope::All(list) = self {
            list.push((kernel, why()));
        }
    }

    fn clear(&mut self) {
        if let Scope::All(list) = self {
            list.clear();
        }
    }
}

impl Engine {
    /// Legal candidates with estimates. Those that cannot win, because moving alone takes longer than another does
    /// at its slowest or the work far longer, are left out.
    pub(super) fn candidates(&self, w: &Workload, hash: u64) -> Candidates {
        let mut found = Candidates::new();
        self.survey(w, hash, &mut found, Scope::Likely);
        found
    }

    /// Legal candidates with estimates, whether they can win or not.
    pub(super) fn legal_candidates(&self, w: &Workload, hash: u64) -> Candidates {
        let mut found = Candidates::new();
        self.survey(w, hash, &mut found, Scope::Legal);
        found
    }

    /// What kernels say of themselves may be anybody's code: one that panics is put away, and the others are asked again.
    fn survey(&self, w: &Workload, hash: u64, found: &mut Candidates, mut scope: Scope<'_>) {
        let asked = Cell::new(None);
        // Each round puts one away, so this ends.
        while let Err(panic) =
            catch_unwind(AssertUnwindSafe(|| self.ask_all(w, hash, found, &mut scope, &asked)))
        {
            let detail = format!("panicked when it was asked about the work: {}", panic_text(&*panic));
            // It was nobody's who was asked.
            let Some(kernel) = asked.take() else { resume_unwind(panic) };
            self.quarantine(kernel, w, Offence::Panicked, detail);
            found.clear();
            scope.clear();
        }
    }

    /// The candidates among all kernels; `asked` is who is asked now.
    fn ask_all(
        &self,
        w: &Workload,
        hash: u64,
        found: &mut Candidates,
        scope: &mut Scope<'_>,
        asked: &Cell<Option<u16>>,
    ) {
        let devices = read(&self.devices);
        let model = read(&self.model);
        let settings = read(&self.settings);
        let watches: SmallVec<[_; 4]> = lock(&self.watches).iter().map(|(k, w)| (*k, *w)).collect();
        let now = self.observations.load(Ordering::Relaxed);
        let small = settings.is_small(w);
        let subject = model.subject(w, hash);
        let unknown = Machine::default();
        let at_home = w.inputs().iter().chain(w.outputs()).all(|o| o.place == Place::Host);
        // A kernel that was asked for by name is found however long its moves take.
        let likely = matches!(scope, Scope::Likely) && settings.force.is_none();
        // Where somebody must not run, or may not be legal, all the others are weighed.
        let all = matches!(scope, Scope::Runnable)
            || settings.weigh_all
            || settings.force.is_some()
            || !settings.disable.is_empty()
            || !self.guard.is_empty()
            || w.numerics() == NumericClass::Exact;
        let mut known = Known::new();
        let mut slowest = f64::INFINITY;
        for (index, kernel) in self.registry.iter() {
            asked.set(Some(index));
            // First, since the kernel may be here for what it does when it is asked.
            if let Some(why) = self.guard.check(index, w) {
                scope.refused(index, || Refusal::new(format!("in quarantine: {why}")));
                continue;
            }
            if !kernel.handles(w.op()) {
                continue;
            }
            if !all && let Some(why) = kernel.outdone(w) {
                // What it cannot do at all is the better reason.
                let legality = || candidate::legality(&**kernel, w);
                scope.refused(index, || legality().err().unwrap_or_else(|| Refusal::new(why)));
                continue;
            }
            let device = kernel.device();
            let site = devices.get(device.0 as usize);
            let place = site.map_or(Place::Host, |d| d.place);
            let carried = if at_home && place == Place::Host {
                None
            } else {
                let at = known.iter().position(|k| k.0 == device).unwrap_or_else(|| {
                    known.push((device, self.reach(w, device, place)));
                    known.len() - 1
                });
                match &known[at].1 {
                    Err(why) => {
                        scope.refused(index, || why.clone());
                        continue;
                    }
                    Ok(c) if likely && c.least().0 > slowest => continue,
                    Ok(c) => Some(c),
                }
            };
            if let Err(why) = candidate::legality(&**kernel, w) {
                scope.refused(index, || why);
                continue;
            }
            if let Some(why) = barred(&**kernel, &settings) {
                scope.refused(index, || why);
                continue;
            }
            let machine = site.map_or(&unknown, |d| &d.machine);
            for params in kernel.params(w) {
                if small && params.threads > 1 {
                    let limit = settings.small_batch.unwrap_or_default();
                    scope.refused(index, || {
                        Refusal::new(format!("more than one thread below {limit} elements (small_batch)"))
                    });
                    continue;
                }
                let variant = Variant { kernel: index, params };
                let terms = kernel.terms(w, params, machine);
                if !terms.is_work() {
                    scope.refused(index, || Refusal::new("the work it counts is no number of seconds"));
                    break;
                }
                let group = (device, params.threads > 1);
                let watch = watches.iter().find(|(k, _)| *k == group).map_or_else(Watch::default, |w| w.1);
                let speed = watch.speed() * machine.pace.unwrap_or(1.0);
                let scratch = kernel.scratch(w, params) as u64;
                let limit = if likely { slowest } else { f64::INFINITY };
                let Some(mut estimate) = model.estimate(variant, &subject, &terms, speed, scratch, limit)
                else {
                    continue;
                };
                let lag = machine.lag(params.threads.into());
                if lag != 0.0 {
                    estimate = estimate.later(lag);
                }
                // Doubt only reaches down: a slow-down that went on is in the estimate already.
                let doubt = watch.doubt(now);
                if doubt > 0.0 {
                    estimate.spread = estimate.spread.hypot(doubt);
                    estimate.low = estimate.low * (-1.645 * doubt).exp();
                }
                let mut prior = Seconds(terms.total());
                let mut moved = Bytes(0);
                if let Some(c) = carried.filter(|c| c.bytes.0 > 0) {
                    estimate = estimate.with_moves(c.seconds, c.samples);
                    prior += c.seconds;
                    moved = c.bytes;
                }
                slowest = slowest.min(estimate.high.0);
                let wider = self.registry.wider(index);
                found.push(Candidate { variant, estimate, prior, moved, wider, away: carried.is_some() });
            }
        }
        if w.class() == OpClass::Custom {
            scale_priors(found);
        }
    }

    /// What has to be carried for a workload to run on this device, or why it cannot.
    fn reach(&self, w: &Workload, device: DeviceId, place: Place) -> Result<Carried, Refusal> {
        match self.guard.lost(device) {
            Some(why) => Err(Refusal::new(format!("its device was lost: {why}"))),
            None => self.moves_to(w, place),
        }
    }

    /// The same, and the refused ones with their reasons.
    pub(super) fn all_candidates(&self, w: &Workload, hash: u64) -> (Candidates, Vec<(u16, Refusal)>) {
        let (mut found, mut refused) = (Candidates::new(), Vec::new());
        self.survey(w, hash, &mut found, Scope::All(&mut refused));
        (found, refused)
    }

    pub(super) fn no_candidate(&self, w: &Workload, hash: u64) -> EngineError {
        let (_, refused) = self.all_candidates(w, hash);
        let named = refused.into_iter().map(|(i, why)| (self.name(i), why.to_string())).collect();
        EngineError::NoCandidate { workload: w.to_string(), refused: named }
    }

    /// Every legal candidate with its estimate, also those that a decision does not weigh, since others always outdo
    /// them ([`Kernel::outdone`]). Of these little may be known.
    pub fn runnable(&self, w: &Workload) -> Candidates {
        let hash = w.key().hash64();
        let mut found = Candidates::new();
        self.survey(w, hash, &mut found, Scope::Runnable);
        found
    }

    /// Every candidate with its estimate, in registration order. Decides nothing.
    pub fn estimates(&self, w: &Workload) -> Candidates {
        let hash = w.key().hash64();
        self.legal_candidates(w, hash)
    }
}

/// Why a kernel that could run it must not, if so.
fn barred(kernel: &dyn Kernel, settings: &Settings) -> Option<Refusal> {
    let off = settings.disable.iter().find(|pattern| glob(pattern, kernel.name()))?;
    Some(Refusal::new(format!("switched off by the knob disable={off}")))
}

/// Nothing is known of a user's code before it ran, so a prior only ranks: what has been measured says
/// how long such a call takes at all, and the variants not yet known are supposed to take about that.
fn scale_priors(candidates: &mut Candidates) {
    let known = |c: &Candidate| c.estimate.evidence.samples > 0 && c.prior.0 > 0.0;
    let (sum, n) = candidates
        .iter()
        .filter(|c| known(c))
        .fold((0.0, 0.0), |(sum, n), c| (sum + (c.mean() / c.prior).ln(), n + 1.0));
    if n == 0.0 {
        return;
    }
    let scale = f64::exp(sum / n);
    for c in candidates.iter_mut().filter(|c| c.estimate.evidence.source == Source::Prior) {
        let e = &mut c.estimate;
        for t in [&mut e.mean, &mut e.low, &mut e.high, &mut e.launch, &mut e.work] {
            *t = *t * scale;
        }
    }
}

/// Whether `name` matches `pattern`, in which `*` stands for anything.
pub fn glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(p) = last.replace(part) {
            let p: &str = p;
            match rest.find(p) {
                Some(i) => rest = &rest[i + p.len()..],
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |tail| rest.ends_with(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_people_expect() {
        for (pattern, name, want) in [
            ("cpu/gemm", "cpu/gemm", true),
            ("cpu/gemm", "cpu/gemm-2", false),
            ("cpu/*", "cpu/gemm", true),
            ("*avx512*", "cpu/map-avx512", true),
            ("*avx512", "cpu/map-avx512-x", false),
            ("*", "anything", true),
        ] {
            assert_eq!(glob(pattern, name), want, "{pattern} {name}");
        }
    }
}
