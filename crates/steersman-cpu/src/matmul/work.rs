//! The work the kernels really do, for predicting their time.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::kernels::Tables;

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
