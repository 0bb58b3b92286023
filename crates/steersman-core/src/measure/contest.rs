//! Times several variants of one workload in turns.

use super::series::Turn;
use super::{Rig, Series};
use crate::cost::Variant;
use crate::kernel::{KernelError, Ran};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How a contest is held.
#[derive(Clone, Debug)]
pub struct Contest {
    /// Samples of each variant at most.
    pub rounds: usize,
    /// Samples of each variant at least, whatever the time.
    pub least: usize,
    /// The same for what takes a tenth of a millisecond a run and is clearly behind: there little time is lost by chance, and
    /// much by timing it.
    pub least_long: usize,
    /// A batch lasts at least this long: 10 µs is 300 times the clock's resolution.
    pub batch: Duration,
    /// All of it together lasts about this long at most, once `least` rounds are done.
    pub limit: Duration,
    /// A variant this many times slower than the best after `least` rounds gets no more samples.
    pub give_up: f64,
    /// How long to wait for cores to be whole before each try at a sample: what takes them away mostly lasts less than
    /// 300 µs, but in a bad spell two are only whole at once every 10 ms.
    pub wait: Duration,
    /// A variant of which so many samples in a row were disturbed, and none not, gets no more either.
    pub patience: usize,
}

impl Default for Contest {
    fn default() -> Contest {
        Contest {
            rounds: 5,
            least: 2,
            least_long: 2,
            batch: Duration::from_micros(20),
            limit: Duration::from_millis(50),
            give_up: 3.0,
            wait: Duration::from_micros(300),
            patience: usize::MAX,
        }
    }
}

/// Times `variants` on `rig` in turns. `running` is told what runs next, for a watchdog beside, before each batch; it may
/// break the contest off there, which then ends with the samples that were taken.
pub fn contest(
    rig: &mut dyn Rig,
    variants: &[Variant],
    how: &Contest,
    running: &mut dyn FnMut(Variant) -> ControlFlow<()>,
) -> Vec<Series> {
    let rig = &mut Watched { rig, running };
    let started = Instant::now();
    let mut series: Vec<Series> = variants.iter().map(|&v| Series::new(v)).collect();
    for round in 0..how.rounds.max(how.least) {
        if round >= how.least && started.elapsed() > how.limit {
            break;
        }
        let n = series.len();
        for turn in 0..n {
            let best = series.iter().filter_map(|s| s.best()).min_by(f64::total_cmp);
            // Each round starts elsewhere, so that nobody always runs after the same neighbour.
            let s = &mut series[(turn + round) % n];
            let behind = |times: f64| best.zip(s.best()).is_some_and(|(best, mine)| mine > best * times);
            let hopeless = round >= how.least && behind(how.give_up)
                || round >= how.least_long && s.best().is_some_and(|t| t > UNMOVED) && behind(CLEARLY);
            let never_quiet = s.samples.is_empty() && s.disturbed.len() >= how.patience;
            if s.failed.is_some() || hopeless || never_quiet {
                continue;
            }
            match catch_unwind(AssertUnwindSafe(|| sample(rig, s, how, best))) {
                Ok(Ok((seconds, ran))) => s.add(Turn { round, seconds, clean: ran == Ran::Clean }),
                Ok(Err(Stop::Broken)) => return series,
                Ok(Err(Stop::Failed(why))) => {
                    (s.failed, s.excused) = (Some(why.to_string()), !why.is_offence())
                }
                Err(panic) => s.failed = Some(format!("panicked: {}", panic_text(&*panic))),
            }
        }
    }
    series
}

/// Runs this long (seconds) outlast most of what disturbs them, and cost much.
const LONG: f64 = 1e-3;

/// Runs longer than this (seconds) go through more than any cache holds: a run before them warms nothing. (17 MB, which
/// take 1 ms, are at home in the 100 MB of a Xeon, unless somebody who writes past the caches ran before.)
const WARMED: f64 = 20e-3;

/// How many times longer than the best such a run takes that is clearly behind.
const CLEARLY: f64 = 1.6;

/// Parallel runs this long (seconds) are hardly touched by how far apart cores are, and too dear to lose.
pub(crate) const UNMOVED: f64 = 100e-6;

/// Runs before a sample at most, until one is undisturbed.
const WAKE: usize = 24;

/// Threads that are kept awake by being looked at.
const LOOKED_AT: usize = 2;

/// Runs in a batch at most.
const MOST: u32 = 1 << 16;

/// Share of a batch's least duration below which it is made longer: a clock is read around it.
const SHORT: f64 = 0.3;

/// Times that a sample is taken until its cores were whole.
const TRIES: usize = 4;

/// A rig, and who is told what runs on it.
struct Watched<'a> {
    rig: &'a mut dyn Rig,
    running: &'a mut dyn FnMut(Variant) -> ControlFlow<()>,
}

/// Why there is no sample.
enum Stop {
    /// The variant failed.
    Failed(KernelError),
    /// Nobody wants to know any more.
    Broken,
}

/// So many runs: seconds, and whether all were undisturbed.
fn run(on: &mut Watched<'_>, variant: Variant, n: u32) -> Result<(f64, bool), Stop> {
    if (on.running)(variant).is_break() {
        return Err(Stop::Broken);
    }
    let mut clean = true;
    let started = Instant::now();
    for _ in 0..n {
        clean &= on.rig.run(variant).map_err(Stop::Failed)? == Ran::Clean;
    }
    Ok((started.elapsed().as_secs_f64(), clean))
}

/// Runs until all threads take part, but not for ever.
fn wake(rig: &mut Watched<'_>, variant: Variant) -> Result<(), Stop> {
    for _ in 0..WAKE {
        if run(rig, variant, 1)?.1 {
            break;
        }
    }
    Ok(())
}

/// One sample: a run to warm up, then a timed batch.
fn sample(
    on: &mut Watched<'_>,
    s: &mut Series,
    how: &Contest,
    best: Option<f64>,
) -> Result<(f64, Ran), Stop> {
    let (variant, threads) = (s.variant, usize::from(s.variant.params.threads));
    on.rig.rouse(variant);
    if s.batch == 0 {
        let least = how.batch;
        let (first, together) = run(on, variant, 1)?;
        let mut n = 1u32;
        if together && how.least_long <= 1 && first > LONG && best.is_some_and(|best| first > CLEARLY * best)
        {
            s.batch = n;
            return Ok((first, Ran::Clean));
        }
        // Anything already far longer than a batch needs no second look to settle the batch size.
        let mut took = if first > 20.0 * least.as_secs_f64() { first } else { run(on, variant, 1)?.0 };
        while took < least.as_secs_f64() && n < MOST {
            n = (n * 2).max((n as f64 * least.as_secs_f64() / took.max(1e-9)).min(f64::from(MOST)) as u32);
            took = run(on, variant, n)?.0;
        }
        (s.batch, s.quickest) = (n, first.min(took / f64::from(n)));
    } else if s.best().is_none_or(|t| t < WARMED) {
        // Caches are left as its own run leaves them, not somebody's who writes past them. Threads that slept since their
        // last turn take a few runs to be there and on cores of their own.
        wake(on, variant)?;
    }
    let mut best = (f64::INFINITY, false);
    // Again: compiling may have taken long.
    on.rig.rouse(variant);
    for _ in 0..TRIES {
        let began_whole = on.rig.whole(threads, how.wait);
        // Of many threads most have fallen asleep meanwhile, and come one after the other.
        if threads > LOOKED_AT {
            wake(on, variant)?;
        }
        let (took, together) = run(on, variant, s.batch)?;
        let each = took / f64::from(s.batch);
        s.quickest = s.quickest.min(each);
        if s.quickest * f64::from(s.batch) < SHORT * how.batch.as_secs_f64() && s.batch < MOST {
            // Its first runs were put aside, and it was taken for long.
            s.batch = (how.batch.as_secs_f64() / s.quickest.max(1e-9)).min(f64::from(MOST)) as u32;
            continue;
        }
        // What lasts longer than such spells has its share of them however often it is taken; what only took that long was
        // put aside meanwhile.
        let long = s.quickest * f64::from(s.batch) > LONG;
        let put_aside = took > LONG && !long;
        let clean = together && !put_aside && (long || began_whole && on.rig.whole(threads, Duration::ZERO));
        if (clean, -each) > (best.1, -best.0) {
            best = (each, clean);
        }
        // One that outlasts the wait will outlast the next.
        if clean || long || !began_whole {
            break;
        }
    }
    let near = threads <= 1 || best.0 > UNMOVED || on.rig.quiet();
    Ok((best.0, if best.1 && near { Ran::Clean } else { Ran::Disturbed }))
}

/// The text of a panic.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| s.to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "with no message".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Params;

    fn go_on(_: Variant) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Long enough that a loaded machine does not cut rounds off.
    fn patient() -> Contest {
        Contest { limit: Duration::from_secs(60), ..Contest::default() }
    }

    /// A sum to spin on, and how often it was roused.
    struct Spins(u32, u32);
    impl Rig for Spins {
        fn rouse(&mut self, _: Variant) {
            self.1 += 1;
        }
        fn run(&mut self, v: Variant) -> Result<Ran, KernelError> {
            match v.kernel {
                9 => Err(KernelError::Failed("no device".into())),
                10 => Err(KernelError::NoRoom("all is taken".into())),
                8 => panic!("boom"),
                7 => Ok(Ran::Disturbed),
                k => {
                    self.0 = self.0.wrapping_add((0..(k as u32 + 1) * 2000).map(std::hint::black_box).sum());
                    Ok(Ran::Clean)
                }
            }
        }
        fn check(&mut self, _: Variant) -> Result<(), String> {
            Ok(())
        }
    }

    #[test]
    fn failing_and_panicking_variants_are_given_up_and_the_others_go_on() {
        let variants: Vec<Variant> =
            [0, 9, 8, 7, 10].map(|kernel| Variant { kernel, params: Params::SERIAL }).into();
        let mut rig = Spins(0, 0);
        let series = contest(&mut rig, &variants, &patient(), &mut go_on);
        assert_eq!(series[0].samples.len(), 5);
        assert_eq!(series[1].failed.as_deref(), Some("no device"));
        assert_eq!(series[2].failed.as_deref(), Some("panicked: boom"));
        assert!(series[4].failed.is_some());
        assert_eq!(series.iter().map(|s| s.excused).collect::<Vec<_>>(), [false, false, false, false, true]);
        assert!(
            series[3].samples.is_empty() && series[3].disturbed.len() == 5,
            "disturbed batches are no samples"
        );
        assert!(rig.1 >= 10, "roused before each sample, {} times", rig.1);
    }

    /// A core that is shared at so many looks, unless one waits.
    struct Shared {
        looks: usize,
        tries: usize,
    }
    impl Rig for Shared {
        fn run(&mut self, _: Variant) -> Result<Ran, KernelError> {
            Ok(Ran::Clean)
        }
        fn check(&mut self, _: Variant) -> Result<(), String> {
            Ok(())
        }
        fn whole(&mut self, _: usize, longest: Duration) -> bool {
            if !longest.is_zero() {
                return true;
            }
            self.tries += 1;
            self.tries > self.looks
        }
    }

    #[test]
    fn a_sample_that_shared_its_core_is_taken_again_but_not_for_ever() {
        let one = [Variant { kernel: 0, params: Params::SERIAL }];
        let how = Contest { rounds: 1, least: 1, ..patient() };
        let tries = |looks: usize| {
            let mut rig = Shared { looks, tries: 0 };
            let series = contest(&mut rig, &one, &how, &mut go_on);
            (rig.tries, series[0].samples.len())
        };
        // A batch that was itself put aside for a millisecond is not taken again: not five times in a row.
        for (looks, want) in [(0, (1, 1)), (2, (3, 1)), (usize::MAX, (TRIES, 0))] {
            assert!((0..5).any(|_| tries(looks) == want), "{looks} looks");
        }
    }

    /// Counts the runs between the look before a sample and the one after it.
    #[derive(Default)]
    struct Counted {
        runs: usize,
        between: Vec<usize>,
    }
    impl Rig for Counted {
        fn run(&mut self, _: Variant) -> Result<Ran, KernelError> {
            self.runs += 1;
            Ok(Ran::Clean)
        }
        fn check(&mut self, _: Variant) -> Result<(), String> {
            Ok(())
        }
        fn whole(&mut self, _: usize, longest: Duration) -> bool {
            match longest.is_zero() {
                true => self.between.push(self.runs),
                false => self.runs = 0,
            }
            true
        }
    }

    #[test]
    fn many_threads_are_woken_before_they_are_timed() {
        for (threads, wakes) in [(1, 0), (2, 0), (16, 1)] {
            let one = [Variant { kernel: 0, params: Params::threads(threads) }];
            let mut rig = Counted::default();
            let series = contest(&mut rig, &one, &patient(), &mut go_on);
            // There is no look after a sample that happened to be put aside for a millisecond.
            assert!(!rig.between.is_empty());
            let runs = series[0].batch as usize + wakes;
            assert!(rig.between.iter().all(|n| *n == runs), "{threads} threads: {:?}, {runs}", rig.between);
        }
    }

    /// Threads that come one after the other: all are there from so many runs on.
    struct Late {
        runs: usize,
        all_from: usize,
    }
    impl Rig for Late {
        fn run(&mut self, _: Variant) -> Result<Ran, KernelError> {
            self.runs += 1;
            Ok(if self.runs > self.all_from { Ran::Clean } else { Ran::Disturbed })
        }
        fn check(&mut self, _: Variant) -> Result<(), String> {
            Ok(())
        }
        fn whole(&mut self, _: usize, longest: Duration) -> bool {
            // They fall asleep while two are looked at before a sample.
            if !longest.is_zero() {
                self.runs = 0;
            }
            true
        }
    }

    #[test]
    fn many_threads_are_run_until_all_are_awake_but_not_for_ever() {
        let samples = |threads, all_from| {
            let one = [Variant { kernel: 0, params: Params::threads(threads) }];
            let how = Contest { rounds: 1, least: 1, ..patient() };
            contest(&mut Late { runs: 0, all_from }, &one, &how, &mut go_on)[0].samples.len()
        };
        assert_eq!(samples(16, 5), 1, "they come within a few runs");
        assert_eq!(samples(2, 5), 0, "two are kept awake by the looks: who then is not there is disturbed");
        assert_eq!(samples(16, usize::MAX), 0, "they never come");
    }

    /// Runs of 2 µs, of which the next is put aside for a while: the very first, or the first of the first sample.
    struct PutAside {
        next: bool,
        at_sample: bool,
    }
    impl Rig for PutAside {
        fn run(&mut self, _: Variant) -> Result<Ran, KernelError> {
            let lasts = Duration::from_micros(if std::mem::take(&mut self.next) { 3000 } else { 2 });
            let begun = Instant::now();
            while begun.elapsed() < lasts {
                std::hint::spin_loop();
            }
            Ok(Ran::Clean)
        }
        fn check(&mut self, _: Variant) -> Result<(), String> {
            Ok(())
        }
        fn whole(&mut self, _: usize, longest: Duration) -> bool {
            self.next = !longest.is_zero() && std::mem::take(&mut self.at_sample);
            true
        }
    }

    #[test]
    fn a_batch_that_was_put_aside_is_not_taken_for_a_long_run() {
        let one = [Variant { kernel: 0, params: Params::SERIAL }];
        let how = Contest { rounds: 1, least: 1, ..patient() };
        for at_sample in [false, true] {
            let undisturbed = || {
                let mut rig = PutAside { next: !at_sample, at_sample };
                let s = contest(&mut rig, &one, &how, &mut go_on).remove(0);
                s.samples.len() == 1 && s.samples[0] < 50e-6 && s.batch > 1
            };
            // Other processes may put it aside as well: not ten times in a row.
            assert!((0..10).any(|_| undisturbed()), "at the first sample: {at_sample}");
        }
    }

    /// The second kernel takes ten times as long as the first, which is long.
    struct Long([usize; 2]);
    impl Rig for Long {
        fn run(&mut self, v: Variant) -> Result<Ran, KernelError> {
            self.0[usize::from(v.kernel)] += 1;
            std::thread::sleep(Duration::from_millis([3, 30][usize::from(v.kernel)]));
            Ok(Ran::Clean)
        }
        fn check(&mut self, _: Variant) -> Result<(), String> {
            Ok(())
        }
    }

    #[test]
    fn a_long_run_that_is_clearly_behind_is_run_once_where_once_is_enough() {
        let both = [0, 1].map(|kernel| Variant { kernel, params: Params::SERIAL });
        for (least_long, runs) in [(1, 1), (2, 3)] {
            let mut rig = Long([0; 2]);
            let how = Contest { rounds: 3, least: 3, least_long, ..patient() };
            let series = contest(&mut rig, &both, &how, &mut go_on);
            assert_eq!((series[0].samples.len(), series[1].samples.len()), (3, least_long));
            assert_eq!(rig.0[1], runs, "one to warm up, where it is timed at all");
            assert_eq!(rig.0[0], 6, "one before each sample of what a cache may hold");
        }
    }

    #[test]
    fn a_contest_that_is_broken_off_ends_before_the_next_batch_with_the_samples_it_has() {
        let both = [0, 1].map(|kernel| Variant { kernel, params: Params::SERIAL });
        for batches in [0, 1, 2, 3, 7] {
            let mut rig = Long([0; 2]);
            let mut left = batches;
            let series = contest(&mut rig, &both, &patient(), &mut |_| match left {
                0 => ControlFlow::Break(()),
                _ => {
                    left -= 1;
                    ControlFlow::Continue(())
                }
            });
            assert_eq!(rig.0[0] + rig.0[1], batches, "a batch of these is one run");
            assert!(series.iter().all(|s| s.failed.is_none()));
            assert_eq!(series[0].samples.is_empty(), batches < 2, "one run to warm up, one that is timed");
        }
    }

    #[test]
    fn a_variant_that_is_only_ever_disturbed_is_given_up_where_patience_ends() {
        let variants: Vec<Variant> = [0, 7].map(|kernel| Variant { kernel, params: Params::SERIAL }).into();
        let series = contest(&mut Spins(0, 0), &variants, &Contest { patience: 2, ..patient() }, &mut go_on);
        assert_eq!((series[0].samples.len(), series[1].disturbed.len()), (5, 2));
    }

    #[test]
    fn a_much_slower_variant_gets_no_more_than_the_least_samples() {
        let variants: Vec<Variant> = [0, 6].map(|kernel| Variant { kernel, params: Params::SERIAL }).into();
        let series = contest(&mut Spins(0, 0), &variants, &patient(), &mut go_on);
        assert_eq!(series[0].samples.len(), 5);
        assert_eq!(series[1].samples.len(), 2);
    }
}
