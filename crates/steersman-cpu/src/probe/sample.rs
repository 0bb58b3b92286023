//! Timing pieces of work: how often, how long, and which figure to keep.

use std::time::{Duration, Instant};

/// A batch should take this long: some hundred times the clock's cost and the hand-off's.
const BATCH: Duration = Duration::from_micros(60);

/// How many batches in vain to go on for when the slice is over: workers may have to wake first,
/// or the slice was lost to another process.
const LATE_TRIES: u32 = 50;

/// Seconds of one unit of `work`, best of the batches that fit in `slice` (three at least).
/// `work(n)` does n units and says whether the batch can be trusted; `None` if none could.
pub(super) fn best(slice: Duration, mut work: impl FnMut(usize) -> bool) -> Option<f64> {
    let started = Instant::now();
    let (mut units, mut best, mut batches, mut late) = (1, f64::INFINITY, 0, 0);
    loop {
        let start = Instant::now();
        let trusted = work(units);
        let took = start.elapsed();
        let over = started.elapsed() >= slice;
        if trusted {
            if took < BATCH && batches == 0 {
                units *= 2;
                continue;
            }
            best = best.min(took.as_secs_f64() / units as f64);
            batches += 1;
        }
        late += u32::from(over && !trusted);
        if over && (batches >= 3 || late >= LATE_TRIES) {
            return best.is_finite().then_some(best);
        }
    }
}

/// The middle one of the figures `once` gives, as often as fits in `slice` (five times at least);
/// `None` if it never gave one.
pub(super) fn median(slice: Duration, mut once: impl FnMut() -> Option<f64>) -> Option<f64> {
    let started = Instant::now();
    let (mut figures, mut times) = (Vec::new(), 0);
    while times < 5 || started.elapsed() < slice {
        figures.extend(once());
        times += 1;
    }
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

/// Seconds to read the clock.
pub(super) fn clock(slice: Duration) -> Option<f64> {
    let read = |times| {
        for _ in 0..times {
            std::hint::black_box(Instant::now());
        }
        true
    };
    best(slice, read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_that_cannot_be_trusted_give_no_figure() {
        assert_eq!(best(Duration::from_micros(300), |_| false), None);
    }

    #[test]
    fn the_median_is_the_middle_of_what_was_given() {
        let mut results = [Some(9.0), None, Some(1.0), Some(5.0), None].into_iter();
        assert_eq!(median(Duration::ZERO, || results.next().expect("five are enough")), Some(5.0));
        assert_eq!(median(Duration::ZERO, || None), None);
    }
}
