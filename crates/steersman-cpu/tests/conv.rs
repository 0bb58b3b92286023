//! Every kernel for convolutions, with every parameter it offers, gives what the definition gives.

#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod conformance;
#[path = "conformance/conv.rs"]
mod definition;

use conformance::lie;
use definition::{SHAPES, check, odd_numbers, operands};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use steersman_core::{DType, DeviceId, Kernel, Op, Operand, Workload};
use steersman_cpu::{context::Context, conv, host::Host, threads::Team};

static KERNELS: LazyLock<Vec<Arc<dyn Kernel>>> = LazyLock::new(|| {
    let team = Arc::new(Team::new(3));
    conv::kernels(&Context { device: DeviceId(0), team, host: Arc::new(Host::detect()) })
});

#[test]
fn shapes_of_every_kind_come_out_right() {
    for text in SHAPES {
        let w: Workload = text.parse().expect("well formed");
        let (x, f) = operands(&w, 7);
        let ran = check(&KERNELS, &w, &x, &f).unwrap_or_else(|e| panic!("{e}"));
        let least = if matches!(w.dtype(), DType::F32 | DType::F64) { 6 } else { 1 };
        assert!(ran >= least, "{text}: {ran} runs");
    }
}

#[test]
fn infinite_and_missing_numbers_reach_only_what_reads_them() {
    odd_numbers(&KERNELS);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_shape_and_layout(
        images in 0..3usize, channels in 0..5usize, filters in 0..7usize,
        size in (1..14usize, 1..40usize), taps in (1..5usize, 1..5usize),
        stride in 1..4u16, pad in 0..4u16,
        dtype in prop::sample::select(vec![DType::F32, DType::F64, DType::F16, DType::BF16]),
        lies in prop::collection::vec(lie(), 2),
        plain in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let shapes = [[images, channels, size.0, size.1], [filters, channels, taps.0, taps.1]];
        let operand = |k: usize| match plain {
            true => Operand::new(dtype, &shapes[k]).expect("small"),
            false => lies[k].operand(dtype, &shapes[k], true),
        };
        // A filter larger than the padded image is refused before it comes here.
        let Ok(w) = Workload::new(Op::Conv2d { stride, pad }, [operand(0), operand(1)]) else { return Ok(()) };
        let (x, f) = operands(&w, seed);
        prop_assert!(check(&KERNELS, &w, &x, &f).map_err(TestCaseError::fail)? > 0);
    }
}
