//! Local corrections: what counted work cannot express, remembered on a coarse grid of log sizes.
//!
//! A regression on a few terms is off in places (a tile that does not divide, a cache that fills early). Its
//! log residuals are averaged at the nodes of a grid over up to three log sizes, and interpolated. A node
//! with no samples near says nothing, so far from everything seen the regression speaks alone.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;

/// Where a workload lies: natural logs of its sizes.
pub type Coordinates = [f64; 3];

/// Nodes lie a factor of 1.9 apart: calibration sizes are about as dense.
const STEP: f64 = 0.64;
/// Say of "no correction" against one sample at the node.
const CAUTION: f64 = 0.25;
/// Say of the regression's own scatter: one sample lies on its own mean and says nothing of scatter.
const DOUBT: f64 = 2.0;
/// Weight a node may gather: older samples fade beyond.
const MEMORY: f64 = 24.0;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Node {
    weight: f64,
    sum: f64,
    squares: f64,
}

/// A quick hasher for keys nobody chooses against us: one multiply a word. `std`'s took half of a miss.
#[derive(Clone, Default)]
pub struct Mix(u64);
impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(20);
    }
}

/// A correction as interpolated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// Mean log residual.
    pub mean: f64,
    /// Variance of one measurement around it.
    pub variance: f64,
    /// How much evidence is near: 0 for none.
    pub near: f64,
}

type Nodes = HashMap<u32, Node, BuildHasherDefault<Mix>>;

/// Log residuals at grid nodes. Remembered ones stay as bytes until they are asked for: a calibrated machine
/// has some hundred thousand nodes, and a program needs those of a few kernels.
#[derive(Clone, Debug, Default)]
pub struct Local {
    asleep: Vec<u8>,
    nodes: OnceLock<Nodes>,
}

impl PartialEq for Local {
    fn eq(&self, other: &Local) -> bool {
        self.nodes() == other.nodes()
    }
}

impl Local {
    fn nodes(&self) -> &Nodes {
        self.nodes.get_or_init(|| decode(&self.asleep))
    }

    /// Takes in one log residual.
    pub fn add(&mut self, at: &Coordinates, residual: f64, weight: f64) {
        self.nodes();
        let Some(nodes) = self.nodes.get_mut() else { return };
        corners(at, |id, share| {
            let node = nodes.entry(id).or_default();
            if node.weight > MEMORY {
                let keep = MEMORY / node.weight;
                (node.weight, node.sum, node.squares) = (MEMORY, node.sum * keep, node.squares * keep);
            }
            let w = share * weight;
            node.weight += w;
            node.sum += w * residual;
            node.squares += w * residual * residual;
        });
    }

    /// The correction here, given what is believed without samples: a mean, and the variance of the regression.
    pub fn at(&self, at: &Coordinates, prior: f64, variance: f64) -> Correction {
        let mut c = Correction { mean: 0.0, variance: 0.0, near: 0.0 };
        let nodes = self.nodes();
        corners(at, |id, share| {
            let n = nodes.get(&id).copied().unwrap_or_default();
            let total = n.weight + CAUTION;
            let mean = (n.sum + CAUTION * prior) / total;
            let spread = n.squares - 2.0 * mean * n.sum + mean * mean * n.weight;
            let scatter = (spread.max(0.0) + DOUBT * variance) / (n.weight + DOUBT);
            c.mean += share * mean;
            // The mean itself is uncertain while samples are few.
            c.variance += share * scatter * (1.0 + 0.3 / (n.weight + 0.6));
            c.near += share * n.weight;
        });
        c
    }

    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Some(nodes) = self.nodes.get() else { return self.asleep.clone() };
        let mut sorted: Vec<_> = nodes.iter().collect();
        sorted.sort_by_key(|(id, _)| **id);
        let mut out = Vec::with_capacity(sorted.len() * ROW);
        for (id, n) in sorted {
            out.extend(id.to_le_bytes());
            [n.weight, n.sum, n.squares].iter().for_each(|v| out.extend((*v as f32).to_le_bytes()));
        }
        out
    }

    /// From [`Local::to_bytes`]; `None` if they are not that.
    pub fn from_bytes(bytes: &[u8]) -> Option<Local> {
        bytes.len().is_multiple_of(ROW).then(|| Local { asleep: bytes.to_vec(), nodes: OnceLock::new() })
    }
}

/// Bytes of one node: its id, weight, sum and sum of squares.
const ROW: usize = 16;

/// Nodes from their bytes. One that no samples could have made is left out.
fn decode(bytes: &[u8]) -> Nodes {
    let word = |b: &[u8]| <[u8; 4]>::try_from(b).unwrap_or_default();
    let row = |row: &[u8]| {
        let value = |i: usize| f64::from(f32::from_le_bytes(word(&row[4 * i..4 * i + 4])));
        let node = Node { weight: value(1), sum: value(2), squares: value(3) };
        let sane =
            node.weight >= 0.0 && node.weight.is_finite() && node.sum.is_finite() && node.squares >= 0.0;
        sane.then(|| (u32::from_le_bytes(word(&row[..4])), node))
    };
    bytes.chunks_exact(ROW).filter_map(row).collect()
}

/// The nodes around a point with their shares, which sum to 1. Shares of zero are left out.
fn corners(at: &Coordinates, mut visit: impl FnMut(u32, f64)) {
    let mut base = [0u32; 3];
    let mut part = [0.0; 3];
    for i in 0..3 {
        let x = (at[i] / STEP).clamp(0.0, 1000.0);
        base[i] = x as u32;
        part[i] = x - f64::from(base[i]);
    }
    for corner in 0..8u32 {
        let mut share = 1.0;
        let mut id = 0;
        for i in 0..3 {
            let up = corner >> i & 1;
            share *= if up == 1 { part[i] } else { 1.0 - part[i] };
            id = id << 10 | (base[i] + up);
        }
        if share > 0.0 {
            visit(id, share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bump_is_learned_where_it_is_and_forgotten_where_it_is_not() {
        let mut local = Local::default();
        for i in 0..40 {
            let x = f64::from(i) * 0.3;
            local.add(&[x, 0.0, 0.0], if (4.0..8.0).contains(&x) { 0.5 } else { 0.0 }, 1.0);
        }
        assert!((local.at(&[6.0, 0.0, 0.0], 0.0, 0.04).mean - 0.5).abs() < 0.1);
        assert!(local.at(&[1.0, 0.0, 0.0], 0.0, 0.04).mean.abs() < 0.05);
        let far = local.at(&[6.0, 9.0, 0.0], 0.0, 0.04);
        assert_eq!((far.mean, far.near), (0.0, 0.0));
        assert!((0.04..=0.07).contains(&far.variance), "{}", far.variance);
    }

    #[test]
    fn corrections_survive_being_written_down() {
        let mut local = Local::default();
        local.add(&[1.0, 2.0, 3.0], 0.25, 1.0);
        let back = Local::from_bytes(&local.to_bytes()).unwrap();
        let (a, b) = (local.at(&[1.0, 2.0, 3.0], 0.0, 1.0), back.at(&[1.0, 2.0, 3.0], 0.0, 1.0));
        assert!((a.mean - b.mean).abs() < 1e-6 && (a.variance - b.variance).abs() < 1e-6);
        assert_eq!(Local::from_bytes(&[1, 2, 3]), None);
    }
}
