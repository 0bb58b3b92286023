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
