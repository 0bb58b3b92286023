use crate::{runtime, runtime_with};
use std::sync::Arc;
use steersman::array::ArrayError;
use steersman::core::cost::{Machine, Terms};
use steersman::core::{DType, DeviceId, Io, Kernel, KernelError, Op, Params, Ran, Refusal, Workload};
use steersman::{Array, Axis, Error, Slice};

fn said(a: &Array) -> String {
    a.check().unwrap_err().to_string()
}

#[test]
fn errors_name_the_op_the_shapes_and_the_types() {
    let rt = runtime();
    let a = rt.from_vec(vec![1.0f32; 6], [2, 3]).unwrap();
    let i = rt.from_vec(vec![1i32; 6], [2, 3]).unwrap();
    let has = |text: String, parts: &[&str]| {
        for p in parts {
            assert!(text.contains(p), "{text:?} does not say {p:?}");
        }
    };
    has(said(&(&a + &rt.from_vec(vec![1.0f32; 4], [4]).unwrap())), &["add", "f32 (2, 3)", "f32 (4,)"]);
    has(said(&a.matmul(&a)), &["matmul", "f32 (2, 3)", "(3)", "(2)"]);
    has(said(&i.sqrt()), &["sqrt", "i32 (2, 3)", "cast to a float"]);
    has(said(&i.mean(..)), &["mean", "i32", "cast to a float"]);
    has(said(&i.add(2.5)), &["add", "2.5", "i32"]);
    has(said(&i.cast(DType::U8).add(300)), &["300", "u8"]);
    has(said(&a.and(&a)), &["and", "f32", "cast to bool"]);
    has(said(&a.sum(Axis(2))), &["sum", "axis 2", "f32 (2, 3)", "-2 to 1"]);
    has(said(&a.sum([0, -2])), &["sum", "twice"]);
    has(said(&a.reshape([4, 2])), &["reshape", "6 elements", "f32 (2, 3)", "(4, 2)"]);
    has(said(&a.reshape([-1, 4])), &["reshape", "(-1, 4)"]);
    has(said(&a.reshape([-1, -1])), &["reshape"]);
    has(said(&a.permute([0, 0])), &["permute", "0, 0", "(2, 3)"]);
    has(said(&a.slice((.., .., ..))), &["slice", "more slices than axes"]);
    has(said(&a.slice((Slice::ALL.step(0),))), &["step of 0"]);
    has(said(&a.index(0, 2)), &["index 2", "axis 0"]);
    has(said(&a.broadcast_to([2, 4])), &["broadcast", "(2, 3)", "(2, 4)"]);
    has(said(&a.squeeze(1)), &["squeeze", "axis 1", "3 elements"]);
    has(said(&rt.concat(&[&a, &a.reshape([3, 2])], 0)), &["concat", "(2, 3)", "(3, 2)"]);
    has(said(&rt.concat::<Array>(&[], 0)), &["concat", "at least one"]);
    has(said(&rt.zeros::<f32>([-1])), &["zeros", "(-1,)"]);
    has(said(&rt.zeros::<f32>([1usize << 40, 1 << 40])), &["zeros", "f32", "(1099511627776, 1099511627776)"]);
    has(said(&rt.arange(0, 10, 0)), &["arange", "steps of 0"]);
    has(said(&rt.arange(0.0f32, f32::INFINITY, 1.0)), &["arange", "inf"]);
    has(said(&rt.from_vec(vec![0f32; 0], [0]).unwrap().max(..)), &["max", "f32 (0,)", "no elements"]);
    has(said(&a.where_(&a, &a)), &["where", "condition", "f32 (2, 3)", "bool"]);
    has(
        rt.from_vec(vec![1.0f32; 5], [2, 3]).unwrap_err().to_string(),
        &["from_vec", "5 elements", "f32", "(2, 3)"],
    );
    has(a.to_vec::<f64>().unwrap_err().to_string(), &["f32", "f64"]);
    has(a.item::<f32>().unwrap_err().to_string(), &["(2, 3)", "6 elements"]);
    // Ops made of others answer by their own name.
    has(said(&a.softmax(2)), &["softmax", "axis 2"]);
    has(said(&i.softmax(0)), &["softmax", "i32"]);
    has(said(&a.logsumexp(5)), &["logsumexp", "axis 5"]);
    has(said(&i.log10()), &["log10", "i32"]);
    has(said(&a.floor_divide(rt.array([1.0f32, 2.0]))), &["floor_divide", "f32 (2, 3)", "f32 (2,)"]);
    has(said(&a.gt(0).remainder(2)), &["remainder", "bool", "cast to a number"]);
    has(said(&a.tile(&[usize::MAX])), &["tile", "too large"]);
    has(said(&a.repeat(usize::MAX, 0)), &["repeat", "too large"]);
    has(said(&rt.linspace(0.0f32, 1.0, usize::MAX)), &["linspace", "too large"]);
    has(
        said(&rt.stack(&[&a, &a.t()], 0)),
        &["stack", "f32 (3, 2)", "f32 (2, 3)", "all shapes must be equal"],
    );
    has(said(&rt.stack::<Array>(&[], 0)), &["stack", "at least one"]);
    has(said(&rt.stack(&[&a], 4)), &["stack", "axis 4", "-3 to 2"]);
    has(said(&a.matmul(&rt.scalar(1.0f32))), &["matmul", "f32 ()", "at least 1"]);
    has(said(&a.gt(0).matmul(&a.gt(0).t())), &["matmul", "bool (2, 3)", "cast to a number"]);
    has(said(&rt.zeros::<u8>([1; 9])), &["zeros", "9 axes", "at most 8"]);
    has(said(&rt.scalar(1.0f32).sum(0)), &["sum", "axis 0", "a scalar has none"]);
    has(said(&a.sum(usize::MAX)), &["sum", "out of range"]);
    let huge = rt.zeros::<f32>([1usize << 30, 1]).add(rt.zeros::<f32>([1, 1usize << 30]));
    has(said(&huge), &["add", "f32", "(1073741824, 1073741824)"]);
    let huge = rt.zeros::<f32>([1usize << 30, 1]).matmul(&rt.zeros::<f32>([1, 1usize << 30]));
    has(said(&huge), &["matmul", "f32", "(1073741824, 1073741824)"]);
}

#[test]
fn the_first_wrong_op_is_what_reading_reports() {
    let rt = runtime();
    let a = rt.from_vec(vec![1.0f32; 6], [2, 3]).unwrap();
    let wrong = a.matmul(&a).add(a.reshape([6, 6])).sum(Axis(9)).exp();
    let at_read = wrong.to_vec::<f32>().unwrap_err();
    assert!(at_read.to_string().starts_with("matmul"), "{at_read}");
    assert!(matches!(at_read, Error::Array(why) if matches!(*why, ArrayError::Inner { .. })));
    assert!(wrong.to_string().contains("matmul"), "display says it too");
    assert_eq!(a.sum(..).item::<f32>().unwrap(), 6.0, "the rest is untouched");
}

#[test]
fn arrays_of_different_runtimes_do_not_mix() {
    let (one, two) = (runtime(), runtime());
    let (a, b) = (one.from_vec(vec![1.0f32], [1]).unwrap(), two.from_vec(vec![1.0f32], [1]).unwrap());
    for mixed in [&a + &b, a.matmul(&b), one.concat(&[&a, &b], 0), a.clamp(0.0, &b)] {
        assert!(said(&mixed).contains("different runtimes"));
    }
    assert!(two.eval_all(&[&a]).unwrap_err().to_string().contains("different runtimes"));
    assert!((&a + &one.clone().from_vec(vec![1.0f32], [1]).unwrap()).check().is_ok(), "a clone is the same");
}

#[test]
fn a_plan_over_the_memory_limit_fails_before_it_runs_and_harms_nothing() {
    let rt = runtime_with(&[("memory.limit", "1MiB")]);
    let a = rt.from_vec(vec![1.0f32; 1 << 16], [1 << 16]).unwrap();
    let fine = &a + 1.0;
    fine.eval().unwrap();
    // An outer product of 16 GiB.
    let large = fine.reshape([1 << 16, 1]).matmul(&fine.reshape([1, 1 << 16])).sum(Axis(0));
    let why = large.eval().unwrap_err();
    assert!(matches!(why, Error::PlanTooLarge { .. }), "{why}");
    assert!(why.to_string().contains("memory.limit"), "{why}");
    assert!(why.to_string().contains("needs 17.2 GB") && why.to_string().contains("1.05 MB"), "{why}");
    assert_eq!(fine.data::<f32>().unwrap()[0], 2.0);
    assert_eq!((&fine + 1.0).max(..).item::<f32>().unwrap(), 3.0);
}

/// A kernel for reductions and matrix products that promises the world and fails.
struct Liar(fn(Op) -> bool);
impl Kernel for Liar {
    fn name(&self) -> &str {
        "mine/liar"
    }
    fn device(&self) -> DeviceId {
        DeviceId(0)
    }
    fn handles(&self, op: Op) -> bool {
        (self.0)(op)
    }
    fn supports(&self, _: &Workload) -> Result<(), Refusal> {
        Ok(())
    }
    fn terms(&self, _: &Workload, _: Params, _: &Machine) -> Terms {
        Terms::launch(1e-12)
    }
    unsafe fn run(&self, w: &Workload, _: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        // SAFETY: within the output, which is this kernel's to write.
        unsafe { io.output.as_mut_ptr::<u8>().write_bytes(0xff, w.output().bytes()) };
        Err(KernelError::Failed("the device is gone".into()))
    }
}

#[test]
fn a_kernel_that_fails_in_the_middle_loses_nothing_also_in_place() {
    for handles in
        [(|op| op == Op::MatMul) as fn(Op) -> bool, |op| op.is_elementwise(), |op| matches!(op, Op::Fused(_))]
    {
        let rt = runtime();
        rt.engine().register(Arc::new(Liar(handles))).unwrap();
        let a = rt.from_vec((0..16).map(|i| i as f32).collect(), [4, 4]).unwrap();
        // What follows the product runs in its memory or as one with it: one op alone, two ops fused.
        let product =
            |i: usize| (0..4).map(|k| ((i / 4) * 4 + k) as f32 * (k * 4 + i % 4) as f32).sum::<f32>();
        let one = a.matmul(&a).neg();
        assert_eq!(one.to_vec::<f32>().unwrap(), (0..16).map(|i| -product(i)).collect::<Vec<_>>());
        let two = a.matmul(&a).add(1.0).relu();
        assert_eq!(two.to_vec::<f32>().unwrap(), (0..16).map(|i| product(i) + 1.0).collect::<Vec<_>>());
        // Seen another way the product is in memory first, and one op follows.
        let turned = a.matmul(&a).t().neg();
        assert_eq!(turned.to_vec::<f32>().unwrap()[4], -product(1));
        assert!(one.plan().unwrap().stages.iter().any(|s| s.in_place || s.workload.contains("matmul(")));
        assert!(!rt.engine().guard().list().is_empty(), "it was tried");
    }
}
