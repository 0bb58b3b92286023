//! `steer bench`: what Steersman itself costs.

mod call;
mod decide;
mod start;

use crate::args::Bench;
use crate::exit::{Failure, Outcome};
use crate::screen::Screen;

pub fn run(screen: &Screen, what: Bench) -> Outcome {
    match what {
        Bench::Decide => decide::run(screen),
        Bench::Call => call::run(screen),
        Bench::Start => start::run(screen),
    }
}

fn percentile(times: &[f64], share: f64) -> Result<f64, Failure> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64) as usize;
    let found = sorted.get(rank.min(sorted.len().saturating_sub(1))).copied();
    found.ok_or_else(|| Failure::failed("nothing could be timed; is the machine overloaded?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let times = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(percentile(&times, 0.5).ok(), Some(3.0));
        assert_eq!(percentile(&times, 0.99).ok(), Some(5.0));
        assert_eq!(percentile(&times, 1.0).ok(), Some(5.0));
        assert!(percentile(&[], 0.5).is_err());
    }
}
