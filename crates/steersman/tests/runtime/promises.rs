//! Promises of the runtime: right answers, nothing lost when a kernel fails.

use crate::{runtime, runtime_with};
use std::sync::Arc;
use steersman::core::cost::{Machine, Terms};
use steersman::core::expr::Expr;
use steersman::core::{
    BinaryOp, DType, DeviceId, Io, Kernel, KernelError, Op, Operand, Params, Ran, Refusal, UnaryOp, Workload,
};
use steersman::{Error, Runtime, View, ViewMut};

#[derive(Clone, Copy)]
enum Bad {
    Fails,
    Panics,
    NoRoom,
    NotRunnable,
}

/// Promises to be a thousand times quicker than anyone, then does not do it.
struct Liar(&'static str, Bad);
impl Kernel for Liar {
    fn name(&self) -> &str {
        self.0
    }
    fn device(&self) -> DeviceId {
        DeviceId(0)
    }
    fn handles(&self, op: Op) -> bool {
        op.is_elementwise()
    }
    fn supports(&self, _: &Workload) -> Result<(), Refusal> {
        Ok(())
    }
    fn terms(&self, _: &Workload, _: Params, _: &Machine) -> Terms {
        Terms::launch(1e-12)
    }
    unsafe fn run(&self, _: &Workload, _: Params, _: Io<'_>) -> Result<Ran, KernelError> {
        match self.1 {
            Bad::Fails => Err(KernelError::Failed("the device is gone".into())),
            Bad::Panics => panic!("boom"),
            Bad::NoRoom => Err(KernelError::NoRoom("all is taken".into())),
            Bad::NotRunnable => Err(KernelError::NotRunnable),
        }
    }
}

#[test]
fn work_of_a_kernel_that_fails_or_panics_is_redone_on_the_next_best() {
    for (name, bad) in [("mine/fails", Bad::Fails), ("mine/panics", Bad::Panics)] {
        let rt = runtime();
        rt.engine().register(Arc::new(Liar(name, bad))).unwrap();
        let x = [1.0f32, 4.0, 9.0];
        let roots = rt.eval(Op::Unary(UnaryOp::Sqrt), &[View::new(&x)]).unwrap();
        assert_eq!(roots.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
        let put_away = rt.engine().guard().list();
        assert_eq!(put_away.len(), 1, "{put_away:?}");
        assert_eq!(rt.engine().name(put_away[0].0.kernel), name);
        assert_eq!(rt.log().entries().iter().filter(|e| e.note.is_some()).count(), 1, "and it is said");
        assert_eq!(rt.tracker().most_used(10).iter().map(|u| u.failures).sum::<u64>(), 1);
    }
}

#[test]
fn a_kernel_that_cannot_run_it_now_is_passed_over_for_that_call_and_not_blamed() {
    for (name, bad) in [("mine/crowded", Bad::NoRoom), ("mine/decides", Bad::NotRunnable)] {
        let rt = runtime();
        let mine = rt.engine().register(Arc::new(Liar(name, bad))).unwrap();
        let w: Workload = "sqrt f32 3".parse().unwrap();
        let bytes: Vec<u8> = [1.0f32, 4.0, 9.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
        for _ in 0..3 {
            let mut out = [0u8; 12];
            assert_eq!(rt.engine().decide(&w).unwrap().variant().kernel, mine);
            rt.run_raw(&w, &[&bytes], &mut out, None).unwrap();
            assert_eq!(out[8..], 3.0f32.to_ne_bytes());
        }
        assert!(rt.engine().guard().is_empty(), "{:?}", rt.engine().guard().list());
        let notes: Vec<_> = rt.log().entries().into_iter().filter_map(|e| e.note).collect();
        assert!(notes.iter().filter(|n| n.contains("could not run it")).count() == 3, "{notes:?}");
    }
}

#[test]
fn a_group_that_needs_more_than_can_be_handed_over_is_refused_and_nobody_is_blamed() {
    let rt = runtime();
    let group = |scalar: bool, outputs: usize| {
        let mut b = Expr::builder([DType::F32]);
        let x = b.input(0).unwrap();
        let y = match scalar {
            true => b.scalar(0, DType::F32).and_then(|s| b.binary(BinaryOp::Add, x, s)).unwrap(),
            false => b.unary(UnaryOp::Sqrt, x).unwrap(),
        };
        for _ in 0..outputs {
            b.output(y).unwrap();
        }
        let expr = Arc::new(b.finish().unwrap());
        Workload::fused(&expr, &[2], [Operand::new(DType::F32, &[2]).unwrap()]).unwrap()
    };
    let bytes: Vec<u8> = [4.0f32, 9.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
    let run = |w: &Workload| {
        let mut out = [0u8; 8];
        rt.run_raw(w, &[&bytes], &mut out, None).map(|_| out)
    };
    for (scalar, outputs) in [(true, 1), (false, 2)] {
        let why = run(&group(scalar, outputs)).unwrap_err();
        let counts = (usize::from(scalar), outputs);
        assert!(
            matches!(why, Error::NotPlain { scalars, results, .. } if (scalars, results) == counts),
            "{why}"
        );
    }
    assert!(rt.engine().guard().is_empty(), "{:?}", rt.engine().guard().list());
    assert_eq!(run(&group(false, 1)).unwrap()[4..], 3.0f32.to_ne_bytes());
}

#[test]
fn results_come_with_broadcast_strides_and_empty_arrays() {
    let rt = runtime();
    let add = Op::Binary(BinaryOp::Add);
    let (m, row) = ([1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0], [10.0f64, 20.0, 30.0]);
    let sum = rt.eval(add, &[View::shaped(&m, &[2, 3]).unwrap(), View::new(&row)]).unwrap();
    assert_eq!(sum.to_vec::<f64>().unwrap(), [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
    let columns = View::strided(&m, &[3, 2], &[1, 3]).unwrap();
    let flipped = rt.eval(Op::Copy, &[columns]).unwrap();
    assert_eq!(flipped.to_vec::<f64>().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let none: [f32; 0] = [];
    let empty = rt.eval(add, &[View::new(&none), View::new(&none)]).unwrap();
    assert_eq!((empty.dims(), empty.as_slice::<f32>()), (&[0][..], Some(&[][..])));
    let total = rt.eval(Op::from_name("sum").unwrap(), &[View::new(&none)]).unwrap();
    assert_eq!(total.to_vec::<f32>().unwrap(), [0.0]);
}

#[test]
fn a_wrong_shape_or_type_is_an_error_that_names_both() {
    let rt = runtime();
    let (a, b, c) = ([1.0f32; 3], [1.0f32; 4], [1.0f64; 3]);
    let add = Op::Binary(BinaryOp::Add);
    let shapes = rt.eval(add, &[View::new(&a), View::new(&b)]).unwrap_err().to_string();
    assert!(shapes.contains("3 and 4"), "{shapes}");
    let types = rt.eval(add, &[View::new(&a), View::new(&c)]).unwrap_err().to_string();
    assert!(types.contains("f32 and f64"), "{types}");
    let mut out = [0.0f32; 2];
    let into = rt.eval_into(add, &[View::new(&a), View::new(&a)], ViewMut::new(&mut out)).unwrap_err();
    assert!(matches!(into, Error::Workload(_)), "{into}");
    assert!(View::shaped(&a, &[2, 2]).is_err(), "a view must lie in its slice");
}

#[test]
fn a_frozen_runtime_decides_the_same_every_time_and_learns_nothing() {
    let rt = runtime_with(&[("frozen", "true")]);
    let x = vec![0.5f32; 5000];
    let w: Workload = "exp f32 5000".parse().unwrap();
    let first = rt.engine().decide(&w).unwrap();
    for _ in 0..200 {
        rt.eval(Op::Unary(UnaryOp::Exp), &[View::new(&x)]).unwrap();
        assert_eq!(rt.engine().decide(&w).unwrap(), first);
    }
    assert_eq!(rt.engine().with_model(|m| m.changes()), 0);
}

/// Runs a workload on these numbers, in and out.
fn raw(rt: &Runtime, w: &Workload, x: &[f32], out: &mut [f32]) -> Result<(), Error> {
    let bytes = |v: &[f32]| v.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>();
    let mut to = bytes(out);
    rt.run_raw(w, &[&bytes(x)], &mut to, None)?;
    let numbers = to.chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap()));
    out.iter_mut().zip(numbers).for_each(|(o, n)| *o = n);
    Ok(())
}

#[test]
fn bytes_are_those_that_an_operand_spans_whatever_its_strides() {
    let rt = runtime();
    let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let on = |text: &str, x: &[f32], n: usize| {
        let mut out = vec![-1.0; n];
        raw(&rt, &text.parse().unwrap(), x, &mut out).map(|()| out)
    };
    // Rows with a gap after each, from the last to the first, each second one, one that repeats.
    assert_eq!(on("copy f32 3x2:4,1", &x[..10], 6).unwrap(), [0.0, 1.0, 4.0, 5.0, 8.0, 9.0]);
    assert_eq!(on("copy f32 4:-1", &x[..4], 4).unwrap(), [3.0, 2.0, 1.0, 0.0]);
    assert_eq!(on("copy f32 2x3:-6,2", &x[..11], 6).unwrap(), [6.0, 8.0, 10.0, 0.0, 2.0, 4.0]);
    assert_eq!(on("copy f32 3x2:0,1", &x[..2], 6).unwrap(), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
    for (text, given) in [("copy f32 3x2:4,1", 6), ("copy f32 4:-1", 3), ("copy f32 10x10:20,2", 100)] {
        let why = on(text, &vec![0.0; given], 6).unwrap_err();
        assert!(matches!(why, Error::Bytes { .. }), "{text}: {why}");
    }
    let w: Workload = "neg f32 3x2".parse().unwrap();
    let spread = Operand::strided(DType::F32, &[3, 2], [4, 1].into_iter().collect()).unwrap();
    let w = w.with_output(spread).unwrap();
    let mut out = [7.0; 10];
    raw(&rt, &w, &x[..6], &mut out).unwrap();
    assert_eq!(out, [-0.0, -1.0, 7.0, 7.0, -2.0, -3.0, 7.0, 7.0, -4.0, -5.0]);
    assert!(raw(&rt, &w, &x[..6], &mut [0.0; 6]).is_err());
}
