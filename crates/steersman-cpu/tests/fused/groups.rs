//! What only the CPU promises of groups: the bits of its own single steps, and of its own generator.

use crate::UNDER_TEST;
use crate::bodies::groups::long_chain;
use crate::bodies::steps::{
    Menu, contiguous, expression, inputs, kernels, run, scalars, step_by_step, straight, workload,
};
use crate::conformance::{Memory, Random, distance, lie, shape, show};
use proptest::prelude::*;
use std::sync::Arc;
use steersman_core::expr::{Dist, Expr, Output};
use steersman_core::{Axes, DType, ReduceOp, Workload};
use steersman_cpu::isa::Level;
use steersman_cpu::random;

const ANYTHING: Menu = Menu { types: &DType::ALL, takes: |_, _| true, normal: true };

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_expression_gives_what_its_steps_give(
        seed in any::<u64>(),
        dims in shape(),
        lies in prop::collection::vec(lie(), 5),
    ) {
        let mut random = Random::new(seed);
        // Element-wise kernels have the library's functions do so few elements, whose last bits are others.
        let few = dims.iter().product::<usize>() <= 12;
        let menu = if few { &UNDER_TEST.exact } else { &ANYTHING };
        let w = workload(expression(&mut random, menu, 14), &dims, &lies);
        let data = inputs(&w, &mut random);
        let scalars = scalars(&mut random, w.expr().expect("a fused group"));
        agree(&w, &data, &scalars).map_err(TestCaseError::fail)?;
    }
}

/// Whether every fused kernel's arrays are, to the bit, what element-wise kernels of its own kind give.
fn agree(w: &Workload, data: &[Memory], scalars: &[u64]) -> Result<(), String> {
    let expr = w.expr().expect("a fused group");
    for kernel in kernels().iter().filter(|k| k.supports(w).is_ok()) {
        let isa = kernel.name().trim_start_matches("cpu/fused-");
        let level = Level::present().find(|l| l.name() == isa).unwrap_or(Level::Baseline);
        let values = step_by_step(w, &format!("cpu/map-{isa}"), level, data, scalars);
        for p in kernel.params(w) {
            let outs = run(&**kernel, w, p, data, scalars);
            for ((o, out), got) in w.outputs().iter().zip(expr.outputs()).zip(&outs) {
                let Output::Array(v) = *out else { continue };
                let own = contiguous(expr.dtype_of(v), w.dims());
                let want = values[v.index()].elements(&own);
                for (i, (e, g)) in want.zip(got.elements(o)).enumerate() {
                    if distance(o.dtype, e, g) > 0.0 {
                        let (g, e) = (show(o.dtype, g), show(o.dtype, e));
                        return Err(format!(
                            "{} {p} on {w} of {expr}: element {i} is {g}, not {e}",
                            kernel.name()
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn both_ways_of_storing_are_offered_for_large_outputs() {
    let w = workload(long_chain(10), &[700, 601], &straight());
    let offered =
        |past: bool| kernels()[1].params(&w).iter().any(|p| (p.variant == 1) == past && p.threads == 2);
    assert!(offered(true) && offered(false));
}

#[test]
fn random_numbers_do_not_depend_on_who_draws_them() {
    let mut b = Expr::builder([]);
    for (dist, dtype) in [
        (Dist::Uniform, DType::F32),
        (Dist::Uniform, DType::F64),
        (Dist::Normal, DType::F32),
        (Dist::Normal, DType::F64),
    ] {
        let v = b.random(dist, dtype, 0).expect("a float");
        b.output(v).expect("a value");
    }
    let expr = Arc::new(b.finish().expect("outputs"));
    let key = [0x1234_5678_9abc_def0u64];
    let (flat, square) = (Workload::fused(&expr, &[7007], []), Workload::fused(&expr, &[77, 91], []));
    let (flat, square) = (flat.expect("no operands"), square.expect("no operands"));
    for kernel in kernels() {
        let isa = kernel.name().trim_start_matches("cpu/fused-");
        let level = Level::present().find(|l| l.name() == isa).unwrap_or(Level::Baseline);
        let mut want = (vec![0f32; 7007], vec![0f64; 7007], vec![0f32; 7007], vec![0f64; 7007]);
        // Uniform ones are those of any instruction set, normal ones of the kernel's own.
        random::uniform_f32(Level::best(), key[0], 0, &mut want.0);
        random::uniform_f64(Level::best(), key[0], 0, &mut want.1);
        random::normal_f32(level, key[0], 0, &mut want.2);
        random::normal_f64(level, key[0], 0, &mut want.3);
        for w in [&flat, &square] {
            for p in kernel.params(w) {
                let outs = run(&**kernel, w, p, &[], &key);
                let bits = |i: usize| outs[i].elements(&w.outputs()[i]).collect::<Vec<u64>>();
                assert_eq!(bits(0), want.0.iter().map(|x| x.to_bits().into()).collect::<Vec<u64>>());
                assert_eq!(bits(1), want.1.iter().map(|x| x.to_bits()).collect::<Vec<u64>>());
                assert_eq!(bits(2), want.2.iter().map(|x| x.to_bits().into()).collect::<Vec<u64>>());
                assert_eq!(bits(3), want.3.iter().map(|x| x.to_bits()).collect::<Vec<u64>>());
            }
        }
    }
}

#[test]
fn refusals_say_why() {
    let refusal = |axes: &[&[usize]]| {
        let mut b = Expr::builder([DType::F32]);
        let x = b.input(0).expect("declared");
        for a in axes {
            b.reduce(ReduceOp::Sum, Axes::from_list(a).expect("each once"), x).expect("a float");
        }
        let expr = Arc::new(b.finish().expect("an output"));
        let w =
            Workload::fused(&expr, &[3, 4, 5], [contiguous(DType::F32, &[3, 4, 5])]).expect("one operand");
        kernels()[1].supports(&w).map_err(|r| r.to_string())
    };
    assert!(refusal(&[&[1]]).unwrap_err().contains("leading or the trailing axes"));
    assert!(refusal(&[&[0], &[2]]).unwrap_err().contains("different axes"));
    assert_eq!(refusal(&[&[2], &[2], &[]]), Ok(()));
    let plain: Workload = "add f32 3 3".parse().expect("a workload");
    assert!(kernels()[1].supports(&plain).unwrap_err().to_string().contains("fused"));
}
