//! The product without packing: tiles straight from the operands' memory.

use super::few::Few;
use super::gemv::Lines;
use super::kernels::Kernels;
use super::pack::Panel;
use super::scratch::LINE;
use super::tile::Tile;
use super::{Float, Gemm, Scratch};
use crate::isa::Level;
use crate::probe::halves_pay;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Bytes of `b` from which it is not in the second-level cache.
const LARGE_B: usize = 1 << 20;
/// Bytes of `b` from which it is not in the last cache either, or not on pages that are known: 16×1024×1024 f32 takes
/// 290 µs in place and 365 by [`STREAMS`] on Zen 4, 8×2048×1024 f64 970 and 440 on two threads.
const FAR_B: usize = 6 << 20;
/// Rows of a large `b` read side by side when `c` has few rows: `b` is then a dozen long streams, and
/// `c`, updated once for each dozen, stays near. 8×4096×4096 f32 on Zen 4 took 4.6 ms; 7.2 ms with 4
/// rows, 6.8 ms with 32, 11 ms with all of `k` at once.
const STREAMS: usize = 12;
/// Rows of `c` up to which updating it again and again costs less than copying `b`.
const FEW_ROWS: usize = 32;

/// Steps of `k` up to which a product takes what writing `c` takes. Where that is in no near cache, how it is walked
/// [matters most](along_pays). (On a Xeon, along its rows instead of down strips, with `k` of 8 some lose as much as others gain,
/// from 16 on it is a loss of 5%.)
pub(super) const FEW_STEPS: usize = 7;
/// Bytes of `c` that are in no near cache.
const LARGE_C: usize = 40 << 10;
/// Bytes of `c` that are beyond the second-level cache: strips down all of it then wait for each of its lines, whatever `k`.
/// (On a Xeon with 2 MiB of it, in blocks of 32 rows, 867×8×2468 f32 took 530 µs instead of 1250, with `k` of 24 770
/// instead of 1290, of 64 1860 instead of 2140; with `c` of 1.2 MB there was no difference.)
const FAR_C: usize = 3 << 19;
/// Rows of `c` that are walked along together, the first where they are fetched, and the bytes each has at least:
/// narrower ones are a strip or two.
const ALONG: [usize; 2] = [16, 32];
const WIDE_C: usize = 512;

/// Rows of `c` up to which a strip of one vector is as slow as one of two.
const WAITING_ROWS: usize = 4;
/// Single products are lines of them, each for itself, if they are as many vectors long or so few. (On a Zen 5 2×1 · 1×1900 f32 took
/// 257 ns in tiles and takes 90, 2×1 · 1×100 f64 57 and 32.)
const LINE_VECTORS: usize = 8;
const FEW_LINES: usize = 2;

/// Computes `c = a · b` with no packing where `b` is near and its rows are contiguous, or where one
/// operand is only a few lines; otherwise `b` is copied strip by strip into the thread's scratch. Right
/// for every size, good for small ones.
///
/// # Safety
/// The CPU has `level`. `a`, `b` and `c` are valid at their shapes and strides; `c` overlaps neither
/// `a` nor `b`.
pub unsafe fn small<T: Float>(level: Level, g: &Gemm<T>) {
    let kernels = narrowed(T::kernels(level), g);
    // SAFETY: the caller's promise is the same.
    unsafe {
        let bytes = g.k * g.n * size_of::<T>();
        if g.k == 0 {
            g.zero_c();
        } else if g.k == 1 && g.b_cs == 1 && (g.m <= FEW_LINES || g.n >= LINE_VECTORS * kernels.lanes) {
            for row in 0..g.m as isize {
                (kernels.axpys)(&Lines {
                    from: g.b,
                    line: g.b_rs,
                    count: 1,
                    length: g.n,
                    x: g.a.offset(row * g.a_rs),
                    x_stride: g.a_cs,
                    out: g.c.offset(row * g.c_rs),
                    out_stride: 1,
                });
            }
        } else if let Some(kernels) = few(kernels, g) {
            Few::multiply(kernels, g);
        } else if g.b_cs == 1 && (bytes <= LARGE_B || g.m <= FEW_ROWS) {
            match bytes > FAR_B {
                true => Scratch::with_local(|scratch| from_afar(kernels, g, scratch)),
                false => direct(kernels, g),
            }
        } else {
            Scratch::with_local(|scratch| by_strips(kernels, g, scratch));
        }
    }
}

/// The kernels for a few rows of a few columns more than a vector: where halves take half as long, three of them take less than
/// two whole ones, which lie across cache lines. (3×80 · 80×17 f32 on a Zen 4: 181 ns by whole vectors, 148 by
/// halves; four rows of three halves do not fit the registers of AVX2, and take 450 where whole ones take 280.)
fn narrowed<'a, T: Float>(kernels: &'a Kernels<T>, g: &Gemm<T>) -> &'a Kernels<T> {
    match kernels.half {
        Some(half)
            if g.m < WAITING_ROWS
                && (half.lanes + 1..=3 * half.lanes).contains(&g.n)
                && g.n != kernels.lanes
                && halves_pay() =>
        {
            half
        }
        _ => kernels,
    }
}

/// The kernels for a product of long lines with a few, if it is one: lines too short for whole vectors may be
/// long enough for halves.
fn few<'a, T: Float>(kernels: &'a Kernels<T>, g: &Gemm<T>) -> Option<&'a Kernels<T>> {
    std::iter::once(kernels).chain(kernels.half).find(|kernels| Few::suits(kernels, g))
}

/// Whether rows of `a` fall on each other in the first-level cache: its ways lie 4 KiB apart.
fn aliased<T>(g: &Gemm<T>) -> bool {
    g.a_cs == 1 && (g.a_rs.unsigned_abs() * size_of::<T>()).is_multiple_of(4096)
}

/// Vectors in the next strip when `left` vectors remain: strips of two or three keep every register
/// busy, four are for too few rows to do so otherwise, or for rows that must not be many at a time.
#[inline(always)]
fn strip_vectors<T>(kernels: &Kernels<T>, rows: usize, left: usize, aliased: bool) -> usize {
    if kernels.tiles.len() >= 4 && left >= 4 && (rows <= 4 || aliased) {
        return 4;
    }
    match left {
        0..=3 => left,
        4 => 2,
        _ if rows <= kernels.max_rows(3) || left % 2 == 1 => 3,
        _ => 2,
    }
}

/// The kernels for the last columns and how many those are: none unless half a vector holds them and takes less time than
/// a whole one. (On a Xeon, where it does not, 67×172×24 f32 took 4.9 µs with a half and 4.4 without.) A few rows wait for
/// their sums, not for multipliers: there the last columns go along with the others. And part of a half is written in pieces,
/// part of a whole one at once, which is most of what few steps take. (59×2×7 f32 on a Zen 4: 151 ns in pieces, 121 at once;
/// 200×4×5 474 and 348.)
#[inline(always)]
fn half_vector<T>(kernels: &Kernels<T>, rows: usize, steps: usize, n: usize) -> (&Kernels<T>, usize) {
    let tail = n % kernels.lanes;
    match kernels.half {
        Some(half) if steps <= FEW_STEPS && !tail.is_multiple_of(half.lanes) => (kernels, 0),
        Some(half) if n <= half.lanes || tail <= half.lanes && rows > WAITING_ROWS && halves_pay() => {
            (half, tail)
        }
        _ => (kernels, 0),
    }
}

/// Bytes of `c` that stay near while `b` comes from afar.
const KEPT_C: usize = 256 << 10;

/// `b` comes from far away, a few of its rows at a time, and `c` is updated with each few: in memory of this thread, since the ends of
/// its rows lie beside those of another part, which are fetched along with them. (5×2415 · 2415×2228 f32 on two threads of a Zen 5
/// took 418 µs in place, 23×2472 · 2472×1337 1800.)
unsafe fn from_afar<T: Float>(kernels: &Kernels<T>, g: &Gemm<T>, scratch: &mut Scratch) {
    let line = LINE / size_of::<T>();
    let most = (KEPT_C / size_of::<T>() / g.m.max(1) / line).max(1) * line;
    // Columns as even as can be, and rows a line more than whole ones apart, so that they do not all fall into the same sets.
    let width = g.n.div_ceil(g.n.div_ceil(most)).next_multiple_of(line);
    let apart = width + line;
    let (kept, _) = scratch.pair::<T>(g.m * apart, 0);
    for from in (0..g.n).step_by(width) {
        let n = width.min(g.n - from);
        // SAFETY: columns of the caller's operands; the scratch holds m rows of as many.
        unsafe {
            let b = g.b.add(from);
            in_place(kernels, &Gemm { n, b, c: kept, c_rs: apart as isize, ..*g }, Far::B);
            for row in 0..g.m {
                let to = g.c.offset(row as isize * g.c_rs).add(from);
                std::ptr::copy_nonoverlapping(kept.add(row * apart), to, n);
            }
        }
    }
}

/// Which operand is not near, of a product with `b` in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Far {
    /// None.
    No,
    /// `b`: a few of its rows at a time.
    B,
    /// `c`, which is fetched before it is written.
    C,
    /// `c`, which is written in strips as wide as can be.
    WideC,
}

/// `b` in place.
unsafe fn direct<T: Float>(kernels: &Kernels<T>, g: &Gemm<T>) {
    let row = g.n * size_of::<T>();
    let writes = g.k <= FEW_STEPS && g.m * row > LARGE_C;
    let (rows, far) = match (writes, row >= WIDE_C) {
        (true, true) if along_pays() => (ALONG[0], Far::C),
        (true, true) => (g.m, Far::WideC),
        (true, false) => (g.m, Far::C),
        (false, true) if g.m * row > FAR_C => (ALONG[1], Far::No),
        _ => (g.m, Far::No),
    };
    // SAFETY: the caller's promise.
    unsafe { in_blocks(kernels, g, rows, far) };
}

/// Whether a `c` in no near cache is walked along, a few rows at a time and fetched before it is written, rather than down strips of
/// all its rows. Found out once, in 50 µs. (On a Xeon, along and down: 300×2×300 f32 9.5 and 13.7 µs, 130×4×500 8.3 and 11.8, 31×2×189 f64
/// 1.05 and 1.5, 500×7×500 f32 36 and 45. On a Zen 5, in strips of four vectors: 4.6 and 3.4, 4.2 and 3.0, 500×7×500 21 and 17,
/// 1680×2×421 43 and 33, and on two threads 21 and 16.)
fn along_pays() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let (m, k, n) = (96, 2, 250);
        let (a, b, mut c) = (vec![1f32; m * k], vec![1f32; k * n], vec![0f32; m * n]);
        let kernels = f32::kernels(Level::best());
        let g = Gemm::contiguous([m, k, n], a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        let mut best = [Duration::MAX; 2];
        for _ in 0..8 {
            for (best, (rows, far)) in best.iter_mut().zip([(ALONG[0], Far::C), (m, Far::WideC)]) {
                let started = Instant::now();
                // SAFETY: three vectors of these shapes, and the best level that there is.
                unsafe { in_blocks(kernels, &g, rows, far) };
                *best = started.elapsed().min(*best);
            }
        }
        best[0] < best[1]
    })
}

/// So many rows at a time at most, as evenly as can be: tiles of a row or two that were left over would add in another order, and
/// with it what is found out by time would change the last bits.
unsafe fn in_blocks<T: Float>(kernels: &Kernels<T>, g: &Gemm<T>, rows: usize, far: Far) {
    let blocks = g.m.div_ceil(rows.max(1));
    for i in 0..blocks {
        let (from, to) = (i * g.m / blocks, (i + 1) * g.m / blocks);
        let block = Gemm {
            m: to - from,
            a: g.a.wrapping_offset(from as isize * g.a_rs),
            c: g.c.wrapping_offset(from as isize * g.c_rs),
            ..*g
        };
        // SAFETY: rows of the caller's operands.
        unsafe { in_place(kernels, &block, far) };
    }
}

/// A block of rows with `b` in place.
unsafe fn in_place<T: Float>(kernels: &Kernels<T>, g: &Gemm<T>, far: Far) {
    let aliased = aliased(g);
    let block = if far == Far::B { STREAMS } else { g.k };
    // SAFETY: strips and blocks stay inside the operands.
    unsafe {
        for from in (0..g.k).step_by(block) {
            let mut tile = Tile {
                k: block.min(g.k - from),
                a: g.a.offset(from as isize * g.a_cs),
                a_rs: g.a_rs,
                a_cs: g.a_cs,
                b: g.b.offset(from as isize * g.b_rs),
                b_rs: g.b_rs,
                c: g.c,
                c_rs: g.c_rs,
                tail: 0,
                accumulate: from > 0,
                stream: false,
                fetch_c: far == Far::C,
            };
            let (half, last) = half_vector(kernels, g.m, g.k, g.n);
            let mut columns = g.n - last;
            if far == Far::B {
                let width = kernels.ahead_vectors * kernels.lanes;
                while columns >= width {
                    strip(kernels, &tile, g.m, kernels.ahead_vectors, width, true);
                    tile.b = tile.b.wrapping_add(width);
                    tile.c = tile.c.wrapping_add(width);
                    columns -= width;
                }
            }
            while columns > 0 {
                let left = columns.div_ceil(kernels.lanes);
                let nv = match far {
                    Far::WideC if kernels.tiles.len() >= 4 => left.min(4),
                    _ => strip_vectors(kernels, g.m, left, aliased),
                };
                let width = columns.min(nv * kernels.lanes);
                strip(kernels, &tile, g.m, nv, width, false);
                tile.b = tile.b.wrapping_add(width);
                tile.c = tile.c.wrapping_add(width);
                columns -= width;
            }
            if last > 0 {
                strip(half, &tile, g.m, 1, last, false);
            }
        }
    }
}

/// `b`'s columns are not contiguous, or far away and used often: copy a strip of them, then run over it.
unsafe fn by_strips<T: Float>(kernels: &Kernels<T>, g: &Gemm<T>, scratch: &mut Scratch) {
    let aliased = aliased(g);
    // SAFETY: strips stay inside the operands, the copy inside the scratch.
    unsafe {
        let widest = kernels.tiles.len() * kernels.lanes;
        let (copy, _) = scratch.pair::<T>(widest * g.k, 0);
        let mut from = 0;
        while from < g.n {
            let nv = strip_vectors(kernels, g.m, (g.n - from).div_ceil(kernels.lanes), aliased);
            let stride = nv * kernels.lanes;
            let width = stride.min(g.n - from);
            (kernels.pack)(&Panel {
                from: g.b.offset(from as isize * g.b_cs),
                item: g.b_cs,
                step: g.b_rs,
                width,
                steps: g.k,
                to: copy,
                stride,
            });
            let tile = Tile {
                k: g.k,
                a: g.a,
                a_rs: g.a_rs,
                a_cs: g.a_cs,
                b: copy,
                b_rs: stride as isize,
                c: g.c.add(from),
                c_rs: g.c_rs,
                tail: 0,
                accumulate: false,
                stream: false,
                fetch_c: false,
            };
            strip(kernels, &tile, g.m, nv, width, false);
            from += width;
        }
    }
}

/// All rows of one strip of `width` columns, in tiles as even as they can be. `ahead`: the first tile
/// fetches the strip that follows; the strip is then [`Kernels::ahead_vectors`] whole vectors.
#[inline(always)]
unsafe fn strip<T: Float>(
    kernels: &Kernels<T>,
    first: &Tile<T>,
    m: usize,
    nv: usize,
    width: usize,
    ahead: bool,
) {
    let mut tile = *first;
    tile.tail = width - (nv - 1) * kernels.lanes;
    let (unit, masked) = (tile.a_rs == 1, tile.tail < kernels.lanes);
    let mut tiles = m.div_ceil(kernels.max_rows(nv));
    let mut rows = m;
    while rows > 0 {
        let mr = rows.div_ceil(tiles);
        let run = if ahead && rows == m { kernels.ahead[mr - 1] } else { kernels.tile(mr, nv, unit, masked) };
        // SAFETY: mr rows of this strip remain.
        unsafe { run(&tile) };
        tile.a = tile.a.wrapping_offset(mr as isize * tile.a_rs);
        tile.c = tile.c.wrapping_offset(mr as isize * tile.c_rs);
        rows -= mr;
        tiles -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::naive;

    const SHAPES: [[usize; 3]; 9] = [
        [1, 1, 1],
        [3, 7, 90],
        [5, 6, 301],
        [16, 2, 130],
        [17, 3, 200],
        [33, 7, 67],
        [48, 2, 64],
        [40, 1, 141],
        [321, 7, 49],
    ];

    /// Numbers that are multiples of `unit`, multiplied by `how`.
    fn product([m, k, n]: [usize; 3], unit: f32, how: impl Fn(&Gemm<f32>)) -> Vec<f32> {
        let numbers = |count| (0..count).map(|i| ((i * 7 % 23) as f32 - 11.0) * unit).collect::<Vec<_>>();
        let (a, b, mut c) = (numbers(m * k), numbers(k * n), vec![f32::NAN; m * n]);
        how(&Gemm::contiguous([m, k, n], a.as_ptr(), b.as_ptr(), c.as_mut_ptr()));
        c
    }

    #[test]
    fn a_product_is_right_whichever_way_it_is_walked() {
        for (level, shape) in Level::present().flat_map(|level| SHAPES.map(|shape| (level, shape))) {
            // SAFETY: operands of this shape, and a level that is there.
            let expected = product(shape, 1.0, |g| unsafe { naive(g) });
            let m = shape[0];
            for (rows, far) in
                [(m, Far::No), (m, Far::B), (ALONG[0], Far::C), (m, Far::WideC), (5, Far::WideC)]
            {
                // SAFETY: the same.
                let c = product(shape, 1.0, |g| unsafe { in_blocks(f32::kernels(level), g, rows, far) });
                assert_eq!(c, expected, "{level:?} {shape:?} {rows} {far:?}");
            }
        }
    }

    #[test]
    fn what_is_found_out_by_time_changes_no_bit() {
        for (level, shape) in Level::present().flat_map(|level| SHAPES.map(|shape| (level, shape))) {
            let [along, down] = [(ALONG[0], Far::C), (shape[0], Far::WideC)].map(|(rows, far)| {
                // SAFETY: operands of this shape, and a level that is there.
                product(shape, 1.0 / 3.0, |g| unsafe { in_blocks(f32::kernels(level), g, rows, far) })
            });
            let bits = |c: Vec<f32>| c.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(along), bits(down), "{level:?} {shape:?}");
        }
    }
}
