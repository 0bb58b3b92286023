//! A product whose finished blocks are handed on while they are still in cache, to whoever goes on with them.

use super::packed::packed_then;
use super::{Blocks, Float, Gemm, Scratch, small};
use crate::host::Host;
use crate::isa::Level;
use std::ops::Range;

/// By which code blocks are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Straight from memory.
    Small,
    /// Both operands copied first, the second one once for all blocks.
    Packed,
}

/// Rows of a block at least: a few tiles.
const ROWS: usize = 56;
/// Columns of a block at least: long runs for whoever goes on.
const COLUMNS: usize = 512;

/// Computes `c = a · b` on the calling thread and calls `done(rows, columns)` for each block of `c` when it is final.
/// Blocks take half of the second-level cache and have whole rows where that is enough.
///
/// # Safety
/// The CPU has `level`. `a`, `b` and `c` are valid at their shapes and strides; `c` overlaps neither `a` nor `b`.
pub(crate) unsafe fn finished<T: Float>(
    way: Way,
    level: Level,
    host: &Host,
    g: &Gemm<T>,
    done: &mut dyn FnMut(Range<usize>, Range<usize>),
) {
    if g.m == 0 || g.n == 0 {
        return;
    }
    let near = host.cache(2).map_or(512 << 10, |c| c.bytes) / 2 / size_of::<T>();
    let most = (near / g.n).max(ROWS);
    // As even as can be: a few rows left over would be by far the slowest.
    let rows = g.m.div_ceil(g.m.div_ceil(most));
    match way {
        Way::Small => {
            for from in (0..g.m).step_by(rows) {
                let m = rows.min(g.m - from);
                let at = from as isize;
                let (a, c) = (g.a.wrapping_offset(at * g.a_rs), g.c.wrapping_offset(at * g.c_rs));
                // SAFETY: the block's rows are g's; the caller's promise.
                unsafe { small(level, &Gemm { m, a, c, ..*g }) };
                done(from..from + m, 0..g.n);
            }
        }
        Way::Packed => {
            let mut blocks = Blocks::for_host(host, size_of::<T>(), level);
            blocks.mc = blocks.mc.min(rows);
            blocks.nc = blocks.nc.min((near / blocks.mc).max(COLUMNS));
            // SAFETY: the caller's promise.
            Scratch::with_local(|s| unsafe { packed_then(level, g, blocks, s, Some(done)) });
        }
    }
}
