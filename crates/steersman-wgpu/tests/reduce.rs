//! Every reduction kernel of the device, with every parameter it offers, agrees with `cpu/reduce-scalar`: bit
//! for bit where it says so, within stated bounds elsewhere.

#[path = "../../steersman-cpu/tests/conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the CPU's tests")]
mod conformance;
mod hosted;

use conformance::{Memory, Random, lie, reference, run, value};
use hosted::{encode, put};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use steersman_core::{Axes, DType, Kernel, NumericClass, Op, Params, ReduceOp, Workload};
use steersman_cpu::reduce;

static KERNELS: LazyLock<Option<Vec<Arc<dyn Kernel>>>> =
    LazyLock::new(|| hosted::with_reference(reduce::kernels(&hosted::cpu()), 64));

/// How far a result over `n` elements of at most `most` may be from the reference `want`: single precision
/// inside, but for f64.
fn bound(kind: ReduceOp, dtype: DType, n: f64, most: f64, want: f64) -> f64 {
    let inside = if dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let unit = match dtype {
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        _ => inside,
    };
    unit * want.abs()
        + match kind {
            ReduceOp::Sum => 32.0 * inside * n * most,
            ReduceOp::Mean => 32.0 * inside * most,
            ReduceOp::Norm => 32.0 * inside * want.abs(),
            ReduceOp::Prod => 2.0 * n * inside * want.abs() + f64::from(f32::MIN_POSITIVE),
            ReduceOp::Var => 64.0 * inside * most * most,
            ReduceOp::Std => 64.0 * inside * most + 16.0 * inside.sqrt() * inside.sqrt() * most,
            _ => 0.0,
        }
}

/// Runs every kernel that takes the workload; how many runs were compared.
fn check(w: &Workload, data: &[Memory]) -> Result<usize, String> {
    let Some(kernels) = &*KERNELS else { return Ok(9) };
    let Op::Reduce { kind, .. } = w.op() else { return Err(format!("{w} is no reduction")) };
    let scalar = reference(kernels, w).ok_or("no reference")?;
    let expected = run(scalar, w, Params::SERIAL, data)?;
    let out = w.output();
    let n = w.inputs()[0].elements() as f64 / out.elements().max(1) as f64;
    let magnitudes = data[0].elements(&w.inputs()[0]).map(|b| value(w.dtype(), b).abs());
    let most = magnitudes.filter(|m| m.is_finite()).fold(0.0, f64::max);
    let mut compared = 0;
    for k in kernels.iter().filter(|k| k.supports(w).is_ok() && k.name() != scalar.name()) {
        for p in k.space(w) {
            let got = run(&**k, w, p, data)?;
            compared += 1;
            for (i, (e, g)) in expected.elements(out).zip(got.elements(out)).enumerate() {
                let (want, have) = (value(out.dtype, e), value(out.dtype, g));
                let near = (want - have).abs() <= bound(kind, w.dtype(), n, most, want);
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

/// An operand of numbers of both signs and ordinary size, none of them zero.
fn plain(w: &Workload, seed: u64) -> Vec<Memory> {
    let o = &w.inputs()[0];
    let mut random = Random::new(seed + 1);
    let mut memory = Memory::marked(o);
    put(o, memory.address_mut(), |_| {
        encode(o.dtype, (random.next() >> 40) as f64 / (1 << 24) as f64 * 4.0 - 2.0 + 1e-3)
    });
    vec![memory]
}

fn every_kind_and_type() -> impl Iterator<Item = (ReduceOp, DType)> {
    let pairs = ReduceOp::ALL.iter().flat_map(|k| DType::ALL.map(|d| (*k, d)));
    pairs.filter(|(k, d)| k.takes(*d))
}

#[test]
fn every_kind_and_type_over_rows_columns_and_all() {
    let mut wrong = Vec::new();
    for (kind, dtype) in every_kind_and_type().filter(|(_, d)| *d != DType::BF16) {
        // Compiling takes the time here: all layouts for one type.
        let shapes = if dtype == DType::F32 { &["517", "9x4x21 axis=0,2"][..] } else { &["70x9 axis=0"] };
        for shape in shapes {
            let w: Workload = format!("{} {dtype} {shape}", kind.name()).parse().expect("a workload");
            match check(&w, &plain(&w, 3)) {
                Ok(compared) => assert!(compared >= 3 || dtype == DType::I64 || dtype == DType::F64, "{w}"),
                Err(e) => wrong.push(e),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn long_results_are_shared_and_joined() {
    for text in [
        "sum f32 300011",
        "max f32 300011",
        "argmin f32 70000",
        "std f32 70000",
        "norm f32 3x9000 axis=1",
        "sum i32 70000",
        "prod i32 9000",
        "all bool 70000",
        "mean f16 20000",
        "argmax i32 5x6000 axis=1",
    ] {
        let w: Workload = text.parse().expect("a workload");
        check(&w, &plain(&w, 7)).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn nan_wins_extremes_and_infinities_stay() {
    for special in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
        for (kind, dtype) in every_kind_and_type().filter(|(_, d)| *d == DType::F32) {
            for shape in ["40", "5000"] {
                // A long product vanishes in some orders before it meets the infinity.
                if kind == ReduceOp::Prod && shape == "5000" {
                    continue;
                }
                let w: Workload = format!("{} {dtype} {shape}", kind.name()).parse().expect("a workload");
                let mut data = plain(&w, 11);
                let o = &w.inputs()[0];
                let old: Vec<u64> = data[0].elements(o).collect();
                put(o, data[0].address_mut(), |i| {
                    if i == 17 || i == 39 { encode(dtype, special) } else { old[i] }
                });
                check(&w, &data).unwrap_or_else(|e| panic!("{special}: {e}"));
            }
        }
    }
}

#[test]
fn zeros_of_both_signs_are_one_extreme() {
    for text in ["min f32 8", "max f32 8", "argmin f32 8", "argmax f32 8"] {
        let w: Workload = text.parse().expect("a workload");
        let mut memory = Memory::marked(&w.inputs()[0]);
        put(&w.inputs()[0], memory.address_mut(), |i| {
            encode(DType::F32, if i % 2 == 0 { -0.0 } else { 0.0 })
        });
        check(&w, &[memory]).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn nothing_reduces_to_the_identity() {
    for op in ["sum", "prod", "norm", "mean", "var", "std", "any", "all"] {
        for shape in ["0", "0x3 axis=0", "3x0 axis=1"] {
            let w: Workload = format!("{op} f32 {shape}").parse().expect("a workload");
            check(&w, &plain(&w, 1)).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn large_and_small_numbers_neither_overflow_nor_vanish_on_the_way() {
    for (text, of) in [
        ("norm f32 5000", [1e30, 3e36, -2e35]),
        ("norm f32 100", [1e-30, 1e-38, -2e-37]),
        ("norm f32 100", [1e-30, 1.0, 1e25]),
        ("prod f32 3", [1e30, 1e-30, 7.0]),
        ("prod f32 300", [1e30, 1e-30, 1.0001]),
        ("var f32 10000", [65536.0, 65537.0, 65536.5]),
        ("std f32 100x100 axis=0", [1e6, 1e6 + 1.0, 1e6 + 2.0]),
    ] {
        let w: Workload = text.parse().expect("a workload");
        let mut memory = Memory::marked(&w.inputs()[0]);
        put(&w.inputs()[0], memory.address_mut(), |i| encode(DType::F32, of[i % 3]));
        let Some(kernels) = &*KERNELS else { return };
        let scalar = reference(kernels, &w).expect("a reference");
        let data = [memory];
        let want: Vec<u64> =
            run(scalar, &w, Params::SERIAL, &data).expect("a run").elements(w.output()).collect();
        for k in kernels.iter().filter(|k| k.supports(&w).is_ok()) {
            let got = run(&**k, &w, Params::SERIAL, &data).expect("a run");
            for (e, g) in want.iter().zip(got.elements(w.output())) {
                let (e, g) = (value(DType::F32, *e), value(DType::F32, g));
                assert!((e - g).abs() <= 1e-4 * e.abs(), "{} on {w}: {g:e} is not {e:e}", k.name());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]
    #[test]
    fn any_shape_axes_and_strides(
        dims in prop::collection::vec(prop::sample::select(vec![1usize, 2, 3, 5, 8, 17, 33, 70]), 1..4),
        axes in any::<u8>(),
        lies in prop::collection::vec(lie(), 2),
        pair in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        let pairs: Vec<_> = every_kind_and_type().step_by(7).collect();
        let (kind, dtype) = pairs[pair.index(pairs.len())];
        let list: Vec<usize> = (0..dims.len()).filter(|a| axes & (1 << a) != 0).collect();
        let op = Op::Reduce { kind, axes: Axes::from_list(&list).expect("axes") };
        let w = Workload::new(op, [lies[0].operand(dtype, &dims, true)]).expect("a workload");
        let out = lies[1].operand(w.output().dtype, &w.output().dims, false);
        let w = w.with_output(out).expect("the same shape");
        check(&w, &plain(&w, seed)).map_err(TestCaseError::fail)?;
    }
}
