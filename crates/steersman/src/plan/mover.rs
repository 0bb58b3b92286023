//! Threads that carry values while a plan's other steps run: one for each direction of each device's link, started when
//! it is first needed.

use super::away;
use super::collect::Scratch;
use super::run::{Slots, buffer};
use super::stage::{Carry, Compiled};
use crate::error::Error;
use crate::runtime::{Runtime, Trouble};
use smallvec::SmallVec;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use steersman_core::Place;

/// One direction of one device's link.
pub(super) type Lane = (Place, Direction);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Direction {
    Out,
    Home,
}

/// The lane of a transfer; from device to device it is that of the second half of the way.
pub(super) fn lane(from: Place, to: Place) -> Lane {
    if to == Place::Host { (from, Direction::Home) } else { (to, Direction::Out) }
}

type Job = Box<dyn FnOnce() + Send>;

/// How long it took, if it was not there already.
type Arrived = Result<Option<Duration>, Trouble>;

/// The threads of one runtime. They end with it.
#[derive(Default)]
pub(super) struct Movers {
    threads: Mutex<Vec<Mover>>,
}

struct Mover {
    lane: Lane,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Movers {
    /// Has `work` done by the lane's thread, after what that was given before. Without threads it is done here.
    fn start(&self, lane: Lane, work: impl FnOnce() -> Arrived + Send + 'static) -> Receiver<Arrived> {
        let (tell, told) = channel();
        // Who waits for it holds the other end until it is done.
        let job = Box::new(move || drop(tell.send(work())));
        let mut threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        let at = threads.iter().position(|m| m.lane == lane);
        let at = at.unwrap_or_else(|| {
            threads.push(Mover::new(lane));
            threads.len() - 1
        });
        threads[at].take(job);
        told
    }
}

impl Mover {
    fn new(lane: Lane) -> Mover {
        let (jobs, due) = channel::<Job>();
        let work = move || due.into_iter().for_each(|job| job());
        let thread = std::thread::Builder::new().name("steersman-mover".into()).spawn(work).ok();
        Mover { lane, jobs: thread.is_some().then_some(jobs), thread }
    }

    fn take(&self, job: Job) {
        match &self.jobs {
            Some(jobs) => {
                if let Err(back) = jobs.send(job) {
                    (back.0)();
                }
            }
            None => job(),
        }
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // Memories' panics were caught and told.
            let _ = thread.join();
        }
    }
}

/// Transfers of one run that are under way. Dropped, it waits for them: what a failed plan began is not left behind.
#[derive(Default)]
pub(super) struct Underway {
    /// Those of the plan's list that have been started.
    started: usize,
    flights: SmallVec<[(usize, usize, Receiver<Arrived>); 2]>,
}

impl Underway {
    /// Starts what is due before stage `s`.
    #[cold]
    pub fn start(&mut self, rt: &Runtime, plan: &Compiled, s: usize, scratch: &Scratch, slots: &Slots) {
        while let Some(early) = plan.placed.early.get(self.started).filter(|e| e.start <= s) {
            self.started += 1;
            let carry = plan.carry(early.stage, early.index);
            let Some((buffer, _)) = buffer(carry.base, scratch, slots) else { continue };
            if buffer.copy_at(carry.to).is_some() {
                continue;
            }
            let (buffer, carrier, to) = (buffer.clone(), rt.inner.carrier.clone(), carry.to);
            let work = move || {
                let started = Instant::now();
                let (_, moved) = buffer.bring(&carrier, to, false)?;
                Ok(moved.then(|| started.elapsed()))
            };
            let flight = rt.inner.planner.movers.start(lane(carry.from, carry.to), work);
            self.flights.push((early.stage, early.index, flight));
        }
    }

    /// Waits for a transfer that was started.
    #[cold]
    pub fn finish(
        &mut self,
        rt: &Runtime,
        carry: &Carry,
        (stage, index): (usize, usize),
        scratch: &Scratch,
    ) -> Result<(), Error> {
        let Some(at) = self.flights.iter().position(|f| (f.0, f.1) == (stage, index)) else { return Ok(()) };
        let (_, _, flight) = self.flights.swap_remove(at);
        let gone = |_| Err(Trouble::Away(carry.to, "the thread that carried it is gone".into()));
        match flight.recv().unwrap_or_else(gone) {
            Ok(took) => {
                took.into_iter().for_each(|took| carry.measure(took));
                Ok(())
            }
            Err(trouble) => Err(away::failed(rt, scratch, carry.named(), trouble)),
        }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        for (_, _, flight) in self.flights.drain(..) {
            // What became of it no longer matters.
            let _ = flight.recv();
        }
    }
}
