//! What people who know Rust try first.

use crate::runtime;
use steersman::core::DType;
use steersman::{Array, Error, Slice};

#[test]
fn arrays_are_written_in_brackets() {
    let rt = runtime();
    let cube = rt.array([[[1i64, 2, 3], [4, 5, 6]]]);
    assert_eq!((cube.shape(), cube.dtype()), (&[1, 2, 3][..], DType::I64));
    assert_eq!(cube.to_vec::<i64>().unwrap(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(rt.array(2.5f32).item::<f32>().unwrap(), 2.5, "a number is an array without axes");
    assert_eq!(rt.array([[true; 0]; 3]).shape(), [3, 0]);
    assert!(rt.array([[[[[[[[[1u8]]]]]]]]]).check().unwrap_err().to_string().contains("9 axes"));
}

#[test]
fn every_kind_of_number_stands_beside_an_array() {
    let rt = runtime();
    let a = rt.array([6.0f32]);
    let all: [Array; 14] = [
        &a * 2i8,
        &a * 2i16,
        &a * 2i32,
        &a * 2i64,
        &a * 2isize,
        &a * 2u8,
        &a * 2u16,
        &a * 2u32,
        &a * 2u64,
        &a * 2usize,
        &a * 2f32,
        &a * 2.0,
        2.0 * &a,
        2 * a.clone(),
    ];
    for (i, twice) in all.iter().enumerate() {
        assert_eq!(twice.to_vec::<f32>().unwrap(), [12.0], "number {i}");
    }
    assert_eq!((&a * u64::MAX).to_vec::<f32>().unwrap(), [6.0 * u64::MAX as f32]);
    assert!((rt.array([1i64]) + u64::MAX).check().is_err(), "nothing wraps");
}

#[test]
fn arrays_turn_into_vectors_and_numbers_and_add_up() -> Result<(), Error> {
    let rt = runtime();
    let a = rt.array([1.0f32, 2.0]);
    assert_eq!(Vec::<f32>::try_from(&a)?, [1.0, 2.0]);
    assert_eq!(f32::try_from(&a.sum(..))?, 3.0);
    assert!(bool::try_from(&a.gt(0.0).all(..))?);
    assert!(f32::try_from(&a).is_err() && Vec::<f64>::try_from(&a).is_err(), "nothing is cut off or cast");
    let parts = [a.clone(), a.clone(), a];
    let borrowed: Option<Array> = parts.iter().sum();
    let owned: Option<Array> = parts.into_iter().sum();
    for sum in [borrowed, owned] {
        assert_eq!(sum.expect("there are three").to_vec::<f32>()?, [3.0, 6.0]);
    }
    assert!(std::iter::empty::<Array>().sum::<Option<Array>>().is_none());
    Ok(())
}

#[test]
fn ranges_shapes_and_axes_are_taken_as_they_come() {
    let rt = runtime();
    let (dims, both) = (&[3, 4], &[0, 1]);
    let a = rt.arange(0, 12, 1).reshape(dims);
    assert_eq!(a.shape(), rt.zeros::<i32>(*dims).shape());
    let read = |a: Array| a.to_vec::<i32>().unwrap();
    assert_eq!(a.max(both).item::<i32>().unwrap(), 11);
    assert_eq!(read(a.slice(2..)), [8, 9, 10, 11], "a range alone is about the first axis");
    assert_eq!(read(a.slice((..=0, 1..=2))), [1, 2]);
    assert_eq!(read(a.slice((0..usize::MAX, ..1))), [0, 4, 8]);
    assert_eq!(read(a.slice(Slice::ALL.step(-2)).slice((.., ..1))), [8, 0]);
    assert_eq!(read(a.permute([1, 0]).slice(..1)), [0, 4, 8]);
    assert_eq!(a.sum(both).item::<i64>().unwrap(), a.sum(vec![-1, 0]).item::<i64>().unwrap());
    let owned: Vec<Array> = a.rows().collect();
    rt.eval_all(&owned).unwrap();
    assert!(owned.iter().all(Array::is_ready));
    assert_eq!(read(rt.stack(&owned, 0)), read(rt.concat(&[&a], 0)));
}

#[test]
fn arrays_like_others_have_their_shape_and_type() {
    let rt = runtime();
    let a = rt.array([[1u8, 2], [3, 4]]);
    assert_eq!(a.full_like(7).to_vec::<u8>().unwrap(), [7; 4]);
    assert_eq!(a.zeros_like().to_vec::<u8>().unwrap(), [0; 4]);
    assert_eq!(a.gt(0).ones_like().to_vec::<bool>().unwrap(), [true; 4]);
    assert!(a.full_like(256).check().unwrap_err().to_string().contains("256"));
}
