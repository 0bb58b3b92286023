//! The product for large operands: blocks of both are copied so that the micro-kernel reads memory in
//! order and from the nearest cache.

use super::kernels::Kernels;
use super::pack::Panel;
use super::tile::Tile;
use super::{Blocks, Float, Gemm, Scratch};
use crate::isa::Level;
use std::ops::Range;

/// Rows of `b` packed side by side.
const ROWS_AT_ONCE: usize = 8;

/// Bytes of `c` from which it is written past the caches when each element is written once.
const STREAM_FROM: usize = 32 << 20;

/// Computes `c = a · b` from packed blocks. Any strides; no allocation once `scratch` has grown.
///
/// # Safety
/// The CPU has `level`. `a`, `b` and `c` are valid at their shapes and strides; `c` overlaps neither
/// `a` nor `b`.
pub unsafe fn packed<T: Float>(level: Level, g: &Gemm<T>, blocks: Blocks, scratch: &mut Scratch) {
    // SAFETY: the caller's promise.
    unsafe { packed_then(level, g, blocks, scratch, None) }
}

/// As [`packed`], and hands every block of `c` (rows, columns) to `done` as soon as it is final. With somebody to
/// read it, `c` is not written past the caches.
///
/// # Safety
/// As for [`packed`].
pub(super) unsafe fn packed_then<T: Float>(
    level: Level,
    g: &Gemm<T>,
    blocks: Blocks,
    scratch: &mut Scratch,
    mut done: Option<&mut dyn FnMut(Range<usize>, Range<usize>)>,
) {
    let kernels = T::kernels(level);
    if g.m == 0 || g.n == 0 {
        return;
    }
    if g.k == 0 {
        // SAFETY: the caller's promise covers c.
        unsafe { g.zero_c() };
        if let Some(done) = &mut done {
            done(0..g.m, 0..g.n);
        }
        return;
    }
    let nr = kernels.packed_vectors * kernels.lanes;
    let kc = even(g.k, blocks.kc, 1);
    let nc = even(g.n, blocks.nc, nr);
    let mc = even(g.m, blocks.mc, kernels.max_rows(kernels.packed_vectors));
    let vector = (kernels.lanes * size_of::<T>()) as isize;
    let stream = done.is_none()
        && kc >= g.k
        && g.m * g.n * size_of::<T>() >= STREAM_FROM
        && (g.c as isize) % vector == 0
        && g.c_rs * size_of::<T>() as isize % vector == 0;
    let (pa, pb) = scratch.pair::<T>(mc * kc, kc * nc);
    // SAFETY: blocks stay inside the operands, copies inside the scratch.
    unsafe {
        for j in (0..g.n).step_by(nc) {
            let n = nc.min(g.n - j);
            for p in (0..g.k).step_by(kc) {
                let k = kc.min(g.k - p);
                pack_b(kernels, g, (p, k), (j, n), pb);
                for i in (0..g.m).step_by(mc) {
                    let m = mc.min(g.m - i);
                    pack_a(kernels, g, (i, m), (p, k), pa);
                    multiply(kernels, g, (i, m), (p, k), (j, n), (pa, pb), (blocks.mc * blocks.kc, stream));
                    if let Some(done) = done.as_mut().filter(|_| p + k == g.k) {
                        done(i..i + m, j..j + n);
                    }
                }
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    if stream {
        // SAFETY: part of SSE, which every x86-64 has. Streamed stores are else unordered with what
        // tells another thread that c is ready.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }
}

/// `total` in blocks of at most about `most`, as even as multiples of `unit` allow.
fn even(total: usize, most: usize, unit: usize) -> usize {
    let blocks = total.div_ceil(most.max(unit));
    total.div_ceil(blocks).next_multiple_of(unit)
}

/// Sizes of even tiles of at most `most` that cover `total`.
fn tiles(total: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = total.div_ceil(most);
    (0..count).scan(0, move |at, tile| {
        let size = (total - *at).div_ceil(count - tile);
        *at += size;
        Some((*at - size, size))
    })
}

unsafe fn pack_b<T: Float>(
    kernels: &Kernels<T>,
    g: &Gemm<T>,
    (p, k): (usize, usize),
    (j, n): (usize, usize),
    to: *mut T,
) {
    let nr = kernels.packed_vectors * kernels.lanes;
    // Few rows over all panels before the next rows: b is then read as a few long streams.
    let group = if g.b_cs == 1 { ROWS_AT_ONCE } else { k };
    for start in (0..k).step_by(group) {
        for at in (0..n).step_by(nr) {
            // SAFETY: the panel lies inside b's block; panels before it took k · at elements.
            unsafe {
                (kernels.pack)(&Panel {
                    from: g.b.offset((p + start) as isize * g.b_rs + (j + at) as isize * g.b_cs),
                    item: g.b_cs,
                    step: g.b_rs,
                    width: nr.min(n - at),
                    steps: group.min(k - start),
                    to: to.add(at * k + start * nr),
                    stride: nr,
                });
            }
        }
    }
}

unsafe fn pack_a<T: Float>(
    kernels: &Kernels<T>,
    g: &Gemm<T>,
    (i, m): (usize, usize),
    (p, k): (usize, usize),
    to: *mut T,
) {
    for (at, rows) in tiles(m, kernels.max_rows(kernels.packed_vectors)) {
        // SAFETY: the panel lies inside a's block; panels before it took k · at elements.
        unsafe {
            (kernels.pack)(&Panel {
                from: g.a.offset((i + at) as isize * g.a_rs + p as isize * g.a_cs),
                item: g.a_rs,
                step: g.a_cs,
                width: rows,
                steps: k,
                to: to.add(at * k),
                stride: rows,
            });
        }
    }
}

/// Multiplies packed blocks: `near` elements of `b` fit beside `a`'s block in the second-level cache,
/// `stream` writes `c` past the caches.
unsafe fn multiply<T: Float>(
    kernels: &Kernels<T>,
    g: &Gemm<T>,
    (i, m): (usize, usize),
    (p, k): (usize, usize),
    (j, n): (usize, usize),
    (pa, pb): (*const T, *const T),
    (near, stream): (usize, bool),
) {
    let nv = kernels.packed_vectors;
    let nr = nv * kernels.lanes;
    // As many columns of b as fit beside a's block in the second-level cache: c is then walked along
    // its rows, which spares page walks where k is short.
    let chunk = (near / k / nr).max(1) * nr;
    for from in (0..n).step_by(chunk) {
        for (row, rows) in tiles(m, kernels.max_rows(nv)) {
            for column in (from..n.min(from + chunk)).step_by(nr) {
                let width = nr.min(n - column);
                let vectors = width.div_ceil(kernels.lanes);
                let tail = width - (vectors - 1) * kernels.lanes;
                // SAFETY: the tile lies inside c's block and reads the panels packed for it.
                unsafe {
                    let t = Tile {
                        k,
                        a: pa.add(row * k),
                        a_rs: 1,
                        a_cs: rows as isize,
                        b: pb.add(column * k),
                        b_rs: nr as isize,
                        c: g.c.offset((i + row) as isize * g.c_rs).add(j + column),
                        c_rs: g.c_rs,
                        tail,
                        accumulate: p > 0,
                        stream,
                        fetch_c: !stream,
                    };
                    kernels.tile(rows, vectors, true, tail < kernels.lanes)(&t);
                }
            }
        }
    }
}
