//! Runs measurements on a thread of its own, so that a kernel that hangs can be left behind.

use crate::cost::Variant;
use crate::kernel::Params;
use crate::measure::{Contest, Rig, Series, contest};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

struct Job {
    rig: Box<dyn Rig>,
    variants: Vec<Variant>,
    check: Vec<Variant>,
    how: Contest,
}

/// How a watched contest ended.
pub enum Timed {
    /// With samples, and with variants whose answers were wrong.
    Done {
        /// The samples.
        series: Vec<Series>,
        /// Wrong answers, in words.
        wrong: Vec<(Variant, String)>,
    },
    /// This variant did not come back.
    Hung(Variant),
}

impl From<Answer> for Timed {
    fn from((series, wrong): Answer) -> Timed {
        Timed::Done { series, wrong }
    }
}

type Answer = (Vec<Series>, Vec<(Variant, String)>);

struct Worker {
    jobs: Sender<Job>,
    answers: Receiver<Answer>,
    /// What runs now: variant in the low bits, microseconds since the epoch of `clock()` in `since`.
    running: Arc<AtomicU64>,
    since: Arc<AtomicU64>,
}

/// Looks that have to find the same run before it counts as hung.
const LOOKS: u32 = 4;

/// Sees how long a run goes on, in looks rather than by the clock: a process that was stopped (Ctrl-Z, a virtual machine
/// that was paused) finds that hours went by, of which the run had nothing.
struct Eye {
    /// Between two looks.
    step: Duration,
    since: u64,
    seen: u32,
}

impl Eye {
    fn new(timeout: Duration) -> Eye {
        Eye { step: timeout / LOOKS, since: 0, seen: 0 }
    }

    /// Whether the run that began at `since` hangs, after a wait for it that lasted so long.
    fn look(&mut self, since: u64, lasted: Duration) -> bool {
        if since != self.since {
            (self.since, self.seen) = (since, 0);
        } else if lasted < self.step * 2 {
            self.seen += 1;
        }
        self.seen >= LOOKS
    }
}

/// A worker and the eye on it.
pub struct Watchdog {
    worker: Option<Worker>,
}

impl Watchdog {
    /// No worker yet; one starts with the first job.
    pub fn new() -> Watchdog {
        Watchdog { worker: None }
    }

    /// Checks `check` against the reference, then times `variants`. No single run may last longer than `timeout`.
    /// A thread that hangs is left behind with its rig: it cannot be stopped safely.
    pub fn contest(
        &mut self,
        rig: Box<dyn Rig>,
        variants: Vec<Variant>,
        check: Vec<Variant>,
        how: Contest,
        timeout: Duration,
    ) -> Timed {
        let job = Job { rig, variants, check, how };
        let worker = match &self.worker {
            Some(worker) => worker,
            None => match start() {
                Ok(worker) => self.worker.insert(worker),
                // No thread can be had: better unwatched than not at all.
                Err(_) => return Timed::from(job.run(&mut |_| ())),
            },
        };
        worker.since.store(clock(), Ordering::Release);
        if let Err(SendError(job)) = worker.jobs.send(job) {
            self.worker = None;
            return Timed::from(job.run(&mut |_| ()));
        }
        let mut eye = Eye::new(timeout);
        loop {
            let began = Instant::now();
            match worker.answers.recv_timeout(eye.step) {
                Ok(answer) => return Timed::from(answer),
                Err(RecvTimeoutError::Timeout) => {
                    if eye.look(worker.since.load(Ordering::Acquire), began.elapsed()) {
                        let at = unpack(worker.running.load(Ordering::Acquire));
                        self.worker = None;
                        return Timed::Hung(at);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let at = unpack(worker.running.load(Ordering::Acquire));
                    self.worker = None;
                    return Timed::Hung(at);
                }
            }
        }
    }
}

impl Job {
    fn run(mut self, note: &mut dyn FnMut(Variant)) -> Answer {
        let mut wrong = Vec::new();
        for v in self.check {
            note(v);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.rig.check(v)));
            match result {
                Ok(Ok(())) => {}
                Ok(Err(why)) => wrong.push((v, why)),
                Err(_) => wrong.push((v, "panicked while it was compared with the reference".into())),
            }
        }
        self.variants.retain(|v| !wrong.iter().any(|(w, _)| w.kernel == v.kernel));
        let mut running = |v: Variant| {
            note(v);
            ControlFlow::Continue(())
        };
        (contest(&mut *self.rig, &self.variants, &self.how, &mut running), wrong)
    }
}

fn start() -> std::io::Result<Worker> {
    let (jobs, inbox) = channel::<Job>();
    let (outbox, answers) = channel();
    let (running, since) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (now, at) = (running.clone(), since.clone());
    let work = move || {
        for job in inbox {
            let mut note = |v: Variant| {
                now.store(pack(v), Ordering::Release);
                at.store(clock(), Ordering::Release);
            };
            if outbox.send(job.run(&mut note)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("steersman-measure".into()).spawn(work)?;
    Ok(Worker { jobs, answers, running, since })
}

fn clock() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_micros() as u64
}

fn pack(v: Variant) -> u64 {
    v.kernel as u64 | (v.params.threads as u64) << 16 | (v.params.variant as u64) << 32
}

fn unpack(word: u64) -> Variant {
    Variant {
        kernel: word as u16,
        params: Params { threads: (word >> 16) as u16, variant: (word >> 32) as u16 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_that_many_looks_find_hangs_however_long_one_of_them_lasted() {
        let (step, stopped) = (Duration::from_secs(1), Duration::from_secs(3600));
        let mut eye = Eye::new(step * LOOKS);
        let mut look = |since, lasted| eye.look(since, lasted);
        assert!(!look(5, step));
        for _ in 0..10 {
            assert!(!look(5, stopped), "nobody ran meanwhile");
        }
        assert!((1..LOOKS).all(|_| !look(5, step)));
        assert!(!look(6, step), "another run");
        assert!((1..LOOKS).all(|_| !look(6, step)));
        assert!(look(6, step));
    }
}
