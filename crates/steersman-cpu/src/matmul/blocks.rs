//! How large the blocks of the packed product are.

use crate::host::Host;
use crate::isa::Level;

/// Block sizes of [`super::packed`]: `mc × kc` of `a` and `kc × nc` of `b` are copied at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// Rows of `a` in a block: with `kc` it fills about a third of the second-level cache.
    pub mc: usize,
    /// Steps of `k` in a block: one panel of `a` nearly fills the first-level cache. Shorter blocks cost
    /// passes over `c`: 2048³ f32 on Zen 4 took 181 ms with 168, 168 ms with 256, 162 ms with 512.
    pub kc: usize,
    /// Columns of `b` in a block: with `kc` it fills part of the last-level cache.
    pub nc: usize,
}

impl Blocks {
    /// Sizes for this host; what it does not say of its caches is taken to be small.
    pub fn for_host(host: &Host, dtype: usize, level: Level) -> Blocks {
        let cache = |l: u8, other: usize| host.cache(l).map_or(other, |c| c.bytes);
        Blocks::for_caches(cache(1, 32 << 10), cache(2, 512 << 10), cache(3, 8 << 20), dtype, level)
    }

    /// Sizes for a core with caches of these bytes (`l3` is the core's share), elements of `dtype`
    /// bytes, and the tiles of `level`.
    pub fn for_caches(l1: usize, l2: usize, l3: usize, dtype: usize, level: Level) -> Blocks {
        // The tallest tile of the level; a's panel of it is read again for every panel of b.
        let (rows, columns) = match level {
            Level::Baseline => (6, 32 / dtype),
            Level::Avx2 => (6, 64 / dtype),
            Level::Avx512 => (14, 128 / dtype),
        };
        let kc = (l1 * 7 / 8 / (rows * dtype)).clamp(128, 512) / 8 * 8;
        let mc = (l2 * 3 / 8 / (kc * dtype)).clamp(rows, 2048) / rows * rows;
        let nc = (l3 / 2 / (kc * dtype)).clamp(columns, 8192) / columns * columns;
        Blocks { mc, kc, nc }
    }

    /// Half as deep and half as high.
    pub fn shorter(self) -> Blocks {
        Blocks { mc: self.mc.div_ceil(2), kc: self.kc.div_ceil(2), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fit_the_caches_they_were_made_for() {
        for level in Level::ALL {
            for dtype in [4, 8] {
                let b = Blocks::for_caches(48 << 10, 2 << 20, 8 << 20, dtype, level);
                assert!(b.mc * b.kc * dtype <= 1 << 20, "{b:?}");
                assert!(b.kc * b.nc * dtype <= 4 << 20, "{b:?}");
                assert!(b.mc > 0 && b.kc > 0 && b.nc > 0);
            }
        }
    }

    #[test]
    fn a_machine_without_caches_still_gets_blocks() {
        let b = Blocks::for_caches(0, 0, 0, 8, Level::Avx512);
        assert!(b.mc > 0 && b.kc > 0 && b.nc > 0);
    }
}
