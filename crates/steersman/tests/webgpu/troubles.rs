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

/// A kernel whose source is none.
struct Broken(Arc<Gpu>, DeviceId);

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
    unsafe fn run(&self, _: &Workload, _: Params, _: Io<'_>) -> Result<Ran, KernelError> {
        self.0.try_compile("fn main() { this is no shader }").map(|_| Ran::Clean)
    }
}

#[test]
fn a_kernel_that_does_not_compile_is_put_away_and_the_work_is_redone() {
    let Some(gpu) = adapter(DeviceOptions::default()) else { return };
    let rt = with_adapter(&gpu, &[("frozen", "true")]);
    rt.engine().register(Arc::new(Broken(gpu.clone(), DeviceId(1)))).unwrap();
    let y = rt.eval(Op::Unary(UnaryOp::Exp), &[View::new(&[0.0f32, 0.0])]).unwrap();
    assert_eq!(y.to_vec::<f32>(), Some(vec![1.0, 1.0]));
    assert!(noted(&rt, "did not compile"), "{:?}", rt.log().entries());
    let broken = rt.engine().registry().find("vulkan/broken").unwrap();
    assert!(rt.engine().guard().list().iter().any(|(case, _)| case.kernel == broken));
    assert!(gpu.lost().is_none(), "the device goes on");
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
