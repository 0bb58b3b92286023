use crate::runtime;
use std::sync::Arc;
use steersman::core::{DType, ReduceOp};
use steersman::{Array, Axis, Over, Runtime, Seed};

fn v(a: &Array) -> Vec<f32> {
    a.to_vec().unwrap()
}

#[test]
fn operators_and_methods_compute_what_they_say() {
    let rt = runtime();
    let a = rt.from_slice(&[1.0f32, 2.0, 3.0], [3]).unwrap();
    let b = rt.from_slice(&[10.0f32, 20.0, 30.0], [3]).unwrap();
    assert_eq!(v(&(&a + &b)), [11.0, 22.0, 33.0]);
    assert_eq!(v(&(&a + 2.0)), [3.0, 4.0, 5.0]);
    assert_eq!(v(&(2.0 - &a)), [1.0, 0.0, -1.0]);
    assert_eq!(v(&-&a), [-1.0, -2.0, -3.0]);
    assert_eq!(v(&(a.clone() * b.clone() / 2)), [5.0, 20.0, 45.0]);
    assert_eq!(v(&a.maximum(2.0)), [2.0, 2.0, 3.0]);
    assert_eq!(v(&a.clamp(1.5, 2.5)), [1.5, 2.0, 2.5]);
    assert_eq!(v(&a.fma(&b, 1.0)), [11.0, 41.0, 91.0]);
    assert_eq!(a.gt(1.5).to_vec::<bool>().unwrap(), [false, true, true]);
    assert_eq!(v(&a.gt(1.5).where_(&b, 0.0)), [0.0, 20.0, 30.0]);
    assert_eq!(v(&a.gt(1.5).where_(1.0, 0.0)), [0.0, 1.0, 1.0]);
    let both = a.gt(1.5) & a.lt(2.5);
    assert_eq!((!both).to_vec::<bool>().unwrap(), [true, false, true]);
    assert_eq!(a.sum(..).item::<f32>().unwrap(), 6.0);
    assert_eq!(a.matmul(&b).item::<f32>().unwrap(), 140.0);
}

#[test]
fn the_readme_chain_runs_without_naming_a_device() {
    let rt = runtime();
    let x = rt.from_vec((0..12).map(|i| i as f32 - 6.0).collect(), [4, 3]).unwrap();
    let w = rt.from_vec(vec![1.0f32; 6], [3, 2]).unwrap();
    let bias = rt.from_vec(vec![0.5f32, -100.0], [2]).unwrap();
    let y = x.matmul(&w).add(&bias).relu().mean(Axis(0));
    // Rows sum to -15, -6, 3, 12.
    assert_eq!(v(&y), [(3.5 + 12.5) / 4.0, 0.0]);
}

#[test]
fn matrix_products_of_vectors_and_stacks_have_the_standards_shapes() {
    let rt = runtime();
    let ones = |shape: &[usize]| rt.from_vec(vec![1.0f32; shape.iter().product()], shape).unwrap();
    for (a, b, want) in [
        (&[3][..], &[3][..], &[][..]),
        (&[2, 3], &[3], &[2]),
        (&[3], &[3, 4], &[4]),
        (&[5, 2, 3], &[3], &[5, 2]),
        (&[3], &[5, 3, 4], &[5, 4]),
        (&[5, 1, 2, 3], &[7, 3, 4], &[5, 7, 2, 4]),
    ] {
        let c = ones(a).matmul(&ones(b));
        assert_eq!(c.shape(), want, "{a:?} · {b:?}");
        assert!(v(&c).iter().all(|&x| x == 3.0));
    }
}

#[test]
fn reductions_take_axes_as_people_write_them() {
    let rt = runtime();
    let a = rt.from_vec((0..24).map(|i| i as f32).collect(), [2, 3, 4]).unwrap();
    assert_eq!(v(&a.sum(Axis(-1))), [6.0, 22.0, 38.0, 54.0, 70.0, 86.0]);
    assert_eq!(v(&a.max([0, 2])), [15.0, 19.0, 23.0]);
    assert_eq!(a.mean(Over::all().keep()).shape(), [1, 1, 1]);
    assert_eq!(a.argmax(1).to_vec::<i64>().unwrap(), [2; 8]);
    assert_eq!(v(&a.sum(Over::axes([0isize; 0]))), v(&a), "no axes: nothing is reduced");
    assert_eq!(v(&(&a - &a.mean(Over::axes([1, 2]).keep())).sum([1, 2])), [0.0, 0.0]);
    let scalar = a.sum(..);
    assert_eq!(scalar.max(..).item::<f32>().unwrap(), 276.0, "a scalar reduces to itself");
}

#[test]
fn integers_sum_to_i64_and_bools_count() {
    let rt = runtime();
    let a = rt.from_vec(vec![200u8; 10], [10]).unwrap();
    assert_eq!(a.sum(..).item::<i64>().unwrap(), 2000);
    let b = rt.from_vec(vec![1.0f32, 5.0, 9.0], [3]).unwrap();
    assert_eq!(b.gt(2.0).sum(..).item::<i64>().unwrap(), 2);
}

#[test]
fn generators_give_what_they_say() {
    let rt = runtime();
    assert_eq!(v(&rt.zeros::<f32>([2, 2])), [0.0; 4]);
    assert_eq!(rt.ones::<bool>([2]).to_vec::<bool>().unwrap(), [true; 2]);
    assert_eq!(v(&rt.full([3], 2.5f32)), [2.5; 3]);
    assert_eq!(rt.scalar(7i64).item::<i64>().unwrap(), 7);
    assert_eq!(rt.arange(2i32, 11, 3).to_vec::<i32>().unwrap(), [2, 5, 8]);
    assert_eq!(rt.arange(5i64, 0, -2).to_vec::<i64>().unwrap(), [5, 3, 1]);
    assert_eq!(v(&rt.arange(0.0f32, 1.0, 0.25)), [0.0, 0.25, 0.5, 0.75]);
    assert!(rt.arange(3i32, 3, 1).to_vec::<i32>().unwrap().is_empty());
    assert_eq!(v(&rt.linspace(1.0f32, 2.0, 5)), [1.0, 1.25, 1.5, 1.75, 2.0]);
    let line = rt.linspace(0.1f64, 0.7, 50).to_vec::<f64>().unwrap();
    assert_eq!((line[0], line[49]), (0.1, 0.7), "both ends exactly");
    assert_eq!(v(&rt.linspace(3.0f32, 9.0, 1)), [3.0]);
    assert_eq!(rt.eye::<i32>(3).to_vec::<i32>().unwrap(), [1, 0, 0, 0, 1, 0, 0, 0, 1]);
}

#[test]
fn casts_keep_cut_or_saturate() {
    let rt = runtime();
    let a = rt.from_vec(vec![1.9f32, -2.9, 300.0, f32::NAN, 0.0], [5]).unwrap();
    assert_eq!(a.cast(DType::I32).to_vec::<i32>().unwrap(), [1, -2, 300, 0, 0]);
    assert_eq!(a.cast(DType::U8).to_vec::<u8>().unwrap(), [1, 0, 255, 0, 0]);
    assert_eq!(a.cast(DType::Bool).to_vec::<bool>().unwrap(), [true, true, true, true, false]);
    let whole = rt.from_vec(vec![1i64 << 40, -1], [2]).unwrap();
    assert_eq!(whole.cast(DType::F64).to_vec::<f64>().unwrap(), [(1u64 << 40) as f64, -1.0]);
}

#[test]
fn random_numbers_are_a_function_of_seed_and_position() {
    let rt = runtime();
    let same = |a: &Array, b: &Array| a.eq(b).all(..).item::<bool>().unwrap();
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(x, y)| (x - y).abs() <= 1e-6 * y.abs());
    let one = rt.uniform([1000], Seed(7));
    assert!(same(&one, &(rt.uniform([1000], Seed(7)) * 2.0 / 2.0)), "also inside a fused group");
    assert!(v(&one) == v(&runtime().uniform([1000], Seed(7))), "and in another runtime");
    assert!(!same(&one, &rt.uniform([1000], Seed(8))));
    // Normal numbers may differ in the last digits where another instruction set computed them.
    let one = rt.normal([1000], Seed(7));
    assert!(near(&v(&one), &v(&(rt.normal([1000], Seed(7)) * 2.0 / 2.0))));
    assert!(!near(&v(&one), &v(&rt.normal([1000], Seed(8)))));
    let n = rt.normal([200_000], Seed(1));
    let (mean, deviation) = (n.mean(..).item::<f32>().unwrap(), n.std(..).item::<f32>().unwrap());
    assert!(mean.abs() < 0.01 && (deviation - 1.0).abs() < 0.01, "{mean} {deviation}");
    let u = rt.uniform([100_000], Seed(2));
    assert!(u.ge(0.0).all(..).item::<bool>().unwrap() && u.lt(1.0).all(..).item::<bool>().unwrap());
    let mean = u.mean(..).item::<f32>().unwrap();
    assert!((mean - 0.5).abs() < 0.01, "{mean}");
}

#[test]
fn reading_contiguous_data_copies_nothing() {
    let rt = runtime();
    let vector = vec![1.0f32, 2.0, 3.0, 4.0];
    let at = vector.as_ptr();
    let a = rt.from_vec(vector, [2, 2]).unwrap();
    assert_eq!(a.data::<f32>().unwrap().as_ptr(), at);
    let row = a.index(0, 1);
    assert_eq!(row.data::<f32>().unwrap().as_ptr(), at.wrapping_add(2), "a row is a view");
    let kept = a.reshape([4]).data::<f32>().unwrap();
    drop((a, row));
    assert_eq!(*kept, [1.0, 2.0, 3.0, 4.0], "the memory stays while someone looks at it");
}

#[test]
fn what_only_passed_through_is_kept_the_second_time() {
    let rt = runtime();
    let x = rt.from_vec(vec![0.5f32; 1000], [1000]).unwrap();
    let state = x.exp().ln().exp();
    assert!((state.sum(..).item::<f32>().unwrap() - 1648.7213).abs() < 0.1);
    assert!(!state.is_ready(), "fused into the sum");
    let _ = state.max(..).item::<f32>().unwrap();
    assert!(state.is_ready(), "needed twice, so kept");
}

#[test]
fn a_state_that_is_carried_on_does_not_grow() {
    let rt = runtime();
    let mut state = rt.from_vec(vec![1.0f32; 64], [64]).unwrap();
    let mut nodes = Vec::new();
    for _ in 0..40 {
        state = (&state * 0.5).exp() * 0.25;
        let total = state.sum(..);
        nodes.push(rt.explain(&total).unwrap().nodes);
        total.eval().unwrap();
    }
    assert!(nodes[39] <= nodes[10] + 1 && nodes[39] < 20, "{nodes:?}");
}

#[test]
fn loops_over_one_expression_plan_once_whatever_the_numbers() {
    let rt = runtime();
    let x = rt.from_vec(vec![1.0f32; 100], [100]).unwrap();
    let y = |k: f32| ((&x * k).exp() + (k + 1.0)).sum(..).item::<f32>().unwrap();
    // The second call may find x where the first one brought it.
    y(0.25);
    y(0.26);
    let plans = rt.plans();
    for i in 0..20 {
        let k = 0.5 + i as f32 * 0.01;
        let want = 100.0 * (k.exp() + k + 1.0);
        assert!((y(k) - want).abs() < want * 1e-5);
    }
    assert_eq!(rt.plans(), plans);
}

#[test]
fn equal_expressions_are_computed_once() {
    let rt = runtime();
    let x = rt.from_vec(vec![1.0f32; 10], [10]).unwrap();
    let y = (&x * 2.0).exp() + (&x * 2.0).exp();
    let plan = rt.explain(&y).unwrap();
    assert_eq!((plan.nodes, plan.expressions), (6, 4), "{plan}");
}

#[test]
fn two_threads_may_read_one_graph_at_once() {
    let rt = runtime();
    for _ in 0..50 {
        let x = rt.from_vec((0..500).map(|i| i as f32).collect(), [500]).unwrap();
        let shared = Arc::new(((&x * 2.0) + 1.0).matmul(&x.reshape([500, 1])));
        let sum = shared.clone();
        let want: f32 = (0..500).map(|i| (i as f32 * 2.0 + 1.0) * i as f32).sum();
        std::thread::scope(|s| {
            for _ in 0..4 {
                let sum = sum.clone();
                s.spawn(move || {
                    let y = &*sum + 0.0;
                    let got = y.to_vec::<f32>().unwrap()[0];
                    assert!((got - want).abs() < 1e-3 * want, "{got} {want}");
                    let got = sum.to_vec::<f32>().unwrap()[0];
                    assert!((got - want).abs() < 1e-3 * want, "{got} {want}");
                });
            }
        });
    }
}

#[test]
fn arrays_print_as_numpy_prints_them() {
    let rt = runtime();
    let show = |a: &Array| a.to_string();
    let f = |rt: &Runtime, x: &[f32], shape: &[usize]| rt.from_slice(x, shape).unwrap();
    assert_eq!(show(&f(&rt, &[1.0, 2.5, -3.25, 4.0], &[2, 2])), "[[ 1.    2.5 ]\n [-3.25  4.  ]]");
    assert_eq!(show(&f(&rt, &[0.1], &[])), "0.1");
    assert_eq!(show(&f(&rt, &[1e-5, 1.0], &[2])), "[1.e-05 1.e+00]");
    assert_eq!(show(&f(&rt, &[f32::NAN, 1.0], &[2])), "[nan  1.]");
    assert_eq!(show(&rt.from_slice(&[true, false], [2]).unwrap()), "[ True False]");
    assert_eq!(show(&rt.from_slice(&[1i32, -20, 300], [3]).unwrap()), "[  1 -20 300]");
    assert_eq!(show(&f(&rt, &[], &[0])), "[]");
    let long: Vec<i32> = (0..2000).collect();
    assert_eq!(show(&rt.from_vec(long, [2000]).unwrap()), "[   0    1    2 ... 1997 1998 1999]");
    let cube: Vec<i32> = (0..8).collect();
    assert_eq!(show(&rt.from_vec(cube, [2, 2, 2]).unwrap()), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
    let square: Vec<i32> = (0..2500).collect();
    let text = show(&rt.from_vec(square, [50, 50]).unwrap());
    assert!(text.starts_with("[[   0    1    2 ...   47   48   49]\n [  50"), "{text}");
    assert!(text.contains("\n ...\n [2350"), "{text}");
    let wide: Vec<f64> = (0..30).map(|i| i as f64 / 7.0).collect();
    assert!(show(&rt.from_vec(wide, [30]).unwrap()).lines().all(|l| l.len() <= 76));
}

#[test]
fn plans_show_stages_estimates_and_measured_times() {
    let rt = runtime();
    let x = rt.from_vec(vec![1.0f32; 1 << 16], [256, 256]).unwrap();
    let y = x.matmul(&x).exp().sum(Axis(0));
    let before = rt.explain(&y).unwrap();
    assert!(before.stages.len() >= 2 && before.measured_s.is_none());
    let peak = before.device_peak_bytes.values().copied().fold(before.peak_bytes, usize::max);
    assert!(peak >= 256 * 256 * 4, "{before}");
    y.eval().unwrap();
    let after = y.plan().unwrap();
    assert!(after.measured_s.is_some_and(|s| s > 0.0), "{after}");
    assert!(after.to_string().contains("matmul f32 256x256"), "{after}");
    assert!(after.to_dot().contains("s0 -> s1"), "{}", after.to_dot());
    assert!(after.to_svg().ends_with("</svg>\n"));
    let json: serde_json::Value = serde_json::from_str(&after.to_json()).unwrap();
    assert_eq!(json["stages"][0]["ops"], 1);
    assert_eq!(x.plan().unwrap().stages.len(), 0, "given, not computed");
}

#[test]
fn every_reduction_fuses_with_the_chain_before_it_over_leading_trailing_and_all_axes() {
    // Frozen, so that the plan does not depend on what was measured.
    let rt = crate::runtime_with(&[("frozen", "true")]);
    let x = rt.from_vec((0..60).map(|i| ((i * 37) % 61) as f32 / 61.0 + 0.25).collect(), [3, 4, 5]).unwrap();
    let chained = || ((&x * 2.0) - 0.5) * 0.5;
    let ready = chained();
    ready.eval().unwrap();
    for &kind in ReduceOp::ALL {
        for axes in [vec![0, 1, 2], vec![0], vec![0, 1], vec![2], vec![1, 2], vec![1]] {
            let y = chained().reduce(kind, Over::axes(axes.iter().copied()));
            let plan = y.plan().unwrap();
            if axes != [1] {
                assert_eq!(plan.stages.len(), 1, "{} over {axes:?}: {plan}", kind.name());
            }
            let want = ready.reduce(kind, Over::axes(axes.iter().copied()));
            assert_eq!(y.dtype(), want.dtype());
            let (y, want) = (y.cast(DType::F64), want.cast(DType::F64));
            for (a, b) in y.to_vec::<f64>().unwrap().iter().zip(want.to_vec::<f64>().unwrap()) {
                assert!((a - b).abs() <= 1e-5 * b.abs(), "{} over {axes:?}: {a} {b}", kind.name());
            }
        }
    }
}

#[test]
fn reductions_over_different_axes_of_one_chain_are_all_right() {
    let rt = runtime();
    let x = rt.from_vec((0..24).map(|i| i as f32).collect(), [4, 6]).unwrap();
    let y = &x * 2.0 + 1.0;
    let (rows, columns, all) = (y.sum(Axis(1)), y.sum(Axis(0)), y.sum(..));
    rt.eval_all(&[&rows, &columns, &all]).unwrap();
    assert_eq!(v(&rows), [36.0, 108.0, 180.0, 252.0]);
    assert_eq!(v(&columns), [76.0, 84.0, 92.0, 100.0, 108.0, 116.0]);
    assert_eq!(v(&all), [576.0]);
}

#[test]
fn results_that_read_the_same_array_are_computed_in_one_pass() {
    let rt = runtime();
    let x = rt.from_vec((0..600).map(|i| i as f32 / 600.0).collect(), [20, 30]).unwrap();
    let (sin, cos) = (x.sin(), x.cos());
    let (first, last) = ((&x * 2.0).sum(..), (&x * &x).sum(..));
    rt.eval_all(&[&sin, &cos, &first, &last]).unwrap();
    let plan = sin.plan().unwrap();
    assert_eq!(plan.stages.len(), 1, "{plan}");
    let value = |a: &steersman::Array, i: usize| a.to_vec::<f32>().unwrap()[i];
    let at = 17.0f32 / 600.0;
    assert!((value(&sin, 17) - at.sin()).abs() < 1e-6 && (value(&cos, 17) - at.cos()).abs() < 1e-6);
    assert!((first.item::<f32>().unwrap() - 599.0).abs() < 1e-2);
    let squares: f64 = (0..600).map(|i| (f64::from(i) / 600.0).powi(2)).sum();
    assert!((f64::from(last.item::<f32>().unwrap()) - squares).abs() < 1e-2);
}

#[test]
fn a_product_and_what_follows_it_give_the_same_as_one_and_apart_and_a_plan_shows_both_ways() {
    let rt = runtime();
    let numbers = |n: usize, dims: [usize; 2]| {
        rt.from_vec((0..n).map(|i| (i % 7) as f32 - 3.0).collect(), dims).unwrap()
    };
    let (a, b, bias) = (numbers(90 * 8, [90, 8]), numbers(8 * 70, [8, 70]), numbers(70, [1, 70]));
    let together = (a.matmul(&b) + &bias).relu();
    let plan = rt.explain(&together).unwrap();
    assert!(plan.stages.iter().any(|s| s.instead_s.is_some() && s.instead.is_some()), "{plan}");
    // Whoever holds the product keeps it in memory.
    let product = a.matmul(&b);
    product.eval().unwrap();
    let apart = (&product + &bias).relu();
    assert_eq!(together.to_vec::<f32>().unwrap(), apart.to_vec::<f32>().unwrap());
}
