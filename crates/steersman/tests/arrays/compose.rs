//! What is made of the engine's ops: composites, tiles and parts, assigning operators.

use crate::runtime;
use steersman::{Array, Axis};

#[test]
fn softmax_and_logsumexp_do_not_overflow() {
    let rt = runtime();
    let x = rt.from_vec(vec![1000.0f64, 1001.0, -5.0, 0.0, 0.0, 0.0], [2, 3]).unwrap();
    let rows = x.softmax(Axis(1)).to_vec::<f64>().unwrap();
    let e = 1f64.exp();
    let want = [1.0 / (1.0 + e), e / (1.0 + e), 0.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0];
    assert!(rows.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-14), "{rows:?}");
    let sums = x.logsumexp(Axis(1)).to_vec::<f64>().unwrap();
    assert!((sums[0] - (1000.0 + (1.0 + e).ln())).abs() < 1e-12 && (sums[1] - 3f64.ln()).abs() < 1e-15);
    assert_eq!(x.logsumexp(..).rank(), 0);
    assert_eq!(x.square().to_vec::<f64>().unwrap()[1], 1001.0 * 1001.0);
}

#[test]
fn tiles_repeats_and_parts_are_numpys() {
    let rt = runtime();
    assert_eq!(rt.zeros::<f32>([2; 8]).tile(&[2; 8]).shape(), [4; 8], "as many axes as there can be");
    assert_eq!(rt.zeros::<f32>([2; 8]).repeat(3, -1).shape(), [2, 2, 2, 2, 2, 2, 2, 6]);
    assert_eq!(rt.zeros::<f32>([5]).chunks(usize::MAX, 0).unwrap()[0].shape(), [5]);
    let grid = rt.array([[1, 2], [3, 4]]);
    let twice = [[1, 2, 1, 2], [3, 4, 3, 4], [1, 2, 1, 2], [3, 4, 3, 4]];
    assert_eq!(grid.tile(&[2, 2]).to_vec::<i32>().unwrap(), twice.concat());
    assert_eq!(grid.tile(&[2, 1, 0]).shape(), [2, 2, 0]);
    let x = rt.arange(0i64, 6, 1).reshape([2, 3]);
    let tiled = x.tile(&[2, 1, 2]);
    assert_eq!(tiled.shape(), [2, 2, 6]);
    let row = [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5];
    assert_eq!(tiled.to_vec::<i64>().unwrap(), [row, row].concat());
    assert_eq!(x.tile(&[2]).to_vec::<i64>().unwrap(), row);
    assert_eq!(x.repeat(2, 1).to_vec::<i64>().unwrap(), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    assert_eq!(x.repeat(2, Axis(0)).to_vec::<i64>().unwrap(), [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
    let parts = x.chunks(2, Axis(-1)).unwrap();
    assert_eq!(
        parts.iter().map(|p| p.to_vec::<i64>().unwrap()).collect::<Vec<_>>(),
        [vec![0, 1, 3, 4], vec![2, 5]]
    );
    assert!(x.chunks(0, 0).unwrap_err().to_string().contains("at least one"));
    assert!(x.chunks(1, 2).unwrap_err().to_string().contains("axis 2"));
    let rows: Vec<i64> = x.rows().map(|r| r.sum(..).item().unwrap()).collect();
    assert_eq!(rows, [3, 12]);
    let rows: Vec<Array> = x.rows().collect();
    assert_eq!(Array::total(&rows).unwrap().to_vec::<i64>().unwrap(), [3, 5, 7]);
    assert!(Array::total([]).is_none());
}

#[test]
fn assigning_operators_leave_other_handles_alone() {
    let rt = runtime();
    let x = rt.from_vec(vec![1.0f32, 2.0], 2).unwrap();
    let mut y = x.clone();
    y += 1.0;
    y *= &x;
    y -= x.clone();
    y /= 2;
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.5, 2.0]);
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    let mut b = y.gt(1.0);
    b |= x.lt(1.5);
    b &= true;
    assert_eq!(b.to_vec::<bool>().unwrap(), [true, true]);
}
