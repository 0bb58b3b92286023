//! Tells quiet spells of the machine from disturbed ones.
//!
//! On a virtual machine the host moves cores about: for seconds at a time the same two threads are four times as
//! far apart (a hand-off of 0.1 µs takes 0.4, a transpose that takes 17 µs on two threads takes 27), and no
//! counter of the guest shows it. A hand-off does: it is nothing but the way between two cores. Another process
//! on one of them shows the same way. Undisturbed is the state that prevails, near or far: samples of both make no sense
//! together. What shares a core with them is seen by [`Whole`], which is asked first: two threads that share one core are
//! closer than any others (76 ns for a hand-off that takes 210 otherwise).

use super::prevailing::Prevailing;
use super::usual::{SHARE, Usual};
use super::{Team, Whole};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use steersman_core::cost::Rest;

/// Hand-offs of which the quickest counts: one alone is often late.
const TRIES: usize = 8;
/// How long to wait for a sleeping thread.
const WAKE: Duration = Duration::from_micros(300);
/// How much longer or shorter than usual a hand-off may take: 90 ns on a Zen 5 when its cores are near, 210 to 220 when they
/// are far.
const SAME: f64 = 1.5;
/// How long to wait for whole cores: a thread that slept takes a first run to be itself again (a pulse takes it a sixth
/// longer, and of looks at two threads after a millisecond's pause 95% found it disturbed), and what shares a core with it
/// mostly goes soon.
const SETTLE: Duration = Duration::from_micros(60);

/// How long to look for a hand-off at most.
const LOOK: Duration = Duration::from_millis(3);

/// How long a hand-off is remembered: cores stay far apart for seconds, sometimes for minutes.
const MEMORY: Duration = Duration::from_secs(20);

/// How much longer than the quickest ever a hand-off may take in a quiet spell of many cores: which two of them meet differs from run
/// to run, and no state prevails.
const QUIET: f64 = 2.0;

/// The usual hand-off, to compare others with.
#[derive(Debug)]
pub struct Calm {
    handoff: Mutex<Prevailing>,
    /// Where a team has more than two threads.
    of_many: Mutex<Usual>,
    /// When threads were last looked for in passing and did not come together.
    missed: Mutex<Option<Instant>>,
    /// Whether threads have their cores to themselves.
    pub whole: Whole,
}

impl Default for Calm {
    fn default() -> Calm {
        Calm {
            handoff: Mutex::new(Prevailing::new(SAME, MEMORY)),
            of_many: Mutex::new(Usual::new(QUIET, MEMORY, SHARE)),
            missed: Mutex::default(),
            whole: Whole::default(),
        }
    }
}

impl Calm {
    /// Whether the team's threads are as close as usual, on whole cores, as far as is known. Takes a few microseconds when
    /// they are.
    pub fn now(&self, team: &Team) -> bool {
        if team.max() == 1 {
            return true;
        }
        // The threads are awake once one has taken part.
        if hand_off(team).is_none() || !self.whole.wait(team, 2, SETTLE) {
            return false;
        }
        hand_off(team).is_some_and(|took| match team.max() {
            2 => self.seen().judge(took, Instant::now()),
            _ => self.of_many().judge(took, Instant::now()),
        })
    }

    /// Seconds of a hand-off between two threads as it was not longer ago than this, or is now; `None` where they did not come
    /// together on whole cores in a few milliseconds, and in a team of more, where no state prevails.
    pub fn handoff(&self, team: &Team, old: Duration) -> Option<f64> {
        if team.max() != 2 {
            return None;
        }
        let (begun, mut last) = (Instant::now(), self.known(old));
        // A thread has to be started first, in a new process, and both to get up to speed.
        while last.is_none() && begun.elapsed() < LOOK {
            self.now(team);
            last = self.seen().last().filter(|(at, _)| *at >= begun);
        }
        last.map(|(_, took)| took)
    }

    /// The same between a program's own runs: one look, some ten microseconds where threads are awake, and where they do not
    /// come together none for as long again. (Looking on took three milliseconds after every observed run, for as long as a core
    /// was shared.)
    pub fn glance(&self, team: &Team, old: Duration) -> Option<f64> {
        // Somebody looks just now.
        let Ok(mut missed) = self.missed.try_lock() else { return None };
        if team.max() != 2 || missed.is_some_and(|at| at.elapsed() <= old) {
            return None;
        }
        let begun = Instant::now();
        let mut last = self.known(old);
        if last.is_none() {
            self.now(team);
            last = self.seen().last().filter(|(at, _)| *at >= begun);
            *missed = last.is_none().then(Instant::now);
        }
        last.map(|(_, took)| took)
    }

    /// The last hand-off, if it is no older than this.
    fn known(&self, old: Duration) -> Option<(Instant, f64)> {
        self.seen().last().filter(|(at, _)| at.elapsed() <= old)
    }

    /// Takes the present way between threads as usual: for when it has gone on too long to wait.
    pub fn accept(&self) {
        self.seen().accept();
        self.of_many().accept();
    }

    /// Takes hand-offs of so many seconds as usual.
    pub fn settle(&self, handoff: f64) {
        self.seen().settle(handoff);
    }

    /// What is usual of the one and the quickest of the other, for later processes.
    pub fn rest(&self) -> Rest {
        let many = self.of_many();
        let of_many = many.best().filter(|_| many.is_seen());
        Rest { handoff: of_many.or_else(|| self.seen().usual()), pulse: self.whole.best() }
    }

    /// What an earlier process saw: a process that is disturbed from its start can tell by it.
    pub fn expect(&self, rest: Rest) {
        self.seen().expect(rest.handoff);
        self.of_many().expect(rest.handoff);
        self.whole.expect(rest.pulse);
    }

    fn of_many(&self) -> MutexGuard<'_, Usual> {
        self.of_many.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> MutexGuard<'_, Prevailing> {
        self.handoff.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds of the quickest of a few hand-offs to one other thread; `None` if it never took part.
fn hand_off(team: &Team) -> Option<f64> {
    let begun = Instant::now();
    let mut quickest: Option<f64> = None;
    let mut seen = 0;
    // A thread that sleeps is not waited for by the team, and takes a while to be up.
    while seen < TRIES && begun.elapsed() < WAKE {
        let started = Instant::now();
        if team.run(2, &|_| ()).is_parallel() {
            let took = started.elapsed().as_secs_f64();
            quickest = Some(quickest.map_or(took, |q| q.min(took)));
            seen += 1;
        }
    }
    quickest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_is_always_calm_and_the_first_look_is_the_measure() {
        assert!(Calm::default().now(&Team::new(1)));
        let (calm, team) = (Calm::default(), Team::new(2));
        // The thread has to start first, and a busy machine may take its time.
        assert!((0..10_000).any(|_| calm.now(&team)));
    }

    #[test]
    fn what_is_unlike_an_earlier_process_is_not_calm_until_it_is_accepted() {
        let (calm, team) = (Calm::default(), Team::new(2));
        calm.expect(Rest { handoff: Some(1e-12), pulse: None });
        assert!(!(0..100).any(|_| calm.now(&team)), "no hand-off takes a picosecond");
        calm.accept();
        assert!((0..10_000).any(|_| calm.now(&team)));
    }

    #[test]
    fn a_team_that_never_ran_is_looked_at_and_what_was_seen_long_ago_is_not_taken_for_now() {
        let (calm, team) = (Calm::default(), Team::new(2));
        let look = |old| calm.handoff(&team, old);
        // A busy machine may take its time.
        assert!((0..1_000).any(|_| look(Duration::ZERO).is_some()));
        let long_ago = Instant::now().checked_sub(Duration::from_secs(9)).expect("a machine up for 9 s");
        calm.seen().judge(7.0, long_ago);
        assert_eq!(look(Duration::from_secs(3600)), Some(7.0));
        assert!(look(Duration::from_secs(1)).is_none_or(|now| now < 7.0));
    }

    #[test]
    fn threads_that_did_not_come_together_are_not_looked_for_again_at_once() {
        let (calm, team) = (Calm::default(), Team::new(2));
        let an_hour = Duration::from_secs(3600);
        // Both are busy with something else.
        _ = team.run(2, &|_| {
            if calm.missed.lock().unwrap().is_none() {
                assert_eq!(calm.glance(&team, an_hour), None);
            }
        });
        assert!(calm.missed.lock().unwrap().is_some());
        assert_eq!(calm.glance(&team, an_hour), None, "not yet");
        assert!((0..1_000).any(|_| calm.glance(&team, Duration::ZERO).is_some()));
    }

    #[test]
    fn what_an_earlier_process_saw_is_known_to_the_next() {
        let (calm, team, next) = (Calm::default(), Team::new(2), Calm::default());
        assert!((0..10_000).any(|_| calm.now(&team)));
        next.expect(calm.rest());
        assert!(next.rest() == calm.rest() && next.rest().handoff.is_some() && next.rest().pulse.is_some());
    }
}
