use crate::{runtime, runtime_with};
use steersman::Axis;

#[test]
fn reductions_of_a_given_array_run_with_what_else_reads_it() {
    let rt = runtime_with(&[("frozen", "true")]);
    let n = 1 << 22;
    let x = rt.from_vec((0..n).map(|i| (i % 1000) as f32 * 0.001).collect(), [n]).unwrap();
    let all = |f: &dyn Fn(&[f64]) -> f64| {
        let values: Vec<f64> = (0..n).map(|i| (i % 1000) as f64 * 0.001).collect();
        f(&values)
    };
    // With each other, and with a group.
    let (low, high, squares) = (x.min(..), x.max(..), (&x * &x).sum(..));
    rt.eval_all(&[&low, &high, &squares]).unwrap();
    let plan = squares.plan().unwrap();
    assert_eq!(plan.stages.len(), 1, "one pass: {plan}");
    assert_eq!((low.item::<f32>().unwrap(), high.item::<f32>().unwrap()), (0.0, 999.0 * 0.001f32));
    let want = all(&|v| v.iter().map(|x| x * x).sum());
    assert!((squares.item::<f32>().unwrap() as f64 / want - 1.0).abs() < 1e-5);
    let (sum, largest) = (x.sum(..), x.max(..));
    rt.eval_all(&[&sum, &largest]).unwrap();
    assert_eq!(sum.plan().unwrap().stages.len(), 1, "{}", sum.plan().unwrap());
    assert!((sum.item::<f32>().unwrap() as f64 / all(&|v| v.iter().sum()) - 1.0).abs() < 1e-5);
}

#[test]
fn a_reduction_runs_before_what_takes_its_result() {
    let rt = runtime();
    for n in [4usize, 300, 70_000] {
        let v: Vec<f32> = (0..n * 3).map(|i| ((i * 7) % 23) as f32).collect();
        let x = rt.from_vec(v.clone(), [n, 3]).unwrap();
        // The group reads the array and its mean; the sum of the group's values runs with it, the largest with either.
        let mean = x.mean(..);
        let deviation = (&x - &mean).abs();
        let (sum, largest) = (deviation.sum(..), x.max(..));
        let scaled = &x / &largest;
        let column = x.sum(Axis(0));
        rt.eval_all(&[&sum, &largest, &scaled, &column]).unwrap();
        let m = v.iter().map(|&x| x as f64).sum::<f64>() / (3 * n) as f64;
        let want: f64 = v.iter().map(|&x| (x as f64 - m).abs()).sum();
        assert!((sum.item::<f32>().unwrap() as f64 / want - 1.0).abs() < 1e-4, "{n}");
        let top = v.iter().fold(0f32, |a, &b| a.max(b));
        assert_eq!(largest.item::<f32>().unwrap(), top);
        assert!(scaled.to_vec::<f32>().unwrap().iter().zip(&v).all(|(s, x)| (s - x / top).abs() < 1e-6));
        let columns: Vec<f32> = (0..3).map(|c| v.iter().skip(c).step_by(3).sum()).collect();
        let close = |(a, b): (&f32, &f32)| (a / b - 1.0).abs() < 1e-5;
        assert!(column.to_vec::<f32>().unwrap().iter().zip(&columns).all(close), "{n}");
    }
}
