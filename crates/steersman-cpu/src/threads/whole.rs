//! Tells a whole core from half of one.
//!
//! Two hardware threads share a core, and on a virtual machine the other one may be somebody else's, or the other of
//! our own: code that fills the core then takes twice as long, while code that waits for its own results takes what it
//! always does. On the machine this was found on a single thread has company a third of the time, for 50 µs to a few
//! milliseconds, and two threads share one core for seconds; no counter of the guest shows either. A short run of work
//! that fills a core does, beside what the same core's clock makes of it ([`Tempo`]): in cycles, not in seconds.

use super::usual::{SHARE, Usual};
use super::{Team, Tempo};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much longer than the quickest ever the run may take on a core of one's own: there it varies by 4%. Shared, it
/// mostly takes 1.5 to 2 times as long, but beside some neighbours 1.12, where a small kernel takes 1.5 to 1.9 times as
/// long. (Of samples of such a kernel taken on a shared core 1.3 let through 1 to 92%, 1.1 at most 1% in seven runs of
/// eight.)
const WHOLE: f64 = 1.1;

/// How long a pulse is remembered: neighbours stay for a tenth of a second, seldom for seconds.
const MEMORY: Duration = Duration::from_secs(5);

/// Share of the time in which one thread, and two, are at least as quick as what counts as usual of them. (With 0.4 for all a
/// calibration on a 2-core machine whose cores were shared most of the time took that for its usual state, kept 42,000 samples
/// and foretold times that were a third too long, some twice: MAPE 29%. With 0.15 for both, one in such a spell kept 14,000 and
/// foretold within 10%, but another kept 11,000 and left five transposes to one thread that take half as long on two.)
const SHARES_OF_FEW: [f64; 2] = [0.15, 0.3];

/// How long a look at the clock stands: it changes seldom, and slowly.
const CLOCK: Duration = Duration::from_millis(1);

/// The quickest run so far, in ticks of the clock, to compare others with.
#[derive(Debug)]
pub struct Whole {
    /// Of one thread, two, up to four, eight, and so on: the slowest of many is always slower than one alone, and by what
    /// is usual of one they would hardly ever be whole.
    usual: [Mutex<Usual>; SORTS],
    /// What the clock does.
    pub tempo: Tempo,
}

impl Default for Whole {
    fn default() -> Whole {
        let share = |sort| SHARES_OF_FEW.get(sort).copied().unwrap_or(SHARE);
        let usual = std::array::from_fn(|sort| Mutex::new(Usual::new(WHOLE, MEMORY, share(sort))));
        Whole { usual, tempo: Tempo::default() }
    }
}

impl Whole {
    /// Whether so many threads of the team have their cores to themselves at this moment, as far as is known. Takes
    /// about 0.6 µs, and a hand-off.
    pub fn now(&self, team: &Team, threads: usize) -> bool {
        let Some(took) = self.look(team, threads, CLOCK) else { return false };
        let quickest = self.seen(threads).best();
        let again = || self.look(team, threads, Duration::ZERO);
        believed(took, quickest, again).is_some_and(|took| self.seen(threads).judge(took, Instant::now()))
    }

    /// Ticks, of a clock not looked at longer ago than this, that a pulse takes the slowest of so many threads; `None` if they did
    /// not all take part.
    fn look(&self, team: &Team, threads: usize, old: Duration) -> Option<f64> {
        let tick = self.tempo.tick(old);
        if threads <= 1 {
            return Some(pulse() / tick);
        }
        let slowest = AtomicU64::new(0);
        // Times are positive, so that their bits are ordered as they are.
        let body = |_: usize| {
            slowest.fetch_max(pulse().to_bits(), Ordering::Relaxed);
        };
        let parallel = team.run(threads, &body).is_parallel();
        parallel.then(|| f64::from_bits(slowest.into_inner()) / tick)
    }

    /// Waits for that, but not longer than this; whether it came about.
    pub fn wait(&self, team: &Team, threads: usize, longest: Duration) -> bool {
        let started = Instant::now();
        loop {
            match self.now(team, threads) {
                true => return true,
                false if started.elapsed() > longest => return false,
                false => {}
            }
        }
    }

    fn seen(&self, threads: usize) -> MutexGuard<'_, Usual> {
        self.usual[sort(threads)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ticks of the quickest run of one thread, or of two if none was looked at alone.
    pub(super) fn best(&self) -> Option<f64> {
        let alone = self.seen(1).best();
        alone.or_else(|| self.seen(2).best())
    }

    /// What an earlier process saw.
    pub(super) fn expect(&self, best: Option<f64>) {
        for threads in [1, 2] {
            self.seen(threads).expect(best);
        }
    }
}

/// A look, or the slower of two where it seems quicker than any before. By a clock that was looked at in a bad moment every run
/// seems quick, and all later ones would be measured by it. (Each of three calibrations kept a quickest of 0.95 to 1.05 ticks where
/// runs take 1.2 at least, and every process after them thought that its cores were shared.)
fn believed(took: f64, quickest: Option<f64>, again: impl FnOnce() -> Option<f64>) -> Option<f64> {
    match quickest {
        Some(quickest) if took < quickest => again().map(|second| second.max(took)),
        _ => Some(took),
    }
}

/// Sorts of thread counts that are told apart.
const SORTS: usize = 9;

/// Which of them a count is.
fn sort(threads: usize) -> usize {
    (threads.max(1).next_power_of_two().trailing_zeros() as usize).min(SORTS - 1)
}

/// Aligned, since across cache lines it takes a seventh longer, on some threads and not on others.
#[repr(align(64))]
struct Lanes([f32; 256]);

/// Seconds of a short run of independent multiplications and additions, as many as a core can do at once.
fn pulse() -> f64 {
    const PASSES: usize = 12;
    let from = black_box(Lanes([0.5; 256]));
    let mut to = Lanes([0.0; 256]);
    let mut started = Instant::now();
    for pass in 0..=PASSES {
        for (to, &x) in to.0.iter_mut().zip(&black_box(&from).0) {
            let x = x * x + x;
            let x = x * x + x;
            let x = x * x + x;
            *to = x * x + x;
        }
        black_box(&mut to);
        // The first pass fetches code and memory.
        if pass == 0 {
            started = Instant::now();
        }
    }
    started.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_are_told_from_few() {
        assert_eq!([1, 2, 3, 4, 5, 16, 1000].map(sort), [0, 1, 2, 2, 3, 4, 8]);
        let whole = Whole::default();
        whole.expect(Some(1.0));
        let now = Instant::now();
        assert!(!whole.seen(2).judge(2.0, now), "slower than one ever was");
        assert!(whole.seen(16).judge(2.0, now), "nobody knows what sixteen take");
    }

    #[test]
    fn what_seems_quicker_than_ever_has_to_be_so_again() {
        assert_eq!(believed(0.95, Some(1.2), || Some(1.25)), Some(1.25), "a clock looked at in a bad moment");
        assert_eq!(believed(1.1, Some(1.2), || Some(1.05)), Some(1.1), "it really is quicker");
        assert_eq!(believed(1.1, Some(1.2), || None), None, "nobody knows");
        for quickest in [None, Some(1.2)] {
            assert_eq!(believed(1.3, quickest, || unreachable!("one look is enough")), Some(1.3));
        }
    }

    #[test]
    fn it_looks_at_as_many_threads_as_are_asked_about() {
        let (team, whole) = (Team::new(2), Whole::default());
        // The thread has to start first, and a busy machine may take its time.
        assert!((0..10_000).any(|_| whole.now(&team, 1)) && (0..10_000).any(|_| whole.now(&team, 2)));
    }
}
