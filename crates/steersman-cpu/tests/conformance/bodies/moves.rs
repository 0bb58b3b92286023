//! Every kernel for moves, with every parameter it offers, writes what the definition says, bit for bit.

use crate::UNDER_TEST;
use crate::conformance::{Kernels, Memory, Random, lie, run, shape};
use proptest::prelude::*;
use steersman_core::{DType, Op, Perm, Workload};

/// What a test file says of its device.
pub struct UnderTest {
    pub kernels: &'static Kernels,
    /// Workloads large enough for more than one worker.
    pub large: &'static [&'static str],
    /// Types of random layouts, and how many of those.
    pub types: &'static [DType],
    pub cases: u32,
}

/// The bits of every element of the result, from the definition.
fn expected(w: &Workload, x: &Memory) -> Vec<u64> {
    let (input, output) = (&w.inputs()[0], w.output());
    let elements: Vec<u64> = x.elements(input).collect();
    let steps: Vec<usize> = (0..input.rank()).map(|i| input.dims[i + 1..].iter().product()).collect();
    let from = |mut i: usize| {
        let mut at = 0;
        for axis in (0..output.rank()).rev() {
            let own = match w.op() {
                Op::Transpose { perm } => perm.get(axis),
                _ => axis,
            };
            at += i % output.dims[axis] * steps[own];
            i /= output.dims[axis];
        }
        elements[at]
    };
    (0..output.elements()).map(from).collect()
}

/// Runs every kernel that takes the workload, on any bits at all, also those that are no number.
fn agree(w: &Workload, seed: u64) -> Result<(), String> {
    let Some(kernels) = &**UNDER_TEST.kernels else { return Ok(()) };
    let mut random = Random::new(seed);
    let flags = w.dtype() == DType::Bool;
    let x = Memory::filled(&w.inputs()[0], || if flags { random.next() >> 63 } else { random.next() });
    let want = expected(w, &x);
    let mut ran = 0;
    for k in kernels.iter().filter(|k| k.supports(w).is_ok()) {
        for p in k.space(w) {
            let got = run(&**k, w, p, std::slice::from_ref(&x))?;
            if let Some(i) = got.elements(w.output()).zip(&want).position(|(g, e)| g != *e) {
                return Err(format!("{} {p} on {w}: element {i} is another", k.name()));
            }
            if got.gaps_touched(w.output()) {
                return Err(format!("{} {p} on {w}: wrote outside its output", k.name()));
            }
            ran += 1;
        }
    }
    if ran > 0 { Ok(()) } else { Err(format!("no kernel takes {w}")) }
}

fn assert_agree(text: &str, seed: u64) {
    agree(&text.parse().expect("a workload"), seed).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn shapes_of_every_kind_come_out_right() {
    for text in [
        "copy f32 1",
        "copy u8 0x3",
        "copy f64 7x9",
        "copy f32 300x40:80,2",
        "transpose f32 0x5",
        "transpose f32 1x5",
        "transpose u8 65x130",
        "transpose bool 64x64",
        "transpose f16 33x100",
        "transpose bf16 128x96",
        "transpose f32 16x16",
        "transpose f32 129x257",
        "transpose i64 65x66",
        "transpose f32 4x5x6 perm=1,0,2",
        "transpose f32 3x70x50 perm=0,2,1",
        "transpose f32 3x20x30x7 perm=2,0,3,1",
        "transpose f64 2x3x2x3x2x3 perm=5,4,3,2,1,0",
        "transpose f32 300x211",
        "transpose f64 130x70",
        "transpose f32 3x65x67 perm=0,2,1",
        "transpose f32 9x20x31 perm=2,1,0",
    ] {
        assert_agree(text, 6);
    }
}

#[test]
fn every_type_is_copied_and_transposed() {
    for d in DType::ALL {
        for text in
            ["copy {} 1000", "copy {} 1", "copy {} 0", "transpose {} 37x21", "transpose {} 4x5x6 perm=0,2,1"]
        {
            assert_agree(&text.replace("{}", d.name()), 5);
        }
    }
}

#[test]
fn large_results_come_out_right() {
    UNDER_TEST.large.iter().for_each(|text| assert_agree(text, 8));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: UNDER_TEST.cases, ..ProptestConfig::default() })]
    #[test]
    fn any_order_and_layout(
        dims in shape(),
        lies in prop::collection::vec(lie(), 2),
        d in prop::sample::select(UNDER_TEST.types),
        order in prop::collection::vec(any::<u32>(), 4),
        copies in prop::bool::weighted(0.3),
        own_output in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut axes: Vec<usize> = (0..dims.len()).collect();
        axes.sort_by_key(|i| order[*i]);
        let op = match copies || dims.is_empty() {
            true => Op::Copy,
            false => Op::Transpose { perm: Perm::from_list(&axes).expect("all axes") },
        };
        let mut w = Workload::new(op, [lies[0].operand(d, &dims, true)]).expect("a workload");
        if own_output {
            w = w.clone().with_output(lies[1].operand(d, &w.output().dims, false)).expect("the same shape");
        }
        agree(&w, seed).map_err(TestCaseError::fail)?;
    }
}
