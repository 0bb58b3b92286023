//! A count worked out when first asked for: every candidate of a workload asks for the same.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// No count has this bit pattern: it is not a number.
const UNASKED: u64 = u64::MAX;

/// A number that follows from the rest of a workload, so that it takes no part in comparing.
#[derive(Debug)]
pub(super) struct Derived(AtomicU64);

impl Derived {
    /// The number, derived on the first call.
    #[inline]
    pub(super) fn get(&self, derive: impl FnOnce() -> f64) -> f64 {
        match self.0.load(Ordering::Relaxed) {
            UNASKED => {
                let number = derive();
                self.0.store(number.to_bits(), Ordering::Relaxed);
                number
            }
            bits => f64::from_bits(bits),
        }
    }
}

impl Default for Derived {
    #[inline]
    fn default() -> Derived {
        Derived(AtomicU64::new(UNASKED))
    }
}

impl Clone for Derived {
    #[inline]
    fn clone(&self) -> Derived {
        Derived(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

impl PartialEq for Derived {
    fn eq(&self, _: &Derived) -> bool {
        true
    }
}

impl Eq for Derived {}

impl Hash for Derived {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
