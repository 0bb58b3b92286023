//! Every kernel there is, built-in and custom alike. Append-only, so that reading takes no lock.

use crate::kernel::Kernel;
use crate::op::Op;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Kernels a registry may hold.
pub const MAX_KERNELS: usize = 1024;

/// Why a kernel could not be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// The name is taken.
    #[error("a kernel named '{0}' is already registered: give each its own name")]
    Taken(String),
    /// The function's name is taken.
    #[error("a function named '{0}' is already registered: give each its own name")]
    FunctionTaken(String),
    /// No room is left.
    #[error("cannot register '{0}': {MAX_KERNELS} kernels are the most a registry holds")]
    Full(String),
}

/// Every kernel there is.
pub struct Registry {
    kernels: Box<[OnceLock<Arc<dyn Kernel>>]>,
    /// For each the one that runs the same loops in wider vectors.
    wider: Box<[OnceLock<u16>]>,
    len: AtomicUsize,
    writing: Mutex<()>,
}

impl Default for Registry {
    fn default() -> Registry {
        Registry {
            kernels: (0..MAX_KERNELS).map(|_| OnceLock::new()).collect(),
            wider: (0..MAX_KERNELS).map(|_| OnceLock::new()).collect(),
            len: AtomicUsize::new(0),
            writing: Mutex::new(()),
        }
    }
}

impl Registry {
    /// Adds a kernel and returns its index.
    pub fn register(&self, kernel: Arc<dyn Kernel>) -> Result<u16, RegistryError> {
        let _guard = self.writing.lock().unwrap_or_else(|e| e.into_inner());
        self.add(kernel)
    }

    /// Adds the variants of a function that nobody else has registered; all of them, or none if one cannot be.
    pub fn register_function(
        &self,
        function: &str,
        variants: &[Arc<dyn Kernel>],
    ) -> Result<Vec<u16>, RegistryError> {
        let _guard = self.writing.lock().unwrap_or_else(|e| e.into_inner());
        if self.iter().any(|(_, k)| k.function() == Some(function)) {
            return Err(RegistryError::FunctionTaken(function.into()));
        }
        for (i, kernel) in variants.iter().enumerate() {
            let name = kernel.name();
            if self.find(name).is_some() || variants[..i].iter().any(|k| k.name() == name) {
                return Err(RegistryError::Taken(name.into()));
            }
        }
        if self.len.load(Ordering::Relaxed) + variants.len() > MAX_KERNELS {
            return Err(RegistryError::Full(function.into()));
        }
        variants.iter().map(|kernel| self.add(kernel.clone())).collect()
    }

    /// Whoever calls this is the only one that writes.
    fn add(&self, kernel: Arc<dyn Kernel>) -> Result<u16, RegistryError> {
        if self.find(kernel.name()).is_some() {
            return Err(RegistryError::Taken(kernel.name().into()));
        }
        let at = self.len.load(Ordering::Relaxed);
        let name = kernel.name().to_string();
        let narrower = kernel.narrower().and_then(|n| self.find(&n));
        match self.kernels.get(at).map(|slot| slot.set(kernel)) {
            Some(Ok(())) => {
                self.len.store(at + 1, Ordering::Release);
                if let Some(narrower) = narrower {
                    // Taken by another that says the same: one of them is enough.
                    let _ = self.wider[narrower as usize].set(at as u16);
                }
                Ok(at as u16)
            }
            _ => Err(RegistryError::Full(name)),
        }
    }

    /// The kernel at this index.
    #[inline]
    pub fn get(&self, index: u16) -> Option<&Arc<dyn Kernel>> {
        self.kernels.get(index as usize).and_then(|k| k.get())
    }

    /// The kernel that runs the same loops as this one in wider vectors, if there is one.
    #[inline]
    pub fn wider(&self, index: u16) -> Option<u16> {
        self.wider.get(index as usize).and_then(|w| w.get()).copied()
    }

    /// Index of the kernel with this name.
    pub fn find(&self, name: &str) -> Option<u16> {
        self.iter().find(|(_, k)| k.name() == name).map(|(i, _)| i)
    }

    /// All kernels with their indices, in order of registration.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &Arc<dyn Kernel>)> {
        let len = self.len.load(Ordering::Acquire);
        self.kernels[..len].iter().enumerate().filter_map(|(i, k)| Some((i as u16, k.get()?)))
    }

    /// Kernels that are about this op at all.
    pub fn about(&self, op: Op) -> impl Iterator<Item = (u16, &Arc<dyn Kernel>)> {
        self.iter().filter(move |(_, k)| k.handles(op))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Machine, Terms};
    use crate::{DeviceId, Params, Refusal, Workload};

    struct Named(&'static str, &'static str);
    impl Kernel for Named {
        fn name(&self) -> &str {
            self.1
        }
        fn device(&self) -> DeviceId {
            DeviceId(0)
        }
        fn handles(&self, op: Op) -> bool {
            op == Op::Custom(self.0)
        }
        fn function(&self) -> Option<&'static str> {
            Some(self.0)
        }
        fn supports(&self, _: &Workload) -> Result<(), Refusal> {
            Ok(())
        }
        fn terms(&self, _: &Workload, _: Params, _: &Machine) -> Terms {
            Terms::launch(1e-6)
        }
    }

    #[test]
    fn a_function_is_registered_once_with_all_its_variants_or_not_at_all() {
        let registry = Registry::default();
        let register = |function, names: &[&'static str]| {
            let all: Vec<Arc<dyn Kernel>> =
                names.iter().map(|name| Arc::new(Named(function, name)) as Arc<dyn Kernel>).collect();
            registry.register_function(function, &all)
        };
        assert_eq!(register("f", &["f/a", "f/b", "f/a"]), Err(RegistryError::Taken("f/a".into())));
        assert_eq!(registry.iter().count(), 0);
        assert_eq!(register("f", &["f/a", "f/b"]), Ok(vec![0, 1]));
        assert_eq!(register("f", &["f/c"]), Err(RegistryError::FunctionTaken("f".into())));
        assert_eq!(register("g", &["g/a", "f/b"]), Err(RegistryError::Taken("f/b".into())));
        let names: Vec<&'static str> = (0..MAX_KERNELS - 1)
            .map(|i| -> &'static str { Box::leak(i.to_string().into_boxed_str()) })
            .collect();
        assert_eq!(register("h", &names), Err(RegistryError::Full("h".into())));
        assert_eq!(registry.iter().count(), 2);
    }
}
