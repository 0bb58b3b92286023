//! Ops by name do what their methods do, and say what is wrong with them.

use crate::{runtime, runtime_with};
use steersman::array::{Array, Axis, Side};
use steersman::core::op::{Axes, Perm};
use steersman::core::{Op, ReduceOp};

fn op(name: &str) -> Op {
    Op::from_name(name).expect("the engine has it")
}

fn numbers(a: &Array) -> Vec<f32> {
    a.to_vec().expect("it can be computed")
}

#[test]
fn an_op_by_name_is_its_method() {
    let rt = runtime();
    let a = rt.from_vec(vec![1.0f32, -2.0, 3.0, -4.0, 5.0, -6.0], [2, 3]).unwrap();
    let b = rt.from_vec(vec![2.0f32, 0.5, 1.0], 3).unwrap();
    let apply = |o: Op, sides: &[Side<'_>]| rt.apply(o, sides);
    let (x, y) = (Side::from(&a), Side::from(&b));
    let sum = |axes| Op::Reduce { kind: ReduceOp::Sum, axes };
    let (image, filter) = (a.reshape([1, 1, 2, 3]), b.reshape([1, 1, 1, 3]));
    let conv = Op::Conv2d { stride: 2, pad: 1 };
    for (by_name, by_method) in [
        (apply(conv, &[(&image).into(), (&filter).into()]), image.conv2d(&filter, 2, 1)),
        (apply(op("abs"), &[(&a).into()]), a.abs()),
        (apply(op("sub"), &[x.clone(), y.clone()]), a.sub(&b)),
        (apply(op("sub"), &[1.0.into(), x.clone()]), 1.0 - &a),
        (apply(op("max"), &[x.clone(), y.clone()]), a.maximum(&b)),
        (apply(op("clamp"), &[x.clone(), (-1).into(), y.clone()]), a.clamp(-1, &b)),
        (apply(op("fma"), &[2.0.into(), x.clone(), y.clone()]), &a * 2.0 + &b),
        (apply(op("where"), &[a.lt(0.0).into(), 1.0.into(), 0.0.into()]), a.lt(0.0).where_(1.0, 0.0)),
        (apply(sum(Axes::NONE), &[(&a).into()]), a.sum(..)),
        (apply(sum(Axes::from_list(&[1]).unwrap()), &[(&a).into()]), a.sum(Axis(1))),
        (apply(op("matmul"), &[x.clone(), y.clone()]), a.matmul(&b)),
        (apply(op("transpose"), &[(&a).into()]), a.t()),
        (apply(Op::Transpose { perm: Perm::from_list(&[0, 1]).unwrap() }, &[(&a).into()]), a.clone()),
        (apply(op("copy"), &[a.t().into()]), a.t()),
    ] {
        assert_eq!(by_name.shape(), by_method.shape());
        assert_eq!(numbers(&by_name), numbers(&by_method));
    }
}

#[test]
fn what_cannot_be_applied_says_so() {
    let rt = runtime();
    let a = rt.ones::<f32>([2, 3]);
    let foreign = runtime_with(&[]).ones::<f32>([2, 3]);
    for (made, word) in [
        (rt.apply(op("add"), &[(&a).into()]), "takes 2 operand(s), got 1"),
        (rt.apply(op("exp"), &[]), "takes 1 operand(s), got 0"),
        (rt.apply(op("add"), &[1.into(), 2.into()]), "at least one operand must be an array"),
        (rt.apply(op("exp"), &[2.5.into()]), "2.5 is a number"),
        (rt.apply(op("matmul"), &[(&a).into(), 2.into()]), "2 is a number"),
        (rt.apply(op("where"), &[true.into(), (&a).into(), (&a).into()]), "true is a number"),
        (rt.apply(op("conv2d"), &[(&a).into(), (&a).into()]), "conv2d"),
        (rt.apply(Op::Custom("mine"), &[(&a).into()]), "no operation of arrays"),
        (rt.apply(op("add"), &[(&a).into(), (&foreign).into()]), "different runtimes"),
        (rt.apply(op("exp"), &[(&foreign).into()]), "different runtimes"),
        (rt.apply(op("add"), &[(&a.t()).into(), (&a).into()]), "do not broadcast"),
    ] {
        let why = made.check().expect_err(word).to_string();
        assert!(why.contains(word), "{why:?} should say {word:?}");
    }
}
