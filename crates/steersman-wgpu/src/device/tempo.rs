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
/// How long a clock is given to rise. (An H200's takes 0.3 to 0.8 s of full load.)
const PATIENCE: Duration = Duration::from_millis(2000);
/// How long the first time takes, when nobody knows how fast it gets: who stops too soon takes the slow clock for the fast
/// one, and everything timed from then on for what it is not.
const FIRST: Duration = Duration::from_millis(1500);
/// How long where it was seen to rise: no more comes after that.
const RISING: Duration = Duration::from_millis(600);
/// A tick that much shorter than the first is a clock that rose.
const ROSE: f64 = 0.7;
/// A clock that was seen as fast as it gets stays so for longer.
const LASTS: Duration = Duration::from_millis(200);
/// How long it is given for so long after it did not rise: what is spent in vain stays a sixth.
const IMPATIENCE: Duration = Duration::from_millis(40);
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
    /// Until when little is tried, since much was tried in vain.
    given_up: Option<Instant>,
}

impl Tempo {
    fn is_settled(&self) -> bool {
        self.settled.is_some_and(|until| Instant::now() < until)
    }

    fn settle(&mut self) {
        self.settled = Some(Instant::now() + LASTS);
    }

    /// How long it is given to rise.
    fn patience(&self) -> Duration {
        if self.given_up.is_some_and(|until| Instant::now() < until) { IMPATIENCE } else { PATIENCE }
    }

    /// It did not rise in all the time that it was given. If that was long, what a tick takes now is as fast as it gets,
    /// until it is seen to be faster.
    fn give_up(&mut self, tick: Option<f64>, patience: Duration) {
        if patience == PATIENCE {
            self.best = tick.or(self.best);
            self.given_up = Some(Instant::now() + GIVEN_UP);
        }
        self.settle();
    }

    /// Notes a tick; says whether the clock is as fast as it gets.
    fn note(&mut self, tick: f64) -> bool {
        let best = self.best.map_or(tick, |best| best.min(tick));
        self.best = Some(best);
        let fast = tick <= best * SAME;
        if fast {
            self.settle();
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

    /// Works until the clock is as fast as it gets, for 2 s at most; for nothing where it was so just now.
    pub(super) fn warm_up(self: &Arc<Gpu>) -> Result<(), KernelError> {
        if self.software() || self.tempo().is_settled() {
            return Ok(());
        }
        self.rise()
    }

    fn rise(self: &Arc<Gpu>) -> Result<(), KernelError> {
        let began = Instant::now();
        let (known, patience) = {
            let tempo = self.tempo();
            (tempo.best.is_some(), tempo.patience())
        };
        let block = self.clone().take(256)?;
        let (mut first, mut last) = (None, None);
        while began.elapsed() < patience {
            let Some(tick) = self.tick()? else { return Ok(()) };
            last = Some(tick);
            let rose = tick < *first.get_or_insert(tick) * ROSE;
            let enough = if rose { RISING } else { FIRST };
            if self.tempo().note(tick) && (known || began.elapsed() > enough) {
                return Ok(());
            }
            let heating = Instant::now();
            while heating.elapsed() < HEAT {
                self.chain(&block, CROWD)?;
                self.wait()?;
            }
        }
        // Too hot, or somebody else's too: it is timed as it is.
        self.tempo().give_up(last, patience);
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
    use crate::{DeviceOptions, adapters};

    #[test]
    fn a_device_works_until_its_clock_is_as_fast_as_it_gets_but_not_for_ever() {
        let Some(found) = adapters().into_iter().min_by_key(|f| !f.software) else {
            println!("skipped: no WebGPU adapter");
            return;
        };
        let gpu = Gpu::open(&found, DeviceOptions::default()).expect("an adapter that was listed opens");
        if !gpu.can().timestamps {
            println!("skipped: it has no clock");
            return;
        }
        gpu.rise().unwrap();
        assert!(gpu.tempo().best.is_some() && gpu.tempo().is_settled());
        *gpu.tempo() = Tempo { best: Some(1e-12), ..Tempo::default() };
        gpu.rise().unwrap();
        let tempo = gpu.tempo();
        assert!(tempo.best > Some(1e-12), "what it reaches is as fast as it gets: {:?}", tempo.best);
        assert_eq!(tempo.patience(), IMPATIENCE);
    }

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

    #[test]
    fn what_a_clock_does_not_reach_any_more_is_not_waited_for_again() {
        let mut tempo = Tempo::default();
        tempo.note(50e-6);
        assert_eq!(tempo.patience(), PATIENCE);
        tempo.give_up(Some(70e-6), PATIENCE);
        assert_eq!((tempo.best, tempo.patience()), (Some(70e-6), IMPATIENCE));
        assert!(tempo.is_settled());
        tempo.give_up(Some(300e-6), IMPATIENCE);
        assert_eq!(tempo.best, Some(70e-6), "so short a time says nothing");
        assert!(tempo.note(49e-6) && tempo.best == Some(49e-6), "it was seen to be faster");
        tempo.given_up = tempo.given_up.map(|until| until - GIVEN_UP);
        assert_eq!(tempo.patience(), PATIENCE);
    }
}
