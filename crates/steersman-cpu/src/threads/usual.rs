//! What is usual of a time that is taken again and again.
//!
//! Disturbed times are told by how much longer they are than the quickest ever. But on some machines the quickest is
//! rare (a clock that is seldom so fast, two threads that met on one core once), and nearly everything would count as
//! disturbed: a calibration of 16 cores was left with one sample a workload. So what the time is for a good part of the last
//! seconds counts as undisturbed too.

use std::time::{Duration, Instant};

/// Times are told apart by steps of so much.
const STEP: f64 = 1.1;
/// Steps that are told apart; the last has all that is longer.
const STEPS: usize = 24;
/// Share of the time in which the machine is at least as quick as what counts as usual.
pub(super) const SHARE: f64 = 0.4;
/// A look stands for the time since the one before, but not for longer.
const LOOK: Duration = Duration::from_millis(1);

/// Share of what is remembered for which an earlier process's word stands.
const EXPECTED: f64 = 0.5;

#[derive(Debug)]
pub(super) struct Usual {
    /// How much longer than the quickest is undisturbed in any case.
    band: f64,
    /// How long a time is remembered.
    memory: Duration,
    /// Share of the time in which it is at least as quick as what counts as usual.
    share: f64,
    best: Option<f64>,
    /// When it was last looked, and how many steps longer than the best it was then.
    last: Option<(Instant, usize)>,
    /// Seconds in which times were so many steps longer than the best, fading.
    spent: [f64; STEPS],
}

impl Usual {
    pub(super) fn new(band: f64, memory: Duration, share: f64) -> Usual {
        Usual { band, memory, share, best: None, last: None, spent: [0.0; STEPS] }
    }

    /// The quickest ever.
    pub(super) fn best(&self) -> Option<f64> {
        self.best
    }

    /// What an earlier process saw, as if it had been so until now.
    pub(super) fn expect(&mut self, best: Option<f64>) {
        self.best = self.best.into_iter().chain(best).min_by(f64::total_cmp);
        if best.is_some() {
            self.spent[0] += EXPECTED * self.memory.as_secs_f64();
        }
    }

    /// Whether a time that was taken now is undisturbed.
    pub(super) fn judge(&mut self, took: f64, at: Instant) -> bool {
        let since =
            self.last.map_or(LOOK, |(last, _)| at.saturating_duration_since(last)).min(LOOK).as_secs_f64();
        let kept = (-since / self.memory.as_secs_f64()).exp();
        self.spent.iter_mut().for_each(|s| *s *= kept);
        let best = self.best.map_or(took, |best| best.min(took));
        if let Some(was) = self.best.filter(|was| *was > best) {
            // All that was seen is so much longer than the new best.
            let by = steps(was / best).min(STEPS);
            self.spent.rotate_right(by);
            let beyond: f64 = self.spent[..by].iter().sum();
            self.spent[..by].fill(0.0);
            self.spent[STEPS - 1] += beyond;
        }
        self.best = Some(best);
        let step = steps(took / best).min(STEPS - 1);
        self.last = Some((at, step));
        self.spent[step] += since;
        took <= best * self.usual().max(self.band)
    }

    /// Takes the present for usual.
    pub(super) fn accept(&mut self) {
        let all: f64 = self.spent.iter().sum();
        self.spent.fill(0.0);
        self.spent[self.last.map_or(0, |(_, step)| step)] = all;
    }

    /// Whether it was ever looked.
    pub(super) fn is_seen(&self) -> bool {
        self.last.is_some()
    }

    /// How many times the best the machine took at most in that share of the time.
    fn usual(&self) -> f64 {
        let enough = self.share * self.spent.iter().sum::<f64>();
        let mut so_far = 0.0;
        let step = self.spent.iter().position(|s| {
            so_far += s;
            so_far >= enough
        });
        match step.unwrap_or(0) {
            step if step + 1 == STEPS => f64::INFINITY,
            step => STEP.powi(step as i32 + 1),
        }
    }
}

/// Whole steps that are in a ratio.
fn steps(ratio: f64) -> usize {
    (ratio.max(1.0).ln() / STEP.ln()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Judges times a tenth of a millisecond apart.
    fn judge(u: &mut Usual, now: &mut Instant, times: impl IntoIterator<Item = f64>) -> Vec<bool> {
        let look = |took| {
            *now += Duration::from_micros(100);
            u.judge(took, *now)
        };
        times.into_iter().map(look).collect()
    }

    #[test]
    fn a_spell_is_disturbed_until_it_has_lasted_for_most_of_what_is_remembered() {
        let (mut u, mut now) = (Usual::new(1.1, Duration::from_secs(1), SHARE), Instant::now());
        assert!(judge(&mut u, &mut now, vec![1.0; 20_000]).iter().all(|ok| *ok));
        let slow = judge(&mut u, &mut now, vec![1.7; 20_000]);
        let accepted = slow.iter().position(|ok| *ok).unwrap();
        // It is there for 60% of what is remembered after 0.9 of a second.
        assert!((8_000..10_500).contains(&accepted), "{accepted}");
        assert!(judge(&mut u, &mut now, vec![1.0; 20_000]).iter().all(|ok| *ok));
        assert_eq!(judge(&mut u, &mut now, [1.7]), [false]);
    }

    #[test]
    fn where_the_quickest_is_rare_the_quicker_part_of_the_rest_is_undisturbed() {
        let (mut u, mut now) = (Usual::new(1.1, Duration::from_secs(1), SHARE), Instant::now());
        let times = |i: usize| if i.is_multiple_of(50) { 1.0 } else { 1.5 + (i % 10) as f64 * 0.1 };
        judge(&mut u, &mut now, (0..5_000).map(times));
        let share = judge(&mut u, &mut now, (0..5_000).map(times)).iter().filter(|ok| **ok).count();
        assert!((1_500..3_500).contains(&share), "{share} of 5000");
    }

    #[test]
    fn a_new_best_moves_what_was_seen_and_what_is_accepted_is_usual() {
        let (mut u, mut now) = (Usual::new(1.1, Duration::from_secs(1), SHARE), Instant::now());
        assert!(
            judge(&mut u, &mut now, vec![2.0; 100]).iter().all(|ok| *ok),
            "the first look is the measure"
        );
        assert_eq!(judge(&mut u, &mut now, [1.0, 2.0]), [true, true], "it was so nearly always");
        judge(&mut u, &mut now, vec![1.0; 1000]);
        assert_eq!(judge(&mut u, &mut now, [9.0, 2.0]), [false, false]);
        u.accept();
        assert_eq!(judge(&mut u, &mut now, [2.0, 3.0]), [true, false]);
        let mut next = Usual::new(1.1, Duration::from_secs(1), SHARE);
        next.expect(u.best());
        assert_eq!(next.best(), Some(1.0));
        let slow = judge(&mut next, &mut now, vec![2.0; 20_000]);
        let accepted = slow.iter().position(|ok| *ok).unwrap();
        assert!((4_000..7_000).contains(&accepted), "a process that is disturbed from its start: {accepted}");
    }
}
