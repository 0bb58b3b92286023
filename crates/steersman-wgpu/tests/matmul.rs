//! Every product kernel of the device agrees with a plain f64 product, whatever the shape, strides and batch.

#[path = "../../steersman-cpu/tests/conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the CPU's tests")]
mod conformance;
mod hosted;

use conformance::{Memory, Random, lie, run, value};
use hosted::{encode, put};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use steersman_core::{DType, Kernel, Op, Operand, Workload};

static KERNELS: LazyLock<Option<Vec<Arc<dyn Kernel>>>> =
    LazyLock::new(|| hosted::with_reference(Vec::new(), 64));

/// Small numbers of both signs.
fn numbers(o: &Operand, random: &mut Random) -> Memory {
    let mut memory = Memory::marked(o);
    put(o, memory.address_mut(), |_| {
        encode(o.dtype, (random.next() >> 40) as f64 / f64::from(1 << 23) - 1.0)
    });
    memory
}

/// Each result and the magnitude of its terms, from the definition.
fn expected(w: &Workload, data: &[Memory]) -> Vec<(f64, f64)> {
    let (batch, m, k, n) = w.matmul_dims().expect("a product");
    let values =
        |i: usize| -> Vec<f64> { data[i].elements(&w.inputs()[i]).map(|b| value(w.dtype(), b)).collect() };
    let (a, b) = (values(0), values(1));
    let mut out = Vec::with_capacity(batch * m * n);
    for z in 0..batch {
        for i in 0..m {
            for j in 0..n {
                let terms = (0..k).map(|p| a[(z * m + i) * k + p] * b[(z * k + p) * n + j]);
                out.push(terms.fold((0.0, 0.0), |(s, t), x| (s + x, t + x.abs())));
            }
        }
    }
    out
}

/// Every kernel that takes the workload is right; how many runs were compared.
fn check(w: &Workload, seed: u64) -> Result<usize, String> {
    let Some(kernels) = &*KERNELS else { return Ok(99) };
    let mut random = Random::new(seed);
    let data: Vec<Memory> = w.inputs().iter().map(|o| numbers(o, &mut random)).collect();
    let want = expected(w, &data);
    let k = w.matmul_k() as f64;
    let (inside, unit) = match w.dtype() {
        DType::F64 => (f64::EPSILON, f64::EPSILON),
        DType::F16 => (f64::from(f32::EPSILON), 1e-3),
        DType::BF16 => (f64::from(f32::EPSILON), 8e-3),
        DType::I32 => (0.0, 0.0),
        _ => (f64::from(f32::EPSILON), f64::from(f32::EPSILON)),
    };
    let mut compared = 0;
    for kernel in kernels.iter().filter(|k| k.supports(w).is_ok()) {
        for p in kernel.space(w) {
            let got = run(&**kernel, w, p, &data)?;
            compared += 1;
            for (i, (g, (e, terms))) in got.elements(w.output()).zip(&want).enumerate() {
                let g = value(w.dtype(), g);
                // Neighbours below the normal halves are so far apart.
                let least = if w.dtype() == DType::F16 { 6e-8 } else { 0.0 };
                if (g - e).abs() > inside * (k + 2.0) * terms + unit * e.abs() + least {
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
        "matmul f16 33x20 20x31",
        "matmul bf16 17x40 40x9",
        "matmul f64 33x20 20x31",
    ] {
        let w: Workload = text.parse().expect("a workload");
        let compared = check(&w, 3).unwrap_or_else(|e| panic!("{e}"));
        assert!(compared >= 3, "{text}: {compared}");
    }
}

#[test]
fn four_at_a_time_is_only_for_what_comes_in_fours() {
    let Some(kernels) = &*KERNELS else { return };
    let vec4 = kernels.iter().find(|k| k.name().ends_with("matmul-vec4")).expect("such a kernel");
    let takes = |text: &str| vec4.supports(&text.parse().expect("a workload")).is_ok();
    assert!(takes("matmul f32 5x7 7x8"));
    assert!(!takes("matmul f32 5x7 7x9"));
    assert!(!takes("matmul f32 5x7 7x8:1,7"));
    assert!(!takes("matmul i32 5x7 7x8"));
}

#[test]
fn i64_is_refused_with_a_reason() {
    let Some(kernels) = &*KERNELS else { return };
    let w: Workload = "matmul i64 5x7 7x8".parse().expect("a workload");
    for k in kernels.iter().filter(|k| k.handles(Op::MatMul)) {
        assert!(k.supports(&w).expect_err("no such type").0.contains("64-bit"), "{}", k.name());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn any_strides_and_batches_agree(
        (m, k, n) in (1usize..40, 0usize..40, 1usize..40),
        batch in prop::collection::vec(1usize..4, 0..=2),
        lies in prop::collection::vec(lie(), 3),
        d in prop::sample::select(vec![DType::F32, DType::F32, DType::I32, DType::F16]),
        seed in any::<u64>(),
    ) {
        let dims = |r: usize, c: usize| { let mut v = batch.clone(); v.extend([r, c]); v };
        let operands = [lies[0].operand(d, &dims(m, k), true), lies[1].operand(d, &dims(k, n), true)];
        let w = Workload::new(Op::MatMul, operands).expect("a product");
        let out = lies[2].operand(d, &w.output().dims, false);
        let w = w.with_output(out).expect("the same shape");
        check(&w, seed).map_err(TestCaseError::fail)?;
    }
}
