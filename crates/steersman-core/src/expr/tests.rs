use super::*;
use crate::op::{Axes, BinaryOp, ReduceOp, TernaryOp, UnaryOp};
use crate::workload::{Operand, Strides, Workload, WorkloadError};
use std::sync::Arc;

fn chain(op: UnaryOp, scalar: u16) -> Expr {
    let mut b = Expr::builder([DType::F32]);
    let (x, s) = (b.input(0).unwrap(), b.scalar(scalar, DType::F32).unwrap());
    let y = b.binary(BinaryOp::Mul, x, s).unwrap();
    let z = b.unary(op, y).unwrap();
    b.output(z).unwrap();
    b.finish().unwrap()
}

#[test]
fn equal_structure_has_one_hash_and_any_other_another() {
    let a = chain(UnaryOp::Exp, 0);
    assert_eq!(a.hash64(), chain(UnaryOp::Exp, 0).hash64());
    assert_eq!(a, chain(UnaryOp::Exp, 0));
    let mut seen = vec![a.hash64()];
    for op in UnaryOp::ALL.iter().filter(|u| u.takes(DType::F32) && **u != UnaryOp::Exp) {
        seen.push(chain(*op, 0).hash64());
    }
    seen.push(chain(UnaryOp::Exp, 1).hash64());
    let mut reduces = Expr::builder([DType::F32]);
    let x = reduces.input(0).unwrap();
    reduces.reduce(ReduceOp::Sum, Axes::NONE, x).unwrap();
    seen.push(reduces.clone().finish().unwrap().hash64());
    reduces.output(x).unwrap();
    seen.push(reduces.finish().unwrap().hash64());
    let n = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), n);
}

#[test]
fn the_hash_stays_what_it_was_in_other_processes() {
    assert_eq!(chain(UnaryOp::Exp, 0).hash64(), HASH_OF_EXP);
}
const HASH_OF_EXP: u64 = 14942175893049683149;

#[test]
fn types_are_checked_as_in_workloads() {
    let mut b = Expr::builder([DType::F32, DType::I32]);
    let (x, i) = (b.input(0).unwrap(), b.input(1).unwrap());
    let text = |e: Result<Value, ExprError>| e.unwrap_err().to_string();
    assert!(text(b.binary(BinaryOp::Add, x, i)).contains("f32 and i32"));
    assert!(text(b.unary(UnaryOp::Exp, i)).contains("not defined for i32"));
    assert!(text(b.input(2)).contains("no operand 2"));
    assert!(text(b.unary(UnaryOp::Exp, Value(9))).contains("no value 9"));
    assert!(text(b.ternary(TernaryOp::Where, x, x, x)).contains("f32 and bool"));
    assert!(text(b.random(Dist::Normal, DType::I32, 0)).contains("normal is not defined for i32"));
    b.scalar(3, DType::F32).unwrap();
    assert!(text(b.random(Dist::Normal, DType::F32, 3)).contains("both as f32 and as key"));
    let less = b.binary(BinaryOp::Lt, x, x).unwrap();
    assert_eq!(b.dtype_of(less), Ok(DType::Bool));
    assert_eq!(b.finish().unwrap_err(), ExprError::NoOutput);
}

#[test]
fn scalars_and_keys_are_listed_for_whoever_runs_it() {
    let mut b = Expr::builder([]);
    b.random(Dist::Normal, DType::F32, 1).unwrap();
    let s = b.scalar(0, DType::F64).unwrap();
    b.output(s).unwrap();
    let e = b.finish().unwrap();
    assert_eq!(e.scalars(), [Some(DType::F64), None]);
    assert_eq!(e.to_string(), "(v0=normal:f32(s1) s0:f64) -> s0");
}

#[test]
fn a_group_broadcasts_its_operands_and_counts_its_work() {
    let e = Arc::new(chain(UnaryOp::Exp, 0));
    let w = Workload::fused(&e, &[8, 100], [Operand::new(DType::F32, &[100]).unwrap()]).unwrap();
    assert_eq!(w.inputs()[0].strides.as_slice(), [0, 1]);
    assert_eq!(w.flops(), 800.0 * (1.0 + UnaryOp::Exp.flops()));
    assert_eq!(w.bytes(), 4.0 * (100.0 + 800.0));
    assert_eq!(w.to_string(), "fused f32 8x100 {(in0:f32 s0:f32 v2=mul(in0,s0) v3=exp(v2)) -> v3} of 100");
}

#[test]
fn what_does_not_fit_the_group_is_refused() {
    let e = Arc::new(chain(UnaryOp::Exp, 0));
    let of = |dtype, dims: &[usize]| Operand::new(dtype, dims).unwrap();
    let fused = |dims: &[usize], o: Operand| Workload::fused(&e, dims, [o]).unwrap_err().to_string();
    assert!(fused(&[8], of(DType::F32, &[7])).contains("do not broadcast"));
    assert!(fused(&[1], of(DType::F32, &[8])).contains("do not broadcast"));
    assert!(fused(&[8], of(DType::F64, &[8])).contains("f64 and f32"));
    assert!(matches!(Workload::fused(&e, &[8], []), Err(WorkloadError::Arity { expected: 1, got: 0, .. })));
    assert!(fused(&[1 << 40, 1 << 40], of(DType::F32, &[])).contains("too large"));
    assert!(matches!(Workload::new(crate::Op::Fused(e.id()), []), Err(WorkloadError::NoExpr)));
    let mut b = Expr::builder([DType::F32]);
    let x = b.input(0).unwrap();
    b.reduce(ReduceOp::Max, Axes::from_list(&[1]).unwrap(), x).unwrap();
    let e = Arc::new(b.finish().unwrap());
    let fused = |dims: &[usize]| Workload::fused(&e, dims, [of(DType::F32, dims)]);
    assert!(fused(&[8]).unwrap_err().to_string().contains("axis 1 is out of range"));
    assert!(fused(&[8, 0]).unwrap_err().to_string().contains("zero elements"));
    assert_eq!(fused(&[8, 3]).unwrap().output().dims.as_slice(), [8]);
}

#[test]
fn each_result_can_be_put_elsewhere() {
    let mut b = Expr::builder([DType::F32]);
    let x = b.input(0).unwrap();
    b.output(x).unwrap();
    b.output(x).unwrap();
    let e = Arc::new(b.finish().unwrap());
    let w = Workload::fused(&e, &[4, 5], [Operand::new(DType::F32, &[5]).unwrap()]).unwrap();
    let turned = Operand::strided(DType::F32, &[4, 5], Strides::from_slice(&[1, 4])).unwrap();
    let w = w.with_nth_output(1, turned.clone()).unwrap();
    assert_eq!((&w.outputs()[1], w.output().is_contiguous()), (&turned, true));
    let w = w.with_output(turned.clone()).unwrap();
    assert_eq!((w.output(), &w.outputs()[0]), (&turned, &turned));
    assert!(w.with_nth_output(2, turned).unwrap_err().to_string().contains("no result 2"));
}

#[test]
fn long_programs_are_cut_in_the_text_of_a_workload() {
    let mut b = Expr::builder([DType::F32]);
    let mut v = b.input(0).unwrap();
    for _ in 0..2000 {
        v = b.unary(UnaryOp::Neg, v).unwrap();
    }
    b.output(v).unwrap();
    let e = Arc::new(b.finish().unwrap());
    let w = Workload::fused(&e, &[3], [Operand::new(DType::F32, &[3]).unwrap()]).unwrap();
    assert!(w.to_string().contains("… 1989 more"), "{w}");
    assert!(w.to_string().len() < 400);
}

#[test]
fn a_product_has_operands_of_its_own_and_a_rest_behind_it() {
    let mut b = Expr::builder([DType::F32; 3]);
    let product = b.product(0, 2).unwrap();
    assert!(matches!(b.product(0, 1), Err(ExprError::Product { .. })), "one product at most");
    assert!(matches!(b.input(2), Err(ExprError::Product { .. })), "its operands are used for nothing else");
    let bias = b.input(1).unwrap();
    let sum = b.binary(BinaryOp::Add, product, bias).unwrap();
    b.output(sum).unwrap();
    let expr = b.finish().unwrap();
    assert_eq!(expr.to_string(), "(v0=matmul(in0,in2) in1:f32 v2=add(v0,in1)) -> v2");
    let rest = expr.behind_product().unwrap();
    assert_eq!(rest.to_string(), "(in0:f32 in1:f32 v2=add(in0,in1)) -> v2");
}
