use crate::runtime;
use steersman::Array;
use steersman::array::promote;
use steersman::core::DType::{self, BF16, Bool, F16, F32, F64, I32, I64, U8, U32};

/// Row and column in this order; the result of an op between arrays of both types.
const ORDER: [DType; 9] = [Bool, U8, U32, I32, I64, F16, BF16, F32, F64];
const TABLE: [[DType; 9]; 9] = [
    [Bool, U8, U32, I32, I64, F16, BF16, F32, F64],
    [U8, U8, U32, I32, I64, F16, BF16, F32, F64],
    [U32, U32, U32, I64, I64, F16, BF16, F32, F64],
    [I32, I32, I64, I32, I64, F16, BF16, F32, F64],
    [I64, I64, I64, I64, I64, F16, BF16, F32, F64],
    [F16, F16, F16, F16, F16, F16, F32, F32, F64],
    [BF16, BF16, BF16, BF16, BF16, F32, BF16, F32, F64],
    [F32, F32, F32, F32, F32, F32, F32, F32, F64],
    [F64, F64, F64, F64, F64, F64, F64, F64, F64],
];

fn ones(rt: &steersman::Runtime, d: DType) -> Array {
    rt.from_vec(vec![1.0f32, 1.0], [2]).unwrap().cast(d)
}

#[test]
fn every_pair_of_types_promotes_as_the_table_says() {
    let rt = runtime();
    for (i, &a) in ORDER.iter().enumerate() {
        for (j, &b) in ORDER.iter().enumerate() {
            let want = TABLE[i][j];
            assert_eq!(promote(a, b), want, "{a} and {b}");
            let (x, y) = (ones(&rt, a), ones(&rt, b));
            if want != Bool {
                let sum = &x + &y;
                assert_eq!(sum.dtype(), want, "{a} + {b}");
                assert_eq!(sum.cast(F64).to_vec::<f64>().unwrap(), [2.0, 2.0], "{a} + {b}");
                assert_eq!(y.maximum(&x).dtype(), want);
            }
            assert_eq!(x.eq(&y).dtype(), Bool);
            assert!(x.eq(&y).all(..).item::<bool>().unwrap(), "{a} = {b}");
            assert_eq!(x.eq(&y).where_(&x, &y).dtype(), want);
            assert_eq!(rt.concat(&[&x, &y], 0).dtype(), want);
        }
    }
}

#[test]
fn rust_numbers_take_the_arrays_type() {
    let rt = runtime();
    for d in [U8, U32, I32, I64, F16, BF16, F32, F64] {
        let a = ones(&rt, d);
        assert_eq!((&a + 2).dtype(), d);
        assert_eq!((2.0 * &a).dtype(), d, "a whole float is a number as good as any");
        assert_eq!((&a + 2).cast(F64).to_vec::<f64>().unwrap(), [3.0, 3.0]);
        assert_eq!(a.lt(2).dtype(), Bool);
    }
    let bools = ones(&rt, Bool);
    assert_eq!((&bools & true).to_vec::<bool>().unwrap(), [true, true]);
    assert!((&bools.cast(I32) + 1).check().is_ok());
    assert!(bools.add(1).check().is_err());
}

#[test]
fn the_upper_half_of_u32_keeps_its_value_in_every_wider_type() {
    let rt = runtime();
    let large = rt.array([3_000_000_000u32, u32::MAX]);
    let (wide, minus) = (rt.array([3_000_000_000i64, u32::MAX.into()]), rt.array([-1i32, -1]));
    assert!(large.eq(&wide).all(..).item::<bool>().unwrap());
    assert_eq!((&large + &minus).to_vec::<i64>().unwrap(), [2_999_999_999, 4_294_967_294]);
    assert_eq!(large.gt(&minus).to_vec::<bool>().unwrap(), [true, true]);
    assert_eq!(large.cast(F64).to_vec::<f64>().unwrap(), [3e9, 4_294_967_295.0]);
    assert_eq!(large.cast(I32).to_vec::<i32>().unwrap(), [-1_294_967_296, -1]);
    assert_eq!(large.sum(..).item::<i64>().unwrap(), 7_294_967_295);
    assert_eq!(large.max(..).item::<u32>().unwrap(), u32::MAX);
    assert_eq!((&large + u32::MAX).to_vec::<u32>().unwrap(), [2_999_999_999, 4_294_967_294]);
    assert_eq!((&large / 0).to_vec::<u32>().unwrap(), [0, 0]);
    assert_eq!(large.neg().to_vec::<u32>().unwrap(), [1_294_967_296, 1]);
    assert_eq!(large.to_string(), "[3000000000 4294967295]");
    assert!((&large + -1).check().is_err(), "no element of u32");
}
