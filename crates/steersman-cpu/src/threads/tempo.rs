//! How fast the core's clock runs at this moment.
//!
//! A processor changes its clock with what its other cores do, with heat and with what its owner allows: on the virtual
//! machine this was found on everything took 22% longer for minutes, and no counter of the guest showed it. A chain of
//! multiplications that wait for each other takes a fixed number of cycles, also on a core that somebody else shares.

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Links of the chain: half a microsecond at 3 GHz.
const LINKS: usize = 400;
/// Ticks at most for one look, and how close two of them must be to be believed.
const TRIES: usize = 8;
const AGREE: f64 = 1.01;

/// The clock as it was when last looked at.
#[derive(Debug, Default)]
pub struct Tempo(Mutex<Option<(Instant, f64)>>);

impl Tempo {
    /// Seconds of a tick: a fixed number of cycles. Looked at when the last look is this old, which takes 1 to 4 µs.
    pub fn tick(&self, old: Duration) -> f64 {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *last {
            Some((at, tick)) if at.elapsed() < old => tick,
            _ => {
                let tick = quickest(&mut chain);
                *last = Some((Instant::now(), tick));
                tick
            }
        }
    }
}

/// The quickest of a few, as soon as another one agrees: whatever comes between only makes it longer.
fn quickest(tick: &mut dyn FnMut() -> f64) -> f64 {
    let mut best = tick();
    for _ in 1..TRIES {
        let next = tick();
        let agree = next.max(best) <= next.min(best) * AGREE;
        best = best.min(next);
        if agree {
            break;
        }
    }
    best
}

/// Seconds of one chain.
fn chain() -> f64 {
    let k = black_box(0x9E37_79B9_7F4A_7C15_u64);
    let mut x = black_box(1u64);
    let started = Instant::now();
    for _ in 0..LINKS {
        x = x.wrapping_mul(k) ^ k;
    }
    black_box(x);
    started.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_between_does_not_count() {
        let mut ticks = [3.0, 1.5, 1.0, 9.0, 1.005, 0.1].into_iter();
        assert_eq!(quickest(&mut || ticks.next().unwrap()), 1.0);
        assert_eq!(ticks.next(), Some(0.1), "two that agree are enough");
    }

    #[test]
    fn a_look_stands_for_a_while() {
        let (tempo, hour) = (Tempo::default(), Duration::from_secs(3600));
        let first = tempo.tick(hour);
        assert!(first > 0.0 && first.is_finite());
        *tempo.0.lock().unwrap() = Some((Instant::now(), 7.0));
        assert_eq!(tempo.tick(hour), 7.0);
        assert!(tempo.tick(Duration::ZERO) < 7.0);
    }
}
