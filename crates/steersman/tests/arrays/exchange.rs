use crate::runtime;
use ndarray::{Array2, s};

#[test]
fn arrays_go_to_ndarray_and_back() {
    let rt = runtime();
    let theirs = Array2::from_shape_fn((3, 4), |(i, j)| (i * 4 + j) as f64);
    let ours = rt.from_ndarray(theirs.view()).unwrap();
    assert_eq!(ours.to_ndarray::<f64>().unwrap(), theirs.clone().into_dyn());
    let turned = rt.from_ndarray(theirs.t()).unwrap();
    assert_eq!(turned.to_ndarray::<f64>().unwrap(), theirs.t().to_owned().into_dyn());
    let cut = theirs.slice(s![..;-1, 1..3]);
    assert_eq!((rt.from_ndarray(cut).unwrap() + 1.0).to_ndarray::<f64>().unwrap(), (&cut + 1.0).into_dyn());
    assert!(ours.to_ndarray::<f32>().is_err());
}
