//! Reductions of a group's values.

use super::steps::{CPU, contiguous, inputs, kernels, run, step_by_step, straight};
use crate::UNDER_TEST;
use crate::conformance::{Lie, Memory, Random, distance, lie, shape, value};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use steersman_core::expr::{Dist, Expr, Output};
use steersman_core::{Axes, BinaryOp, DType, Kernel, Op, Operand, Params, ReduceOp, Workload};
use steersman_cpu::isa::Level;
use steersman_cpu::reduce;

static REDUCE: LazyLock<Vec<Arc<dyn Kernel>>> = LazyLock::new(|| reduce::kernels(&CPU));

proptest! {
    #![proptest_config(ProptestConfig { cases: UNDER_TEST.reduction_cases, ..ProptestConfig::default() })]

    #[test]
    fn reductions_agree_with_the_reference(
        seed in any::<u64>(),
        dims in shape(),
        lies in prop::collection::vec(lie(), 5),
        kind in prop::sample::select(ReduceOp::ALL),
        dtype in prop::sample::select(UNDER_TEST.reduced),
        split in 0..5usize,
        leading in any::<bool>(),
        wild in any::<bool>(),
    ) {
        let split = split.min(dims.len());
        let axes: Vec<usize> = if leading { (0..split).collect() } else { (split..dims.len()).collect() };
        check_reduction(kind, dtype, &dims, &axes, &lies, seed, wild && UNDER_TEST.wild).map_err(TestCaseError::fail)?;
    }
}

/// A value and its reductions, by every kernel: over `axes` twice, over all, and as an array.
fn check_reduction(
    kind: ReduceOp,
    dtype: DType,
    dims: &[usize],
    axes: &[usize],
    lies: &[Lie],
    seed: u64,
    wild: bool,
) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut b = Expr::builder([dtype, dtype]);
    let (x, y) = (b.input(0).expect("declared"), b.input(1).expect("declared"));
    let v = match dtype {
        // Numbers that do not overflow when added up, unless wanted.
        DType::F32 | DType::F64 if !wild => {
            let u = b.random(Dist::Uniform, dtype, 0).expect("a float");
            let c = b.random(Dist::Uniform, dtype, 1).expect("a float");
            b.binary(BinaryOp::Sub, u, c).expect("one type")
        }
        _ => b
            .binary(if dtype == DType::Bool { BinaryOp::And } else { BinaryOp::Min }, x, y)
            .expect("one type"),
    };
    let axes = Axes::from_list(axes).expect("each once");
    if !kind.takes(dtype) {
        return Ok(());
    }
    b.reduce(kind, axes, v).expect("it takes this type");
    if random.below(2) == 0 {
        b.reduce(kind, Axes::NONE, v).expect("it takes this type");
    }
    if random.below(2) == 0 {
        b.output(v).expect("a value");
    }
    b.reduce(if kind == ReduceOp::Any { ReduceOp::All } else { ReduceOp::Any }, axes, v).expect("takes all");
    let expr = Arc::new(b.finish().expect("outputs"));
    let operands = (0..2).map(|k| lies[k].operand(dtype, dims, true));
    // What has no value over no elements is refused before it comes here.
    let Ok(w) = Workload::fused(&expr, dims, operands) else { return Ok(()) };
    let data = inputs(&w, &mut random);
    let keys = [random.next(), random.next()];
    if kernels().is_empty() {
        return Ok(());
    }
    let values = step_by_step(&w, "cpu/map-scalar", Level::Baseline, &data, &keys);
    let own = contiguous(dtype, dims);
    for kernel in kernels() {
        match kernel.supports(&w) {
            Err(why) if UNDER_TEST.takes_every_reduction => {
                return Err(format!("{} refuses {w}: {why}", kernel.name()));
            }
            Err(_) => continue,
            Ok(()) => (),
        }
        for p in kernel.params(&w) {
            let outs = run(&**kernel, &w, p, &data, &keys);
            for ((o, out), got) in w.outputs().iter().zip(expr.outputs()).zip(&outs) {
                let Output::Reduce { kind, axes, .. } = *out else { continue };
                let plain = Workload::new(Op::Reduce { kind, axes }, [own.clone()]).expect("as before");
                let value = std::slice::from_ref(&values[v.index()]);
                let want = run(&*REDUCE[0], &plain, Params::SERIAL, value, &[]).remove(0);
                let terms = magnitude(kind, &own, &value[0]);
                let who = format!("{} {p} {} of {w}", kernel.name(), kind.name());
                close(&who, kind, o, &want, got, terms)?;
            }
        }
    }
    Ok(())
}

/// Σ|x| over everything: no sum's rounding errors are beyond a multiple of it. Of a product, how far its
/// parts may stray from 1 on the way, either way: beyond what a float holds, the order decides the result.
fn magnitude(kind: ReduceOp, o: &Operand, m: &Memory) -> f64 {
    let sizes: Vec<f64> = m.elements(o).map(|b| value(o.dtype, b).abs()).collect();
    match kind {
        ReduceOp::Prod => {
            let above: f64 = sizes.iter().map(|x| x.max(1.0)).product();
            let below: f64 = sizes.iter().filter(|x| **x > 0.0).map(|x| x.recip().max(1.0)).product();
            above.max(below)
        }
        ReduceOp::Norm => sizes.iter().sum::<f64>().powi(2),
        _ => sizes.iter().sum(),
    }
}

fn close(
    who: &str,
    kind: ReduceOp,
    o: &Operand,
    want: &Memory,
    got: &Memory,
    terms: f64,
) -> Result<(), String> {
    let exact = !o.dtype.is_float() || matches!(kind, ReduceOp::Min | ReduceOp::Max);
    let epsilon = match o.dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        _ => f32::EPSILON.into(),
    };
    let smallest_square = match o.dtype {
        DType::F64 => (f64::MIN_POSITIVE / epsilon).sqrt(),
        _ => (f64::from(f32::MIN_POSITIVE) / epsilon).sqrt(),
    };
    for (i, (e, g)) in want.elements(o).zip(got.elements(o)).enumerate() {
        let (we, wg) = (value(o.dtype, e), value(o.dtype, g));
        let apart = (we - wg).abs();
        let fine = match () {
            _ if distance(o.dtype, e, g) == 0.0 => true,
            _ if exact => false,
            // Parts may overflow, or vanish, in another order.
            _ if !terms.is_finite() || terms > 1e30 => true,
            // Squares of what is smaller vanish: a norm keeps no digits of it.
            _ if kind == ReduceOp::Norm && we.abs().max(wg.abs()) < smallest_square => true,
            _ if kind == ReduceOp::Prod => apart <= 1000.0 * epsilon * we.abs(),
            _ => {
                apart <= 64.0 * epsilon * terms.max(we.abs()).max(1e-30)
                    || apart <= 1000.0 * epsilon * we.abs()
            }
        };
        if !fine {
            return Err(format!("{who}: result {i} is {wg:e}, not {we:e}"));
        }
    }
    Ok(())
}

#[test]
fn reductions_of_every_kind_agree_at_sizes_that_take_every_way() {
    for &kind in ReduceOp::ALL {
        for &dtype in UNDER_TEST.long_types {
            for (i, (dims, axes)) in UNDER_TEST.long_shapes.iter().enumerate() {
                check_reduction(kind, dtype, dims, axes, &straight(), i as u64, false)
                    .unwrap_or_else(|e| panic!("{e}"));
            }
        }
    }
}
