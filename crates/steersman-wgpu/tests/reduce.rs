//! Every reduction kernel of the device agrees with the scalar reference of the CPU; see
//! `conformance/bodies/reduce.rs` of the CPU's tests.

#[path = "../../steersman-cpu/tests/conformance/bodies/reduce.rs"]
mod bodies;
#[path = "../../steersman-cpu/tests/conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;
mod hosted;

use conformance::Kernels;
use std::sync::LazyLock;
use steersman_core::{DType, ReduceOp};
use steersman_cpu::reduce;

static KERNELS: Kernels = LazyLock::new(|| hosted::with_reference(reduce::kernels(&hosted::cpu()), 64));

/// Compiling takes the time here: all layouts for one type.
static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    kernels: &KERNELS,
    bound,
    beside_an_offset: 1e-4,
    norms_scale: true,
    // Three of its own beside the reference, where it computes in this type at all.
    least: |d| if matches!(d, DType::I64 | DType::F64 | DType::BF16) { 1 } else { 4 },
    shapes: |d| match d {
        DType::F32 => &["517", "9x4x21 axis=0,2"],
        DType::BF16 => &[],
        _ => &["70x9 axis=0"],
    },
    long: &["20011", "200x203 axis=1", "9000x3 axis=0"],
    long_one_in: 23,
    rows: &[3, 16],
    row_counts: &[103],
    row_types: &[DType::F32, DType::U32],
    special_types: &[DType::F32],
    special_shapes: &["40", "5000"],
    special_places: &[[17, 39]],
    cases: 30,
    cases_one_in: 7,
};

/// Single precision inside, but for f64.
fn bound(kind: ReduceOp, dtype: DType, n: f64, most: f64, want: f64) -> f64 {
    let inside = if dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let last = match dtype {
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        _ => inside,
    };
    last * want.abs()
        + match kind {
            ReduceOp::Sum => 32.0 * inside * n * most,
            ReduceOp::Mean => 32.0 * inside * most,
            ReduceOp::Norm => 32.0 * inside * want.abs(),
            ReduceOp::Prod => 2.0 * n * inside * want.abs() + f64::from(f32::MIN_POSITIVE),
            ReduceOp::Var => 64.0 * inside * most * most,
            ReduceOp::Std => 80.0 * inside * most,
            _ => 0.0,
        }
}
