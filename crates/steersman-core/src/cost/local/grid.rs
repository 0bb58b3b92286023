//! Boxes of nodes over log sizes, wide and narrow, and what each node says of its place.

use super::Coordinates;
use smallvec::SmallVec;

/// How far apart the nodes of each grid lie. Those of the last, by which corrections are looked up, are a factor of 1.9
/// apart: calibration sizes are about as dense.
pub const STEPS: [f64; 4] = [5.12, 2.56, 1.28, 0.64];
pub const FINEST: usize = STEPS.len() - 1;
/// Say of "no correction" against one sample at the node.
const CAUTION: f32 = 0.3;
/// Say of the regression's own scatter: one sample lies on its own mean and says nothing of scatter.
const DOUBT: f32 = 2.0;
/// Weight a node may gather: older samples fade beyond.
const MEMORY: f32 = 24.0;

/// Nodes a grid may span: three sizes over five decades each are 8,000.
pub const MOST_NODES: usize = 1 << 16;

/// What is thought of a place: a mean, and `variance + doubt * variance without samples`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said {
    pub mean: f32,
    pub variance: f32,
    pub doubt: f32,
}

/// What there is to say where nobody has seen anything, and what a node that was told this says then.
pub const NOTHING: Said = Said { mean: 0.0, variance: 0.0, doubt: 1.0 };
pub const UNSEEN: Said = Said { doubt: 1.5, ..NOTHING };

/// What a node has seen, and what it is told by those further off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    pub weight: f32,
    pub sum: f32,
    pub squares: f32,
    pub told: Said,
}

impl Default for Node {
    fn default() -> Node {
        Node { weight: 0.0, sum: 0.0, squares: 0.0, told: NOTHING }
    }
}

impl Node {
    pub fn add(&mut self, residual: f64, weight: f64) {
        let keep = if self.weight > MEMORY { MEMORY / self.weight } else { 1.0 };
        self.weight = self.weight * keep + weight as f32;
        self.sum = self.sum * keep + (weight * residual) as f32;
        self.squares = self.squares * keep + (weight * residual * residual) as f32;
    }

    pub fn take_back(&mut self, residual: f32, weight: f32) {
        let weight = weight.min(self.weight);
        self.weight -= weight;
        self.sum -= weight * residual;
        self.squares = (self.squares - weight * residual * residual).max(0.0);
    }

    pub fn says(&self) -> Said {
        let told = self.told;
        let say = CAUTION / (self.weight + CAUTION);
        let mean = self.sum / (self.weight + CAUTION) + say * told.mean;
        let spread = (self.squares - 2.0 * mean * self.sum + mean * mean * self.weight).max(0.0);
        // The mean itself is uncertain while samples are few.
        let to_variance = (1.0 + 0.3 / (self.weight + 0.6)) / (self.weight + DOUBT);
        let doubt = DOUBT * to_variance;
        Said { mean, variance: spread * to_variance + doubt * told.variance, doubt: doubt * told.doubt }
    }
}

/// The smallest box of nodes around all that have samples. A table by node took 140 ns of every estimate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    first: [u32; 3],
    size: [u32; 3],
    pub nodes: Vec<Node>,
    /// What each of them says: all that a lookup needs, in a quarter of a cache line.
    pub said: Vec<Said>,
}

impl Grid {
    #[inline(always)]
    pub fn index(&self, at: [u32; 3]) -> Option<usize> {
        let mut index = 0;
        for ((at, first), size) in at.into_iter().zip(self.first).zip(self.size) {
            let place = at.wrapping_sub(first);
            if place >= size {
                return None;
            }
            index = index * size as usize + place as usize;
        }
        Some(index)
    }

    /// What is said of the point between these corners.
    #[inline(always)]
    pub fn at(&self, corners: &CornerList) -> Said {
        let mut all = Said { mean: 0.0, variance: 0.0, doubt: 0.0 };
        for &(place, share) in corners {
            let said = self.index(place).map_or(UNSEEN, |i| self.said[i]);
            let share = share as f32;
            all.mean += share * said.mean;
            all.variance += share * said.variance;
            all.doubt += share * said.doubt;
        }
        all
    }

    /// Node by node, with its place.
    pub fn iter(&self) -> impl Iterator<Item = ([u32; 3], &Node)> {
        let [_, b, c] = self.size.map(|n| n.max(1) as usize);
        self.nodes.iter().enumerate().map(move |(i, n)| {
            let place = [i / (b * c), i / c % b, i % c];
            (std::array::from_fn(|d| self.first[d] + place[d] as u32), n)
        })
    }

    /// Where the node at this place is, for which the box grows if it must; `None` if it would grow too large.
    pub fn make(&mut self, at: [u32; 3]) -> Option<usize> {
        if self.index(at).is_none() {
            let empty = self.nodes.is_empty();
            let first = std::array::from_fn(|i| if empty { at[i] } else { at[i].min(self.first[i]) });
            let end: [u32; 3] = std::array::from_fn(|i| {
                (at[i] + 1).max(if empty { 0 } else { self.first[i] + self.size[i] })
            });
            let size: [u32; 3] = std::array::from_fn(|i| end[i] - first[i]);
            let volume = size.iter().map(|&n| n as usize).product::<usize>();
            if volume > MOST_NODES {
                return None;
            }
            let (nodes, said) = (vec![Node::default(); volume], vec![UNSEEN; volume]);
            let mut grown = Grid { first, size, nodes, said };
            for ((place, node), said) in self.iter().zip(&self.said) {
                if let Some(i) = grown.index(place) {
                    (grown.nodes[i], grown.said[i]) = (*node, *said);
                }
            }
            *self = grown;
        }
        self.index(at)
    }
}

/// Grids over the same residuals, the widest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grids(pub [Grid; STEPS.len()]);

impl Grids {
    /// Tells every node what the next wider grid says of its place.
    pub fn settle(&mut self) {
        for level in 0..STEPS.len() {
            let (wider, this) = self.0.split_at_mut(level);
            let (wider, this) = (wider.last(), &mut this[0]);
            let places: Vec<[u32; 3]> = this.iter().map(|(place, _)| place).collect();
            for ((node, said), place) in this.nodes.iter_mut().zip(&mut this.said).zip(places) {
                if let Some(wider) = wider {
                    let point = place.map(|p| f64::from(p) * STEPS[level]);
                    node.told = wider.at(&corners(&point, STEPS[level - 1]));
                }
                *said = node.says();
            }
        }
    }
}

pub type CornerList = SmallVec<[([u32; 3], f64); 8]>;

/// The nodes of a grid around a point. Shares of zero are left out.
#[inline(always)]
pub fn corners(at: &Coordinates, step: f64) -> CornerList {
    let mut list = CornerList::from_slice(&[([0; 3], 1.0)]);
    for i in 0..3 {
        let x = (at[i] / step).clamp(0.0, 1000.0);
        let (below, part) = (x as u32, x.fract());
        for j in 0..list.len() {
            let (mut place, share) = list[j];
            if part > 0.0 {
                place[i] = below + 1;
                list.push((place, share * part));
            }
            place[i] = below;
            list[j] = (place, share * (1.0 - part));
        }
    }
    list
}
