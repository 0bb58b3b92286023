//! Which of several states a machine is in most of the time, by a time that is taken again and again.
//!
//! Two cores of a virtual machine lie in one cache domain or in two, for seconds at a time. What two threads take differs by up to
//! a factor of two and a half between these states (a transpose of 51×1069 f64 takes 3.5 µs on two near cores of a Zen 5, 9 on far
//! ones, and 7.1 on one), so that samples of both make no sense together, the quicker ones no more than the slower. So what counts as undisturbed is what
//! the machine is like for most of the time, as it was for the calibration whose wisdom is used.

use std::time::{Duration, Instant};

/// Times are told apart by steps of so much.
const STEP: f64 = 1.1;
/// The first step ends at so many seconds.
const FIRST: f64 = 10e-9;
/// Steps that are told apart, up to 80 µs; the last has all that is longer.
const STEPS: usize = 96;
/// A look stands for the time since the one before, but not for longer.
const LOOK: Duration = Duration::from_millis(1);
/// Share of what is remembered for which an earlier process's word stands.
const EXPECTED: f64 = 0.5;

#[derive(Debug)]
pub(super) struct Prevailing {
    /// How many times longer or shorter than what prevails is the same state.
    band: f64,
    /// How long a time is remembered.
    memory: Duration,
    /// When it was last looked, and what was seen then.
    last: Option<(Instant, f64)>,
    /// Seconds in which times were of each step, fading.
    spent: [f64; STEPS],
}

impl Prevailing {
    pub(super) fn new(band: f64, memory: Duration) -> Prevailing {
        Prevailing { band, memory, last: None, spent: [0.0; STEPS] }
    }

    /// The time that is exceeded as often as not; `None` if it was never looked.
    pub(super) fn usual(&self) -> Option<f64> {
        let all: f64 = self.spent.iter().sum();
        let mut so_far = 0.0;
        let middle = self.spent.iter().position(|s| {
            so_far += s;
            so_far >= all / 2.0
        })?;
        // The middle of the step.
        (all > 0.0).then(|| FIRST * STEP.powf(middle as f64 - 0.5))
    }

    /// When it was last looked, and what was seen then.
    pub(super) fn last(&self) -> Option<(Instant, f64)> {
        self.last
    }

    /// What prevailed for an earlier process, as if it had until now.
    pub(super) fn expect(&mut self, usual: Option<f64>) {
        if let Some(usual) = usual {
            self.spent[step(usual)] += EXPECTED * self.memory.as_secs_f64();
        }
    }

    /// Whether a time that was taken now is of the state that prevails.
    pub(super) fn judge(&mut self, took: f64, at: Instant) -> bool {
        let since =
            self.last.map_or(LOOK, |(last, _)| at.saturating_duration_since(last)).min(LOOK).as_secs_f64();
        let kept = (-since / self.memory.as_secs_f64()).exp();
        self.spent.iter_mut().for_each(|s| *s *= kept);
        self.last = Some((at, took));
        self.spent[step(took)] += since;
        self.usual().is_none_or(|usual| took <= usual * self.band && took >= usual / self.band)
    }

    /// Takes the present for what prevails.
    pub(super) fn accept(&mut self) {
        if let Some((_, took)) = self.last {
            self.settle(took);
        }
    }

    /// Takes this time for what prevails.
    pub(super) fn settle(&mut self, took: f64) {
        let all: f64 = self.spent.iter().sum();
        self.spent.fill(0.0);
        self.spent[step(took)] = all.max(LOOK.as_secs_f64());
    }
}

fn step(seconds: f64) -> usize {
    ((seconds / FIRST).max(1.0).ln() / STEP.ln()).ceil().min((STEPS - 1) as f64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: f64 = 90e-9;
    const FAR: f64 = 210e-9;

    fn new() -> (Prevailing, Instant) {
        (Prevailing::new(1.5, Duration::from_secs(1)), Instant::now())
    }

    /// Judges times a tenth of a millisecond apart.
    fn judge(p: &mut Prevailing, now: &mut Instant, times: impl IntoIterator<Item = f64>) -> Vec<bool> {
        let look = |took| {
            *now += Duration::from_micros(100);
            p.judge(took, *now)
        };
        times.into_iter().map(look).collect()
    }

    #[test]
    fn a_short_spell_is_another_state_whether_it_is_quicker_or_slower() {
        for (mostly, seldom) in [(NEAR, FAR), (FAR, NEAR)] {
            let (mut p, mut now) = new();
            assert!(judge(&mut p, &mut now, vec![mostly; 10_000]).iter().all(|ok| *ok));
            assert!(!judge(&mut p, &mut now, vec![seldom; 1_000]).iter().any(|ok| *ok));
            assert!(judge(&mut p, &mut now, [mostly])[0]);
        }
    }

    #[test]
    fn what_lasts_longer_than_half_of_what_is_remembered_prevails() {
        let (mut p, mut now) = new();
        judge(&mut p, &mut now, vec![NEAR; 20_000]);
        let far = judge(&mut p, &mut now, vec![FAR; 20_000]);
        let accepted = far.iter().position(|ok| *ok).unwrap();
        // Half of what is remembered has faded after 0.69 of a second.
        assert!((6_000..8_000).contains(&accepted), "{accepted}");
        assert!(p.usual().is_some_and(|t| (t / FAR - 1.0).abs() < 0.1), "{:?}", p.usual());
    }

    #[test]
    fn a_later_process_knows_what_prevailed_and_is_told_otherwise_by_what_it_sees() {
        let (mut p, mut now) = new();
        p.expect(Some(FAR));
        assert_eq!(judge(&mut p, &mut now, [NEAR, FAR]), [false, true]);
        let near = judge(&mut p, &mut now, vec![NEAR; 20_000]);
        let accepted = near.iter().position(|ok| *ok).unwrap();
        assert!((2_000..8_000).contains(&accepted), "{accepted}");
    }

    #[test]
    fn what_is_accepted_prevails_and_without_a_look_nothing_does() {
        let (mut p, mut now) = new();
        assert_eq!(p.usual(), None);
        p.accept();
        judge(&mut p, &mut now, vec![NEAR; 5_000]);
        assert_eq!(judge(&mut p, &mut now, [FAR]), [false]);
        p.accept();
        assert_eq!(judge(&mut p, &mut now, [FAR, NEAR]), [true, false]);
        // Nothing is shorter than the first step, nor longer than the last.
        assert_eq!((step(0.0), step(1.0)), (0, STEPS - 1));
    }
}
