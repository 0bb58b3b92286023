//! Learns a function's variants ahead, on inputs made for it.

use super::Adaptive;
use super::access::{Access, InPlace, Reading};
use super::blame::{Panic, caught};
use super::builder::Agree;
use super::compare::{Clock, Compared};
use std::borrow::{Borrow, BorrowMut};
use std::cell::RefCell;
use std::panic::resume_unwind;
use std::time::{Duration, Instant};
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
    /// Whether all results were compared with the first variant's: there is a check, the first variant
    /// agrees with itself on inputs of the same size, and half the budget was enough for it.
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
    /// Seconds that a run and making its input took last.
    each: f64,
}

impl<A: ?Sized + 'static, R> Adaptive<A, R, InPlace> {
    /// Measures every variant at these sizes for at most about `budget`, and learns from it. `make` makes
    /// an input of the given size; every measured run gets a fresh one, made outside the timing. With
    /// [`check`](super::Builder::check) `make` must make equal inputs for equal sizes, and a variant that
    /// disagrees with the first is quarantined. A panic of `make` or of the check reaches the caller, and so does one
    /// on an input that no variant copes with.
    pub fn calibrate<B: BorrowMut<A>>(
        &self,
        sizes: &[usize],
        make: impl FnMut(usize) -> B,
        budget: Duration,
    ) -> Calibration {
        let make = shared(make);
        let run = |variant: usize, input: &mut B| {
            let input = input.borrow_mut();
            caught(|| (self.variants[variant].run)(input)).map(drop)
        };
        let compare = |same: &Agree<A>, clock: &Clock| {
            let left = |variant: usize, size: usize| {
                let mut input = make(size);
                run(variant, &mut input).map(|()| input)
            };
            let agrees = |reference: &B, variant: usize, size: usize| {
                Ok(same(reference.borrow(), left(variant, size)?.borrow()))
            };
            self.compare(sizes, clock, |size| left(0, size), agrees)
        };
        let time = |variant: usize, size: usize, count: usize| {
            let mut inputs: Vec<B> = (0..count).map(|_| make(size)).collect();
            let mut results = Vec::with_capacity(count);
            let started = Instant::now();
            caught(|| {
                for input in &mut inputs {
                    results.push((self.variants[variant].run)(input.borrow_mut()));
                }
                started.elapsed()
            })
        };
        let clock = Clock::start(budget);
        let compared = self.check_argument.as_ref().map(|same| compare(same, &clock));
        self.learn(sizes, &clock, compared, |size| self.workload(make(size).borrow()), time)
    }
}

impl<A: ?Sized + 'static, R> Adaptive<A, R, Reading> {
    /// Measures every variant at these sizes for at most about `budget`, and learns from it. `make` makes
    /// an input of the given size, outside the timing. With [`check`](super::Builder::check) a variant
    /// whose result disagrees with the first's is quarantined. A panic of `make` or of the check reaches the caller, and
    /// so does one on an input that no variant copes with.
    pub fn calibrate<B: Borrow<A>>(
        &self,
        sizes: &[usize],
        make: impl FnMut(usize) -> B,
        budget: Duration,
    ) -> Calibration {
        let make = shared(make);
        let compare = |same: &Agree<R>, clock: &Clock| {
            let result = |variant: usize, input: &B| {
                let input = input.borrow();
                caught(|| (self.variants[variant].run)(input))
            };
            let reference = |size: usize| {
                let input = make(size);
                result(0, &input).map(|reference| (input, reference))
            };
            let agrees = |(input, reference): &(B, R), variant: usize, _: usize| {
                Ok(same(reference, &result(variant, input)?))
            };
            self.compare(sizes, clock, reference, agrees)
        };
        let time = |variant: usize, size: usize, count: usize| {
            let input = make(size);
            let mut results = Vec::with_capacity(count);
            let started = Instant::now();
            caught(|| {
                for _ in 0..count {
                    results.push((self.variants[variant].run)(std::hint::black_box(input.borrow())));
                }
                started.elapsed()
            })
        };
        let clock = Clock::start(budget);
        let compared = self.check_result.as_ref().map(|same| compare(same, &clock));
        self.learn(sizes, &clock, compared, |size| self.workload(make(size).borrow()), time)
    }
}

/// The same for several users.
fn shared<B>(make: impl FnMut(usize) -> B) -> impl Fn(usize) -> B {
    let make = RefCell::new(make);
    move |size| (make.borrow_mut())(size)
}

impl<A: ?Sized + 'static, R, M: Access<A>> Adaptive<A, R, M> {
    /// Measures all that were not found wrong, and learns.
    fn learn(
        &self,
        sizes: &[usize],
        clock: &Clock,
        compared: Option<Compared>,
        workload: impl Fn(usize) -> Option<Workload>,
        time: impl Fn(usize, usize, usize) -> Result<Duration, Panic>,
    ) -> Calibration {
        let checked = compared.as_ref().is_some_and(|c| c.all);
        let (mut cut_short, wrong) = compared.map_or((false, Vec::new()), |c| (c.cut_short, c.wrong));
        let mut trials = Vec::new();
        for &size in sizes {
            if clock.left().is_zero() {
                cut_short = true;
                break;
            }
            let Some(workload) = workload(size) else { continue };
            for variant in (0..self.variants.len()).filter(|v| !wrong.contains(v)) {
                let workload = workload.clone();
                trials.push(Trial { size, variant, workload, samples: Vec::new(), each: STRETCH });
            }
        }
        self.measure(&mut trials, clock, time);
        self.conclude(sizes, trials, checked, cut_short)
    }

    /// Round after round over all trials, so that a disturbance falls on every variant alike.
    fn measure(
        &self,
        trials: &mut Vec<Trial>,
        clock: &Clock,
        time: impl Fn(usize, usize, usize) -> Result<Duration, Panic>,
    ) {
        for _ in 0..=ENOUGH {
            let mut failed: Vec<(usize, usize)> = Vec::new();
            for i in 0..trials.len() {
                let t = &mut trials[i];
                let (variant, size) = (t.variant, t.size);
                let left = clock.left().as_secs_f64();
                if left == 0.0 || failed.iter().any(|(v, _)| *v == variant) {
                    continue;
                }
                let last = t.samples.last().copied().unwrap_or(STRETCH);
                let count = ((STRETCH / last.max(1e-9)) as usize).clamp(1, MOST_INPUTS);
                // A run that would overstay is left out; the quicker trials after it still get their turn.
                let count = if t.samples.is_empty() { 1 } else { count.min((left / t.each) as usize) };
                if count == 0 {
                    continue;
                }
                let began = Instant::now();
                match time(variant, size, count) {
                    Ok(took) => {
                        t.samples.push(took.as_secs_f64() / count as f64);
                        t.each = (began.elapsed().as_secs_f64() / count as f64).max(1e-9);
                    }
                    Err(panic) => {
                        self.accuse(variant, &t.workload, &panic);
                        failed.push((variant, size));
                        if trials
                            .iter()
                            .filter(|t| t.size == size)
                            .all(|t| failed.contains(&(t.variant, size)))
                        {
                            self.acquit();
                            resume_unwind(panic);
                        }
                    }
                }
            }
            for &(variant, size) in &failed {
                if trials.iter().any(|t| t.size == size && !t.samples.is_empty() && t.variant != variant) {
                    self.outdo(variant);
                }
            }
            trials.retain(|t| !failed.iter().any(|(v, _)| *v == t.variant));
        }
    }

    fn conclude(
        &self,
        sizes: &[usize],
        trials: Vec<Trial>,
        checked: bool,
        mut cut_short: bool,
    ) -> Calibration {
        let mut rows: Vec<Row> = sizes
            .iter()
            .map(|&size| Row { size, times: vec![None; self.variants.len()], chosen: None })
            .collect();
        let mut samples = 0;
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
        // Only its own: another calibration may be under way.
        if !self.engine.is_frozen() {
            self.engine.with_model_mut(|m| m.refit_of(|key| self.index(key.variant.kernel).is_some()));
        }
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
