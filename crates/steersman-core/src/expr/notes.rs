//! What kernels work out about an expression, kept with it: how to run a program is found once, not every
//! time it runs.

use std::any::Any;
use std::sync::OnceLock;

/// Notes of any type, each by a number of its owner's choosing. Reading takes no lock.
#[derive(Default)]
pub struct Notes {
    first: OnceLock<Box<Note>>,
}

struct Note {
    owner: u64,
    what: Box<dyn Any + Send + Sync>,
    next: OnceLock<Box<Note>>,
}

impl Notes {
    /// The note of type `T` by `owner`, made if there is none yet.
    pub fn get<T: Any + Send + Sync>(&self, owner: u64, make: impl Fn() -> T) -> &T {
        let mut at = &self.first;
        loop {
            // Whoever comes second at the end of the list finds the first one's note there and looks on.
            let note =
                at.get_or_init(|| Box::new(Note { owner, what: Box::new(make()), next: OnceLock::new() }));
            if note.owner == owner
                && let Some(what) = note.what.downcast_ref::<T>()
            {
                return what;
            }
            at = &note.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_made_once_for_each_owner_and_type() {
        let notes = Notes::default();
        assert_eq!(*notes.get(1, || 7u32), 7);
        assert_eq!(*notes.get(1, || 8u32), 7);
        assert_eq!(*notes.get(2, || 8u32), 8);
        assert_eq!(*notes.get(1, || 9u64), 9);
        assert_eq!(*notes.get(2, || 0u32), 8);
    }

    #[test]
    fn threads_that_come_together_see_one_note() {
        for _ in 0..200 {
            let notes = Notes::default();
            let address = || std::ptr::from_ref(notes.get(5, || 1u64)) as usize;
            let seen: Vec<usize> = std::thread::scope(|s| {
                let all: Vec<_> = (0..4).map(|_| s.spawn(address)).collect();
                all.into_iter().map(|t| t.join().unwrap()).collect()
            });
            assert!(seen.iter().all(|p| *p == seen[0]));
        }
    }
}
