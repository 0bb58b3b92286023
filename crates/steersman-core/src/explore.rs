//! The exploration ledger: time lost to exploring never exceeds its share of the time spent.

use crate::cost::Estimate;

/// A ledger, not an average: before each exploration the worst likely loss is set aside, and if it does
/// not fit, there is no exploration. It comes back when the caller says what the run took; of those who never do
/// it stays out.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Ledger {
    /// Share of the time spent that exploring may cost.
    pub budget: f64,
    /// Seconds spent in observed runs (a lower bound of all time spent).
    pub spent: f64,
    /// Seconds lost to exploring.
    pub lost: f64,
    /// Seconds that explorations may still lose whose outcome is not known yet.
    pub set_aside: f64,
    /// Explorations made.
    pub explored: u64,
}

/// What a run of `tried` may lose at worst against `chosen`: it may take half as long again as the upper end of its
/// interval.
pub fn at_risk(tried: &Estimate, chosen: &Estimate) -> f64 {
    (tried.high.0 * 1.5 - chosen.mean.0).max(0.0)
}

impl Ledger {
    /// An empty ledger with this budget.
    pub fn new(budget: f64) -> Ledger {
        Ledger { budget, spent: 0.0, lost: 0.0, set_aside: 0.0, explored: 0 }
    }

    /// Seconds that exploring may still cost now.
    pub fn allowance(&self) -> f64 {
        (self.budget * self.spent - self.lost - self.set_aside).max(0.0)
    }

    /// Whether an exploration that may lose up to `worst` seconds is allowed.
    pub fn allows(&self, worst: f64) -> bool {
        self.budget > 0.0 && worst <= self.allowance()
    }

    /// Sets aside what an exploration may lose; whether there was room for it.
    pub fn set_aside(&mut self, worst: f64) -> bool {
        let allowed = self.allows(worst);
        if allowed {
            self.set_aside += worst;
        }
        allowed
    }

    /// Books an ordinary run.
    pub fn book(&mut self, seconds: f64) {
        self.spent += seconds;
    }

    /// Books an exploration for which `worst` was set aside, and which took `seconds` where the incumbent would have taken
    /// `instead`.
    pub fn book_exploration(&mut self, seconds: f64, instead: f64, worst: f64) {
        self.set_aside = (self.set_aside - worst).max(0.0);
        self.spent += seconds;
        self.lost += (seconds - instead).max(0.0);
        self.explored += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_explored_before_time_was_spent_or_with_a_budget_of_zero() {
        assert!(!Ledger::new(0.01).allows(1e-9));
        let mut none = Ledger::new(0.0);
        none.book(1e6);
        assert!(!none.allows(0.0));
    }

    #[test]
    fn losses_eat_the_allowance_and_gains_do_not_refill_it() {
        let mut l = Ledger::new(0.01);
        l.book(100.0);
        assert!(l.set_aside(0.5) && !l.allows(0.6), "what others may still lose is not there to be lost");
        l.book_exploration(0.9, 0.1, 0.5);
        assert!(l.allows(0.1) && !l.allows(0.3));
        l.book_exploration(0.1, 0.9, 0.0);
        assert!((l.lost - 0.8).abs() < 1e-12);
    }
}
