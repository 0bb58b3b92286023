//! Counted work: a time is a sum of (amount × seconds per unit) over a few terms.
//!
//! A kernel lists what it does (one call, so many elements at this cache level, so many tiles) with a
//! prior rate for each. The model learns how far each rate is off on this machine.

/// Terms a kernel may list.
pub const MAX_TERMS: usize = 8;

/// A kernel's work for one workload: `seconds[i]` is what term `i` would take at its prior rate. The
/// order and meaning of terms is the kernel's own and must not depend on the workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    seconds: [f64; MAX_TERMS],
    len: u8,
    /// How many leading terms are launch cost rather than work, for the split people are shown.
    launch: u8,
    /// Which of a kernel's ways it is done.
    way: u8,
}

impl Terms {
    /// Work that starts with a launch of this many seconds.
    #[inline]
    pub fn launch(seconds: f64) -> Terms {
        let mut t = Terms { seconds: [0.0; MAX_TERMS], len: 1, launch: 1, way: 0 };
        t.seconds[0] = seconds;
        t
    }

    /// With one more term. Terms beyond [`MAX_TERMS`] add to the last.
    #[inline]
    pub fn and(mut self, seconds: f64) -> Terms {
        if (self.len as usize) < MAX_TERMS {
            self.seconds[self.len as usize] = seconds;
            self.len += 1;
        } else {
            self.seconds[MAX_TERMS - 1] += seconds;
        }
        self
    }

    /// Done by the `way`-th of the code paths that a kernel has for workloads of different sizes: what local corrections were
    /// learned of one says little of another, however near their sizes. Only for ops whose sizes are two at most (rows,
    /// transposes, element-wise ones), up to [`Terms::WAYS`].
    #[inline]
    pub fn by(mut self, way: u8) -> Terms {
        self.way = way.min(Terms::WAYS - 1);
        self
    }

    /// Ways that are told apart.
    pub const WAYS: u8 = 4;

    /// Which of the kernel's ways it is.
    #[inline]
    pub fn way(&self) -> u8 {
        self.way
    }

    /// Seconds per term at prior rates.
    #[inline]
    pub fn seconds(&self) -> &[f64] {
        &self.seconds[..self.len as usize]
    }

    /// The same with zeros for the terms that are not listed.
    #[inline]
    pub(super) fn all(&self) -> &[f64; MAX_TERMS] {
        &self.seconds
    }

    /// All terms together at prior rates.
    #[inline]
    pub fn total(&self) -> f64 {
        self.seconds().iter().sum()
    }

    /// Whether it is an amount of work: a quotient of nothing by nothing is none, and would be quicker than everything.
    #[inline]
    pub fn is_work(&self) -> bool {
        let total = self.total();
        total >= 0.0 && total.is_finite()
    }

    /// The leading terms that are launch cost.
    #[inline]
    pub fn launch_terms(&self) -> usize {
        self.launch as usize
    }
}
