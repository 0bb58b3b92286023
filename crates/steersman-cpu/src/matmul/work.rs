//! The work the kernels really do, for predicting their time.

use super::few::few_columns;
use super::small::FEW_STEPS;
use super::tile::sets;
use crate::isa::Level;
use crate::probe::halves_pay;

/// Floating-point operations that [`super::small`] and [`super::packed`] execute for an `m×k · k×n`
/// product of `dtype`-byte elements: the lanes past the last column count, rows are never padded
/// (there is a tile for every number of rows). AVX-512 ends a row with half a vector if that is enough and
/// [takes less](halves_pay); only `packed` does not, which is half a vector more in a row of many.
///
/// ```
/// use steersman_cpu::isa::Level;
/// use steersman_cpu::matmul::padded_flops;
/// // Four f32 lanes in a baseline vector: 10 columns cost as much as 12.
/// assert_eq!(padded_flops(Level::Baseline, 4, 10, 10, 10), 2.0 * 10.0 * 10.0 * 12.0);
/// ```
pub fn padded_flops(level: Level, dtype: usize, m: usize, k: usize, n: usize) -> f64 {
    // Lanes are powers of two: no division, on the way of every estimate.
    let lanes = level.vector_bytes() / if dtype == 8 { 8 } else { 4 };
    let half = if level == Level::Avx512 { lanes / 2 } else { lanes };
    let unit = if n <= half || n & (lanes - 1) <= half && halves_pay() { half } else { lanes };
    let columns = (n + unit - 1) & !(unit - 1);
    2.0 * m as f64 * k as f64 * columns as f64
}

/// What [`super::small`] does with a product, in multiply-adds of one vector.
pub(super) struct Effort {
    /// Whose vectors they are.
    pub level: Level,
    /// Steps of `k` in tiles or dot products, each as long as the multiply-adds it waits for.
    pub multiply_adds: f64,
    /// Tiles, or groups of dot products, each with a beginning and an end.
    pub tiles: f64,
}

/// Rows of the highest tiles of one, two and three vectors.
fn highest(level: Level) -> [usize; 3] {
    match level {
        Level::Baseline => [12, 6, 4],
        Level::Avx2 => [12, 6, 3],
        Level::Avx512 => [16, 14, 9],
    }
}

/// Multiply-adds that are begun before the first is done: fewer sums than that wait for each other.
fn under_way(level: Level) -> f64 {
    match level {
        Level::Baseline => 4.0,
        Level::Avx512 if halves_pay() => 4.0,
        Level::Avx2 | Level::Avx512 => 8.0,
    }
}

impl Effort {
    /// Of an `m×k · k×n` product of `size`-byte elements; none where one of these is 0. (Counted in flops alone, 657 products on a
    /// Xeon were a third off, by the median 28%; so a quarter and 15%: a row or two of sums wait for each other.)
    pub(super) fn of(level: Level, size: usize, m: usize, k: usize, n: usize) -> Effort {
        let lanes = |level: Level| level.vector_bytes() / if size == 8 { 8 } else { 4 };
        let half = if level == Level::Avx512 { Level::Avx2 } else { level };
        if let Some(level) = [level, half].into_iter().find(|l| few_columns(lanes(*l), m, k, n)) {
            let dots = (m * n) as f64;
            let steps = (k + lanes(level) - 1) >> lanes(level).trailing_zeros();
            return Effort { level, multiply_adds: 2.0 * dots * steps as f64, tiles: dots / 3.0 };
        }
        let level = if n < lanes(half) && k > FEW_STEPS || n == lanes(half) { half } else { level };
        let vectors = (n + lanes(level) - 1) >> lanes(level).trailing_zeros();
        let [one, two, three] = highest(level);
        let (down, across) = match vectors {
            0 | 1 => (m.div_ceil(one), vectors),
            _ if m <= three => (1, vectors.div_ceil(3)),
            _ => (m.div_ceil(two), vectors.div_ceil(2)),
        };
        let tiles = (down * across) as f64;
        let sums = (m * vectors) as f64 / tiles;
        let each = sums.max(under_way(level) / sets(sums.ceil() as usize, level.vector_bytes()) as f64);
        Effort { level, multiply_adds: tiles * each * k as f64, tiles }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::kernels::Tables;

    #[test]
    fn tiles_are_as_high_as_the_kernels_have_them() {
        fn check<T: Tables>() {
            for level in Level::present() {
                assert_eq!(highest(level), [1, 2, 3].map(|nv| T::table(level).max_rows(nv)), "{level:?}");
            }
        }
        check::<f32>();
        check::<f64>();
    }

    #[test]
    fn few_sums_wait_for_each_other_and_more_do_not() {
        let of = |m, n| Effort::of(Level::Avx2, 4, m, 10, n);
        // Five rows of one vector take as long as eight; one or two have several sets of sums.
        assert_eq!((of(5, 8).multiply_adds, of(5, 8).tiles), (80.0, 1.0));
        assert_eq!([of(1, 8), of(2, 8), of(3, 8)].map(|e| e.multiply_adds), [20.0, 20.0, 40.0]);
        assert_eq!(of(8, 8).multiply_adds, 80.0);
        assert_eq!(of(12, 8).multiply_adds, 120.0);
        // Two tiles of six rows and two vectors.
        assert_eq!((of(12, 16).multiply_adds, of(12, 16).tiles), (240.0, 2.0));
        for (m, k, n) in [(0, 5, 5), (5, 0, 5), (5, 5, 0), (0, 0, 0), (0, 800, 1)] {
            assert_eq!(Effort::of(Level::Avx2, 4, m, k, n).multiply_adds, 0.0, "{m}×{k}×{n}");
        }
        // Long rows times a column are dot products, all lanes at once.
        let dots = Effort::of(Level::Avx2, 4, 100, 800, 1);
        assert_eq!((dots.multiply_adds, dots.tiles), (20_000.0, 100.0 / 3.0));
    }

    #[test]
    fn lanes_are_those_of_the_kernels() {
        fn check<T: Tables>(size: usize) {
            for level in Level::present() {
                let kernels = T::table(level);
                for n in 1..70 {
                    let columns = match kernels.half {
                        Some(half) if n <= half.lanes => half.lanes,
                        Some(half) if n % kernels.lanes <= half.lanes && halves_pay() => {
                            n.next_multiple_of(half.lanes)
                        }
                        _ => n.next_multiple_of(kernels.lanes),
                    };
                    assert_eq!(padded_flops(level, size, 1, 1, n), 2.0 * columns as f64, "{level:?} {n}");
                }
            }
        }
        check::<f32>(4);
        check::<f64>(8);
    }
}
