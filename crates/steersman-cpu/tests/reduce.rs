//! Every reduction kernel, with every parameter it offers, agrees with the plain loops of
//! `cpu/reduce-scalar`: bit for bit where it says so, within the stated bounds elsewhere.

use half::{bf16, f16};
use proptest::prelude::*;
use std::sync::Arc;
use steersman_core::{
    Address, Axes, DType, DeviceId, Io, Kernel, NumericClass, Op, Operand, Params, ReduceOp, Strides,
    Workload, rounded_to_odd,
};
use steersman_cpu::{context::Context, host::Host, reduce, threads::Team};

fn kernels() -> Vec<Arc<dyn Kernel>> {
    let ctx = Context { device: DeviceId(0), team: Arc::new(Team::new(3)), host: Arc::new(Host::detect()) };
    reduce::kernels(&ctx)
}

/// `values` as elements of `dtype`, one after another.
fn encode(values: &[f64], dtype: DType) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len() * dtype.size() + 8);
    for &v in values {
        match dtype {
            DType::F32 => out.extend((v as f32).to_ne_bytes()),
            DType::F64 => out.extend(v.to_ne_bytes()),
            DType::F16 => out.extend(f16::from_f32(rounded_to_odd(v)).to_ne_bytes()),
            DType::BF16 => out.extend(bf16::from_f32(rounded_to_odd(v)).to_ne_bytes()),
            DType::I32 => out.extend(((v * 8.0) as i32).to_ne_bytes()),
            DType::I64 => out.extend(((v * 8.0) as i64).to_ne_bytes()),
            DType::U8 => out.push((v * 8.0).abs() as u8),
            DType::Bool => out.push((v > 0.0) as u8),
        }
    }
    out
}

fn decode(bytes: &[u8], dtype: DType) -> Vec<f64> {
    let of = |c: &[u8]| match dtype {
        DType::F32 => f32::from_ne_bytes(c.try_into().unwrap()) as f64,
        DType::F64 => f64::from_ne_bytes(c.try_into().unwrap()),
        DType::F16 => f16::from_ne_bytes(c.try_into().unwrap()).to_f64(),
        DType::BF16 => bf16::from_ne_bytes(c.try_into().unwrap()).to_f64(),
        DType::I32 => i32::from_ne_bytes(c.try_into().unwrap()) as f64,
        DType::I64 => i64::from_ne_bytes(c.try_into().unwrap()) as f64,
        DType::U8 | DType::Bool => c[0] as f64,
    };
    bytes.chunks_exact(dtype.size()).map(of).collect()
}

fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => f16::EPSILON.to_f64(),
        DType::BF16 => bf16::EPSILON.to_f64(),
        _ => f32::EPSILON as f64,
    }
}

/// How far a result over `n` elements of at most `most` may be from the reference `want`.
fn bound(kind: ReduceOp, dtype: DType, n: f64, most: f64, want: f64) -> f64 {
    let inside = if dtype == DType::F64 { f64::EPSILON } else { f32::EPSILON as f64 };
    let rounding = epsilon(dtype) * want.abs();
    rounding
        + match kind {
            ReduceOp::Sum => 32.0 * inside * n * most,
            ReduceOp::Mean => 32.0 * inside * most,
            ReduceOp::Norm => 32.0 * inside * want.abs(),
            ReduceOp::Prod => n * f64::EPSILON * want.abs() + f64::MIN_POSITIVE,
            ReduceOp::Var => 64.0 * f64::EPSILON * most * most,
            ReduceOp::Std => (64.0 * f64::EPSILON).sqrt() * most * f64::EPSILON.sqrt() + 1e-12 * want.abs(),
            _ => 0.0,
        }
}

struct Case {
    w: Workload,
    bytes: Vec<u64>,
    /// Byte of the first element.
    first: usize,
    most: f64,
}

impl Case {
    /// A workload over memory as large as its strides reach, filled from `values` over and over.
    fn new(w: Workload, values: &[f64]) -> Case {
        let input = &w.inputs()[0];
        let (mut low, mut high) = (0isize, 0isize);
        for (&n, &s) in input.dims.iter().zip(&input.strides) {
            let reach = (n.max(1) as isize - 1) * s;
            low += reach.min(0);
            high += reach.max(0);
        }
        let span = (high - low + 1) as usize;
        let all: Vec<f64> = values.iter().copied().cycle().take(span).collect();
        let raw = encode(&all, input.dtype);
        let mut bytes = vec![0u64; raw.len() / 8 + 1];
        // SAFETY: the words hold at least as many bytes.
        unsafe { std::ptr::copy_nonoverlapping(raw.as_ptr(), bytes.as_mut_ptr() as *mut u8, raw.len()) };
        let most = decode(&raw, input.dtype).iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let first = (-low) as usize * input.dtype.size();
        Case { w, bytes, first, most }
    }

    fn run(&self, k: &dyn Kernel, p: Params) -> Vec<u8> {
        let out = self.w.output().bytes();
        let mut y = vec![0x5au8; out + 8 + 64];
        let shift = y.as_ptr().align_offset(8);
        let x = Address(self.bytes.as_ptr() as u64 + self.first as u64);
        let inputs = [x];
        let io = Io::new(&inputs, Address::host(y[shift..].as_mut_ptr()));
        // SAFETY: both are as large as the workload's strides reach.
        unsafe { k.run(&self.w, p, io) }.unwrap();
        assert!(
            y[shift + out..].iter().all(|&b| b == 0x5a),
            "{} {p} wrote past the end: {}",
            k.name(),
            self.w
        );
        y[shift..shift + out].to_vec()
    }

    /// Runs every kernel that takes the workload; how many runs were compared.
    fn check(&self, kernels: &[Arc<dyn Kernel>]) -> usize {
        let w = &self.w;
        let Op::Reduce { kind, .. } = w.op() else { panic!("{w} is no reduction") };
        let reference = kernels.iter().find(|k| k.name() == "cpu/reduce-scalar").unwrap();
        let exact = self.run(&**reference, Params::SERIAL);
        let want = decode(&exact, w.output().dtype);
        let n = w.inputs()[0].elements() as f64 / w.output().elements().max(1) as f64;
        let mut compared = 0;
        for k in kernels.iter().filter(|k| k.supports(w).is_ok()) {
            for p in k.params(w) {
                let raw = self.run(&**k, p);
                compared += 1;
                if k.numerics(w) == NumericClass::Exact {
                    let got = decode(&raw, w.output().dtype);
                    assert_eq!(raw, exact, "{} {p} on {w}: {got:?} is not {want:?}", k.name());
                    continue;
                }
                for (i, (g, r)) in decode(&raw, w.output().dtype).into_iter().zip(&want).enumerate() {
                    let near = (g - r).abs() <= bound(kind, w.dtype(), n, self.most, *r);
                    let same = g == *r || g.is_nan() && r.is_nan();
                    assert!(near || same, "{} {p} on {w}, output {i}: {g} is not {r}", k.name());
                }
            }
        }
        compared
    }
}

/// Numbers of both signs and of several magnitudes, none of them zero.
fn values(n: usize) -> Vec<f64> {
    (0..n as u64)
        .map(|i| {
            let bits = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            bits as f64 / (1 << 24) as f64 * 4.0 - 2.0 + 1e-3
        })
        .collect()
}

fn every_kind_and_type() -> impl Iterator<Item = (ReduceOp, DType)> {
    let pairs = ReduceOp::ALL.iter().flat_map(|k| DType::ALL.map(|d| (*k, d)));
    pairs.filter(|(k, d)| k.takes(*d))
}

#[test]
fn every_kind_and_type_over_rows_columns_and_all() {
    let kernels = kernels();
    for (kind, dtype) in every_kind_and_type() {
        for shape in
            ["1", "5", "16", "517", "70x33 axis=0", "70x33 axis=1", "9x4x21 axis=1", "9x4x21 axis=0,2"]
        {
            let w = format!("{} {dtype} {shape}", kind.name()).parse().unwrap();
            let compared = Case::new(w, &values(4001)).check(&kernels);
            assert!(compared >= 2, "only the reference takes {} {dtype} {shape}", kind.name());
        }
    }
}

#[test]
fn work_for_several_threads_is_split_and_joined() {
    let kernels = kernels();
    for (kind, dtype) in every_kind_and_type() {
        for shape in ["300011", "200x2003 axis=1", "200000x3 axis=0", "600x700 axis=0", "30x300x70 axis=1"] {
            let w: Workload = format!("{} {dtype} {shape}", kind.name()).parse().unwrap();
            assert!(
                kernels.iter().any(|k| k.supports(&w).is_ok() && k.params(&w).len() > 1),
                "{w} is not split"
            );
            Case::new(w, &values(1009)).check(&kernels);
        }
    }
}

#[test]
fn short_rows_are_reduced_like_long_ones() {
    let kernels = kernels();
    for kind in ReduceOp::ALL {
        for n in 1..=18 {
            let w = format!("{} f32 103x{n} axis=1", kind.name()).parse().unwrap();
            Case::new(w, &values(997)).check(&kernels);
        }
    }
}

#[test]
fn nan_wins_extremes_and_infinities_stay() {
    let kernels = kernels();
    for special in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
        for (kind, dtype) in every_kind_and_type().filter(|(_, d)| d.is_float()) {
            for shape in ["40", "300", "5000", "40x40 axis=0", "40x40 axis=1", "600x4 axis=1"] {
                // A long product vanishes in some orders before it meets the infinity: 0·∞ is NaN.
                if kind == ReduceOp::Prod && shape == "5000" {
                    continue;
                }
                for at in [0, 17, 39] {
                    let mut values = values(5003);
                    values[at] = special;
                    values[at + 200] = special;
                    let w = format!("{} {dtype} {shape}", kind.name()).parse().unwrap();
                    let mut case = Case::new(w, &values);
                    case.most = 2.0;
                    case.check(&kernels);
                }
            }
        }
    }
}

#[test]
fn nothing_reduces_to_the_identity() {
    let kernels = kernels();
    let cases = [
        ("sum", 0.0),
        ("prod", 1.0),
        ("norm", 0.0),
        ("mean", f64::NAN),
        ("var", f64::NAN),
        ("any", 0.0),
        ("all", 1.0),
    ];
    for (op, want) in cases {
        for shape in ["0", "0x3 axis=0", "3x0 axis=1"] {
            let w: Workload = format!("{op} f32 {shape}").parse().unwrap();
            let case = Case::new(w, &[1.0]);
            for k in kernels.iter().filter(|k| k.supports(&case.w).is_ok()) {
                let got = decode(&case.run(&**k, Params::SERIAL), case.w.output().dtype);
                let right = got.iter().all(|g| *g == want || g.is_nan() && want.is_nan());
                assert!(right, "{} on {}: {got:?}", k.name(), case.w);
            }
        }
    }
}

#[test]
fn the_reference_knows_the_answers() {
    let kernels = kernels();
    let cases = [
        ("sum f32 4", 2.0),
        ("mean f32 4", 0.5),
        ("prod f32 4", -24.0),
        ("min f32 4", -4.0),
        ("max f32 4", 3.0),
        ("argmin f32 4", 3.0),
        ("argmax f32 4", 2.0),
        ("any f32 4", 1.0),
        ("all f32 4", 1.0),
        ("norm f32 4", 30f32.sqrt() as f64),
        ("var f32 4", 7.25),
        ("std f32 4", 7.25f32.sqrt() as f64),
        ("sum i32 4", 16.0),
    ];
    for (text, want) in cases {
        let case = Case::new(text.parse().unwrap(), &[1.0, 2.0, 3.0, -4.0]);
        let got = decode(&case.run(&*kernels[0], Params::SERIAL), case.w.output().dtype);
        assert_eq!(got, [want], "{text}");
    }
}

#[test]
fn a_large_offset_does_not_drown_the_variance() {
    let kernels = kernels();
    let values: Vec<f64> = (0..10_000).map(|i| 65536.0 + (i % 2) as f64).collect();
    for text in ["var f32 10000", "var f64 10000", "var f32 5000x2 axis=1", "var f32 100x100 axis=0"] {
        let case = Case::new(text.parse().unwrap(), &values);
        for k in kernels.iter().filter(|k| k.supports(&case.w).is_ok()) {
            for p in k.params(&case.w) {
                let got = decode(&case.run(&**k, p), case.w.output().dtype);
                let want = if text.contains("axis=0") { 0.0 } else { 0.25 };
                assert!(
                    got.iter().all(|g| (g - want).abs() < 1e-9),
                    "{} {p} on {text}: {:?}",
                    k.name(),
                    got[0]
                );
            }
        }
    }
}

#[test]
fn rows_and_columns_are_told_apart_with_a_reason() {
    let (rows, columns): (Workload, Workload) =
        ("sum f32 8x8 axis=1".parse().unwrap(), "sum f32 8x8 axis=0".parse().unwrap());
    for k in kernels().iter().filter(|k| k.name() != "cpu/reduce-scalar") {
        let (taken, refused) = if k.name().contains("rows") { (&rows, &columns) } else { (&columns, &rows) };
        assert!(k.supports(taken).is_ok(), "{} refuses {taken}", k.name());
        assert!(
            k.supports(refused).unwrap_err().0.contains("innermost axis"),
            "{} takes {refused}",
            k.name()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_shape_axes_and_strides(
        dims in prop::collection::vec(prop::sample::select(vec![1usize, 2, 3, 5, 8, 17, 33, 70]), 1..4),
        axes in any::<u8>(),
        shuffle in any::<prop::sample::Index>(),
        steps in prop::collection::vec(prop::sample::select(vec![0isize, 1, 1, 1, -1, 2]), 4),
        pair in any::<prop::sample::Index>(),
        spread in any::<bool>(),
    ) {
        let rank = dims.len();
        let mut order: Vec<usize> = (0..rank).collect();
        order.rotate_left(shuffle.index(rank));
        let mut strides: Strides = Strides::from_elem(0, rank);
        let mut step = 1;
        for &axis in order.iter().rev() {
            strides[axis] = step * steps[axis];
            step *= dims[axis] as isize * steps[axis].abs().max(1) + spread as isize * 3;
        }
        let pairs: Vec<_> = every_kind_and_type().collect();
        let (kind, dtype) = pairs[pair.index(pairs.len())];
        let list: Vec<usize> = (0..rank).filter(|a| axes & (1 << a) != 0).collect();
        let op = Op::Reduce { kind, axes: Axes::from_list(&list).unwrap() };
        let w = Workload::new(op, [Operand::strided(dtype, &dims, strides).unwrap()]).unwrap();
        Case::new(w, &values(2003)).check(&kernels());
    }
}
