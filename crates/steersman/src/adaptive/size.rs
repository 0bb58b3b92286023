//! What a call's time depends on, as the engine gets it.

use std::sync::OnceLock;
use steersman_core::Workload;
use steersman_core::workload::MAX_BYTES;

/// Size features a function may have.
pub const MAX_SIZES: usize = 4;

/// The sizes of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    values: [usize; MAX_SIZES],
    len: usize,
}

impl Sizes {
    /// These sizes, rounded; those beyond [`MAX_SIZES`] are left out.
    pub(super) fn new(sizes: &[usize]) -> Sizes {
        let mut values = [1; MAX_SIZES];
        let len = sizes.len().min(MAX_SIZES);
        for (v, &s) in values.iter_mut().zip(sizes) {
            *v = rounded(s);
        }
        let mut sizes = Sizes { values, len };
        // Several large sizes: their product must stay what a workload may span.
        while sizes.as_slice().iter().map(|&s| s as f64).product::<f64>() > MAX_BYTES as f64 {
            if let Some(largest) = sizes.values[..len].iter_mut().max() {
                *largest /= 2;
            }
        }
        sizes
    }

    pub(super) fn as_slice(&self) -> &[usize] {
        &self.values[..self.len]
    }

    /// The workload the engine decides on.
    pub(super) fn workload(&self, name: &'static str) -> Option<Workload> {
        Workload::custom(name, self.as_slice()).ok()
    }
}

/// To six significant bits: off by 1.6% at most, far below what moves a choice, and every size from one
/// to a billion falls on one of about 900 workloads, so that calls of ever new sizes are hits too.
fn rounded(size: usize) -> usize {
    let bits = usize::BITS - size.leading_zeros();
    if bits <= 6 {
        return size;
    }
    let unit = 1usize << (bits - 6);
    size.saturating_add(unit / 2) / unit * unit
}

/// Workloads made before, by their sizes. Making one takes 115 ns, finding it here 5.
pub(super) struct Made {
    slots: Box<[OnceLock<Entry>]>,
}

type Entry = Box<(Sizes, Workload)>;

/// 8 kB when empty; a function of one size meets hardly more sizes than this in practice.
const SLOTS: usize = 512;

impl Made {
    pub fn new() -> Made {
        Made { slots: (0..SLOTS).map(|_| OnceLock::new()).collect() }
    }

    /// Hands the workload of these sizes to `f`: the one made before, or a new one where another holds
    /// its slot. `None` if these sizes make no workload.
    #[inline]
    pub fn with<T>(&self, name: &'static str, sizes: Sizes, f: impl FnOnce(&Workload) -> T) -> Option<T> {
        let hash =
            sizes.as_slice().iter().fold(0u64, |h, &s| (h ^ s as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let slot = &self.slots[(hash >> 40) as usize % SLOTS];
        match slot.get() {
            Some(made) if made.0 == sizes => Some(f(&made.1)),
            taken => {
                let w = sizes.workload(name)?;
                if taken.is_none() {
                    slot.get_or_init(|| Box::new((sizes, w.clone())));
                }
                Some(f(&w))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_keeps_small_sizes_and_powers_of_two_and_is_never_far_off() {
        for n in (0..64).chain((6..62).map(|e| 1 << e)) {
            assert_eq!(rounded(n), n);
        }
        for n in (1..2_000_000).step_by(37) {
            assert!(rounded(n).abs_diff(n) * 63 <= n, "{n}: {}", rounded(n));
        }
        assert!(rounded(usize::MAX) > 0);
    }

    #[test]
    fn a_workload_made_before_is_that_of_its_sizes_however_many_there_are() {
        let made = Made::new();
        for _ in 0..2 {
            for n in 0..5000 {
                let sizes = Sizes::new(&[n, 3]);
                let same = made.with("f", sizes, |w| Some(w) == sizes.workload("f").as_ref());
                assert_eq!(same, Some(true), "{n}");
            }
        }
    }

    #[test]
    fn several_huge_sizes_still_make_a_workload() {
        assert!(Sizes::new(&[1 << 40, 1 << 40, 3]).workload("huge").is_some());
        assert!(Sizes::new(&[0, 5]).workload("empty").is_some());
    }
}
