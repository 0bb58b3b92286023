//! Two variants beside each other.

use super::Series;
use super::series::{Turn, median};

/// Both variants' times of one round, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    times: [f64; 2],
    clean: bool,
}

/// The times of two variants in pairs, each taken right after each other. What disturbs a machine for longer than that
/// disturbs both, so that their ratio says more than two medians: those of `sub f32 677439` by two kernels that take
/// 43 and 44 µs were 75 and 48 in one contest.
#[derive(Clone, Debug, Default)]
pub struct Duel {
    pairs: Vec<Pair>,
}

/// Undisturbed pairs with which the others are left out.
const SETTLED: usize = 6;

impl Duel {
    /// The rounds of one contest in which both were timed.
    pub fn of(a: &Series, b: &Series) -> Duel {
        let beside = |t: &Turn| {
            let other = b.turns.iter().find(|o| o.round == t.round)?;
            Some(Pair { times: [t.seconds, other.seconds], clean: t.clean && other.clean })
        };
        Duel { pairs: a.turns.iter().filter_map(beside).collect() }
    }

    /// Adds the pairs of another time.
    pub fn join(&mut self, other: Duel) {
        self.pairs.extend(other.pairs);
    }

    /// What the first took, and what the second takes by the ratio of the two. Undisturbed pairs count if there are some,
    /// else all.
    pub fn outcome(&self) -> Option<[f64; 2]> {
        let settled = self.pairs.iter().filter(|p| p.clean).count() >= SETTLED;
        let counted = || self.pairs.iter().filter(move |p| p.clean || !settled);
        let first = median(counted().map(|p| p.times[0]))?;
        let ratio = median(counted().map(|p| p.times[0] / p.times[1]))?;
        Some([first, first / ratio])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Variant;
    use crate::kernel::Params;

    fn series(turns: &[(usize, f64, bool)]) -> Series {
        let mut s = Series::new(Variant { kernel: 0, params: Params::SERIAL });
        s.turns = turns.iter().map(|&(round, seconds, clean)| Turn { round, seconds, clean }).collect();
        s
    }

    #[test]
    fn what_disturbs_both_is_nobodys_fault() {
        // Twice as slow in most of the rounds that only the first has a clean sample of.
        let a: Vec<_> = (0..20).map(|i| (i, if i < 11 { 20.0 } else { 10.0 }, true)).collect();
        let b: Vec<_> = (0..20).map(|i| (i, if i < 11 { 22.0 } else { 11.0 }, i >= 11)).collect();
        let [first, second] = Duel::of(&series(&a), &series(&b)).outcome().unwrap();
        assert_eq!(first, 10.0, "the pairs that were clean");
        assert!((second - 11.0).abs() < 1e-9);
    }

    #[test]
    fn disturbed_pairs_count_only_where_hardly_any_other_is_there() {
        let disturbed = |n: usize| (0..n).map(|i| (i, 8.0, false)).collect::<Vec<_>>();
        let other = |n: usize| (0..n).map(|i| (i, 4.0, false)).collect::<Vec<_>>();
        let mut duel = Duel::of(&series(&disturbed(5)), &series(&other(4)));
        assert_eq!(duel.outcome(), Some([8.0, 4.0]));
        let clean: Vec<_> = (0..SETTLED).map(|i| (i, 3.0, true)).collect();
        duel.join(Duel::of(&series(&clean), &series(&clean)));
        assert_eq!(duel.outcome(), Some([3.0, 3.0]));
        assert_eq!(Duel::default().outcome(), None);
    }
}
