//! Cutting a product into parts that can run at the same time.

use super::Gemm;
use crate::threads::Team;
use steersman_core::Ran;

/// A tile's worth of columns: strips are whole tiles.
const GRAIN: usize = 16;

/// Entries of a batch for each thread from which they are shared out uncut even if unevenly.
const PLENTY: usize = 4;

/// Runs `one` on a batch of products with so many threads: each takes whole entries where those can be shared out, which
/// costs one hand-off for all; otherwise every entry is [`split`]. `entry` has the product of an entry, `one` is given
/// an entry's number and its product or a part of it.
pub(crate) fn shared_out<T: Send + Sync>(
    team: &Team,
    (batch, threads): (usize, usize),
    entry: impl Fn(usize) -> Gemm<T> + Sync,
    one: impl Fn(usize, &Gemm<T>) + Sync,
) -> Ran {
    let whole = |b: usize| one(b, &entry(b));
    if threads <= 1 {
        (0..batch).for_each(whole);
        return Ran::Clean;
    }
    let ran = |parts: usize, body: &(dyn Fn(usize) + Sync)| match team.run(parts, body).is_parallel() {
        false if parts > 1 => Ran::Disturbed,
        _ => Ran::Clean,
    };
    if batch > 1 && (batch.is_multiple_of(threads) || batch >= PLENTY * threads) {
        let parts = threads.min(batch);
        return ran(parts, &|i| (i * batch / parts..(i + 1) * batch / parts).for_each(whole));
    }
    let mut worst = Ran::Clean;
    for b in 0..batch {
        let parts: Vec<Gemm<T>> = split(&entry(b), threads, GRAIN).collect();
        if ran(parts.len(), &|i| one(b, &parts[i])) != Ran::Clean {
            worst = Ran::Disturbed;
        }
    }
    worst
}

/// Multiplications and additions a second, of bytes: what a core does of f32 and f64 alike.
const BYTES_MULTIPLIED: f64 = 200e9;
/// What starting and ending an element of `c` takes, in multiplications.
const ENDS: usize = 8;
/// Bytes of an operand read a second that another part reads too.
const BYTES_READ: f64 = 60e9;
/// Seconds of a cache line of `c` that two parts write: it goes back and forth between their cores. Between those of
/// two cache domains it takes 0.3 µs (25×7 · 7×494 cut along its columns took 9.5 µs there, and 1.7 in one domain).
const SHARED_LINE: f64 = 0.2e-6;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Cuts `g` into at most `parts` products that write disjoint pieces of `c`: strips of rows or of
/// columns, whichever is thought to take less. Rows are cut as evenly as can be, since there is a tile for every number
/// of them, and read all of `b` in each part; strips of columns read all of `a`, are multiples of `grain` (16 keeps
/// them on whole vectors and cache lines) but for the last, and where the rows of `c` are not aligned, two of them
/// write to one cache line in each row.
pub fn split<T>(g: &Gemm<T>, parts: usize, grain: usize) -> impl Iterator<Item = Gemm<T>> + use<T> {
    let g = Gemm { ..*g };
    let parts = parts.max(1);
    let by_rows = is_cut_by_rows(&g, parts, grain);
    let (length, grain) = if by_rows { (g.m, 1) } else { (g.n, grain) };
    let strip = strip(length, parts, grain);
    (0..length).step_by(strip.max(1)).map(move |at| {
        let size = strip.min(length - at);
        let at = at as isize;
        if by_rows {
            let (a, c) = (g.a.wrapping_offset(at * g.a_rs), g.c.wrapping_offset(at * g.c_rs));
            Gemm { m: size, a, c, ..g }
        } else {
            let (b, c) = (g.b.wrapping_offset(at * g.b_cs), g.c.wrapping_offset(at));
            Gemm { n: size, b, c, ..g }
        }
    })
}

fn strip(length: usize, parts: usize, grain: usize) -> usize {
    length.div_ceil(parts).next_multiple_of(grain.max(1)).min(length)
}

fn is_cut_by_rows<T>(g: &Gemm<T>, parts: usize, grain: usize) -> bool {
    let size = size_of::<T>();
    let time = |m: usize, n: usize, shared: usize| {
        let multiplied = (m * n * (g.k + ENDS) * size) as f64 / BYTES_MULTIPLIED;
        let read = ((m + n) * g.k * size) as f64 / BYTES_READ;
        multiplied + read + shared as f64 * SHARED_LINE
    };
    let aligned = (g.c as usize).is_multiple_of(LINE)
        && (g.c_rs.unsigned_abs() * size).is_multiple_of(LINE)
        && (grain * size).is_multiple_of(LINE);
    time(strip(g.m, parts, 1), g.n, 1) <= time(g.m, strip(g.n, parts, grain), if aligned { 0 } else { g.m })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows and columns of the first of two parts.
    fn first(m: usize, k: usize, n: usize) -> (usize, usize) {
        let (a, c) = (std::ptr::null::<f32>(), std::ptr::null_mut::<f32>());
        let strides = (k as isize, n as isize);
        let g =
            Gemm { m, k, n, a, a_rs: strides.0, a_cs: 1, b: a, b_rs: strides.1, b_cs: 1, c, c_rs: strides.1 };
        let part = split(&g, 2, 16).next().unwrap();
        (part.m, part.n)
    }

    #[test]
    fn rows_are_cut_where_columns_would_share_cache_lines_and_columns_where_rows_would_read_all_of_b() {
        assert_eq!(first(25, 7, 494), (13, 494));
        assert_eq!(first(1043, 13, 447), (522, 447));
        assert_eq!(first(2, 238, 1131), (2, 576));
        assert_eq!(first(8, 4096, 4096), (8, 2048));
        assert_eq!(first(1, 100, 1000), (1, 512));
        assert_eq!(first(1000, 100, 1), (500, 1));
    }

    #[test]
    fn every_element_of_a_batch_is_made_once_however_it_is_shared_out() {
        let (m, n) = (5, 33);
        for (batch, threads) in [(0, 2), (1, 2), (2, 2), (3, 2), (8, 2), (9, 2), (3, 3), (4, 3), (5, 1)] {
            let mut made = vec![0u32; batch * m * n];
            let c = made.as_mut_ptr() as usize;
            let entry = |b: usize| {
                let c = (c as *mut u32).wrapping_add(b * m * n);
                Gemm {
                    m,
                    k: 1,
                    n,
                    a: std::ptr::null(),
                    a_rs: 0,
                    a_cs: 0,
                    b: std::ptr::null(),
                    b_rs: 0,
                    b_cs: 0,
                    c,
                    c_rs: n as isize,
                }
            };
            shared_out(&Team::new(threads), (batch, threads), entry, |b, g| {
                for (i, j) in (0..g.m).flat_map(|i| (0..g.n).map(move |j| (i, j))) {
                    // SAFETY: a part lies inside its entry.
                    unsafe { *g.c.offset(i as isize * g.c_rs + j as isize) += 1 + b as u32 };
                }
            });
            for (i, made) in made.iter().enumerate() {
                assert_eq!(*made, 1 + (i / (m * n)) as u32, "{batch} entries, {threads} threads");
            }
        }
    }
}
