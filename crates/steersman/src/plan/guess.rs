//! Fused or one op at a time: what each is expected to take, and when that is known well enough.

/// What something is expected to take, and how well that is known.
#[derive(Clone, Copy)]
pub(super) struct Guess {
    pub mean: f64,
    pub least: f64,
    /// Whether exactly this ran a few times.
    pub tried: bool,
    /// Whether it was measured at about this size.
    pub proven: bool,
}

impl Guess {
    pub fn and(self, other: Guess) -> Guess {
        Guess {
            mean: self.mean + other.mean,
            least: self.least + other.least,
            tried: self.tried && other.tried,
            proven: self.proven && other.proven,
        }
    }

    /// Whether a fused group is known to take longer than its ops apart: it ran a few times, and even the least it
    /// may take is more. In doubt it runs fused, which needs less memory; and once it has run, its time is known.
    /// Left apart for a guess, it never would be. A time of the ops that nobody measured must be much shorter:
    /// supposed times were up to 2.5 times too short.
    pub fn is_slower(&self, apart: Guess) -> bool {
        self.tried && self.least > apart.mean * if apart.proven { 1.0 } else { 2.5 }
    }

    /// Whether a product with what follows it may be worth running as one, rather than one after the other. Supposed,
    /// it must not take longer: here both ways are products of the same kind, so suppositions are wrong alike. Of equals
    /// it is the one that needs less memory.
    pub fn pays(&self, apart: Guess) -> bool {
        if self.tried { !self.is_slower(apart) } else { self.mean <= apart.mean * EQUALS }
    }
}

/// Times within this of each other are those of equals.
const EQUALS: f64 = 1.02;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_runs_fused_until_it_is_known_to_be_slower() {
        let guess = |mean, least, tried, proven| Guess { mean, least, tried, proven };
        let apart = guess(1.0, 0.5, true, true);
        assert!(!guess(9.0, 8.0, false, false).is_slower(apart), "never tried");
        assert!(!guess(1.2, 0.9, true, true).is_slower(apart), "perhaps not slower");
        assert!(guess(1.3, 1.1, true, true).is_slower(apart));
        let supposed = guess(1.0, 0.2, false, false);
        assert!(!guess(2.5, 2.0, true, true).is_slower(supposed), "a supposed time must be much shorter");
        assert!(guess(4.0, 3.0, true, true).is_slower(supposed));
        assert!(!apart.and(supposed).proven, "one guess makes the sum a guess");
    }

    #[test]
    fn a_product_runs_with_what_follows_if_that_is_supposed_to_pay_and_not_known_to_be_slower() {
        let guess = |mean, least, tried| Guess { mean, least, tried, proven: tried };
        let apart = guess(1.0, 0.5, true);
        assert!(guess(0.9, 0.3, false).pays(apart));
        assert!(guess(1.01, 0.3, false).pays(apart), "equals");
        assert!(!guess(1.1, 0.3, false).pays(apart), "supposed to take longer");
        assert!(guess(1.1, 0.9, true).pays(apart), "perhaps not slower");
        assert!(!guess(1.2, 1.1, true).pays(apart));
    }
}
