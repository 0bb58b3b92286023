//! Which parameters searches found best, by how much work there is.
//!
//! A kernel with more parameter points than a decision should weigh keeps one of these: a search tries all of
//! its `space`, and from then on `params` is the point that won on work of about the same size. They are kept
//! with what is known of the device, so that a later process need not search again.
//!
//! ```
//! use steersman_core::Params;
//! use steersman_core::tune::Winners;
//! let winners = Winners::default();
//! winners.set(20, Params { threads: 1, variant: 7 });
//! assert_eq!(winners.near(24).map(|p| p.variant), Some(7));
//! ```

use crate::kernel::Params;
use crate::workload::Workload;
use std::sync::{PoisonError, RwLock};

/// The point that won on work of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Winner {
    /// Octaves of operations and bytes together, as of [`Winners::size`].
    pub size: u8,
    /// The parameters.
    pub params: Params,
}

/// Winners of one kernel, or of kernels that share their code.
#[derive(Debug, Default)]
pub struct Winners(RwLock<Vec<Winner>>);

/// The winners of one kernel as they are kept between processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Kept {
    /// The kernel's revision when it was searched: those of other code do not count.
    pub revision: u32,
    /// Its winners.
    pub winners: Vec<Winner>,
}

impl Winners {
    /// How much work a workload is, in octaves.
    pub fn size(w: &Workload) -> u8 {
        (w.flops() + w.bytes()).max(1.0).log2() as u8
    }

    /// Notes that this point won on work of this size.
    pub fn set(&self, size: u8, params: Params) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|w| w.size != size);
        all.push(Winner { size, params });
        all.sort_by_key(|w| w.size);
    }

    /// The winner on the nearest size that was searched.
    pub fn near(&self, size: u8) -> Option<Params> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().min_by_key(|w| w.size.abs_diff(size)).map(|w| w.params)
    }

    /// Whether work of this size was searched.
    pub fn covers(&self, size: u8) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).iter().any(|w| w.size == size)
    }

    /// All of them, smallest work first.
    pub fn list(&self) -> Vec<Winner> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts back what was kept, or forgets everything.
    pub fn restore(&self, winners: &[Winner]) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = winners.to_vec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_size_answers_and_a_later_search_replaces_an_earlier() {
        let point = |variant| Params { threads: 1, variant };
        let winners = Winners::default();
        assert_eq!(winners.near(10), None);
        winners.set(30, point(3));
        winners.set(12, point(1));
        assert_eq!(
            (winners.near(0), winners.near(20), winners.near(40)),
            (Some(point(1)), Some(point(1)), Some(point(3)))
        );
        winners.set(12, point(2));
        assert_eq!(winners.near(12), Some(point(2)));
        assert!(winners.covers(12) && !winners.covers(13));
        let kept = winners.list();
        winners.restore(&[]);
        assert_eq!(winners.near(12), None);
        winners.restore(&kept);
        assert_eq!(winners.near(29), Some(point(3)));
    }
}
