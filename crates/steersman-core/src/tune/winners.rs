//! Which parameters searches found best, by what kind of work and how much of it.
//!
//! A kernel with more parameter points than a decision should weigh keeps one of these: a search tries all of
//! its `space`, and from then on `params` is the point that won on the work most like what is asked. They are kept
//! with what is known of the device, so that a later process need not search again; a search that was cut short is
//! kept with what it did not get to, and goes on there.
//!
//! ```
//! use steersman_core::tune::{Kind, Winner, Winners};
//! use steersman_core::{Params, Workload};
//! let kind = |text: &str| Kind::of(&text.parse::<Workload>().expect("well formed"));
//! let winners = Winners::default();
//! winners.set(Winner::new(kind("sum f32 8000000"), Params { threads: 1, variant: 7 }));
//! assert_eq!(winners.near(kind("sum f32 5000000")).map(|p| p.variant), Some(7));
//! assert!(!winners.covers(kind("sum f32 3000x2500 axis=1")), "as much work, and another kind");
//! ```

use crate::dtype::DType;
use crate::kernel::Params;
use crate::op::OpClass;
use crate::workload::{Layout, Workload};
use std::sync::{PoisonError, RwLock};

/// What a winner depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Kind {
    /// What is done.
    pub class: OpClass,
    /// To what.
    pub dtype: DType,
    /// How it lies in memory; strided also where a reduction's elements do not lie side by side.
    pub layout: Layout,
    /// Octaves of operations and bytes together.
    pub size: u8,
    /// Octaves of results: with the size, how much goes into each.
    pub results: u8,
}

/// How far another class, layout or type is, in octaves: further than sizes differ that anybody searches. What won for
/// another type is still a better guess than what won for another layout.
const APART: [u32; 3] = [256, 128, 64];

impl Kind {
    /// Of a workload.
    pub fn of(w: &Workload) -> Kind {
        let octaves = |x: f64| x.max(1.0).log2() as u8;
        let columns = w.reduce_dims().is_some_and(|(_, reduced, inner)| reduced > 1 && inner > 1);
        Kind {
            class: w.class(),
            dtype: w.dtype(),
            layout: if columns { Layout::Strided } else { w.layout() },
            size: octaves(w.flops() + w.bytes()),
            results: octaves(w.outputs().iter().map(|o| o.elements()).sum::<usize>() as f64),
        }
    }

    fn octaves_from(self, other: Kind) -> u32 {
        let differs = [self.class != other.class, self.layout != other.layout, self.dtype != other.dtype];
        let apart: u32 = differs.into_iter().zip(APART).map(|(d, far)| u32::from(d) * far).sum();
        apart + u32::from(self.size.abs_diff(other.size)) + u32::from(self.results.abs_diff(other.results))
    }
}

/// The point that won on one kind of work.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Winner {
    /// On what.
    pub kind: Kind,
    /// The parameters.
    pub params: Params,
    /// Points that there was no time for; none if the search was finished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Params>,
}

impl Winner {
    /// Of a search that tried everything.
    pub fn new(kind: Kind, params: Params) -> Winner {
        Winner { kind, params, left: Vec::new() }
    }
}

/// Winners of one kernel, or of kernels that share their code.
#[derive(Debug, Default)]
pub struct Winners(RwLock<Vec<Winner>>);

/// The winners of one kernel as they are kept between processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Kept {
    /// The kernel's revision when it was searched: those of other code do not count.
    pub revision: u32,
    /// Its winners. (Those of versions that told less work apart were kept under `winners`, and are searched anew.)
    #[serde(default)]
    pub by_kind: Vec<Winner>,
}

impl Winners {
    /// Notes what won.
    pub fn set(&self, winner: Winner) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|w| w.kind != winner.kind);
        all.push(winner);
    }

    /// What won on the work most like this.
    pub fn near(&self, kind: Kind) -> Option<Params> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().min_by_key(|w| w.kind.octaves_from(kind)).map(|w| w.params)
    }

    /// Whether work of this kind was searched to the end.
    pub fn covers(&self, kind: Kind) -> bool {
        self.of(kind).is_some_and(|w| w.left.is_empty())
    }

    /// What is known of exactly this kind.
    pub fn of(&self, kind: Kind) -> Option<Winner> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).iter().find(|w| w.kind == kind).cloned()
    }

    /// All of them, in the order they were found.
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

    fn kind(text: &str) -> Kind {
        Kind::of(&text.parse().unwrap())
    }

    fn point(variant: u16) -> Params {
        Params { threads: 1, variant }
    }

    #[test]
    fn the_nearest_size_answers_and_a_later_search_replaces_an_earlier() {
        let winners = Winners::default();
        let (small, large) = (kind("add f32 1000 1000"), kind("add f32 8000000 8000000"));
        assert_eq!(winners.near(small), None);
        winners.set(Winner::new(large, point(3)));
        winners.set(Winner::new(small, point(1)));
        assert_eq!(winners.near(kind("add f32 10 10")), Some(point(1)));
        assert_eq!(winners.near(kind("add f32 20000 20000")), Some(point(1)));
        assert_eq!(winners.near(kind("add f32 90000000 90000000")), Some(point(3)));
        winners.set(Winner::new(small, point(2)));
        assert_eq!(winners.near(small), Some(point(2)));
        assert!(winners.covers(small) && !winners.covers(kind("add f32 10000 10000")));
        let kept = winners.list();
        winners.restore(&[]);
        assert_eq!(winners.near(small), None);
        winners.restore(&kept);
        assert_eq!(winners.near(kind("add f32 5000000 5000000")), Some(point(3)));
    }

    #[test]
    fn as_much_work_of_another_kind_is_another_matter() {
        let all = [
            kind("sum f32 8000000"),
            kind("sum f32 3000x2500 axis=1"),
            kind("sum f32 3000x2500 axis=0"),
            kind("sum f64 4000000"),
            kind("transpose f32 3000x2500"),
            kind("matmul f32 512x512 512x512"),
            kind("matmul f32 32x8192 8192x512"),
            kind("matmul f64 512x512 512x512"),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b), "{a:?}");
        }
    }

    #[test]
    fn the_same_layout_counts_before_the_same_type_and_both_before_size() {
        let winners = Winners::default();
        winners.set(Winner::new(kind("sum f32 3000x2500 axis=1"), point(1)));
        winners.set(Winner::new(kind("sum f32 3000x2500 axis=0"), point(2)));
        assert_eq!(winners.near(kind("sum f64 3000x2500 axis=0")), Some(point(2)));
        winners.set(Winner::new(kind("sum f64 30x25 axis=0"), point(3)));
        assert_eq!(winners.near(kind("sum f64 3000x2500 axis=0")), Some(point(3)));
        assert_eq!(winners.near(kind("sum f64 3000x2500 axis=1")), Some(point(1)));
    }

    #[test]
    fn a_search_cut_short_answers_and_does_not_cover() {
        let (winners, small) = (Winners::default(), kind("add f32 1000 1000"));
        winners.set(Winner { left: vec![point(4)], ..Winner::new(small, point(2)) });
        assert_eq!(winners.near(small), Some(point(2)));
        assert!(!winners.covers(small));
        let text = serde_json::to_string(&Kept { revision: 1, by_kind: winners.list() }).unwrap();
        let kept: Kept = serde_json::from_str(&text).unwrap();
        assert_eq!(kept.by_kind, winners.list(), "{text}");
    }

    #[test]
    fn what_an_earlier_version_kept_is_read_and_does_not_count() {
        let text = r#"{"revision":2,"winners":[{"size":20,"params":{"threads":1,"variant":7}}]}"#;
        let kept: Kept = serde_json::from_str(text).unwrap();
        assert_eq!(kept, Kept { revision: 2, by_kind: Vec::new() });
    }
}
