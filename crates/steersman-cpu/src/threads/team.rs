//! The team: who runs which part, and what happens when someone panics.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::slot::{Job, Slot};
use super::{Outcome, WhySerial};

thread_local! {
    /// Whether this thread is running a part of a parallel run, of any team: more threads below
    /// it would only get in each other's way.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A caller and the workers that help it. See the [module](super) for an example.
///
/// Threads are started when first needed and joined on drop.
pub struct Team {
    crew: Arc<Crew>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    /// How many workers run; grows on demand.
    started: AtomicUsize,
    /// Threads the team may use, the caller included; falls if the system refuses a thread.
    limit: AtomicUsize,
    busy: AtomicBool,
}

/// What the caller and the workers share.
struct Crew {
    slots: Box<[Slot]>,
    spin: Duration,
    next: Counter,
    panicked: AtomicBool,
    payload: Mutex<Option<Box<dyn Any + Send>>>,
}

/// On a line of its own: it is written by all while the rest of the crew is only read.
#[repr(align(128))]
struct Counter(AtomicUsize);

impl Team {
    /// How long a thread spins before it sleeps, unless told otherwise.
    ///
    /// Waking a sleeper takes 5 µs or more, so this wastes at most about eight times what it
    /// saves; calls that come closer together stay on the quick path of 0.13 µs.
    pub const DEFAULT_SPIN: Duration = Duration::from_micros(40);

    /// A team of at most `max` threads, the caller counted.
    pub fn new(max: usize) -> Team {
        // With one core, whoever spins keeps the one it waits for from running.
        let alone = thread::available_parallelism().is_ok_and(|cores| cores.get() == 1);
        Team::with_spin(max, if alone { Duration::ZERO } else { Team::DEFAULT_SPIN })
    }

    /// Like [`Team::new`], with threads that spin for `spin` before they sleep.
    pub fn with_spin(max: usize, spin: Duration) -> Team {
        let max = max.max(1);
        Team {
            crew: Arc::new(Crew {
                slots: (1..max).map(|_| Slot::new()).collect(),
                spin,
                next: Counter(AtomicUsize::new(0)),
                panicked: AtomicBool::new(false),
                payload: Mutex::new(None),
            }),
            workers: Mutex::new(Vec::new()),
            started: AtomicUsize::new(0),
            limit: AtomicUsize::new(max),
            busy: AtomicBool::new(false),
        }
    }

    /// The most threads a run can use, the caller counted.
    pub fn max(&self) -> usize {
        self.limit.load(Relaxed)
    }

    /// How long its threads spin before they sleep.
    pub fn spin(&self) -> Duration {
        self.crew.spin
    }

    /// Runs `body(i)` once for each `i` in `0..parts` and returns when all are done.
    ///
    /// With at most [`max`](Team::max) parts each has a thread of its own, part 0 the caller's,
    /// and a part keeps its thread from run to run (its data may still be in that core's cache).
    /// With more, threads draw the next part as they finish one. If the team cannot be had at
    /// once the caller runs all parts itself, and it runs those whose threads were asleep and are
    /// not up when it is through with its own.
    ///
    /// # Panics
    /// With the panic of `body`, if it panics. Parts not yet begun may then be left out; none is
    /// still running, and the team stays usable.
    pub fn run(&self, parts: usize, body: &(dyn Fn(usize) + Sync)) -> Outcome {
        let serially = |reason| {
            (0..parts).for_each(body);
            Outcome::Serial { reason }
        };
        if parts <= 1 {
            return serially(WhySerial::OnePart);
        }
        if INSIDE.get() {
            return serially(WhySerial::Nested);
        }
        if self.max() == 1 {
            return serially(WhySerial::NoWorkers);
        }
        if self.busy.compare_exchange(false, true, Acquire, Relaxed).is_err() {
            return serially(WhySerial::Busy);
        }
        let hold = Hold(&self.busy);
        let threads = 1 + self.helpers(parts.min(self.max()) - 1);
        if threads == 1 {
            drop(hold);
            return serially(WhySerial::NoWorkers);
        }
        let asleep = self.crew.lead(threads, parts, body);
        let mut crowded = false;
        for slot in self.crew.slots[..threads - 1].iter().filter(|s| s.is_on_this_core()) {
            crowded = true;
            slot.send_away();
        }
        drop(hold);
        match () {
            _ if asleep == threads - 1 => Outcome::Serial { reason: WhySerial::Asleep },
            _ if asleep > 0 => Outcome::Partly,
            _ if crowded => Outcome::Crowded,
            _ => Outcome::Parallel,
        }
    }

    /// Makes sure `wanted` workers run, and says how many of them do. Called holding the team.
    fn helpers(&self, wanted: usize) -> usize {
        let started = self.started.load(Relaxed);
        if started >= wanted {
            return wanted;
        }
        self.start(started, wanted)
    }

    #[cold]
    fn start(&self, started: usize, wanted: usize) -> usize {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for index in started..wanted {
            let crew = Arc::clone(&self.crew);
            let builder = thread::Builder::new().name(format!("steersman-{}", index + 1));
            match builder.spawn(move || crew.serve(index)) {
                Ok(handle) => workers.push(handle),
                Err(_) => {
                    // Not tried again: a refused thread costs tens of microseconds each time.
                    self.limit.store(index + 1, Relaxed);
                    break;
                }
            }
        }
        self.started.store(workers.len(), Relaxed);
        workers.len().min(wanted)
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        let workers = self.workers.get_mut().unwrap_or_else(PoisonError::into_inner);
        for slot in &self.crew.slots[..workers.len()] {
            slot.quit();
        }
        for worker in workers.drain(..) {
            // A worker catches what its parts throw, so there is nothing to hear from it.
            let _ = worker.join();
        }
    }
}

/// Gives the team back, also when a panic passes through.
struct Hold<'a>(&'a AtomicBool);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}

impl Crew {
    /// The caller's side of a parallel run by `threads` threads, at least 2. Tells how many workers were asleep and not up in time.
    fn lead(&self, threads: usize, parts: usize, body: &(dyn Fn(usize) + Sync)) -> usize {
        // SAFETY: only the lifetime changes. Every worker that gets the pointer is waited for
        // below, before this function returns or unwinds.
        let body: *const (dyn Fn(usize) + Sync + 'static) =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(body) };
        let job = |part| Job { body, part, parts, shared: parts > threads };
        if parts > threads {
            self.next.0.store(0, Relaxed);
        }
        let helpers = &self.slots[..threads - 1];
        // The caller wakes all that sleep. A tree, in which each that is up wakes three more, was no quicker on 16
        // cores: 77 µs instead of 63 for 15 sleepers with 10 µs of work each.
        for (index, slot) in helpers.iter().enumerate() {
            // SAFETY: the team is held, each run waits for all it posted, and `body` stays alive.
            unsafe { slot.post(job(index + 1)) };
        }
        self.work(job(0));
        let mut taken_back = 0;
        // The last to be called is the least likely to be up.
        for (index, slot) in helpers.iter().enumerate().rev() {
            if slot.take_back() {
                taken_back += 1;
                if parts <= threads && !self.panicked.load(Relaxed) {
                    self.work(job(index + 1));
                }
            }
        }
        for slot in helpers {
            slot.wait_finished(self.spin);
        }
        // Workers set this before they finish, so it is seen here.
        if self.panicked.load(Relaxed) {
            self.panicked.store(false, Relaxed);
            let payload = self.payload.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(payload) = payload {
                resume_unwind(payload);
            }
        }
        taken_back
    }

    /// A worker's life.
    fn serve(&self, index: usize) {
        let slot = &self.slots[index];
        slot.introduce();
        while let Some(job) = slot.next(self.spin) {
            self.work(job);
            slot.finish();
        }
    }

    /// Runs this thread's share of a job. Never unwinds.
    fn work(&self, job: Job) {
        // SAFETY: the caller keeps `body` alive until this thread has finished the job.
        let body = unsafe { &*job.body };
        INSIDE.set(true);
        let done = catch_unwind(AssertUnwindSafe(|| {
            if !job.shared {
                return body(job.part);
            }
            loop {
                let part = self.next.0.fetch_add(1, Relaxed);
                if part >= job.parts {
                    return;
                }
                body(part);
            }
        }));
        INSIDE.set(false);
        if let Err(payload) = done {
            self.keep_panic(payload, job.parts);
        }
    }

    #[cold]
    fn keep_panic(&self, payload: Box<dyn Any + Send>, parts: usize) {
        self.next.0.store(parts, Relaxed);
        let mut kept = self.payload.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            *kept = Some(payload);
        } else {
            // The first panic is the one re-raised; dropping the others could panic in turn.
            std::mem::forget(payload);
        }
        self.panicked.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests;
