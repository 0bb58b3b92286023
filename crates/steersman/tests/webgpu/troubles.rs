//! What goes wrong on an adapter is caught there, said in the log, and the work is done elsewhere.

use crate::{adapter, with_adapter};
use std::sync::Arc;
use steersman::core::cost::{Machine, Terms};
use steersman::core::{
    BinaryOp, DeviceId, Io, Kernel, KernelError, Op, Params, Ran, Refusal, UnaryOp, Workload,
};
use steersman::webgpu::{DeviceOptions, Gpu};
use steersman::{Runtime, View};

fn noted(rt: &Runtime, what: &str) -> bool {
    rt.log().entries().iter().any(|e| e.note.as_deref().is_some_and(|n| n.contains(what)))
}

#[test]
fn a_lost_adapter_is_done_without_and_the_log_says_so() {
    let Some(gpu) = adapter(DeviceOptions::default()) else { return };
    let rt = with_adapter(&gpu, &[("frozen", "true")]);
    let x = rt.from_vec(vec![1.0f32, 2.0, 3.0], [3]).unwrap();
    let on_it = (&x + 1.0).to_vec::<f32>().unwrap();
    assert_eq!(on_it, [2.0, 3.0, 4.0]);
    gpu.destroy();
    assert_eq!((&x * 3.0).to_vec::<f32>().unwrap(), [3.0, 6.0, 9.0], "its operand is still here");
    assert!(noted(&rt, "lost"), "{:?}", rt.log().entries());
    let again = rt.eval(Op::Unary(UnaryOp::Neg), &[View::new(&[1.0f32])]).unwrap();
    assert_eq!(again.to_vec::<f32>(), Some(vec![-1.0]));
}

#[test]
fn a_full_adapter_is_done_without_and_the_log_says_so() {
    let few = DeviceOptions { memory_limit: Some(64 << 10), ..DeviceOptions::default() };
    let Some(gpu) = adapter(few) else { return };
    let rt = with_adapter(&gpu, &[("frozen", "true")]);
    let x = vec![0.5f32; 100_000];
    let y = rt.eval(Op::Binary(BinaryOp::Add), &[View::new(&x), View::new(&x)]).unwrap();
    assert_eq!(y.to_vec::<f32>(), Some(vec![1.0; 100_000]));
    assert!(noted(&rt, "could not be used for it"), "{:?}", rt.log().entries());
    assert!(gpu.lost().is_none());
    let y = rt.eval(Op::Binary(BinaryOp::Add), &[View::new(&x[..100]), View::new(&x[..100])]).unwrap();
    assert_eq!(y.to_vec::<f32>(), Some(vec![1.0; 100]), "small ones still go there");
    assert!(gpu.counts().dispatches > 0);
}

#[derive(Clone, Copy, PartialEq)]
enum Bad {
    /// Its source is none.
    Uncompiled,
    /// The driver does not take what it enqueues, and says so later.
    Refused,
}

/// A kernel that says it is quickest and never does it.
struct Broken(Arc<Gpu>, DeviceId, Bad);

impl Kernel for Broken {
    fn name(&self) -> &str {
        "vulkan/broken"
    }
    fn device(&self) -> DeviceId {
        self.1
    }
    fn handles(&self, op: Op) -> bool {
        op == Op::Unary(UnaryOp::Exp)
    }
    fn supports(&self, _: &Workload) -> Result<(), Refusal> {
        Ok(())
    }
    fn terms(&self, _: &Workload, _: Params, _: &Machine) -> Terms {
        Terms::launch(1e-15)
    }
    unsafe fn run(&self, _: &Workload, _: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        match self.2 {
            Bad::Uncompiled => self.0.try_compile("fn main() { this is no shader }").map(|_| Ran::Clean),
            Bad::Refused => self.0.try_overreach(io.output),
        }
    }
}

/// Whether the broken kernel is put away.
fn put_away(rt: &Runtime) -> bool {
    let broken = rt.engine().registry().find("vulkan/broken").unwrap();
    rt.engine().guard().list().iter().any(|(case, _)| case.kernel == broken)
}

#[test]
fn a_kernel_that_does_not_compile_is_put_away_and_the_work_is_redone() {
    let Some(gpu) = adapter(DeviceOptions::default()) else { return };
    let rt = with_adapter(&gpu, &[("frozen", "true")]);
    rt.engine().register(Arc::new(Broken(gpu.clone(), DeviceId(1), Bad::Uncompiled))).unwrap();
    let y = rt.eval(Op::Unary(UnaryOp::Exp), &[View::new(&[0.0f32, 0.0])]).unwrap();
    assert_eq!(y.to_vec::<f32>(), Some(vec![1.0, 1.0]));
    assert!(noted(&rt, "did not compile"), "{:?}", rt.log().entries());
    assert!(put_away(&rt));
    assert!(gpu.lost().is_none(), "the device goes on");
}

#[test]
fn what_a_driver_refuses_is_computed_again_and_nothing_else_is() {
    let Some(gpu) = adapter(DeviceOptions::default()) else { return };
    let rt = with_adapter(&gpu, &[("frozen", "true")]);
    let x = rt.from_vec((0..1000).map(|i| (i % 9) as f32 * 0.25).collect(), [1000]).unwrap();
    let work = || {
        let (y, other) = (x.exp(), &x + 2.0);
        // Each for itself, so that only one of them is refused.
        let z = (&y - 0.5).sqrt();
        for a in [&y, &other, &z] {
            a.eval().unwrap();
        }
        (y, other, z)
    };
    // First runs are waited for, so as to time them: of what is carried, then of what is there.
    let good = work();
    drop(work());
    rt.engine().register(Arc::new(Broken(gpu.clone(), DeviceId(1), Bad::Refused))).unwrap();
    let (y, other, z) = work();
    let read = |a: &steersman::Array| a.to_vec::<f32>().unwrap();
    let close = |a: &steersman::Array, b: &steersman::Array| {
        read(a).iter().zip(read(b)).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs())
    };
    assert!(close(&z, &good.2) && close(&y, &good.0) && close(&other, &good.1));
    assert!(put_away(&rt) && gpu.lost().is_none());
    let before = gpu.counts();
    assert!((read(&(&y * 3.0))[1] - 3.0 * read(&y)[1]).abs() < 1e-5);
    assert_eq!(gpu.counts().dispatches - before.dispatches, 1, "it has again what it should have written");
    assert!(noted(&rt, "is computed again"), "{:?}", rt.log().entries());
}

#[test]
fn two_devices_of_one_kind_take_part_under_two_names() {
    let (Some(one), Some(two)) = (adapter(DeviceOptions::default()), adapter(DeviceOptions::default()))
    else {
        return;
    };
    let rt = with_adapter(&one, &[("frozen", "true")]);
    crate::add(&rt, &two, "second");
    assert_eq!(rt.engine().devices().len(), 3);
    let w: Workload = "add f32 1000 1000".parse().unwrap();
    let explained = rt.engine().explain(&w).unwrap();
    let named = |prefix: &str| {
        explained.candidates.iter().any(|c| rt.engine().name(c.variant.kernel).starts_with(prefix))
    };
    assert!(named("second/") && named(&format!("{}/", one.identity().family)));
    let x = vec![1.0f32; 1000];
    let y = rt.eval(Op::Binary(BinaryOp::Add), &[View::new(&x), View::new(&x)]).unwrap();
    assert_eq!(y.to_vec::<f32>(), Some(vec![2.0; 1000]));
    assert_eq!(one.counts().dispatches + two.counts().dispatches, 1);
}
