//! Adaptive functions: several ways to do one thing, and each call takes the quickest for its size.
//!
//! Variants that change their argument:
//! ```
//! use std::sync::Arc;
//! use steersman::Adaptive;
//! use steersman_core::Engine;
//!
//! let engine = Arc::new(Engine::default());
//! let sort = Adaptive::new("sort/u32", &engine)
//!     .variant("std", |v: &mut [u32]| v.sort_unstable())
//!     .variant("insertion", |v: &mut [u32]| {
//!         for i in 1..v.len() {
//!             let at = v[..i].partition_point(|x| *x <= v[i]);
//!             v[at..=i].rotate_right(1);
//!         }
//!     })
//!     .size(|v| v.len())
//!     .build()?;
//! let mut data = vec![5, 1, 4];
//! sort.call(&mut data); // picks, runs, learns
//! assert_eq!(data, [1, 4, 5]);
//! # Ok::<(), steersman::adaptive::BuildError>(())
//! ```
//!
//! Variants that only read it and return something; no arrays in sight, and two sizes to learn from:
//! ```
//! # use std::sync::Arc;
//! # use steersman::Adaptive;
//! # use steersman_core::Engine;
//! # let engine = Arc::new(Engine::default());
//! let count = Adaptive::reading("count-words", &engine)
//!     .variant("split", |(text, word): &(String, String)| text.split(' ').filter(|w| w == word).count())
//!     .variant("search", |(text, word): &(String, String)| {
//!         let ends = |i: usize| matches!(text.as_bytes().get(i), None | Some(b' '));
//!         let starts = |i: usize| i == 0 || text.as_bytes()[i - 1] == b' ';
//!         text.match_indices(word.as_str()).filter(|(i, w)| starts(*i) && ends(i + w.len())).count()
//!     })
//!     .sizes(|(text, word)| [text.len(), word.len()])
//!     .build()?;
//! assert_eq!(count.call(&("to be or not to be".into(), "be".into())), 2);
//! # Ok::<(), steersman::adaptive::BuildError>(())
//! ```
//!
//! A call runs exactly one variant, once, on the caller's own data. Trying out another variant is
//! running that one instead now and then: every variant's result is as good as any other's, and the time
//! this may lose is bounded by the engine's exploration budget. [`Adaptive::calibrate`] learns ahead, on
//! inputs of its own.
//!
//! On a runtime's engine ([`Runtime::engine`](crate::Runtime::engine)) what is learned is kept with everything
//! else, and the next process knows it from the start.
//!
//! A variant that panics is not chosen again. If the argument can be brought back (it was only read, or
//! [`Builder::cloning`] kept a copy), another variant redoes the call; otherwise the panic goes on to the
//! caller. If no variant copes with an argument, the argument is to blame: the panic goes on, and all stay as they were.

mod access;
mod blame;
#[cfg(test)]
mod blame_tests;
mod builder;
mod calibrate;
mod compare;
mod kernel;
mod size;
#[cfg(test)]
mod tests;

pub use access::{Access, InPlace, Reading, Restore};
pub use builder::{BuildError, Builder};
pub use calibrate::{Calibration, Row};
pub use size::{MAX_SIZES, Sizes};

use blame::{Panic, caught};
use builder::{Agree, Keep, Measure, Run};
use size::Made;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;
use steersman_core::{Engine, Explanation, Params, Workload};

/// Runs of a variant before it is trusted not to panic, and no copy of the argument is kept for it.
const PROVEN_AFTER: u32 = 8;

struct Variant<A: ?Sized + 'static, R, M: Access<A>> {
    name: String,
    kernel: u16,
    params: Params,
    run: Run<A, R, M>,
    /// Runs so far, counted up to [`PROVEN_AFTER`] so that hits write nothing shared.
    runs: AtomicU32,
    /// Whether it panicked on an argument that another one coped with.
    outdone: AtomicBool,
}

/// Several ways to do one thing; each call takes the quickest. See [the module](self).
pub struct Adaptive<A: ?Sized + 'static, R, M: Access<A> = InPlace> {
    name: &'static str,
    engine: Arc<Engine>,
    variants: Vec<Variant<A, R, M>>,
    sizes: Measure<A>,
    made: Made,
    keep: Option<Keep<A>>,
    check_argument: Option<Agree<A>>,
    check_result: Option<Agree<R>>,
}

impl<A: ?Sized + 'static, R> Adaptive<A, R, InPlace> {
    /// Starts an adaptive function whose variants may change their argument.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(name: &'static str, engine: &Arc<Engine>) -> Builder<A, R, InPlace> {
        Builder::new(name, engine)
    }

    /// Runs the variant that is quickest for this argument.
    pub fn call(&self, arg: &mut A) -> R {
        self.run(arg)
    }
}

impl<A: ?Sized + 'static, R> Adaptive<A, R, Reading> {
    /// Starts an adaptive function whose variants only read their argument.
    pub fn reading(name: &'static str, engine: &Arc<Engine>) -> Builder<A, R, Reading> {
        Builder::new(name, engine)
    }

    /// Runs the variant that is quickest for this argument.
    pub fn call(&self, arg: &A) -> R {
        self.run(arg)
    }
}

impl<A: ?Sized + 'static, R, M: Access<A>> Adaptive<A, R, M> {
    /// Its variants' names, the default first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variants.iter().map(|v| v.name.as_str())
    }

    /// The engine that decides.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The variant that would be chosen for this argument now, exploring aside; `None` if all are in
    /// quarantine.
    pub fn choice(&self, arg: &A) -> Option<&str> {
        let decision = self.engine.judge(&self.workload(arg)?).ok()?;
        self.index(decision.variant().kernel).map(|i| self.variants[i].name.as_str())
    }

    /// Everything behind that choice.
    pub fn explain(&self, arg: &A) -> Option<Explanation> {
        self.engine.explain(&self.workload(arg)?).ok()
    }

    /// What the engine sees of a call with this argument.
    pub fn workload(&self, arg: &A) -> Option<Workload> {
        (self.sizes)(arg).workload(self.name)
    }

    /// Which variant is chosen from which size on, between two sizes, exploring aside. For functions of
    /// one size.
    pub fn crossovers(&self, from: usize, to: usize) -> Vec<(usize, &str)> {
        let mut found: Vec<(usize, &str)> = Vec::new();
        let mut at = from;
        while at <= to
            && let Ok(w) = Workload::custom(self.name, &[at])
            && let Ok(d) = self.engine.judge(&w)
            && let Some(i) = self.index(d.variant().kernel)
        {
            let name = self.variants[i].name.as_str();
            if found.last().is_none_or(|(_, last)| *last != name) {
                found.push((at, name));
            }
            let next = self.engine.crossovers(&w, d.variant()).into_iter().find(|c| c.above);
            let Some(next) = next else { break };
            at = next.at.max(at + 1);
        }
        found
    }

    fn index(&self, kernel: u16) -> Option<usize> {
        self.variants.iter().position(|v| v.kernel == kernel)
    }

    fn run(&self, mut arg: M::Arg<'_>) -> R {
        let sizes = (self.sizes)(M::look(&arg));
        let result = self.made.with(self.name, sizes, |w| self.run_as(w, &mut arg));
        // No workload, or every variant is in quarantine: the default answers for itself.
        result.flatten().unwrap_or_else(|| (self.variants[0].run)(arg))
    }

    /// Runs the variant the engine chooses, and another if that one panics. `None` if there is none.
    fn run_as(&self, w: &Workload, arg: &mut M::Arg<'_>) -> Option<R> {
        let mut panicked: Vec<(usize, Panic)> = Vec::new();
        loop {
            let chosen = self.engine.decide(w).ok().and_then(|d| Some((d, self.index(d.variant().kernel)?)));
            let Some((decision, index)) = chosen else {
                // Nobody is left. Whoever is here because of an argument may go.
                let released = self.acquit();
                match panicked.pop() {
                    Some((_, panic)) => resume_unwind(panic),
                    None if released => continue,
                    None => return None,
                }
            };
            let variant = &self.variants[index];
            let unproven = variant.runs.load(Ordering::Relaxed) < PROVEN_AFTER;
            let kept = self.keep.as_ref().filter(|_| unproven).map(|keep| keep(M::look(arg)));
            let started = decision.wants_timing().then(Instant::now);
            match caught(|| (variant.run)(M::again(arg))) {
                Ok(r) => {
                    if let Some(started) = started {
                        self.engine.observe(&decision, started.elapsed());
                    }
                    if unproven {
                        variant.runs.fetch_add(1, Ordering::Relaxed);
                    }
                    panicked.iter().for_each(|(index, _)| self.outdo(*index));
                    return Some(r);
                }
                Err(panic) => {
                    if let Some(started) = started {
                        self.engine.book(&decision, started.elapsed(), true);
                    }
                    self.accuse(index, w, &panic);
                    if !M::restore(arg, kept) {
                        resume_unwind(panic);
                    }
                    panicked.push((index, panic));
                }
            }
        }
    }
}
