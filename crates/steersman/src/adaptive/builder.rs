//! Puts an adaptive function together.

use super::access::{Access, InPlace, Reading, Restore};
use super::kernel::VariantKernel;
use super::size::{MAX_SIZES, Made, Sizes};
use super::{Adaptive, Variant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use steersman_core::registry::RegistryError;
use steersman_core::{DeviceId, Engine, Kernel, Params, Place};

/// Why an adaptive function could not be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BuildError {
    /// Nothing to choose from.
    #[error("adaptive function '{0}' has no variants: add at least one with .variant(name, closure)")]
    NoVariants(&'static str),
    /// More sizes than a workload keeps.
    #[error(
        "adaptive function '{name}' has {sizes} sizes: give 1 to {MAX_SIZES}, those its time depends on most"
    )]
    Sizes {
        /// The function.
        name: &'static str,
        /// Sizes asked for.
        sizes: usize,
    },
    /// A name is taken, or the engine holds no more kernels.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

pub(super) type Run<A, R, M> = Box<dyn for<'a> Fn(<M as Access<A>>::Arg<'a>) -> R + Send + Sync>;
pub(super) type Keep<A> = Box<dyn Fn(&A) -> Restore<A> + Send + Sync>;
pub(super) type Measure<A> = Box<dyn Fn(&A) -> Sizes + Send + Sync>;
pub(super) type Agree<T> = Box<dyn Fn(&T, &T) -> bool + Send + Sync>;

/// Collects variants; see [`Adaptive`].
pub struct Builder<A: ?Sized + 'static, R, M: Access<A>> {
    name: &'static str,
    engine: Arc<Engine>,
    variants: Vec<(String, u16, Run<A, R, M>)>,
    sizes: (usize, Measure<A>),
    revision: u32,
    keep: Option<Keep<A>>,
    check_argument: Option<Agree<A>>,
    check_result: Option<Agree<R>>,
}

impl<A: ?Sized + 'static, R> Builder<A, R, InPlace> {
    /// Adds a way to do it. The first is the default: chosen until something is known, and the reference
    /// that [`check`](Self::check) compares with.
    pub fn variant(self, name: &str, run: impl Fn(&mut A) -> R + Send + Sync + 'static) -> Self {
        self.add(name, 1, Box::new(run))
    }

    /// Adds a way to do it that runs on this many threads, so that it is known to slow down with others
    /// when cores are busy.
    pub fn variant_threads(
        self,
        name: &str,
        threads: u16,
        run: impl Fn(&mut A) -> R + Send + Sync + 'static,
    ) -> Self {
        self.add(name, threads, Box::new(run))
    }

    /// Keeps a copy of the argument before the first few runs of each variant, so that a variant that
    /// panics is undone and the call redone by another. Without it such a panic reaches the caller.
    pub fn cloning(mut self) -> Self
    where
        A: Clone,
    {
        self.keep = Some(Box::new(|a: &A| {
            let kept = a.clone();
            Box::new(move |a: &mut A| *a = kept)
        }));
        self
    }

    /// How calibration tells that two variants left the same in their argument.
    pub fn check(mut self, same: impl Fn(&A, &A) -> bool + Send + Sync + 'static) -> Self {
        self.check_argument = Some(Box::new(same));
        self
    }
}

impl<A: ?Sized + 'static, R> Builder<A, R, Reading> {
    /// Adds a way to do it. The first is the default: chosen until something is known, and the reference
    /// that [`check`](Self::check) compares with.
    pub fn variant(self, name: &str, run: impl Fn(&A) -> R + Send + Sync + 'static) -> Self {
        self.add(name, 1, Box::new(run))
    }

    /// Adds a way to do it that runs on this many threads, so that it is known to slow down with others
    /// when cores are busy.
    pub fn variant_threads(
        self,
        name: &str,
        threads: u16,
        run: impl Fn(&A) -> R + Send + Sync + 'static,
    ) -> Self {
        self.add(name, threads, Box::new(run))
    }

    /// How calibration tells that two variants returned the same.
    pub fn check(mut self, same: impl Fn(&R, &R) -> bool + Send + Sync + 'static) -> Self {
        self.check_result = Some(Box::new(same));
        self
    }
}

impl<A: ?Sized + 'static, R, M: Access<A>> Builder<A, R, M> {
    pub(super) fn new(name: &'static str, engine: &Arc<Engine>) -> Self {
        Builder {
            name,
            engine: engine.clone(),
            variants: Vec::new(),
            sizes: (1, Box::new(|_| Sizes::new(&[1]))),
            revision: 1,
            keep: None,
            check_argument: None,
            check_result: None,
        }
    }

    fn add(mut self, name: &str, threads: u16, run: Run<A, R, M>) -> Self {
        self.variants.push((name.into(), threads, run));
        self
    }

    /// What the time depends on. Without it all calls are taken to cost the same.
    pub fn size(self, size: impl Fn(&A) -> usize + Send + Sync + 'static) -> Self {
        self.sizes(move |a| [size(a)])
    }

    /// Several things the time depends on: rows and columns, items and queries.
    pub fn sizes<const N: usize>(mut self, sizes: impl Fn(&A) -> [usize; N] + Send + Sync + 'static) -> Self {
        self.sizes = (N, Box::new(move |a| Sizes::new(&sizes(a))));
        self
    }

    /// Which version of the code this is (1 without it). On an engine that remembers (a runtime's), another
    /// number than last time turns what was learned then into a hint.
    pub fn revision(mut self, revision: u32) -> Self {
        self.revision = revision;
        self
    }

    /// Registers every variant with the engine, as `function/variant`; all of them, or none if one cannot be. An engine has one
    /// function of a name.
    pub fn build(self) -> Result<Adaptive<A, R, M>, BuildError> {
        if self.variants.is_empty() {
            return Err(BuildError::NoVariants(self.name));
        }
        if !(1..=MAX_SIZES).contains(&self.sizes.0) {
            return Err(BuildError::Sizes { name: self.name, sizes: self.sizes.0 });
        }
        let host = self.engine.devices().iter().position(|d| d.place == Place::Host);
        // An engine without devices still runs closures: where they run, the data is.
        let device = DeviceId(host.map_or(u16::MAX, |i| i as u16));
        let params = |threads: u16| Params::threads(threads.max(1).into());
        let kernels = self.variants.iter().enumerate().map(|(place, (name, threads, _))| {
            let (name, function) = (format!("{}/{name}", self.name), self.name);
            let params = params(*threads);
            let kernel = VariantKernel { name, function, device, params, place, revision: self.revision };
            Arc::new(kernel) as Arc<dyn Kernel>
        });
        let kernels = self.engine.register_function(self.name, &kernels.collect::<Vec<_>>())?;
        let variants = self.variants.into_iter().zip(kernels).map(|((name, threads, run), kernel)| Variant {
            name,
            kernel,
            params: params(threads),
            run,
            runs: AtomicU32::new(0),
            outdone: AtomicBool::new(false),
        });
        Ok(Adaptive {
            name: self.name,
            engine: self.engine,
            variants: variants.collect(),
            sizes: self.sizes.1,
            made: Made::new(),
            keep: self.keep,
            check_argument: self.check_argument,
            check_result: self.check_result,
        })
    }
}
