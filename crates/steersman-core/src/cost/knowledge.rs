//! What one cell of the model knows, as it is written down.

use super::local::Local;
use super::regress::Stats;

/// What one cell knows, for wisdom: bytes that were looked through once and are read when somebody asks for the cell. A
/// calibrated machine has two thousand cells, a program needs those of a few kernels, and what they all take when read is
/// memory that nobody has touched before: 1.2 ms of a start, 3.6 in a process of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Knowledge(Vec<u8>);

/// The parts of it.
struct Parts<'a> {
    settled: bool,
    stats: Stats,
    local: &'a [u8],
}

fn parts(bytes: &[u8]) -> Option<Parts<'_>> {
    let (&settled, rest) = bytes.split_first()?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let (stats, local) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    let stats = Stats::from_bytes(stats)?;
    (settled <= 1 && Local::is_written(local)).then_some(Parts { settled: settled == 1, stats, local })
}

impl Knowledge {
    /// Written down: the regression's statistics, local corrections, and whether the regression is settled.
    pub(super) fn of(stats: &Stats, local: &Local, settled: bool) -> Knowledge {
        let stats = stats.to_bytes();
        let mut out = vec![u8::from(settled)];
        out.extend((stats.len() as u32).to_le_bytes());
        out.extend(stats);
        out.extend(local.to_bytes());
        Knowledge(out)
    }

    /// From [`Knowledge::into_bytes`]; `None` if they are not that.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Knowledge> {
        parts(&bytes)?;
        Some(Knowledge(bytes))
    }

    /// As bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Samples behind it.
    pub fn samples(&self) -> u64 {
        parts(&self.0).map_or(0, |p| p.stats.samples)
    }

    /// What [`Knowledge::of`] was given.
    pub(super) fn read(&self) -> (Stats, Local, bool) {
        let Some(p) = parts(&self.0) else { return Default::default() };
        (p.stats, Local::from_bytes(p.local).unwrap_or_default(), p.settled)
    }

    /// The same with less say: for data of an older driver or kernel revision.
    pub fn faded(self, keep: f64) -> Knowledge {
        Knowledge::of(&self.read().0.faded(keep), &Local::default(), false)
    }
}
