//! Every product kernel agrees with a plain f64 product, whatever the shape, strides and batch.

use crate::UNDER_TEST;
use crate::conformance::{Kernels, Memory, Random, encode, lie, run, value};
use proptest::prelude::*;
use steersman_core::{DType, Op, Operand, Workload};

/// What a test file says of its device.
pub struct UnderTest {
    pub kernels: &'static Kernels,
    /// Kernels and parameters that at least take a type.
    pub least: fn(DType) -> usize,
    /// Types of random products.
    pub types: &'static [DType],
    /// Whether a result may lie in any way, not only in contiguous rows.
    pub any_output: bool,
    /// Random products have less than so many rows, columns and terms.
    pub most: usize,
    pub cases: u32,
}

/// Small numbers of both signs.
fn numbers(o: &Operand, random: &mut Random) -> Memory {
    Memory::filled(o, || encode(o.dtype, (random.next() >> 40) as f64 / f64::from(1 << 23) - 1.0))
}

/// What whole numbers of 32 bits wrap around.
const AROUND: f64 = 4_294_967_296.0;

/// Each result and the magnitude of its terms, from the definition. Elements of `u32` are taken for what they are as signed
/// numbers: sums of those are exact, and congruent to theirs.
fn expected(w: &Workload, data: &[Memory]) -> Vec<(f64, f64)> {
    let (batch, m, k, n) = w.matmul_dims().expect("a product");
    let wraps = w.dtype() == DType::U32;
    let read = if wraps { DType::I32 } else { w.dtype() };
    let all = |i: usize| -> Vec<f64> { data[i].elements(&w.inputs()[i]).map(|b| value(read, b)).collect() };
    let (a, b) = (all(0), all(1));
    let mut out = Vec::with_capacity(batch * m * n);
    for z in 0..batch {
        for i in 0..m {
            for j in 0..n {
                let terms = (0..k).map(|p| a[(z * m + i) * k + p] * b[(z * k + p) * n + j]);
                let (sum, size) = terms.fold((0.0, 0.0), |(s, t): (f64, f64), x| (s + x, t + x.abs()));
                out.push((if wraps { sum.rem_euclid(AROUND) } else { sum }, size));
            }
        }
    }
    out
}

/// Every kernel that takes the workload is right; how many runs were compared.
fn check(w: &Workload, data: &[Memory]) -> Result<usize, String> {
    let Some(kernels) = &**UNDER_TEST.kernels else { return Ok(usize::MAX) };
    let want = expected(w, data);
    let k = w.matmul_k() as f64;
    let (inside, unit) = match w.dtype() {
        DType::F64 => (f64::EPSILON, f64::EPSILON),
        DType::F16 => (f64::from(f32::EPSILON), 1e-3),
        DType::BF16 => (f64::from(f32::EPSILON), 8e-3),
        DType::I32 | DType::U32 | DType::I64 => (0.0, 0.0),
        _ => (f64::from(f32::EPSILON), f64::from(f32::EPSILON)),
    };
    let mut compared = 0;
    for kernel in kernels.iter().filter(|k| k.supports(w).is_ok()) {
        for p in kernel.space(w) {
            let got = run(&**kernel, w, p, data)?;
            compared += 1;
            for (i, (g, (e, terms))) in got.elements(w.output()).zip(&want).enumerate() {
                let g = value(w.dtype(), g);
                // Neighbours below the normal halves are so far apart.
                let least = if w.dtype() == DType::F16 { 6e-8 } else { 0.0 };
                let near = (g - e).abs() <= inside * (k + 2.0) * terms + unit * e.abs() + least;
                if !near && g != *e && !(g.is_nan() && e.is_nan()) {
                    return Err(format!("{} {p} on {w}, element {i}: {g:e} is not {e:e}", kernel.name()));
                }
            }
            if got.gaps_touched(w.output()) {
                return Err(format!("{} {p} on {w}: wrote outside its output", kernel.name()));
            }
        }
    }
    Ok(compared)
}

fn random_operands(w: &Workload, seed: u64) -> Vec<Memory> {
    let mut random = Random::new(seed);
    w.inputs().iter().map(|o| numbers(o, &mut random)).collect()
}

#[test]
fn shapes_of_every_kind_agree() {
    for text in [
        "matmul f32 1x1 1x1",
        "matmul f32 64x64 64x64",
        "matmul f32 65x33 33x67",
        "matmul f32 70x129 129x40",
        "matmul f32 300 300x8",
        // Several of the largest tiles with edges, and operands that come in fours every way.
        "matmul f32 150x37 37x270",
        "matmul f32 150x40 40x268",
        "matmul f32 140x36:1,140 36x136",
        "matmul f32 140x36 36x136:1,36",
        "matmul f32 140x36:1,140 36x136:1,36",
        "matmul f32 2x132x20:2640,1,132 2x20x140",
        "matmul f32 9x300 300",
        "matmul f32 5x0 0x4",
        "matmul f32 0x3 3x4",
        "matmul f32 6x17x9 6x9x12",
        "matmul f32 3x1x5x7 4x7x8",
        "matmul i32 33x20 20x31",
        "matmul u32 33x20 20x31",
        "matmul u32 9x300 300",
        "matmul f16 33x20 20x31",
        "matmul bf16 17x40 40x9",
        "matmul f64 33x20 20x31",
    ] {
        let w: Workload = text.parse().expect("a workload");
        let compared = check(&w, &random_operands(&w, 3)).unwrap_or_else(|e| panic!("{e}"));
        assert!(compared >= (UNDER_TEST.least)(w.dtype()), "{text}: {compared} runs");
    }
}

#[test]
fn nan_and_infinity_reach_the_result_even_times_zero() {
    for text in ["matmul f32 9x20 20x35", "matmul f32 64x20 20x64", "matmul f32 1x20 20x35"] {
        let w: Workload = text.parse().expect("a workload");
        let (rows, columns) = (w.inputs()[0].dims[0], w.inputs()[1].dims[1]);
        // Rows and columns of each, and what is there.
        let odd = [
            vec![(3, 7, f64::NAN), (5, 2, f64::INFINITY), (6, 2, 0.0), (0, 2, 0.0)],
            vec![(2, 4, f64::INFINITY), (7, 30, 0.0)],
        ];
        let operand = |k: usize, across: usize| {
            let mut random = Random::new(k as u64 + 5);
            let mut at = 0;
            Memory::filled(&w.inputs()[k], || {
                let place = (at / across, at % across);
                at += 1;
                let plain = (random.next() >> 40) as f64 / f64::from(1 << 23) - 1.0;
                let odd = odd[k].iter().find(|(r, c, _)| (*r, *c) == place);
                encode(DType::F32, odd.map_or(plain, |(.., x)| *x))
            })
        };
        let data = [operand(0, 20), operand(1, columns)];
        let missing = expected(&w, &data).iter().filter(|(x, _)| x.is_nan()).count();
        assert!(missing > 0 && missing < rows * columns, "{missing}");
        check(&w, &data).unwrap_or_else(|e| panic!("{e}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: UNDER_TEST.cases, ..ProptestConfig::default() })]
    #[test]
    fn any_strides_and_batches_agree(
        (m, k, n) in (1..UNDER_TEST.most, 0..UNDER_TEST.most, 1..UNDER_TEST.most),
        batch in prop::collection::vec(1usize..4, 0..=2),
        lies in prop::collection::vec(lie(), 3),
        d in prop::sample::select(UNDER_TEST.types),
        seed in any::<u64>(),
    ) {
        let dims = |r: usize, c: usize| [&batch[..], &[r, c]].concat();
        let operands = [lies[0].operand(d, &dims(m, k), true), lies[1].operand(d, &dims(k, n), true)];
        let w = Workload::new(Op::MatMul, operands).expect("a product");
        let mut lie = lies[2].clone();
        if !UNDER_TEST.any_output {
            lie.order = vec![0, 1, 2, 3];
            (lie.gaps[batch.len() + 1], lie.backwards[batch.len() + 1]) = (0, false);
        }
        let out = lie.operand(d, &w.output().dims, false);
        let w = w.with_output(out).expect("the same shape");
        let compared = check(&w, &random_operands(&w, seed)).map_err(TestCaseError::fail)?;
        prop_assert!(compared > 0, "nobody takes {}", w);
    }
}
