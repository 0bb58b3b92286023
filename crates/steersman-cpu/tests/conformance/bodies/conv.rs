//! Every kernel for convolutions, with every parameter it has, gives what the definition gives.

use crate::UNDER_TEST;
use crate::conformance::{Kernels, Memory, Random, lie, run, value};
use proptest::prelude::*;
use steersman_core::{DType, Op, Operand, Params, Workload, rounded_to_odd};

/// What a test file says of its device.
pub struct UnderTest {
    pub kernels: &'static Kernels,
    /// Runs of each type that there are at least, kernels by parameters.
    pub least: fn(DType) -> usize,
    /// Random shapes.
    pub cases: u32,
}

/// Shapes of every kind.
const SHAPES: &[&str] = &[
    "conv2d f32 1x1x1x1 1x1x1x1",
    "conv2d f32 2x3x8x9 4x3x3x3 pad=1",
    "conv2d f64 1x5x17x40 7x5x3x5 stride=2 pad=2",
    "conv2d f32 3x16x10x10 5x16x1x1",
    "conv2d f32 1x2x5x5 3x2x5x5",
    "conv2d f32 1x4x30x33 9x4x3x3 stride=3 pad=7",
    "conv2d f32 0x3x8x8 4x3x3x3",
    "conv2d f32 2x0x8x8 4x0x3x3",
    "conv2d f32 2x3x8x8 0x3x3x3",
    "conv2d f16 1x2x6x6 3x2x3x3 pad=1",
    "conv2d bf16 1x2x6x6 3x2x3x3 stride=2",
    // Patches of several blocks, and of several threads.
    "conv2d f32 2x64x20x21 6x64x3x3 pad=1",
];

/// The bits of a number in a type.
fn bits(dtype: DType, x: f64) -> u64 {
    match dtype {
        DType::F32 => (x as f32).to_bits().into(),
        DType::F64 => x.to_bits(),
        DType::F16 => half::f16::from_f32(rounded_to_odd(x)).to_bits().into(),
        _ => half::bf16::from_f32(rounded_to_odd(x)).to_bits().into(),
    }
}

/// Quarters: products and sums of a few hundred are exact in any order.
fn quarters(o: &Operand, random: &mut Random) -> Memory {
    Memory::filled(o, || bits(o.dtype, (random.below(17) as f64 - 8.0) / 4.0))
}

/// From the definition, in f64: what lies on the border adds nothing.
fn expected(w: &Workload, x: &Memory, f: &Memory) -> Vec<f64> {
    let Op::Conv2d { stride, pad } = w.op() else { unreachable!("a convolution") };
    let (stride, pad) = (stride as isize, pad as isize);
    let values = |m: &Memory, o: &Operand| -> Vec<f64> { m.elements(o).map(|b| value(o.dtype, b)).collect() };
    let (image, filter, out) = (&w.inputs()[0], &w.inputs()[1], w.output());
    let (x, f) = (values(x, image), values(f, filter));
    let d = |o: &Operand| -> [isize; 4] { std::array::from_fn(|i| o.dims[i] as isize) };
    let (di, df, dout) = (d(image), d(filter), d(out));
    let mut all = Vec::new();
    for i in 0..out.elements() as isize {
        let (column, row) = (i % dout[3], i / dout[3] % dout[2]);
        let (o, n) = (i / (dout[3] * dout[2]) % dout[1], i / (dout[3] * dout[2] * dout[1]));
        let mut sum = 0.0;
        for c in 0..di[1] {
            for ty in 0..df[2] {
                for tx in 0..df[3] {
                    let (r, k) = (row * stride + ty - pad, column * stride + tx - pad);
                    if (0..di[2]).contains(&r) && (0..di[3]).contains(&k) {
                        sum += x[(((n * di[1] + c) * di[2] + r) * di[3] + k) as usize]
                            * f[(((o * df[1] + c) * df[2] + ty) * df[3] + tx) as usize];
                    }
                }
            }
        }
        all.push(sum);
    }
    all
}

/// Every kernel that takes it, with every parameter it has, gives what the definition gives; how many runs, `None` without a
/// device.
fn check(w: &Workload, x: &Memory, f: &Memory) -> Result<Option<usize>, String> {
    let Some(kernels) = &**UNDER_TEST.kernels else { return Ok(None) };
    let want = expected(w, x, f);
    let mut ran = 0;
    for kernel in kernels.iter().filter(|k| k.supports(w).is_ok()) {
        let more = [Params::threads(2), Params::threads(3)];
        let extra = kernel.name().starts_with("cpu/") && kernel.name() != "cpu/conv-scalar";
        for p in kernel.space(w).into_iter().chain(more.into_iter().filter(|_| extra)) {
            let got = run(&**kernel, w, p, &[x.clone(), f.clone()])?;
            if got.gaps_touched(w.output()) {
                return Err(format!("{} {p} wrote outside of {w}", kernel.name()));
            }
            for (i, (&want, got)) in want.iter().zip(got.elements(w.output())).enumerate() {
                let (rounded, got) = (value(w.dtype(), bits(w.dtype(), want)), value(w.dtype(), got));
                if rounded != got && !(rounded.is_nan() && got.is_nan()) {
                    return Err(format!("{} {p} on {w}: element {i} is {got}, not {rounded}", kernel.name()));
                }
            }
            ran += 1;
        }
    }
    Ok(Some(ran))
}

/// Numbers of a seed for both operands.
fn operands(w: &Workload, seed: u64) -> (Memory, Memory) {
    let mut random = Random::new(seed);
    (quarters(&w.inputs()[0], &mut random), quarters(&w.inputs()[1], &mut random))
}

#[test]
fn shapes_of_every_kind_come_out_right() {
    for text in SHAPES {
        let w: Workload = text.parse().expect("well formed");
        let (x, f) = operands(&w, 7);
        if let Some(ran) = check(&w, &x, &f).unwrap_or_else(|e| panic!("{e}")) {
            assert!(ran >= (UNDER_TEST.least)(w.dtype()), "{text}: {ran} runs");
        }
    }
}

#[test]
fn infinite_and_missing_numbers_reach_only_what_reads_them() {
    let w: Workload = "conv2d f32 1x2x6x20 5x2x3x3 pad=1".parse().expect("well formed");
    for (odd, which) in [(f64::NAN, 0), (f64::INFINITY, 0), (f64::NAN, 1), (f64::INFINITY, 1)] {
        let mut random = Random::new(3);
        let mut operand = |k: usize| {
            let mut at = 0;
            let o = &w.inputs()[k];
            Memory::filled(o, || {
                at += 1;
                let x = if k == which && at == 12 { odd } else { 1.0 + random.below(4) as f64 };
                bits(o.dtype, x)
            })
        };
        let (x, f) = (operand(0), operand(1));
        check(&w, &x, &f).unwrap_or_else(|e| panic!("{odd} in operand {which}: {e}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: UNDER_TEST.cases, failure_persistence: None, ..ProptestConfig::default() })]

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
        prop_assert_ne!(check(&w, &x, &f).map_err(TestCaseError::fail)?, Some(0));
    }
}
