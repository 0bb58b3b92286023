//! The work the kernels really do, for predicting their time.

use super::kernels::Tables;
use crate::isa::Level;

/// Floating-point operations that [`super::small`] and [`super::packed`] execute for an `m×k · k×n`
/// product of `dtype`-byte elements: the lanes past the last column count, rows are never padded
/// (there is a tile for every number of rows). AVX-512 ends a row with half a vector if that is enough;
/// only `packed` does not, which is half a vector more in a row of many.
///
/// ```
/// use steersman_cpu::isa::Level;
/// use steersman_cpu::matmul::padded_flops;
/// // Four f32 lanes in a baseline vector: 10 columns cost as much as 12.
/// assert_eq!(padded_flops(Level::Baseline, 4, 10, 10, 10), 2.0 * 10.0 * 10.0 * 12.0);
/// ```
pub fn padded_flops(level: Level, dtype: usize, m: usize, k: usize, n: usize) -> f64 {
    fn columns<T: Tables>(level: Level, n: usize) -> usize {
        let kernels = T::table(level);
        match kernels.half {
            Some(half) if n % kernels.lanes <= half.lanes => n.next_multiple_of(half.lanes),
            _ => n.next_multiple_of(kernels.lanes),
        }
    }
    let columns = if dtype == 8 { columns::<f64>(level, n) } else { columns::<f32>(level, n) };
    2.0 * m as f64 * k as f64 * columns as f64
}
