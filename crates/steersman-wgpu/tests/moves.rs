//! Every kernel for moves writes what the scalar reference of the CPU writes, bit for bit.

#[path = "../../steersman-cpu/tests/conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the CPU's tests")]
mod conformance;
mod hosted;

use conformance::{Allowed, Memory, Random, check, lie, shape};
use hosted::put;
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use steersman_core::{DType, Kernel, Op, Operand, Perm, Workload};
use steersman_cpu::moves;

static KERNELS: LazyLock<Option<Vec<Arc<dyn Kernel>>>> =
    LazyLock::new(|| hosted::with_reference(moves::kernels(&hosted::cpu()), 64));

/// Any bits at all, also those that are no number.
fn any_bits(w: &Workload, seed: u64) -> Vec<Memory> {
    let mut random = Random::new(seed);
    let mut memory = Memory::marked(&w.inputs()[0]);
    let bool_ = w.dtype() == DType::Bool;
    put(&w.inputs()[0], memory.address_mut(), |_| if bool_ { random.next() >> 63 } else { random.next() });
    vec![memory]
}

fn agree(w: &Workload, seed: u64) -> Result<(), String> {
    let Some(kernels) = &*KERNELS else { return Ok(()) };
    check(kernels, w, &any_bits(w, seed), &Allowed { ulps: 0.0, terms: &|_| 0.0 })
}

#[test]
fn every_type_is_copied_and_transposed() {
    for d in DType::ALL {
        for text in
            ["copy {} 1000", "copy {} 1", "copy {} 0", "transpose {} 37x21", "transpose {} 4x5x6 perm=0,2,1"]
        {
            let w: Workload = text.replace("{}", d.name()).parse().expect("a workload");
            agree(&w, 5).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn large_matrices_and_batches_are_transposed_in_tiles() {
    let Some(kernels) = &*KERNELS else { return };
    for text in [
        "transpose f32 300x211",
        "transpose f64 130x70",
        "transpose f32 3x65x67 perm=0,2,1",
        "transpose f32 9x20x31 perm=2,1,0",
    ] {
        let w: Workload = text.parse().expect("a workload");
        let tiled = kernels.iter().find(|k| k.name().ends_with("tiled")).expect("such a kernel");
        assert!(tiled.supports(&w).is_ok(), "{text}");
        agree(&w, 6).unwrap_or_else(|e| panic!("{e}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]
    #[test]
    fn any_order_and_layout(
        dims in shape(),
        lies in prop::collection::vec(lie(), 2),
        d in prop::sample::select(vec![DType::F32, DType::F64, DType::F16, DType::Bool]),
        order in prop::collection::vec(any::<u32>(), 4),
        seed in any::<u64>(),
    ) {
        let mut axes: Vec<usize> = (0..dims.len()).collect();
        axes.sort_by_key(|i| order[*i]);
        let op = if dims.is_empty() { Op::Copy } else { Op::Transpose { perm: Perm::from_list(&axes).expect("all axes") } };
        let w = Workload::new(op, [lies[0].operand(d, &dims, true)]).expect("a workload");
        let out: Operand = lies[1].operand(d, &w.output().dims, false);
        let w = w.with_output(out).expect("the same shape");
        agree(&w, seed).map_err(TestCaseError::fail)?;
    }
}
