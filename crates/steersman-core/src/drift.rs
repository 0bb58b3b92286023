//! Notices that the machine has changed: a two-sided CUSUM on standardised residuals.
//!
//! One watch per group of kernels that slow down together (a device's serial kernels, its parallel ones).
//! On alarm the group's speed factor moves by the median residual since the change began; nothing is
//! forgotten. While nobody runs a group that was slowed, its speed is doubted more and more, so that
//! exploring looks whether the slow-down is over.

/// Residuals are standardised; a shift of half a deviation is worth noticing, smaller ones are noise.
const SLACK: f64 = 0.5;
/// About one false alarm in 10,000 samples at that slack.
const ALARM: f64 = 9.0;

/// Which way things moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shift {
    /// Slower than learned.
    Slower,
    /// Quicker than learned.
    Quicker,
}

/// One watched group.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    up: Side,
    down: Side,
    /// ln of how much slower the group runs than learned.
    ln_speed: f64,
    /// When the group was last observed, in observations of all groups.
    seen: u64,
    /// Alarms so far.
    pub alarms: u64,
}

/// Residuals kept for the size of a shift: a large one alarms after four.
const RECENT: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Side {
    sum: f64,
    recent: [f64; RECENT],
    n: usize,
}

impl Side {
    fn add(&mut self, z: f64, residual: f64) -> bool {
        self.sum = (self.sum + z - SLACK).max(0.0);
        if self.sum == 0.0 {
            *self = Side::default();
        } else {
            self.recent[self.n % RECENT] = residual;
            self.n += 1;
        }
        self.sum > ALARM
    }

    /// The median of the last residuals: one wild sample does not move it, and it is all of the shift,
    /// where a mean of clamped residuals took eight alarms to get to threefold.
    fn shift(&self) -> f64 {
        let mut kept = self.recent;
        let kept = &mut kept[..self.n.min(RECENT)];
        kept.sort_by(f64::total_cmp);
        kept.get(kept.len() / 2).copied().unwrap_or(0.0)
    }
}

/// Observations of other groups after which a shifted group's speed is doubted by two thirds of the shift.
const FADE: f64 = 64.0;

impl Watch {
    /// How much slower the group runs now than learned (1: as learned).
    pub fn speed(&self) -> f64 {
        self.ln_speed.exp()
    }

    /// How far the speed may have gone back since the group was last observed (a deviation of its ln).
    /// Slow-downs end, and a group that nobody runs does not say so.
    pub fn doubt(&self, now: u64) -> f64 {
        self.ln_speed.abs() * (1.0 - (-(now.saturating_sub(self.seen) as f64) / FADE).exp())
    }

    /// Whether a change may be on: samples taken now are not to be trusted fully.
    pub fn uneasy(&self) -> bool {
        self.up.sum.max(self.down.sum) > ALARM / 3.0
    }

    /// Takes in ln(measured / predicted), where the prediction already had this group's speed in it.
    /// `now` counts the observations of all groups.
    pub fn observe(&mut self, residual: f64, spread: f64, now: u64) -> Option<Shift> {
        let spread = spread.max(0.01);
        let doubt = self.doubt(now);
        self.seen = now;
        if doubt > spread {
            // Not seen for long: one sample says more about the speed than what is remembered of it.
            let gain = doubt * doubt / (doubt * doubt + spread * spread);
            return (residual.abs() > 3.0 * spread).then(|| self.move_by(gain * residual, spread));
        }
        // One wild sample is not a change: beyond three deviations it counts as three.
        let z = (residual / spread).clamp(-3.0, 3.0);
        match (self.up.add(z, residual), self.down.add(-z, residual)) {
            (true, _) => Some(self.move_by(self.up.shift(), spread)),
            (_, true) => Some(self.move_by(self.down.shift(), spread)),
            _ => None,
        }
    }

    fn move_by(&mut self, ln: f64, spread: f64) -> Shift {
        self.ln_speed = (self.ln_speed + ln).clamp(-2.0, 3.0);
        // Within the noise of what was learned is what was learned: the rest is the error of a few samples.
        if self.ln_speed.abs() < spread {
            self.ln_speed = 0.0;
        }
        (self.up, self.down) = (Side::default(), Side::default());
        self.alarms += 1;
        if ln > 0.0 { Shift::Slower } else { Shift::Quicker }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deterministic noise of about one deviation.
    fn noise(i: u64) -> f64 {
        let h = |x: u64| (x.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / (1u64 << 24) as f64;
        h(i) + h(i ^ 0xABCD) + h(i.rotate_left(17)) + h(i.wrapping_add(77)) - 2.0
    }

    #[test]
    fn noise_alone_raises_no_alarm() {
        let mut w = Watch::default();
        assert!((0..20_000).all(|i| w.observe(0.05 * noise(i), 0.05, i).is_none()));
    }

    #[test]
    fn a_slow_down_is_found_and_its_end_too() {
        let mut w = Watch::default();
        let truth = |i: u64| if (1000..3000).contains(&i) { 1.3f64.ln() } else { 0.0 };
        let mut shifts = Vec::new();
        for i in 0..5000 {
            let residual = truth(i) + 0.05 * noise(i) - w.speed().ln();
            if let Some(s) = w.observe(residual, 0.05, i) {
                shifts.push((i, s));
            }
            if i == 2900 {
                assert!((w.speed() / 1.3 - 1.0).abs() < 0.05, "{}", w.speed());
            }
        }
        assert!(
            shifts.first().is_some_and(|(i, s)| (1000..1030).contains(i) && *s == Shift::Slower),
            "{shifts:?}"
        );
        assert!((w.speed() - 1.0).abs() < 0.05, "{}", w.speed());
    }

    #[test]
    fn a_group_not_seen_since_a_slow_down_is_doubted_and_one_sample_brings_it_back() {
        let mut w = Watch::default();
        for i in 0..10 {
            w.observe(3f64.ln() - w.speed().ln(), 0.05, i);
        }
        assert!((w.speed() / 3.0 - 1.0).abs() < 0.05, "{}", w.speed());
        assert!(w.doubt(10) < 0.05 && w.doubt(500) > 1.0);
        assert_eq!(w.observe(-w.speed().ln(), 0.05, 500), Some(Shift::Quicker));
        assert!((w.speed() - 1.0).abs() < 0.05, "{}", w.speed());
    }
}
