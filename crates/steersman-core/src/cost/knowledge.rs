//! What one cell of the model knows, as it is written down.

use super::local::Local;
use super::regress::Stats;

/// What one cell knows, for wisdom.
#[derive(Clone, Debug, PartialEq)]
pub struct Knowledge {
    /// The regression's statistics.
    pub stats: Stats,
    /// Local corrections.
    pub local: Local,
    /// Whether the regression is settled.
    pub settled: bool,
}

impl Knowledge {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let stats = self.stats.to_bytes();
        let mut out = vec![u8::from(self.settled)];
        out.extend((stats.len() as u32).to_le_bytes());
        out.extend(stats);
        out.extend(self.local.to_bytes());
        out
    }

    /// From [`Knowledge::to_bytes`]; `None` if they are not that.
    pub fn from_bytes(bytes: &[u8]) -> Option<Knowledge> {
        let (&settled, rest) = bytes.split_first()?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let (stats, local) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        let (stats, local) = (Stats::from_bytes(stats)?, Local::from_bytes(local)?);
        (settled <= 1).then_some(Knowledge { stats, local, settled: settled == 1 })
    }

    /// The same with less say: for data of an older driver or kernel revision.
    pub fn faded(self, keep: f64) -> Knowledge {
        Knowledge { stats: self.stats.faded(keep), local: Local::default(), settled: false }
    }
}
