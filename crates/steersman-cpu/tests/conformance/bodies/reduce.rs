//! Every reduction kernel, with every parameter it offers, agrees with the plain loops of `cpu/reduce-scalar`:
//! bit for bit where it says so, within stated bounds elsewhere.

use crate::UNDER_TEST;
use crate::conformance::{Kernels, Memory, Random, encode, lie, reference, run, value};
use proptest::prelude::*;
use steersman_core::{Axes, DType, NumericClass, Op, Params, ReduceOp, Workload};

/// What a test file says of its device.
pub struct UnderTest {
    pub kernels: &'static Kernels,
    /// How far a result over `n` elements of at most `most` may be from the reference `want`.
    pub bound: fn(ReduceOp, DType, n: f64, most: f64, want: f64) -> f64,
    /// How far a variance of 1/4 may be off next to an offset of 65536.
    pub beside_an_offset: f64,
    /// Whether norms are right where squares are no f32 any more.
    pub norms_scale: bool,
    /// Kernels and parameters that at least take a type.
    pub least: fn(DType) -> usize,
    /// The shapes in which a type is reduced.
    pub shapes: fn(DType) -> &'static [&'static str],
    /// Shapes for more than one worker, and one in so many kinds and types that are tried with them.
    pub long: &'static [&'static str],
    pub long_one_in: usize,
    /// Lengths of short rows, how many of them, and their types.
    pub rows: &'static [usize],
    pub row_counts: &'static [usize],
    pub row_types: &'static [DType],
    /// Types, shapes and places in which a number that is none is tried.
    pub special_types: &'static [DType],
    pub special_shapes: &'static [&'static str],
    pub special_places: &'static [[usize; 2]],
    /// Random shapes, of one kind and type in so many.
    pub cases: u32,
    pub cases_one_in: usize,
}

/// Runs every kernel that takes the workload; how many runs were compared.
fn check(w: &Workload, data: &Memory) -> Result<usize, String> {
    let Some(kernels) = &**UNDER_TEST.kernels else { return Ok(usize::MAX) };
    let Op::Reduce { kind, .. } = w.op() else { return Err(format!("{w} is no reduction")) };
    let data = std::slice::from_ref(data);
    let scalar = reference(kernels, w).ok_or("no reference")?;
    let expected = run(scalar, w, Params::SERIAL, data)?;
    let out = w.output();
    let n = w.inputs()[0].elements() as f64 / out.elements().max(1) as f64;
    let magnitudes = data[0].elements(&w.inputs()[0]).map(|b| value(w.dtype(), b).abs());
    let most = magnitudes.filter(|m| m.is_finite()).fold(0.0, f64::max);
    let mut compared = 0;
    for k in kernels.iter().filter(|k| k.supports(w).is_ok()) {
        for p in k.space(w) {
            let got = run(&**k, w, p, data)?;
            compared += 1;
            for (i, (e, g)) in expected.elements(out).zip(got.elements(out)).enumerate() {
                let (want, have) = (value(out.dtype, e), value(out.dtype, g));
                let near = (want - have).abs() <= (UNDER_TEST.bound)(kind, w.dtype(), n, most, want);
                let same = e == g || want == have || want.is_nan() && have.is_nan();
                let right = if k.numerics(w) == NumericClass::Exact { e == g } else { near || same };
                if !right {
                    return Err(format!("{} {p} on {w}, output {i}: {have:e} is not {want:e}", k.name()));
                }
            }
            if got.gaps_touched(out) {
                return Err(format!("{} {p} on {w}: wrote outside its output", k.name()));
            }
        }
    }
    Ok(compared)
}

/// `right` takes the `i`th result of every kernel and parameter.
fn all_are(w: &Workload, data: &Memory, right: impl Fn(usize, f64) -> bool) {
    let Some(kernels) = &**UNDER_TEST.kernels else { return };
    for k in kernels.iter().filter(|k| k.supports(w).is_ok()) {
        for p in k.space(w) {
            let got = run(&**k, w, p, std::slice::from_ref(data)).unwrap_or_else(|e| panic!("{e}"));
            let results = got.elements(w.output()).map(|b| value(w.output().dtype, b));
            let wrong = results.enumerate().find(|(i, x)| !right(*i, *x));
            assert_eq!(wrong, None, "{} {p} on {w}", k.name());
        }
    }
}

fn workload(text: &str) -> Workload {
    text.parse().expect("a workload")
}

/// An operand of these numbers over and over.
fn repeated(w: &Workload, of: &[f64]) -> Memory {
    let mut all = of.iter().cycle();
    let o = &w.inputs()[0];
    Memory::filled(o, || encode(o.dtype, *all.next().expect("a cycle has no end")))
}

/// Numbers of both signs and ordinary size, none of them zero.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed + 1);
    (0..n).map(|_| (random.next() >> 40) as f64 / (1 << 24) as f64 * 4.0 - 2.0 + 1e-3).collect()
}

/// An operand of such numbers.
fn plain(w: &Workload, seed: u64) -> Memory {
    repeated(w, &numbers(w.inputs()[0].elements().max(1), seed))
}

fn every_kind_and_type() -> impl Iterator<Item = (ReduceOp, DType)> {
    let pairs = ReduceOp::ALL.iter().flat_map(|k| DType::ALL.map(|d| (*k, d)));
    pairs.filter(|(k, d)| k.takes(*d))
}

#[test]
fn every_kind_and_type_over_rows_columns_and_all() {
    let mut wrong = Vec::new();
    for (kind, dtype) in every_kind_and_type() {
        for shape in (UNDER_TEST.shapes)(dtype) {
            let w = workload(&format!("{} {dtype} {shape}", kind.name()));
            match check(&w, &plain(&w, 3)) {
                Ok(compared) => assert!(compared >= (UNDER_TEST.least)(dtype), "{w}: {compared} runs"),
                Err(e) => wrong.push(e),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn long_results_are_shared_and_joined() {
    for (kind, dtype) in every_kind_and_type().step_by(UNDER_TEST.long_one_in) {
        for shape in UNDER_TEST.long {
            let w = workload(&format!("{} {dtype} {shape}", kind.name()));
            check(&w, &repeated(&w, &numbers(1009, 5))).unwrap_or_else(|e| panic!("{e}"));
        }
    }
    for text in [
        "sum f32 300011",
        "max f32 300011",
        "argmin f32 70000",
        "std f32 70000",
        "norm f32 3x9000 axis=1",
        "sum i32 70000",
        "prod i32 9000",
        "sum u32 70000",
        "argmin u32 70000",
        "max u32 5x6000 axis=1",
        "all bool 70000",
        "mean f16 20000",
        "argmax i32 5x6000 axis=1",
    ] {
        let w = workload(text);
        check(&w, &plain(&w, 7)).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn short_rows_are_reduced_like_long_ones() {
    for (kind, dtype) in every_kind_and_type().filter(|(_, d)| UNDER_TEST.row_types.contains(d)) {
        for (n, rows) in
            UNDER_TEST.rows.iter().flat_map(|n| UNDER_TEST.row_counts.iter().map(move |r| (n, r)))
        {
            let w = workload(&format!("{} {dtype} {rows}x{n} axis=1", kind.name()));
            check(&w, &plain(&w, 9)).unwrap_or_else(|e| panic!("{e}"));
            // Few different ones: extremes are there several times.
            check(&w, &repeated(&w, &[3.0, 1.0, 2.0, 1.0, 3.0])).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn nan_wins_extremes_and_infinities_stay() {
    for special in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
        for (kind, dtype) in every_kind_and_type().filter(|(_, d)| UNDER_TEST.special_types.contains(d)) {
            for shape in UNDER_TEST.special_shapes {
                // A long product vanishes in some orders before it meets the infinity: 0·∞ is NaN.
                if kind == ReduceOp::Prod && *shape == "5000" {
                    continue;
                }
                for places in UNDER_TEST.special_places {
                    let mut of = numbers(5003, 11);
                    places.iter().for_each(|at| of[*at] = special);
                    let w = workload(&format!("{} {dtype} {shape}", kind.name()));
                    check(&w, &repeated(&w, &of)).unwrap_or_else(|e| panic!("{special}: {e}"));
                }
            }
        }
    }
}

#[test]
fn zeros_of_both_signs_are_one_extreme() {
    for text in ["min f32 8", "max f32 8", "argmin f32 8", "argmax f32 8"] {
        let w = workload(text);
        check(&w, &repeated(&w, &[-0.0, 0.0])).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn nothing_reduces_to_the_identity() {
    for (op, want) in [
        ("sum", 0.0),
        ("prod", 1.0),
        ("norm", 0.0),
        ("mean", f64::NAN),
        ("var", f64::NAN),
        ("std", f64::NAN),
        ("any", 0.0),
        ("all", 1.0),
    ] {
        for shape in ["0", "0x3 axis=0", "3x0 axis=1"] {
            let w = workload(&format!("{op} f32 {shape}"));
            all_are(&w, &plain(&w, 1), |_, g| g == want || g.is_nan() && want.is_nan());
        }
    }
}

#[test]
fn everybody_knows_the_answers() {
    let Some(kernels) = &**UNDER_TEST.kernels else { return };
    for (text, want) in [
        ("sum f32 4", 2.0),
        ("mean f32 4", 0.5),
        ("prod f32 4", -24.0),
        ("min f32 4", -4.0),
        ("max f32 4", 3.0),
        ("argmin f32 4", 3.0),
        ("argmax f32 4", 2.0),
        ("any f32 4", 1.0),
        ("all f32 4", 1.0),
        ("norm f32 4", f64::from(30f32.sqrt())),
        ("var f32 4", 7.25),
        ("std f32 4", f64::from(7.25f32.sqrt())),
        ("sum i32 4", 16.0),
        // The last of them, 32 below 0, wraps.
        ("sum u32 4", 4_294_967_312.0),
        ("prod u32 4", 13_194_139_435_008.0),
        ("min u32 4", 8.0),
        ("max u32 4", 4_294_967_264.0),
        ("argmin u32 4", 0.0),
        ("argmax u32 4", 3.0),
    ] {
        let w = workload(text);
        let data = repeated(&w, &[1.0, 2.0, 3.0, -4.0]);
        let got = run(&*kernels[0], &w, Params::SERIAL, std::slice::from_ref(&data)).expect("a run");
        assert_eq!(value(w.output().dtype, got.element(w.output(), 0)), want, "{text}");
        check(&w, &data).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn a_large_offset_does_not_drown_the_variance() {
    for text in ["var f32 10000", "var f64 10000", "var f32 5000x2 axis=1", "var f32 100x100 axis=0"] {
        let w = workload(text);
        let want = if text.contains("axis=0") { 0.0 } else { 0.25 };
        let near = |_, g: f64| (g - want).abs() < UNDER_TEST.beside_an_offset;
        all_are(&w, &repeated(&w, &[65536.0, 65537.0]), near);
    }
}

#[test]
fn large_and_small_numbers_neither_overflow_nor_vanish_on_the_way() {
    let Some(kernels) = &**UNDER_TEST.kernels else { return };
    for (text, of) in [
        ("norm f32 5000", [1e30, 3e36, -2e35]),
        ("norm f32 100", [1e-30, 1e-38, -2e-37]),
        ("norm f32 100", [1e-30, 1.0, 1e25]),
        ("prod f32 3", [1e30, 1e-30, 7.0]),
        ("prod f32 300", [1e30, 1e-30, 1.0001]),
        ("var f32 10000", [65536.0, 65537.0, 65536.5]),
        ("std f32 100x100 axis=0", [1e6, 1e6 + 1.0, 1e6 + 2.0]),
    ] {
        let w = workload(text);
        if text.starts_with("norm") && !UNDER_TEST.norms_scale {
            continue;
        }
        let data = repeated(&w, &of);
        let scalar = reference(kernels, &w).expect("a reference");
        let expected = run(scalar, &w, Params::SERIAL, std::slice::from_ref(&data)).expect("a run");
        let want: Vec<f64> = expected.elements(w.output()).map(|b| value(DType::F32, b)).collect();
        all_are(&w, &data, |i, g| (want[i] - g).abs() <= 1e-4 * want[i].abs());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: UNDER_TEST.cases, ..ProptestConfig::default() })]
    #[test]
    fn any_shape_axes_and_strides(
        dims in prop::collection::vec(prop::sample::select(vec![1usize, 2, 3, 5, 8, 17, 33, 70]), 1..4),
        axes in any::<u8>(),
        lies in prop::collection::vec(lie(), 2),
        pair in any::<prop::sample::Index>(),
        own_output in any::<bool>(),
        seed in any::<u32>(),
    ) {
        let pairs: Vec<_> = every_kind_and_type().step_by(UNDER_TEST.cases_one_in).collect();
        let (kind, dtype) = pairs[pair.index(pairs.len())];
        let list: Vec<usize> = (0..dims.len()).filter(|a| axes & (1 << a) != 0).collect();
        let op = Op::Reduce { kind, axes: Axes::from_list(&list).expect("axes") };
        let mut w = Workload::new(op, [lies[0].operand(dtype, &dims, true)]).expect("a workload");
        if own_output {
            let out = lies[1].operand(w.output().dtype, &w.output().dims, false);
            w = w.with_output(out).expect("the same shape");
        }
        check(&w, &plain(&w, seed.into())).map_err(TestCaseError::fail)?;
    }
}
