//! Whole groups: any expression, long ones, large ones, in place.

use crate::element::{distance, show};
use crate::layout::{lie, shape};
use crate::memory::Random;
use crate::reference::{agree, contiguous, expression, inputs, run, scalars, workload};
use crate::{FUSED, straight};
use proptest::prelude::*;
use std::sync::Arc;
use steersman_core::expr::{Dist, Expr};
use steersman_core::{Address, Axes, BinaryOp, DType, Io, NumericClass, Operand, Params, ReduceOp, Workload};
use steersman_cpu::isa::Level;
use steersman_cpu::random;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_expression_gives_what_its_steps_give(
        seed in any::<u64>(),
        dims in shape(),
        lies in prop::collection::vec(lie(), 5),
    ) {
        let mut random = Random::new(seed);
        let w = workload(expression(&mut random, false, 14), &dims, &lies);
        let data = inputs(&w, &mut random);
        let scalars = scalars(&mut random, w.expr().expect("a fused group"));
        agree(&w, &data, &scalars).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn exact_expressions_are_the_same_bits_on_every_instruction_set(
        seed in any::<u64>(),
        dims in shape(),
        lies in prop::collection::vec(lie(), 5),
    ) {
        let mut random = Random::new(seed);
        let w = workload(expression(&mut random, true, 14), &dims, &lies);
        let data = inputs(&w, &mut random);
        let scalars = scalars(&mut random, w.expr().expect("a fused group"));
        let want = run(&*FUSED[0], &w, Params::SERIAL, &data, &scalars);
        for kernel in &FUSED[1..] {
            prop_assert_eq!(kernel.numerics(&w), NumericClass::Exact);
            for p in kernel.params(&w) {
                let got = run(&**kernel, &w, p, &data, &scalars);
                for ((o, want), got) in w.outputs().iter().zip(&want).zip(&got) {
                    for (i, (e, g)) in want.elements(o).zip(got.elements(o)).enumerate() {
                        prop_assert!(
                            distance(o.dtype, e, g) == 0.0,
                            "{} {p} on {w} of {}: element {i} is {}, not {}",
                            kernel.name(), w.expr().expect("fused"), show(o.dtype, g), show(o.dtype, e)
                        );
                    }
                }
            }
        }
    }
}

/// x·a + b, again and again.
fn long_chain(steps: usize) -> Expr {
    let mut b = Expr::builder([DType::F32]);
    let mut v = b.input(0).expect("declared");
    let s = [b.scalar(0, DType::F32).expect("new"), b.scalar(1, DType::F32).expect("new")];
    for i in 0..steps {
        let op = if i % 2 == 0 { BinaryOp::Mul } else { BinaryOp::Add };
        v = b.binary(op, v, s[i % 2]).expect("one type");
    }
    b.output(v).expect("a value");
    b.finish().expect("an output")
}

#[test]
fn programs_of_thousands_of_steps_run() {
    let w = workload(long_chain(3000), &[5000], &straight());
    let data = inputs(&w, &mut Random::new(4));
    let scalars = [u64::from(1.0001f32.to_bits()), u64::from(0.5f32.to_bits())];
    agree(&w, &data, &scalars).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn large_groups_agree_on_several_threads_and_past_the_cache() {
    for seed in 0..6 {
        let mut random = Random::new(seed + 77);
        let w = workload(expression(&mut random, true, 6), &[700, 601], &straight());
        let data = inputs(&w, &mut random);
        let scalars = scalars(&mut random, w.expr().expect("a fused group"));
        agree(&w, &data, &scalars).unwrap_or_else(|e| panic!("{e}"));
    }
    let w = workload(long_chain(10), &[700, 601], &straight());
    let offered = |past: bool| FUSED[1].params(&w).iter().any(|p| (p.variant == 1) == past && p.threads == 2);
    assert!(offered(true) && offered(false), "both ways of storing are offered for large outputs");
}

#[test]
fn a_group_may_replace_its_operands() {
    // Two operands, both replaced: sums in one, differences in the other, which each step still needs.
    let mut b = Expr::builder([DType::F32, DType::F32]);
    let (x, y) = (b.input(0).expect("declared"), b.input(1).expect("declared"));
    let sum = b.binary(BinaryOp::Add, x, y).expect("one type");
    let difference = b.binary(BinaryOp::Sub, x, y).expect("one type");
    b.output(sum).expect("a value");
    b.output(difference).expect("a value");
    let expr = Arc::new(b.finish().expect("outputs"));
    for strides in [[29isize, 1], [1, 137], [-90, 3]] {
        let own = Operand::strided(DType::F32, &[137, 29], steersman_core::Strides::from_slice(&strides));
        let own = own.expect("a small operand");
        let w = Workload::fused(&expr, &[137, 29], [own.clone(), own.clone()]).expect("two operands");
        let w =
            w.with_output(own.clone()).and_then(|w| w.with_nth_output(1, own.clone())).expect("one shape");
        let data = inputs(&w, &mut Random::new(5));
        let want = run(&*FUSED[0], &w, Params::SERIAL, &data, &[]);
        for kernel in &*FUSED {
            for p in kernel.params(&w) {
                let mut memory = data.clone();
                let at: Vec<Address> = memory.iter_mut().map(|m| m.address_mut()).collect();
                let io = Io { inputs: &at, output: at[0], more: &at[1..], scalars: &[] };
                // SAFETY: memory was made for these operands.
                unsafe { kernel.run(&w, p, io) }.expect("it was offered");
                for (want, got) in want.iter().zip(&memory) {
                    let apart = want
                        .elements(&own)
                        .zip(got.elements(&own))
                        .any(|(e, g)| distance(DType::F32, e, g) > 0.0);
                    assert!(!apart, "{} {p} in place on {w}", kernel.name());
                }
            }
        }
    }
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
    for kernel in &*FUSED {
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
        FUSED[1].supports(&w).map_err(|r| r.to_string())
    };
    assert!(refusal(&[&[1]]).unwrap_err().contains("leading or the trailing axes"));
    assert!(refusal(&[&[0], &[2]]).unwrap_err().contains("different axes"));
    assert_eq!(refusal(&[&[2], &[2], &[]]), Ok(()));
    let plain: Workload = "add f32 3 3".parse().expect("a workload");
    assert!(FUSED[1].supports(&plain).unwrap_err().to_string().contains("fused"));
}
