//! A word that one thread changes and another waits for: spinning first, then asleep.

use std::sync::atomic::AtomicU32;
#[cfg(not(target_os = "linux"))]
use std::sync::{Condvar, Mutex, PoisonError, atomic::Ordering};
use std::time::{Duration, Instant};

/// An atomic word on which a thread can sleep.
pub(super) struct Gate {
    pub(super) word: AtomicU32,
    #[cfg(not(target_os = "linux"))]
    sleep: (Mutex<()>, Condvar),
}

impl Gate {
    pub(super) fn new(value: u32) -> Gate {
        Gate {
            word: AtomicU32::new(value),
            #[cfg(not(target_os = "linux"))]
            sleep: Default::default(),
        }
    }

    /// Sleeps while the word is `value`; may return early, so callers look again.
    #[cfg(target_os = "linux")]
    pub(super) fn sleep_while(&self, value: u32) {
        // SAFETY: the word outlives the call, and the kernel compares it with `value` before it
        // puts the thread to sleep. Errors (changed meanwhile, interrupted) are early returns.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                value,
                std::ptr::null::<libc::timespec>(),
            );
        }
    }

    /// Wakes the thread asleep on the word; change the word first.
    #[cfg(target_os = "linux")]
    pub(super) fn wake(&self) {
        // SAFETY: the kernel only uses the address as a key.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            );
        }
    }

    /// Sleeps while the word is `value`; may return early, so callers look again.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn sleep_while(&self, value: u32) {
        let held = self.sleep.0.lock().unwrap_or_else(PoisonError::into_inner);
        if self.word.load(Ordering::Relaxed) == value {
            drop(self.sleep.1.wait(held));
        }
    }

    /// Wakes the thread asleep on the word; change the word first.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn wake(&self) {
        // Holding the lock closes the gap between the sleeper's look at the word and its wait.
        let _held = self.sleep.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleep.1.notify_all();
    }
}

/// Looks at `done` until it holds or `limit` has passed; tells which.
pub(super) fn spin_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    // A look costs 10 to 50 ns with the pause, so the clock is read about once a microsecond.
    const LOOKS_PER_CLOCK: u32 = 32;
    if limit.is_zero() {
        return done();
    }
    let mut started: Option<Instant> = None;
    loop {
        for _ in 0..LOOKS_PER_CLOCK {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
        let now = Instant::now();
        match started {
            None => started = Some(now),
            Some(start) if now.duration_since(start) >= limit => return false,
            Some(_) => {}
        }
    }
}
