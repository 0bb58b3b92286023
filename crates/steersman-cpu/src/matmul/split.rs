//! Cutting a product into parts that can run at the same time.

use super::Gemm;

/// Cuts `g` into at most `parts` products that write disjoint pieces of `c`: strips of rows or of
/// columns, whichever is cut more evenly (rows when equal: a strip of rows is contiguous in `c`).
///
/// Every strip but the last is a multiple of `grain` rows or columns: 16 keeps columns on whole vectors
/// and cache lines; rows need no more, because there is a tile for every number of rows.
pub fn split<T>(g: &Gemm<T>, parts: usize, grain: usize) -> impl Iterator<Item = Gemm<T>> + use<T> {
    let g = Gemm { ..*g };
    let grain = grain.max(1);
    let parts = parts.max(1);
    let strip = move |length: usize| length.div_ceil(parts).next_multiple_of(grain);
    let longest = move |length: usize| strip(length).min(length) as f64 / length.max(1) as f64;
    let by_rows = longest(g.m) <= longest(g.n);
    let length = if by_rows { g.m } else { g.n };
    (0..length).step_by(strip(length).max(1)).map(move |at| {
        let size = strip(length).min(length - at);
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
