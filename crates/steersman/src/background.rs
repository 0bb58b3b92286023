//! Calibration on first use, behind the caller's back: quick, on a low-priority thread, gone when the runtime is.

use crate::calibrate::{Calibrate, Calibrator};
use crate::runtime::Inner;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often what it learned is written meanwhile: many programs end by a signal, or never drop their runtime, and would
/// calibrate anew at each start. It takes some milliseconds.
const SAVED_EVERY: Duration = Duration::from_secs(1);

/// A calibration under way.
pub(crate) struct Background {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Background {
    /// Starts one; `None` if no thread can be had (then nothing is lost but the calibration).
    pub(crate) fn start(inner: &Inner) -> Option<Background> {
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, calibrator) = (stop.clone(), Calibrator::of(inner));
        let work = move || {
            lower_priority();
            let how = Calibrate { quick: true, ..Calibrate::default() };
            let mut saved = Instant::now();
            calibrator.run(&how, &mut |_| {
                if saved.elapsed() >= SAVED_EVERY {
                    calibrator.save();
                    saved = Instant::now();
                }
                match seen.load(Ordering::Acquire) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
            calibrator.save();
        };
        let thread = std::thread::Builder::new().name("steersman-calibrate".into()).spawn(work).ok()?;
        Some(Background { stop, thread })
    }

    /// Breaks it off after the workload, or the part of a probe, that it is at. What it learned stays.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Release);
        // A panic there has been printed already; there is nothing to add.
        let _ = self.thread.join();
    }
}

/// Only this thread: on Linux priorities belong to threads.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    // SAFETY: plain system calls on the calling thread; a refusal changes nothing.
    unsafe {
        let id = libc::syscall(libc::SYS_gettid) as libc::id_t;
        libc::setpriority(libc::PRIO_PROCESS, id, 15);
    }
}
