//! Cutting a product into parts that can run at the same time.

use super::Gemm;
use crate::threads::Team;
use steersman_core::Ran;

/// A tile's worth of columns: strips are whole tiles.
const GRAIN: usize = 16;

/// Entries of a batch for each thread from which they are shared out uncut even if unevenly.
const PLENTY: usize = 4;

/// How products are cut for several threads.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    pub threads: usize,
    pub walk: Walk,
    /// Whether the first of several parts may be computed from its last row to its first, away from the second. What is fetched
    /// ahead at its end are else rows that the other thread writes. (Packed on a Zen 5, two threads: 143×2 · 2×1040 f32 took 6.4 µs
    /// and takes 4.5, 500×5 · 5×120 7.9 and 4.2, 200×12 · 12×700 9.5 and 9.1. Unpacked on a Zen 4, in turns, 423×23 · 23×122 takes
    /// 0.96 of what it took, 475×48 · 48×135 f64 0.95, 244×40 · 40×955 0.94, 100³ 0.96, 867×8 · 8×2468 1.00.)
    pub upwards: bool,
}

/// Runs `one` on a batch of products with so many threads: each takes whole entries where those can be shared out, which
/// costs one hand-off for all; otherwise every entry is [`split`]. `entry` has the product of an entry, `one` is given
/// an entry's number and its product or a part of it.
pub(crate) fn shared_out<T: Send + Sync>(
    team: &Team,
    batch: usize,
    Cut { threads, walk, upwards }: Cut,
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
        let mut parts: Vec<Gemm<T>> = split(&entry(b), threads, GRAIN, walk).collect();
        if let [first, second, ..] = &mut parts[..]
            && upwards
            && second.a != first.a
        {
            *first = first.upwards();
        }
        if ran(parts.len(), &|i| one(b, &parts[i])) != Ran::Clean {
            worst = Ran::Disturbed;
        }
    }
    worst
}

/// Which way a kernel goes through `c`. What is fetched ahead of it at the end of a part is the next part's, and taken from
/// the core that wrote it: that costs most between two cache domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// A few rows at a time, from their first column to their last.
    Along,
    /// A few columns at a time, from their first row to their last.
    Down,
}

/// Multiplications and additions a second, of bytes: what a core does of f32 and f64 alike.
const BYTES_MULTIPLIED: f64 = 200e9;
/// What starting and ending an element of `c` takes, in multiplications.
const ENDS: usize = 8;
/// Bytes of an operand read a second that another part reads too.
const BYTES_READ: f64 = 60e9;
/// Rows and bytes of columns that a kernel makes at a time, about.
const TALL: usize = 14;
const WIDE: usize = 192;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Seconds of a cache line of `c` that two parts write: it goes back and forth between their cores. Between those of
/// two cache domains it takes 0.3 µs (25×7 · 7×494 cut along its columns took 9.5 µs there, and 1.7 in one domain).
const SHARED_LINE: f64 = 0.2e-6;

/// Seconds that parts take longer which meet in every one of so many rows, in lines of their own. (143×2 · 2×1040 cut
/// along its columns took 30 µs by the packed kernel, which walks along, and 13 uncut.)
fn meeting_in_rows(walk: Walk, rows: usize) -> f64 {
    match walk {
        Walk::Along => 0.1e-6 * rows as f64,
        Walk::Down => 0.8e-6 + 0.01e-6 * rows as f64,
    }
}

/// Seconds that parts of so many rows take longer which meet in so many tiles. (The same product cut along its rows took
/// 13 µs by the small kernel, which walks down, and 5 cut along its columns; of 16 to 100 rows, with parts of half as
/// many, most were quicker by a fifth or a third when rows were cut.)
fn meeting_in_columns(walk: Walk, rows: usize, tiles: usize) -> f64 {
    match walk {
        Walk::Down if rows > 4 * TALL => 0.3e-6 * tiles as f64,
        Walk::Down => 0.01e-6 * tiles as f64,
        Walk::Along => 0.0,
    }
}

/// Cuts `g` into at most `parts` products that write disjoint pieces of `c`: strips of rows or of
/// columns, whichever is thought to take less. Rows are cut as evenly as can be, since there is a tile for every number
/// of them, and read all of `b` in each part; strips of columns read all of `a`, are multiples of `grain` (16 keeps
/// them on whole vectors and cache lines) but for the last, and where the rows of `c` are not aligned, two of them
/// write to one cache line in each row.
pub fn split<T>(
    g: &Gemm<T>,
    parts: usize,
    grain: usize,
    walk: Walk,
) -> impl Iterator<Item = Gemm<T>> + use<T> {
    let g = Gemm { ..*g };
    let parts = parts.max(1);
    let by_rows = is_cut_by_rows(&g, parts, grain, walk);
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

fn is_cut_by_rows<T>(g: &Gemm<T>, parts: usize, grain: usize, walk: Walk) -> bool {
    let size = size_of::<T>();
    let wide = WIDE / size;
    let time = |m: usize, n: usize| {
        // Tiles that are walked along are all as tall; the others are made for what there is.
        let made = if walk == Walk::Along { m.next_multiple_of(TALL) } else { m };
        let multiplied = (made * n * (g.k + ENDS) * size) as f64 / BYTES_MULTIPLIED;
        let read = ((m + n) * g.k * size) as f64 / BYTES_READ;
        multiplied + read
    };
    let aligned = (g.c as usize).is_multiple_of(LINE)
        && (g.c_rs.unsigned_abs() * size).is_multiple_of(LINE)
        && (grain * size).is_multiple_of(LINE);
    let (rows, columns) = (strip(g.m, parts, 1), strip(g.n, parts, grain));
    let by_rows = SHARED_LINE + meeting_in_columns(walk, rows, g.n.div_ceil(wide));
    let by_columns = if aligned { meeting_in_rows(walk, g.m) } else { g.m as f64 * SHARED_LINE };
    time(rows, g.n) + by_rows <= time(g.m, columns) + by_columns
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows and columns of the first of two parts.
    fn first(walk: Walk, m: usize, k: usize, n: usize) -> (usize, usize) {
        let (a, c) = (std::ptr::null::<f32>(), std::ptr::null_mut::<f32>());
        let g = Gemm::contiguous([m, k, n], a, a, c);
        let part = split(&g, 2, 16, walk).next().unwrap();
        (part.m, part.n)
    }

    #[test]
    fn rows_are_cut_where_columns_would_share_cache_lines_and_columns_where_rows_would_read_all_of_b() {
        for walk in [Walk::Along, Walk::Down] {
            let first = |m, k, n| first(walk, m, k, n);
            assert_eq!(first(25, 7, 494), (13, 494));
            assert_eq!(first(1043, 13, 447), (522, 447));
            assert_eq!(first(2, 238, 1131), (2, 576));
            assert_eq!(first(8, 4096, 4096), (8, 2048));
            assert_eq!(first(1, 100, 1000), (1, 512));
            assert_eq!(first(1000, 100, 1), (500, 1));
        }
    }

    #[test]
    fn parts_meet_where_few_lines_are_fetched_ahead() {
        assert_eq!(first(Walk::Along, 143, 2, 1040), (72, 1040));
        assert_eq!(first(Walk::Down, 143, 2, 1040), (143, 528));
        assert_eq!(first(Walk::Along, 143, 9, 2080), (72, 2080));
        assert_eq!(first(Walk::Down, 143, 9, 2080), (143, 1040));
        assert_eq!(first(Walk::Down, 25, 7, 480), (13, 480));
        assert_eq!(first(Walk::Down, 35, 4, 1232), (18, 1232));
        assert_eq!(first(Walk::Down, 250, 30, 480), (250, 240));
        assert_eq!(first(Walk::Along, 40, 500, 256), (40, 128), "20 rows are two tiles of 10");
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
            let cut = Cut { threads, walk: Walk::Down, upwards: batch % 2 == 1 };
            shared_out(&Team::new(threads), batch, cut, entry, |b, g| {
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
