//! Learns a function's variants ahead, on inputs made for it.

use super::access::{Access, InPlace, Reading};
use super::{Adaptive, words};
use std::borrow::{Borrow, BorrowMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use steersman_core::guard::Offence;
use steersman_core::{Seconds, Variant, Workload};

/// What calibration found at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The size asked for.
    pub size: usize,
    /// Median time of each variant, in the order of [`Adaptive::names`]; `None` if it was not measured.
    pub times: Vec<Option<Seconds>>,
    /// The variant chosen there now.
    pub chosen: Option<String>,
}

/// What calibration found.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// One for each size, in the order asked.
    pub rows: Vec<Row>,
    /// Runs measured.
    pub samples: usize,
    /// Whether results were compared with the first variant's: there is a check, and the first variant
    /// agrees with itself on inputs of the same size.
    pub checked: bool,
    /// Whether the budget ended before every size had its fill.
    pub cut_short: bool,
}

/// Samples of one variant at one size that settle the matter.
const ENOUGH: usize = 12;
/// A timed stretch lasts at least this long: the clock ticks in 20 to 40 ns.
const STRETCH: f64 = 10e-6;
/// Inputs made ahead for one timed stretch at most.
const MOST_INPUTS: usize = 256;

struct Trial {
    size: usize,
    variant: usize,
    workload: Workload,
    /// Seconds of single runs; the first, cold one is only kept to plan the next.
    samples: Vec<f64>,
}

impl<A: ?Sized + 'static, R> Adaptive<A, R, InPlace> {
    /// Measures every variant at these sizes for at most about `budget`, and learns from it. `make` makes
    /// an input of the given size; every measured run gets a fresh one, made outside the timing. With
    /// [`check`](super::Builder::check) `make` must make equal inputs for equal sizes, and a variant that
    /// disagrees with the first is quarantined.
    pub fn calibrate<B: BorrowMut<A>>(
        &self,
        sizes: &[usize],
        mut make: impl FnMut(usize) -> B,
        budget: Duration,
    ) -> Calibration {
        let check = self.check_argument.as_ref();
        let mut disagree = |variant: usize, size: usize| {
            let same = check?;
            let (mut mine, mut reference) = (make(size), make(size));
            (self.variants[0].run)(reference.borrow_mut());
            (self.variants[variant].run)(mine.borrow_mut());
            Some(!same(reference.borrow(), mine.borrow()))
        };
        let (checked, wrong) = self.wrong(sizes, &mut disagree);
        let mut trials = self.trials(sizes, |size| self.workload(make(size).borrow()), &wrong);
        self.measure(&mut trials, budget, |variant, size, count| {
            let mut inputs: Vec<B> = (0..count).map(|_| make(size)).collect();
            let mut results = Vec::with_capacity(count);
            let started = Instant::now();
            for input in &mut inputs {
                results.push((self.variants[variant].run)(input.borrow_mut()));
            }
            started.elapsed()
        });
        self.conclude(sizes, trials, checked)
    }
}

impl<A: ?Sized + 'static, R> Adaptive<A, R, Reading> {
    /// Measures every variant at these sizes for at most about `budget`, and learns from it. `make` makes
    /// an input of the given size, outside the timing. With [`check`](super::Builder::check) a variant
    /// whose result disagrees with the first's is quarantined.
    pub fn calibrate<B: Borrow<A>>(
        &self,
        sizes: &[usize],
        mut make: impl FnMut(usize) -> B,
        budget: Duration,
    ) -> Calibration {
        let check = self.check_result.as_ref();
        let mut disagree = |variant: usize, size: usize| {
            let same = check?;
            let input = make(size);
            let reference = (self.variants[0].run)(input.borrow());
            Some(!same(&reference, &(self.variants[variant].run)(input.borrow())))
        };
        let (checked, wrong) = self.wrong(sizes, &mut disagree);
        let mut trials = self.trials(sizes, |size| self.workload(make(size).borrow()), &wrong);
        self.measure(&mut trials, budget, |variant, size, count| {
            let input = make(size);
            let mut results = Vec::with_capacity(count);
            let started = Instant::now();
            for _ in 0..count {
                results.push((self.variants[variant].run)(std::hint::black_box(input.borrow())));
            }
            started.elapsed()
        });
        self.conclude(sizes, trials, checked)
    }
}

impl<A: ?Sized + 'static, R, M: Access<A>> Adaptive<A, R, M> {
    /// Asks `disagree` about every variant, and quarantines those that do, or panic. Says whether the
    /// question could be asked, and who was put away.
    fn wrong(
        &self,
        sizes: &[usize],
        disagree: &mut dyn FnMut(usize, usize) -> Option<bool>,
    ) -> (bool, Vec<usize>) {
        let mut found = Vec::new();
        let pairs = (0..self.variants.len()).flat_map(|v| sizes.iter().map(move |&size| (v, size)));
        for (variant, size) in pairs {
            if found.contains(&variant) {
                continue;
            }
            let (offence, detail) = match catch_unwind(AssertUnwindSafe(|| disagree(variant, size))) {
                Ok(None) => return (false, found),
                Ok(Some(false)) => continue,
                // Not even the first agrees with itself: inputs differ from one making to the next.
                Ok(Some(true)) if variant == 0 => return (false, found),
                Ok(Some(true)) => {
                    (Offence::Wrong, format!("differs from '{}' at size {size}", self.variants[0].name))
                }
                Err(payload) => (Offence::Panicked, words(&*payload)),
            };
            if let Some(w) = super::Sizes::new(&[size]).workload(self.name) {
                self.engine.quarantine(self.variants[variant].kernel, &w, offence, detail);
            }
            found.push(variant);
            if variant == 0 {
                return (false, found);
            }
        }
        (true, found)
    }

    fn trials(
        &self,
        sizes: &[usize],
        mut workload: impl FnMut(usize) -> Option<Workload>,
        without: &[usize],
    ) -> Vec<Trial> {
        let mut trials = Vec::new();
        for &size in sizes {
            let Some(w) = workload(size) else { continue };
            for variant in (0..self.variants.len()).filter(|v| !without.contains(v)) {
                trials.push(Trial { size, variant, workload: w.clone(), samples: Vec::new() });
            }
        }
        trials
    }

    /// Round after round over all trials, so that a disturbance falls on every variant alike.
    fn measure(
        &self,
        trials: &mut Vec<Trial>,
        budget: Duration,
        mut time: impl FnMut(usize, usize, usize) -> Duration,
    ) {
        let started = Instant::now();
        for _ in 0..=ENOUGH {
            let mut failed = Vec::new();
            for t in trials.iter_mut() {
                let last = t.samples.last().copied().unwrap_or(STRETCH);
                let count = ((STRETCH / last.max(1e-9)) as usize).clamp(1, MOST_INPUTS);
                // A run that would overstay is left out; the quicker trials after it still get their turn.
                let left = budget.saturating_sub(started.elapsed()).as_secs_f64();
                if !t.samples.is_empty() && last * count as f64 > left
                    || left == 0.0
                    || failed.contains(&t.variant)
                {
                    continue;
                }
                match catch_unwind(AssertUnwindSafe(|| time(t.variant, t.size, count))) {
                    Ok(took) => t.samples.push(took.as_secs_f64() / count as f64),
                    Err(payload) => {
                        let kernel = self.variants[t.variant].kernel;
                        self.engine.quarantine(kernel, &t.workload, Offence::Panicked, words(&*payload));
                        failed.push(t.variant);
                    }
                }
            }
            trials.retain(|t| !failed.contains(&t.variant));
        }
    }

    fn conclude(&self, sizes: &[usize], trials: Vec<Trial>, checked: bool) -> Calibration {
        let mut rows: Vec<Row> = sizes
            .iter()
            .map(|&size| Row { size, times: vec![None; self.variants.len()], chosen: None })
            .collect();
        let (mut samples, mut cut_short) = (0, false);
        for t in &trials {
            cut_short |= t.samples.len() <= ENOUGH;
            let warm = if t.samples.len() > 1 { &t.samples[1..] } else { &t.samples[..] };
            let Some(median) = median(warm) else { continue };
            let v = &self.variants[t.variant];
            let variant = Variant { kernel: v.kernel, params: v.params };
            samples += warm.len();
            // Twice the median is a disturbance, not a sample.
            for &s in warm.iter().filter(|s| **s < 2.0 * median) {
                self.engine.learn(variant, &t.workload, s, 1.0);
            }
            for row in rows.iter_mut().filter(|r| r.size == t.size) {
                row.times[t.variant] = Some(Seconds(median));
            }
        }
        self.engine.with_model_mut(|m| m.refit());
        for row in &mut rows {
            let w = trials.iter().find(|t| t.size == row.size).map(|t| &t.workload);
            let decision = w.and_then(|w| self.engine.judge(w).ok());
            let index = decision.and_then(|d| self.index(d.variant().kernel));
            row.chosen = index.map(|i| self.variants[i].name.clone());
        }
        Calibration { rows, samples, checked, cut_short }
    }
}

fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}
