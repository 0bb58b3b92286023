//! Who is to blame for a panic: the variant, or an argument that no variant copes with.

use super::{Access, Adaptive};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use steersman_core::Workload;
use steersman_core::guard::Offence;

/// What a panic carries.
pub(super) type Panic = Box<dyn Any + Send>;

/// Does it, or gives the panic.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(work))
}

impl<A: ?Sized + 'static, R, M: Access<A>> Adaptive<A, R, M> {
    /// Puts a variant away that panicked.
    #[cold]
    pub(super) fn accuse(&self, index: usize, w: &Workload, panic: &Panic) {
        self.engine.quarantine(self.variants[index].kernel, w, Offence::Panicked, words(&**panic));
    }

    /// Another variant coped with the argument that this one panicked on: it is to blame.
    pub(super) fn outdo(&self, index: usize) {
        self.variants[index].outdone.store(true, Ordering::Relaxed);
    }

    /// Lets variants go that panicked on arguments no other one was seen to cope with. Returns whether there were any.
    #[cold]
    pub(super) fn acquit(&self) -> bool {
        self.engine.acquit(|case, why| {
            let own = self.variants.iter().find(|v| v.kernel == case.kernel);
            why.offence == Offence::Panicked && own.is_some_and(|v| !v.outdone.load(Ordering::Relaxed))
        })
    }
}

/// What a panic said.
pub(super) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panicked").to_string()
}
