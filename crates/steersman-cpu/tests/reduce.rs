//! Every reduction kernel agrees with the scalar reference; see `conformance/bodies/reduce.rs`.

#[path = "conformance/bodies/reduce.rs"]
mod bodies;
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;

use conformance::Kernels;
use half::{bf16, f16};
use std::sync::{Arc, LazyLock};
use steersman_core::{DType, DeviceId, Kernel, ReduceOp, Workload};
use steersman_cpu::{context::Context, host::Host, reduce, threads::Team};

static KERNELS: Kernels = LazyLock::new(|| {
    let team = Arc::new(Team::new(3));
    Some(reduce::kernels(&Context { device: DeviceId(0), team, host: Arc::new(Host::detect()) }))
});

const LONG: &[&str] = &["300011", "200x2003 axis=1", "200000x3 axis=0", "600x700 axis=0", "30x300x70 axis=1"];

static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    kernels: &KERNELS,
    bound,
    beside_an_offset: 1e-9,
    // They square in the type they sum in.
    norms_scale: false,
    // Not only the reference.
    least: |_| 2,
    shapes: |_| &["1", "5", "16", "517", "70x33 axis=0", "70x33 axis=1", "9x4x21 axis=1", "9x4x21 axis=0,2"],
    long: LONG,
    long_one_in: 1,
    rows: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 24, 25, 31, 48, 49],
    row_counts: &[1, 2, 7, 16, 103],
    row_types: &DType::ALL,
    special_types: &[DType::F32, DType::F64, DType::F16, DType::BF16],
    special_shapes: &["40", "300", "5000", "40x40 axis=0", "40x40 axis=1", "600x4 axis=1", "40x20 axis=1"],
    special_places: &[[0, 200], [17, 217], [39, 239], [17, 39]],
    cases: 300,
    cases_one_in: 1,
};

fn bound(kind: ReduceOp, dtype: DType, n: f64, most: f64, want: f64) -> f64 {
    let inside = if dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let last = match dtype {
        DType::F16 => f16::EPSILON.to_f64(),
        DType::BF16 => bf16::EPSILON.to_f64(),
        _ => inside,
    };
    last * want.abs()
        + match kind {
            ReduceOp::Sum => 32.0 * inside * n * most,
            ReduceOp::Mean => 32.0 * inside * most,
            ReduceOp::Norm => 32.0 * inside * want.abs(),
            ReduceOp::Prod => n * f64::EPSILON * want.abs() + f64::MIN_POSITIVE,
            ReduceOp::Var => 64.0 * f64::EPSILON * most * most,
            ReduceOp::Std => (64.0 * f64::EPSILON).sqrt() * most * f64::EPSILON.sqrt() + 1e-12 * want.abs(),
            _ => 0.0,
        }
}

fn kernels() -> &'static [Arc<dyn Kernel>] {
    KERNELS.as_ref().expect("there is always a CPU")
}

#[test]
fn long_reductions_are_offered_to_several_threads() {
    for (kind, dtype) in ReduceOp::ALL.iter().flat_map(|k| DType::ALL.map(|d| (*k, d))) {
        for shape in LONG.iter().filter(|_| kind.takes(dtype)) {
            let w: Workload = format!("{} {dtype} {shape}", kind.name()).parse().expect("a workload");
            let split = kernels().iter().any(|k| k.supports(&w).is_ok() && k.params(&w).len() > 1);
            assert!(split, "{w} is not split");
        }
    }
}

#[test]
fn rows_and_columns_are_told_apart_with_a_reason() {
    let of = |text: &str| -> Workload { text.parse().expect("a workload") };
    let (rows, columns) = (of("sum f32 8x8 axis=1"), of("sum f32 8x8 axis=0"));
    for k in kernels().iter().filter(|k| k.name() != "cpu/reduce-scalar") {
        let (taken, refused) = if k.name().contains("rows") { (&rows, &columns) } else { (&columns, &rows) };
        assert!(k.supports(taken).is_ok(), "{} refuses {taken}", k.name());
        let why = k.supports(refused).expect_err("the other kernel's");
        assert!(why.0.contains("innermost axis"), "{} takes {refused}", k.name());
    }
}
