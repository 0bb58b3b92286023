//! Whether variants do the same as the first one, asked within a calibration.

use super::blame::{Panic, words};
use super::{Access, Adaptive, Sizes};
use std::time::{Duration, Instant};
use steersman_core::guard::Offence;

/// Share of a calibration's budget that comparing may take.
const COMPARING: f64 = 0.5;

/// Time that a calibration may take.
pub(super) struct Clock {
    started: Instant,
    budget: Duration,
}

impl Clock {
    pub fn start(budget: Duration) -> Clock {
        Clock { started: Instant::now(), budget }
    }

    pub fn left(&self) -> Duration {
        self.budget.saturating_sub(self.started.elapsed())
    }

    fn may_compare(&self) -> bool {
        self.started.elapsed() < self.budget.mul_f64(COMPARING)
    }
}

/// What comparing came to.
pub(super) struct Compared {
    /// Whether every variant was compared at every size, and the first agrees with itself.
    pub all: bool,
    /// Whether time ran out.
    pub cut_short: bool,
    /// Who was put away.
    pub wrong: Vec<usize>,
}

impl<A: ?Sized + 'static, R, M: Access<A>> Adaptive<A, R, M> {
    /// Compares all variants with the first, small sizes first, and puts those away that differ, or panic where the first
    /// does not. `reference` gives what the first makes of an input of this size, `agrees` whether a variant makes the same.
    pub(super) fn compare<T>(
        &self,
        sizes: &[usize],
        clock: &Clock,
        reference: impl Fn(usize) -> Result<T, Panic>,
        agrees: impl Fn(&T, usize, usize) -> Result<bool, Panic>,
    ) -> Compared {
        let mut sorted = sizes.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let mut found: Vec<(usize, Offence, String)> = Vec::new();
        let mut end = Compared { all: true, cut_short: false, wrong: Vec::new() };
        'all: for size in sorted {
            let mut known = None;
            for variant in 0..self.variants.len() {
                if found.iter().any(|(v, ..)| *v == variant) {
                    continue;
                }
                if !clock.may_compare() {
                    (end.all, end.cut_short) = (false, true);
                    break 'all;
                }
                let known = match &mut known {
                    Some(known) => known,
                    none => match reference(size) {
                        Ok(made) => none.insert(made),
                        // Whether it or the size is to blame shows when all are run.
                        Err(_) => {
                            end.all = false;
                            break 'all;
                        }
                    },
                };
                match agrees(known, variant, size) {
                    Ok(true) => {}
                    Ok(false) if variant > 0 => {
                        let detail = format!("differs from '{}' at size {size}", self.variants[0].name);
                        found.push((variant, Offence::Wrong, detail));
                    }
                    Err(panic) if variant > 0 => {
                        self.outdo(variant);
                        found.push((variant, Offence::Panicked, words(&*panic)));
                    }
                    // Not even the first agrees with itself: inputs differ from one making to the next.
                    Ok(false) | Err(_) => {
                        found.retain(|(_, offence, _)| *offence != Offence::Wrong);
                        end.all = false;
                        break 'all;
                    }
                }
            }
        }
        for (variant, offence, detail) in found {
            // Which size it was does not matter: it is put away for the function.
            if let Some(w) = Sizes::new(&[1]).workload(self.name) {
                self.engine.quarantine(self.variants[variant].kernel, &w, offence, detail);
            }
            end.wrong.push(variant);
        }
        end
    }
}
