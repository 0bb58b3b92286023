//! A device's clock: how fast it runs, and having it run as it does under load.
//!
//! A GPU with little to do lowers its clock, and short work does not raise it again: an H200 goes from 1980 to 345 MHz within
//! two seconds and stays there through whole calibrations. What is timed then says nothing of a program that keeps it busy.

use super::batch::Launch;
use super::gpu::Gpu;
use super::pipeline::Source;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steersman_core::{KernelError, Memory, Ran};

/// Links of the chain that is a tick: 50 µs at 2 GHz.
const LINKS: u32 = 20_000;
/// Workgroups that keep all of a large part busy, for some tenths of a millisecond.
const CROWD: u32 = 4096;
/// Work between two looks at the clock.
const HEAT: Duration = Duration::from_millis(4);
/// How long a clock is given to rise. (An H200's takes 0.3 to 0.5 s of full load.)
const PATIENCE: Duration = Duration::from_millis(1200);
/// How long the first time takes, when nobody knows how fast it gets.
const FIRST: Duration = Duration::from_millis(600);
/// A clock that was seen as fast as it gets stays so for longer.
const LASTS: Duration = Duration::from_millis(200);
/// One that does not rise is left alone for so long: what is spent in vain stays a tenth.
const GIVEN_UP: Duration = Duration::from_secs(12);
/// Ticks this much longer than the shortest are as fast as it gets.
const SAME: f64 = 1.04;

/// What is known of a device's clock.
#[derive(Debug, Default)]
pub(super) struct Tempo {
    /// The shortest tick in seconds.
    best: Option<f64>,
    /// Until when nothing need be done about it.
    settled: Option<Instant>,
}

impl Tempo {
    fn is_settled(&self) -> bool {
        self.settled.is_some_and(|until| Instant::now() < until)
    }

    fn settle(&mut self, lasts: Duration) {
        self.settled = Some(Instant::now() + lasts);
    }

    /// Notes a tick; says whether the clock is as fast as it gets.
    fn note(&mut self, tick: f64) -> bool {
        let best = self.best.map_or(tick, |best| best.min(tick));
        self.best = Some(best);
        let fast = tick <= best * SAME;
        if fast {
            self.settle(LASTS);
        }
        fast
    }
}

impl Gpu {
    /// Seconds of a tick: a chain of additions and multiplications that wait for each other. `None` where the device has
    /// no clock to time it by, or others use it.
    pub fn tick(self: &Arc<Gpu>) -> Result<Option<f64>, KernelError> {
        if !self.can().timestamps {
            return Ok(None);
        }
        let block = self.clone().take(256)?;
        let (mut ran, mut took) = self.timed(&mut || self.chain(&block, 1))?;
        if ran == Ran::Cold {
            (ran, took) = self.timed(&mut || self.chain(&block, 1))?;
        }
        Ok((ran == Ran::Clean).then_some(took.0))
    }

    /// Works until the clock is as fast as it gets, for 1.2 s at most; for nothing where it was so just now.
    pub(super) fn warm_up(self: &Arc<Gpu>) -> Result<(), KernelError> {
        if self.software() || self.tempo().is_settled() {
            return Ok(());
        }
        let (began, known) = (Instant::now(), self.tempo().best.is_some());
        let block = self.clone().take(256)?;
        while began.elapsed() < PATIENCE {
            let Some(tick) = self.tick()? else { return Ok(()) };
            if self.tempo().note(tick) && (known || began.elapsed() > FIRST) {
                return Ok(());
            }
            let heating = Instant::now();
            while heating.elapsed() < HEAT {
                self.chain(&block, CROWD)?;
                self.wait()?;
            }
        }
        // Too hot, or somebody else's too: it is timed as it is.
        self.tempo().settle(GIVEN_UP);
        Ok(())
    }

    /// Enqueues the chain in so many workgroups.
    fn chain(&self, block: &steersman_core::memory::Block, groups: u32) -> Result<Ran, KernelError> {
        let text = || {
            format!(
                "@group(0) @binding(1) var<storage, read_write> to_: array<f32>;
                @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) at: u32) {{
                    var x = to_[at];
                    for (var i = 0u; i < {LINKS}u; i++) {{ x = fma(x, 0.999, 0.001); }}
                    to_[at] = x;
                }}"
            )
        };
        let source = || Ok(Source { text: text(), written: smallvec::smallvec![true], words: 4 });
        let key = smallvec::smallvec![u32::MAX, LINKS];
        self.launch(&Launch {
            pipeline: &self.pipeline(&key, source)?,
            buffers: &[self.find(block.address())?.0],
            read: &[true],
            written: &[true],
            params: &[0; 4],
            groups: [groups, 1, 1],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_as_fast_as_it_gets_when_its_tick_is_as_short_as_it_was() {
        let mut tempo = Tempo::default();
        assert!(!tempo.is_settled());
        assert!(tempo.note(50e-6) && tempo.is_settled());
        tempo.settled = tempo.settled.map(|until| until - LASTS);
        assert!(
            !tempo.is_settled() && !tempo.note(60e-6) && !tempo.is_settled(),
            "a longer tick is a slower clock"
        );
        assert!(tempo.note(51e-6) && tempo.is_settled());
        assert_eq!(tempo.best, Some(50e-6), "within noise the shortest stands");
    }
}
