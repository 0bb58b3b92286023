//! Parameters: every point that a kernel's code has, of which a search keeps one for each kind of work.

use steersman_core::tune::{Kind, Winners};
use steersman_core::{ParamList, Params, Workload};

fn point(variant: usize) -> Params {
    Params { threads: 1, variant: variant as u16 }
}

/// The points that fit, in the order that a search tries them.
pub(super) fn space(points: impl IntoIterator<Item = usize>, fits: impl Fn(usize) -> bool) -> Vec<Params> {
    points.into_iter().filter(|v| fits(*v)).map(point).collect()
}

/// What a decision weighs: the point that won on the work most like this, if it fits here, else `usual`.
pub(super) fn weighed(
    winners: &Winners,
    w: &Workload,
    fits: impl Fn(usize) -> bool,
    usual: impl FnOnce() -> usize,
) -> ParamList {
    let won = winners.near(Kind::of(w)).filter(|p| fits(p.variant.into()));
    smallvec::smallvec![won.unwrap_or_else(|| point(usual()))]
}
