//! Random graphs against an interpreter in f64, fused and op by op.

use crate::runtime_with;
use proptest::prelude::*;
use steersman::core::DType;
use steersman::{Array, Over, Runtime, Slice};

/// Row-major elements of the interpreter.
#[derive(Clone, Debug)]
struct Plain {
    dims: Vec<usize>,
    data: Vec<f64>,
}

fn unravel(mut flat: usize, dims: &[usize]) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for (i, &d) in index.iter_mut().zip(dims).rev() {
        *i = flat % d;
        flat /= d;
    }
    index
}

impl Plain {
    /// Made element by element from its index.
    fn make(dims: Vec<usize>, f: impl Fn(&[usize]) -> f64) -> Plain {
        let n = dims.iter().product();
        let data = (0..n).map(|i| f(&unravel(i, &dims))).collect();
        Plain { dims, data }
    }

    /// Read as if stretched to a shape of at least as many dimensions.
    fn stretched(&self, index: &[usize]) -> f64 {
        let lead = index.len() - self.dims.len();
        let flat =
            index[lead..].iter().zip(&self.dims).fold(0, |f, (&i, &d)| f * d + if d == 1 { 0 } else { i });
        self.data[flat]
    }

    fn map(&self, f: impl Fn(f64) -> f64) -> Plain {
        Plain { dims: self.dims.clone(), data: self.data.iter().map(|&x| f(x)).collect() }
    }

    fn reduce(&self, axes: &[usize], f: impl Fn(&[f64]) -> f64) -> Plain {
        let dims: Vec<usize> =
            (0..self.dims.len()).map(|a| if axes.contains(&a) { 1 } else { self.dims[a] }).collect();
        let n: usize = dims.iter().product();
        let mut parts = vec![Vec::new(); n];
        for (i, &x) in self.data.iter().enumerate() {
            let at = unravel(i, &self.dims);
            let flat = at.iter().zip(&dims).fold(0, |f, (&i, &d)| f * d + i.min(d - 1));
            parts[flat].push(x);
        }
        Plain { dims, data: parts.iter().map(|p| f(p)).collect() }
    }
}

fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |d: &[usize], i: usize| (i + d.len()).checked_sub(rank).map_or(1, |j| d[j]);
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// One operation on earlier values, named by numbers that wrap round.
#[derive(Clone, Debug)]
enum Step {
    Unary(u8, usize),
    Binary(u8, usize, usize),
    Number(u8, usize, i8),
    Where(usize, usize, usize),
    Reduce(u8, usize, u8),
    MatMul(usize, usize),
    Transpose(usize),
    Slice(usize, usize),
    Round(usize),
    Read(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let v = 0..64usize;
    prop_oneof![
        4 => (0..6u8, v.clone()).prop_map(|(o, a)| Step::Unary(o, a)),
        4 => (0..5u8, v.clone(), v.clone()).prop_map(|(o, a, b)| Step::Binary(o, a, b)),
        3 => (0..4u8, v.clone(), any::<i8>()).prop_map(|(o, a, k)| Step::Number(o, a, k)),
        1 => (v.clone(), v.clone(), v.clone()).prop_map(|(a, b, c)| Step::Where(a, b, c)),
        3 => (0..5u8, v.clone(), 0..8u8).prop_map(|(o, a, x)| Step::Reduce(o, a, x)),
        1 => (v.clone(), v.clone()).prop_map(|(a, b)| Step::MatMul(a, b)),
        1 => v.clone().prop_map(Step::Transpose),
        1 => (v.clone(), 0..8usize).prop_map(|(a, k)| Step::Slice(a, k)),
        1 => v.clone().prop_map(Step::Round),
        1 => v.prop_map(Step::Read),
    ]
}

/// Does a step both ways; `None` where shapes do not fit.
fn apply(step: &Step, arrays: &[Array], plains: &[Plain]) -> Option<(Array, Plain)> {
    let n = arrays.len();
    let first = match step {
        Step::Unary(_, i) | Step::Binary(_, i, _) | Step::Number(_, i, _) | Step::Where(i, ..) => i % n,
        Step::Reduce(_, i, _) | Step::MatMul(i, _) | Step::Transpose(i) | Step::Slice(i, _) => i % n,
        Step::Round(i) | Step::Read(i) => i % n,
    };
    let (a, p) = (&arrays[first], &plains[first]);
    // Functions that keep values between -2 and 2, so that chains of any length stay well conditioned.
    Some(match *step {
        Step::Unary(o, _) => match o {
            0 => (a.tanh(), p.map(f64::tanh)),
            1 => (a.sin(), p.map(f64::sin)),
            2 => (a.neg(), p.map(|x| -x)),
            3 => (a.abs(), p.map(f64::abs)),
            4 => ((a * a + 1.0).sqrt() / 2.0, p.map(|x| (x * x + 1.0).sqrt() / 2.0)),
            _ => (a.sigmoid(), p.map(|x| 1.0 / (1.0 + (-x).exp()))),
        },
        Step::Binary(o, _, j) => {
            let (b, q) = (&arrays[j % n], &plains[j % n]);
            let dims = broadcast(&p.dims, &q.dims)?;
            let two =
                |f: fn(f64, f64) -> f64| Plain::make(dims.clone(), |i| f(p.stretched(i), q.stretched(i)));
            match o {
                0 => ((a + b) * 0.5, two(|x, y| (x + y) * 0.5)),
                1 => ((a - b).tanh(), two(|x, y| (x - y).tanh())),
                2 => ((a * b).sin(), two(|x, y| (x * y).sin())),
                3 => (a.minimum(b), two(f64::min)),
                _ => (a.maximum(b), two(f64::max)),
            }
        }
        Step::Number(o, _, k) => {
            let k = f64::from(k) / 128.0;
            match o {
                0 => ((a + k) * 0.5, p.map(|x| (x + k) * 0.5)),
                1 => (a * k, p.map(|x| x * k)),
                2 => ((k - a).tanh(), p.map(|x| (k - x).tanh())),
                _ => (a.clamp(-0.5, k.abs()), p.map(|x| x.max(-0.5).min(k.abs()))),
            }
        }
        Step::Where(_, i, j) => {
            let ((b, q), (c, r)) = ((&arrays[i % n], &plains[i % n]), (&arrays[j % n], &plains[j % n]));
            let dims = broadcast(&broadcast(&p.dims, &q.dims)?, &r.dims)?;
            // Compared with a number that no value is near of by chance of rounding.
            let condition = a.gt(0.123456789);
            let near = p.data.iter().any(|x| (x - 0.123456789).abs() < 1e-4);
            if near {
                return None;
            }
            let pick =
                |i: &[usize]| if p.stretched(i) > 0.123456789 { q.stretched(i) } else { r.stretched(i) };
            (condition.where_(b, c), Plain::make(dims, pick))
        }
        Step::Reduce(o, _, bits) => {
            let axes: Vec<usize> = (0..p.dims.len()).filter(|a| bits & 1 << a != 0).collect();
            let over = || Over::axes(axes.iter().copied()).keep();
            if axes.is_empty() {
                return None;
            }
            let len = |s: &[f64]| s.len() as f64;
            let (x, y) = match o {
                0 => (a.mean(over()), p.reduce(&axes, |s| s.iter().sum::<f64>() / len(s))),
                1 => (a.max(over()), p.reduce(&axes, |s| s.iter().copied().fold(f64::MIN, f64::max))),
                2 => (a.min(over()), p.reduce(&axes, |s| s.iter().copied().fold(f64::MAX, f64::min))),
                3 => (a.sum(over()).tanh(), p.reduce(&axes, |s| s.iter().sum::<f64>().tanh())),
                _ => (
                    a.var(over()),
                    p.reduce(&axes, |s| {
                        let mean = s.iter().sum::<f64>() / len(s);
                        s.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / len(s)
                    }),
                ),
            };
            (x, y)
        }
        Step::MatMul(_, j) => {
            let (b, q) = (&arrays[j % n], &plains[j % n]);
            let (&[m, k], &[k2, w]) = (&p.dims[..], &q.dims[..]) else { return None };
            if k != k2 {
                return None;
            }
            let dot = |i: &[usize]| {
                (0..k).map(|x| p.data[i[0] * k + x] * q.data[x * w + i[1]]).sum::<f64>() / k as f64
            };
            (a.matmul(b) * (1.0 / k as f64), Plain::make(vec![m, w], dot))
        }
        Step::Transpose(_) => {
            let dims: Vec<usize> = p.dims.iter().rev().copied().collect();
            let flipped = |i: &[usize]| p.stretched(&i.iter().rev().copied().collect::<Vec<_>>());
            (a.t(), Plain::make(dims, flipped))
        }
        Step::Slice(_, k) => {
            if p.dims.is_empty() {
                return None;
            }
            let axis = k % p.dims.len();
            let d = p.dims[axis];
            if d < 2 {
                return None;
            }
            let mut slices = vec![Slice::ALL; p.dims.len()];
            let backwards = k % 2 == 1;
            slices[axis] = if backwards { Slice::ALL.step(-1) } else { Slice::from(1..d) };
            let mut dims = p.dims.clone();
            dims[axis] = if backwards { d } else { d - 1 };
            let from = |i: &[usize]| {
                let mut at = i.to_vec();
                at[axis] = if backwards { d - 1 - i[axis] } else { i[axis] + 1 };
                p.stretched(&at)
            };
            (a.slice(&slices[..]), Plain::make(dims, from))
        }
        // Through integers and back: exact for whole numbers, which these are made to be first.
        Step::Round(_) => {
            if p.data.iter().any(|x| ((x * 4.0).fract().abs() - 0.5).abs() < 1e-3) {
                return None;
            }
            let back = (a * 4.0).round().cast(DType::I32).cast(a.dtype()) / 4.0;
            (back, p.map(|x| (x * 4.0).round_ties_even() / 4.0))
        }
        Step::Read(_) => {
            a.eval().unwrap();
            return None;
        }
    })
}

fn check(rt: &Runtime, dtype: DType, tolerance: f64, casts: bool, seeds: &[usize], steps: &[Step]) {
    let shapes: [&[usize]; 5] = [&[4, 6], &[6], &[4, 1], &[6, 4], &[2, 4, 6]];
    let (mut arrays, mut plains) = (Vec::new(), Vec::new());
    for (i, &seed) in seeds.iter().enumerate() {
        let dims = shapes[seed % shapes.len()].to_vec();
        let value = |index: &[usize]| {
            let flat = index.iter().fold(seed * 31 + i, |f, x| f * 7 + x);
            ((flat * 2_654_435_761) % 1000) as f64 / 500.0 - 1.0
        };
        let plain = Plain::make(dims.clone(), value);
        let array = match dtype {
            DType::F64 => rt.from_vec(plain.data.clone(), &dims),
            _ => rt.from_vec(plain.data.iter().map(|&x| x as f32).collect(), &dims),
        };
        arrays.push(array.unwrap());
        plains.push(plain);
    }
    for s in steps {
        if !casts && matches!(s, Step::Round(_)) {
            continue;
        }
        if let Some((a, p)) = apply(s, &arrays, &plains) {
            assert_eq!(a.check(), Ok(()), "{s:?}");
            assert_eq!(a.shape(), &p.dims[..], "{s:?}");
            arrays.push(a);
            plains.push(p);
        }
    }
    // The last few in one plan, then all that is left one by one.
    let from = arrays.len().saturating_sub(3);
    rt.eval_all(&arrays[from..].iter().collect::<Vec<_>>()).unwrap();
    for (i, (a, p)) in arrays.iter().zip(&plains).enumerate().rev() {
        let got: Vec<f64> = match dtype {
            DType::F64 => a.to_vec().unwrap(),
            _ => a.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect(),
        };
        for (x, y) in got.iter().zip(&p.data) {
            assert!((x - y).abs() <= tolerance, "value {i} is {x} instead of {y}");
        }
    }
}

fn seeds() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..100usize, 2..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fused_graphs_agree_with_the_interpreter_in_f64(
        seeds in seeds(), steps in prop::collection::vec(step(), 1..25),
    ) {
        thread_local!(static RT: Runtime = runtime_with(&[]));
        check(&RT.with(|rt| rt.clone()), DType::F64, 1e-9, true, &seeds, &steps);
    }

    #[test]
    fn fused_graphs_agree_with_the_interpreter_in_f32(
        seeds in seeds(), steps in prop::collection::vec(step(), 1..25),
    ) {
        thread_local!(static RT: Runtime = runtime_with(&[]));
        // Rounding to a quarter may fall the other way in f32.
        check(&RT.with(|rt| rt.clone()), DType::F32, 1e-4, false, &seeds, &steps);
    }

    #[test]
    fn graphs_run_op_by_op_agree_too(
        seeds in seeds(), steps in prop::collection::vec(step(), 1..25),
    ) {
        thread_local!(static RT: Runtime = runtime_with(&[("disable", "cpu/fused*")]));
        // Casts have no kernel but the fused ones.
        check(&RT.with(|rt| rt.clone()), DType::F64, 1e-9, false, &seeds, &steps);
    }
}
