//! Notices that the machine has changed: a two-sided CUSUM on standardised residuals.
//!
//! One watch per group of kernels that slow down together (a device's serial kernels, its parallel ones).
//! On alarm the group's speed factor moves by the mean residual since the change began, and estimates
//! widen; nothing is forgotten.

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
    /// Alarms so far.
    pub alarms: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Side {
    sum: f64,
    residuals: f64,
    n: f64,
}

impl Side {
    fn add(&mut self, z: f64, residual: f64) -> bool {
        self.sum = (self.sum + z - SLACK).max(0.0);
        if self.sum == 0.0 {
            *self = Side::default();
        } else {
            self.residuals += residual;
            self.n += 1.0;
        }
        self.sum > ALARM
    }
}

impl Watch {
    /// How much slower the group runs now than learned (1: as learned).
    pub fn speed(&self) -> f64 {
        self.ln_speed.exp()
    }

    /// Takes in ln(measured / predicted), where the prediction already had this group's speed in it.
    pub fn observe(&mut self, residual: f64, spread: f64) -> Option<Shift> {
        // One wild sample is not a change: beyond three deviations it counts as three.
        let z = (residual / spread.max(0.01)).clamp(-3.0, 3.0);
        let residual = z * spread.max(0.01);
        let (up, down) = (self.up.add(z, residual), self.down.add(-z, residual));
        let (side, shift) = match (up, down) {
            (true, _) => (self.up, Shift::Slower),
            (_, true) => (self.down, Shift::Quicker),
            _ => return None,
        };
        self.ln_speed = (self.ln_speed + side.residuals / side.n).clamp(-2.0, 3.0);
        (self.up, self.down) = (Side::default(), Side::default());
        self.alarms += 1;
        Some(shift)
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
        assert!((0..20_000).all(|i| w.observe(0.05 * noise(i), 0.05).is_none()));
    }

    #[test]
    fn a_slow_down_is_found_and_its_end_too() {
        let mut w = Watch::default();
        let truth = |i: u64| if (1000..3000).contains(&i) { 1.3f64.ln() } else { 0.0 };
        let mut shifts = Vec::new();
        for i in 0..5000 {
            let residual = truth(i) + 0.05 * noise(i) - w.speed().ln();
            if let Some(s) = w.observe(residual, 0.05) {
                shifts.push((i, s));
            }
            if i == 2900 {
                assert!((w.speed() / 1.3 - 1.0).abs() < 0.05, "{}", w.speed());
            }
        }
        assert!(shifts.first().is_some_and(|(i, s)| (1000..1030).contains(i) && *s == Shift::Slower), "{shifts:?}");
        assert!((w.speed() - 1.0).abs() < 0.05, "{}", w.speed());
    }
}
