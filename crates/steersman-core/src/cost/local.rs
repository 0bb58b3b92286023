//! Local corrections: what counted work cannot express, remembered on a coarse grid of log sizes.
//!
//! A regression on a few terms is off in places (a tile that does not divide, a cache that fills early). Its
//! log residuals are averaged at the nodes of a grid over up to three log sizes, and interpolated. Where no sample is
//! near, wider grids say what was seen further off; far from everything the regression speaks alone.

mod grid;

use grid::{CornerList, FINEST, Grids, NOTHING, Node, STEPS, Said, UNSEEN, corners};
use std::sync::OnceLock;

/// Where a workload lies: natural logs of its sizes.
pub type Coordinates = [f64; 3];

/// A correction as interpolated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// Mean log residual.
    pub mean: f64,
    /// Variance of one measurement around it.
    pub variance: f64,
}

/// Log residuals at grid nodes. Remembered ones stay as bytes until they are asked for: a calibrated machine
/// has some hundred thousand nodes, and a program needs those of a few kernels.
#[derive(Clone, Debug, Default)]
pub struct Local {
    asleep: Vec<u8>,
    grids: OnceLock<Grids>,
}

impl PartialEq for Local {
    fn eq(&self, other: &Local) -> bool {
        self.grids() == other.grids()
    }
}

impl Local {
    fn grids(&self) -> &Grids {
        self.grids.get_or_init(|| decode(&self.asleep))
    }

    /// Takes in one log residual. What it says of places further off is known from the next [`Local::settle`] on.
    pub fn add(&mut self, at: &Corners, residual: f64, weight: f64) {
        self.grids();
        let Some(Grids(grids)) = self.grids.get_mut() else { return };
        for (grid, step) in grids.iter_mut().zip(STEPS) {
            for (place, share) in corners(&at.point, step) {
                if let Some(i) = grid.make(place) {
                    grid.nodes[i].add(residual, share * weight);
                    grid.said[i] = grid.nodes[i].says();
                }
            }
        }
    }

    /// Has what was seen anywhere be known everywhere.
    pub fn settle(&mut self) {
        if let Some(grids) = self.grids.get_mut() {
            grids.settle();
        }
    }

    /// The correction here, given the variance of the regression.
    #[inline(always)]
    pub fn at(&self, at: &Corners, variance: f64) -> Correction {
        let said = self.grids().0[FINEST].at(&at.near);
        Correction {
            mean: f64::from(said.mean),
            variance: f64::from(said.variance) + f64::from(said.doubt) * variance,
        }
    }

    /// The mean correction at a place had this residual not been added there, in full weight.
    pub fn without(&self, at: &Corners, residual: f64) -> f64 {
        let gone = Gone { at: at.point, residual: residual as f32 };
        f64::from(self.said_without(FINEST, &at.point, &gone).mean)
    }

    fn said_without(&self, level: usize, point: &Coordinates, gone: &Gone) -> Said {
        let mut all = Said { mean: 0.0, variance: 0.0, doubt: 0.0 };
        for (place, share) in corners(point, STEPS[level]) {
            let grid = &self.grids().0[level];
            let said = grid.index(place).map_or(UNSEEN, |i| {
                let mut node = grid.nodes[i];
                node.take_back(gone.residual, gone.share(place, STEPS[level]));
                if level > WIDER {
                    let here = place.map(|p| f64::from(p) * STEPS[level]);
                    node.told = self.said_without(level - 1, &here, gone);
                }
                node.says()
            });
            all.mean += share as f32 * said.mean;
        }
        all
    }

    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Some(Grids(grids)) = self.grids.get() else { return self.asleep.clone() };
        let mut out = Vec::new();
        for (level, grid) in grids.iter().enumerate() {
            for (place, n) in grid.iter().filter(|(_, n)| n.weight > 0.0) {
                let id = place.iter().fold((FINEST - level) as u32, |id, p| id << 10 | p);
                out.extend(u32::to_le_bytes(id));
                [n.weight, n.sum, n.squares].iter().for_each(|v| out.extend(v.to_le_bytes()));
            }
        }
        out
    }

    /// From [`Local::to_bytes`]; `None` if they are not that.
    pub fn from_bytes(bytes: &[u8]) -> Option<Local> {
        Local::is_written(bytes).then(|| Local { asleep: bytes.to_vec(), grids: OnceLock::new() })
    }

    /// Whether these can be what [`Local::to_bytes`] gave.
    pub(super) fn is_written(bytes: &[u8]) -> bool {
        bytes.len().is_multiple_of(ROW)
    }
}

/// Grids wider than this still have what is to be left out, among much else: to leave it out of all of them takes eight
/// times as long for each.
const WIDER: usize = 1;

/// A residual that is to be left out.
struct Gone {
    at: Coordinates,
    residual: f32,
}

impl Gone {
    /// What a node has of it.
    fn share(&self, place: [u32; 3], step: f64) -> f32 {
        let near = |(x, p): (f64, u32)| (1.0 - ((x / step).clamp(0.0, 1000.0) - f64::from(p)).abs()).max(0.0);
        self.at.into_iter().zip(place).map(near).product::<f64>() as f32
    }
}

/// Bytes of one node: its id (two bits for the grid, counted from the finest, ten for each place), weight, sum and sum
/// of squares.
const ROW: usize = 16;

/// Nodes from their bytes. One that no samples could have made is left out.
fn decode(bytes: &[u8]) -> Grids {
    let word = |b: &[u8]| <[u8; 4]>::try_from(b).unwrap_or_default();
    let mut grids = Grids::default();
    // The last first: the box has its far corner at once, and mostly its full size.
    for row in bytes.chunks_exact(ROW).rev() {
        let value = |i: usize| f32::from_le_bytes(word(&row[4 * i..4 * i + 4]));
        let node = Node { weight: value(1), sum: value(2), squares: value(3), told: NOTHING };
        let sane =
            node.weight >= 0.0 && node.weight.is_finite() && node.sum.is_finite() && node.squares >= 0.0;
        let id = u32::from_le_bytes(word(&row[..4]));
        let grid = &mut grids.0[FINEST - (id >> 30) as usize];
        if sane && let Some(i) = grid.make([id >> 20 & 1023, id >> 10 & 1023, id & 1023]) {
            grid.nodes[i] = node;
        }
    }
    grids.settle();
    grids
}

/// A point and the nodes around it with their shares, which sum to 1: worked out once for all of a workload's
/// candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Corners {
    point: Coordinates,
    near: CornerList,
}

impl Corners {
    /// Around this point.
    pub fn around(at: &Coordinates) -> Corners {
        Corners { point: *at, near: corners(at, STEPS[FINEST]) }
    }

    /// The same sizes done in another [way](super::Terms::by): so far off along the last axis that of the grids only the widest
    /// has nodes for both.
    pub fn by(&self, way: u8) -> Corners {
        let mut there = self.clone();
        there.point[LAST] += f64::from(way) * STEPS[WAY_APART];
        for (place, _) in &mut there.near {
            place[LAST] += u32::from(way) << (FINEST - WAY_APART);
        }
        there
    }
}

/// The axis that ops with different ways leave free.
const LAST: usize = 2;
/// The grid by whose steps ways lie apart.
const WAY_APART: usize = 1;

#[cfg(test)]
mod tests {
    use super::grid::MOST_NODES;
    use super::*;

    fn around(at: Coordinates) -> Corners {
        Corners::around(&at)
    }

    #[test]
    fn a_bump_is_learned_where_it_is_and_forgotten_where_it_is_not() {
        let mut local = Local::default();
        for i in 0..40 {
            let x = f64::from(i) * 0.3;
            local.add(&around([x, 0.0, 0.0]), if (4.0..8.0).contains(&x) { 0.5 } else { 0.0 }, 1.0);
        }
        assert!((local.at(&around([6.0, 0.0, 0.0]), 0.04).mean - 0.5).abs() < 0.1);
        assert!(local.at(&around([1.0, 0.0, 0.0]), 0.04).mean.abs() < 0.05);
        let far = local.at(&around([6.0, 9.0, 0.0]), 0.04);
        assert_eq!(far.mean, 0.0);
        assert!((0.04..=0.07).contains(&far.variance), "{}", far.variance);
    }

    #[test]
    fn a_node_that_has_seen_nothing_and_was_told_nothing_says_so() {
        assert_eq!(Node::default().says(), UNSEEN);
    }

    #[test]
    fn what_was_seen_further_off_counts_where_nothing_is_near() {
        let mut local = Local::default();
        // Off by e everywhere, seen in two corners of a square only.
        for p in [[2.0, 2.0, 0.0], [8.0, 8.0, 0.0]] {
            (0..8).for_each(|_| local.add(&around(p), 1.0, 1.0));
        }
        let between = around([5.0, 5.0, 0.0]);
        assert_eq!(local.at(&between, 0.04).mean, 0.0, "not yet told");
        local.settle();
        let there = local.at(&between, 0.04);
        assert!(there.mean > 0.7, "{there:?}");
        // Opposite residuals say nothing of what lies between but that it is uncertain.
        (0..8).for_each(|_| local.add(&around([8.0, 8.0, 0.0]), -3.0, 1.0));
        local.settle();
        let torn = local.at(&between, 0.04);
        assert!(torn.mean.abs() < 0.7 && torn.variance > 5.0 * there.variance, "{torn:?} after {there:?}");
    }

    #[test]
    fn the_grid_grows_in_every_direction_and_keeps_what_it_has() {
        let mut local = Local::default();
        let points = [[5.0, 5.0, 5.0], [9.0, 2.0, 5.0], [1.0, 7.5, 0.0], [5.0, 5.0, 12.0]];
        for (i, p) in points.iter().enumerate() {
            (0..20).for_each(|_| local.add(&around(*p), 0.1 * (i + 1) as f64, 1.0));
        }
        for (i, p) in points.iter().enumerate() {
            let mean = local.at(&around(*p), 0.01).mean;
            assert!((mean - 0.1 * (i + 1) as f64).abs() < 0.04 * (i + 1) as f64, "{p:?}: {mean}");
        }
        // As far apart as logs of sizes can be: no memory is taken for what lies between.
        local.add(&around([0.0, 0.0, 0.0]), 1.0, 1.0);
        local.add(&around([600.0, 600.0, 600.0]), 1.0, 1.0);
        assert!(local.grids().0[FINEST].nodes.len() <= MOST_NODES);
    }

    #[test]
    fn what_was_seen_of_one_way_says_little_of_another() {
        let mut local = Local::default();
        let here = around([5.0, 3.7, 0.0]);
        assert_eq!(here.by(2).near, Corners::around(&here.by(2).point).near);
        (0..30).for_each(|_| local.add(&here, -0.8, 1.0));
        local.settle();
        let at = |local: &Local, way| local.at(&here.by(way), 0.04).mean;
        assert!(at(&local, 0) < -0.7, "{}", at(&local, 0));
        assert!(
            at(&local, 1).abs() < 0.45 && at(&local, 2).abs() < 0.01,
            "{} {}",
            at(&local, 1),
            at(&local, 2)
        );
        (0..3).for_each(|_| local.add(&here.by(1), 0.1, 1.0));
        local.settle();
        assert!((at(&local, 1) - 0.1).abs() < 0.1 && at(&local, 0) < -0.7);
    }

    #[test]
    fn corrections_survive_being_written_down() {
        let mut local = Local::default();
        local.add(&around([1.0, 2.0, 3.0]), 0.25, 1.0);
        local.settle();
        let back = Local::from_bytes(&local.to_bytes()).unwrap();
        let (a, b) = (local.at(&around([1.0, 2.0, 3.0]), 1.0), back.at(&around([1.0, 2.0, 3.0]), 1.0));
        assert!((a.mean - b.mean).abs() < 1e-6 && (a.variance - b.variance).abs() < 1e-6);
        assert_eq!(Local::from_bytes(&[1, 2, 3]), None);
    }
}
