//! The samples of one variant.

use crate::cost::Variant;

/// One sample: the round it was taken in, seconds a run, and whether it was undisturbed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub round: usize,
    pub seconds: f64,
    pub clean: bool,
}

/// The samples of one variant, in seconds a run.
#[derive(Clone, Debug)]
pub struct Series {
    /// Which variant.
    pub variant: Variant,
    /// Samples in the order they were taken; each the mean of a batch.
    pub samples: Vec<f64>,
    /// Samples of batches that did not run under the conditions their parameters name: no measurement to
    /// learn from, but the only word there is when all were like that.
    pub disturbed: Vec<f64>,
    /// All of one contest, with the round each is of.
    pub(super) turns: Vec<Turn>,
    /// Runs in each batch.
    pub batch: u32,
    /// The quickest run so far, samples or not: tells one that takes long from one that was put aside.
    pub(super) quickest: f64,
    /// Why it was given up, if it was.
    pub failed: Option<String>,
    /// Whether that was no fault of its kernel: there was no room, or the device is gone.
    pub excused: bool,
}

impl Series {
    /// None yet.
    pub fn new(variant: Variant) -> Series {
        let (samples, disturbed, turns) = Default::default();
        let (batch, quickest, failed, excused) = (0, f64::INFINITY, None, false);
        Series { variant, samples, disturbed, turns, batch, quickest, failed, excused }
    }

    /// Notes a sample.
    pub(super) fn add(&mut self, turn: Turn) {
        if turn.clean { &mut self.samples } else { &mut self.disturbed }.push(turn.seconds);
        self.turns.push(turn);
    }

    /// Median of all samples.
    pub fn median(&self) -> Option<f64> {
        median(self.samples.iter().copied())
    }

    /// Median of the even (`0`) or odd (`1`) samples: to pick on one half and judge on the other. With fewer
    /// than two clean samples the disturbed ones answer too: a caller would have had those times. A single sample of
    /// either kind is in both halves.
    pub fn half(&self, half: usize) -> Option<f64> {
        let disturbed = if self.samples.len() < 2 { &self.disturbed[..] } else { &[] };
        let all: Vec<f64> = disturbed.iter().chain(&self.samples).copied().collect();
        let first = if all.len() > 1 { half } else { 0 };
        median(all.into_iter().skip(first).step_by(2))
    }

    /// What an undisturbed run takes: the lower middle of the samples. Disturbances only ever add, and with a
    /// handful of samples a median has too many of them in it.
    pub fn typical(&self) -> Option<f64> {
        let mut v = self.samples.clone();
        v.sort_by(f64::total_cmp);
        v.get(v.len() / 3).copied()
    }

    /// Quickest sample.
    pub fn best(&self) -> Option<f64> {
        self.samples.iter().copied().min_by(f64::total_cmp)
    }

    /// Median absolute deviation relative to the median.
    pub fn deviation(&self) -> Option<f64> {
        let m = self.median()?;
        median(self.samples.iter().map(|s| (s - m).abs())).map(|d| d / m)
    }
}

pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut v: Vec<f64> = values.collect();
    if v.is_empty() {
        return None;
    }
    v.sort_by(f64::total_cmp);
    let mid = v.len() / 2;
    Some(if v.len() % 2 == 1 { v[mid] } else { (v[mid - 1] + v[mid]) / 2.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Params;

    #[test]
    fn halves_are_taken_in_turns_and_medians_shrug_off_outliers() {
        let variant = Variant { kernel: 0, params: Params::SERIAL };
        let samples = vec![1.0, 10.0, 1.0, 12.0, 99.0, 11.0];
        let s = Series { samples, batch: 1, ..Series::new(variant) };
        assert_eq!(s.half(0), Some(1.0));
        assert_eq!(s.half(1), Some(11.0));
        assert_eq!(s.best(), Some(1.0));
    }

    #[test]
    fn a_sample_of_each_kind_is_enough_to_judge_by() {
        let halves = |samples: &[f64], disturbed: &[f64]| {
            let variant = Variant { kernel: 0, params: Params::SERIAL };
            let (samples, disturbed) = (samples.to_vec(), disturbed.to_vec());
            let s = Series { samples, disturbed, ..Series::new(variant) };
            [0, 1].map(|half| s.half(half))
        };
        assert_eq!(halves(&[], &[]), [None, None]);
        assert_eq!(halves(&[2.0], &[]), [Some(2.0); 2]);
        assert_eq!(halves(&[2.0], &[3.0]), [Some(3.0), Some(2.0)]);
        assert_eq!(
            halves(&[2.0, 4.0], &[30.0]),
            [Some(2.0), Some(4.0)],
            "clean ones alone, where there are two"
        );
    }
}
