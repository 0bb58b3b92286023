//! Transfers beside work: they start when there is something to move, and only who needs the value waits.

use crate::simulated::{INSTANT, Sim, Transfer, add_for, wire};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use steersman::core::cost::{Machine, Terms};
use steersman::core::{DeviceId, Io, Kernel, KernelError, Op, Params, Ran, Refusal, Workload};
use steersman::{Array, Knobs, Runtime};

/// Something that two threads wait for each other with. Who waits in vain says so instead of hanging.
#[derive(Default)]
struct Signal(Mutex<bool>, Condvar);

impl Signal {
    fn give(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    fn wait(&self, what: &str) -> Result<(), KernelError> {
        let given = self.0.lock().unwrap();
        let (given, _) = self.1.wait_timeout_while(given, Duration::from_secs(20), |g| !*g).unwrap();
        if *given { Ok(()) } else { Err(KernelError::Failed(format!("waited in vain for {what}"))) }
    }
}

/// Seconds that a product is said to take: less than with any other kernel, more than a transfer.
const PRODUCT: f64 = 10e-9;

/// Products of matrices on the host, and what happens while it works.
struct OnHost(Arc<dyn Fn() -> Result<(), KernelError> + Send + Sync>);
impl Kernel for OnHost {
    fn name(&self) -> &str {
        "mine/matmul"
    }
    fn device(&self) -> DeviceId {
        DeviceId(0)
    }
    fn handles(&self, op: Op) -> bool {
        op == Op::MatMul
    }
    fn supports(&self, _: &Workload) -> Result<(), Refusal> {
        Ok(())
    }
    fn terms(&self, _: &Workload, _: Params, _: &Machine) -> Terms {
        Terms::launch(PRODUCT)
    }
    unsafe fn run(&self, w: &Workload, _: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        (self.0)()?;
        let (m, k, n) = (w.inputs()[0].dims[0], w.inputs()[0].dims[1], w.inputs()[1].dims[1]);
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            // SAFETY: contiguous operands of these shapes.
            unsafe {
                let a = |i: usize, l: usize| *io.inputs[0].as_ptr::<f32>().add(i * k + l);
                let b = |l: usize, j: usize| *io.inputs[1].as_ptr::<f32>().add(l * n + j);
                let sum: f32 = (0..k).map(|l| a(i, l) * b(l, j)).sum();
                *io.output.as_mut_ptr::<f32>().add(i * n + j) = sum;
            }
        }
        Ok(Ran::Clean)
    }
}

/// A device that is quickest at all but products of matrices, which only the host can do.
fn side_by_side(
    on_host: impl Fn() -> Result<(), KernelError> + Send + Sync + 'static,
) -> (Runtime, Arc<Sim>) {
    let mut k = Knobs::default();
    k.set("webgpu.enabled", "false").unwrap();
    let mine = [("wisdom.enabled", "false"), ("calibrate.background", "false"), ("frozen", "true")];
    mine.iter().for_each(|(name, value)| k.set(name, value).unwrap());
    let rt = Runtime::with_knobs(k).unwrap();
    let (id, sim) = add_for(&rt, "sim", INSTANT, |op| op != Op::MatMul);
    rt.engine().set_wire(id, wire(1e-12, 1e18));
    rt.engine().register(Arc::new(OnHost(Arc::new(on_host)))).unwrap();
    (rt, sim)
}

fn matrix(rt: &Runtime) -> Array {
    rt.from_vec((0..16).map(|i| i as f32).collect(), [4, 4]).unwrap()
}

/// A product on the host, an exponential away, and both together at the end.
fn work(rt: &Runtime) -> (Array, Array) {
    let (a, x) = (matrix(rt), rt.from_vec(vec![0.5f32; 64], [64]).unwrap());
    (a.matmul(&a).sum(..), x.exp().sum(..))
}

fn check(product: &Array, exps: &Array) {
    let m: Vec<f32> = (0..16).map(|i| i as f32).collect();
    let want: f32 = (0..64).map(|i| m[i / 16 * 4 + i % 4] * m[i % 4 * 4 + i / 4 % 4]).sum();
    assert_eq!(product.item::<f32>().unwrap(), want);
    assert!((exps.item::<f32>().unwrap() - 64.0 * 0.5f32.exp()).abs() < 1e-3);
}

#[test]
fn an_upload_goes_on_while_the_host_works() {
    let (begun, arrived) = (Arc::new(Signal::default()), Arc::new(Signal::default()));
    // The upload ends only when the host's work has begun, and that only when the upload has ended.
    let (b, a) = (begun.clone(), arrived.clone());
    let (rt, sim) = side_by_side(move || {
        b.give();
        a.wait("the upload")
    });
    sim.overlap(move |transfer| match transfer {
        Transfer::Up => {
            let waited = begun.wait("the host's work");
            arrived.give();
            waited
        }
        Transfer::Down => Ok(()),
    });
    // Long enough for the host not to wait for it.
    rt.engine().set_wire(DeviceId(1), wire(PRODUCT / 2.0, 1e18));
    let (product, exps) = work(&rt);
    rt.eval_all(&[&product, &exps]).unwrap();
    assert!(rt.engine().guard().list().is_empty(), "nobody waited in vain: {:?}", rt.engine().guard().list());
    let plan = exps.plan().unwrap();
    let upload = plan.transfers.iter().find(|t| t.from == "host" && t.beside_from.is_some());
    assert!(upload.is_some_and(|t| t.measured_s.is_some()), "{plan}");
    assert!(plan.to_string().contains("; beside s"), "{plan}");
    assert!(plan.measured_s.is_some(), "{plan}");
    check(&product, &exps);
}

#[test]
fn a_result_comes_home_while_the_host_goes_on() {
    let (begun, home) = (Arc::new(Signal::default()), Arc::new(Signal::default()));
    let (b, h) = (begun.clone(), home.clone());
    let (rt, sim) = side_by_side(move || {
        b.give();
        h.wait("the download")
    });
    sim.overlap(move |transfer| match transfer {
        Transfer::Up => Ok(()),
        Transfer::Down => {
            let waited = begun.wait("the host's work");
            home.give();
            waited
        }
    });
    // The first product needs what comes home; the second needs not, and goes first.
    let there = matrix(&rt).exp();
    there.eval().unwrap();
    let (x, a) = (there.sqrt(), matrix(&rt));
    let both = x.matmul(&a).sum(..) * 0.0 + a.matmul(&a).sum(..);
    let want: f32 = at_home(|a| a.matmul(a).sum(..));
    assert_eq!(both.item::<f32>().unwrap(), want);
    assert!(rt.engine().guard().list().is_empty(), "{:?}", rt.engine().guard().list());
}

/// The same of the same matrix where there is only the host.
fn at_home(f: impl Fn(&Array) -> Array) -> f32 {
    let mut k = Knobs::default();
    k.set("webgpu.enabled", "false").unwrap();
    let mine = [("wisdom.enabled", "false"), ("calibrate.background", "false")];
    mine.iter().for_each(|(name, value)| k.set(name, value).unwrap());
    f(&matrix(&Runtime::with_knobs(k).unwrap())).item().unwrap()
}

#[test]
fn what_goes_on_beside_work_is_counted_once() {
    let estimate = |overlaps: bool| {
        let (rt, sim) = side_by_side(|| Ok(()));
        // A quarter of what the host takes for its product meanwhile.
        let there = PRODUCT / 4.0;
        rt.engine().set_wire(DeviceId(1), wire(there, 1e18));
        if overlaps {
            sim.overlap(|_| Ok(()));
        }
        let (a, x) = (matrix(&rt), rt.from_vec(vec![0.5f32; 4096], [4096]).unwrap());
        let plan = rt.explain(&(a.matmul(&a).sum(..) + x.exp().sum(..))).unwrap();
        assert!(plan.stages.iter().any(|s| s.place == "host") && plan.transfers.len() >= 2, "{plan}");
        plan
    };
    let (beside, apart) = (estimate(true), estimate(false));
    let sum = |p: &steersman::Plan| -> f64 {
        p.stages.iter().map(|s| s.predicted_s).chain(p.transfers.iter().map(|t| t.predicted_s)).sum()
    };
    assert!((apart.predicted_s / sum(&apart) - 1.0).abs() < 1e-6, "{apart}");
    assert!(beside.predicted_s < sum(&beside) - PRODUCT / 5.0, "{beside}");
}

#[test]
fn a_transfer_that_fails_beside_work_is_done_without() {
    let (rt, sim) = side_by_side(|| Ok(()));
    sim.overlap(|transfer| match transfer {
        Transfer::Up => Err(KernelError::Failed("a bad cable".into())),
        Transfer::Down => Ok(()),
    });
    let (product, exps) = work(&rt);
    rt.eval_all(&[&product, &exps]).unwrap();
    check(&product, &exps);
    assert_eq!(sim.runs(), 0, "it ran on the host");
    let said = rt.log().entries().into_iter().filter_map(|e| e.note);
    assert!(said.filter(|n| n.contains("a bad cable")).count() > 0);
}

#[test]
fn a_device_lost_in_a_transfer_beside_work_is_done_without() {
    let (rt, sim) = side_by_side(|| Ok(()));
    sim.overlap(|_| Err(KernelError::Lost("unplugged".into())));
    let (product, exps) = work(&rt);
    rt.eval_all(&[&product, &exps]).unwrap();
    check(&product, &exps);
    assert!(rt.engine().guard().lost(DeviceId(1)).is_some());
}

#[test]
fn a_transfer_that_panics_beside_work_is_done_without() {
    let (rt, sim) = side_by_side(|| Ok(()));
    sim.overlap(|_| panic!("a driver's bug"));
    let (product, exps) = work(&rt);
    rt.eval_all(&[&product, &exps]).unwrap();
    check(&product, &exps);
    let said = rt.log().entries().into_iter().filter_map(|e| e.note);
    assert!(said.filter(|n| n.contains("a driver's bug")).count() > 0);
}

#[test]
fn what_would_arrive_too_early_for_the_memory_arrives_when_it_is_needed() {
    let (rt, sim) = side_by_side(|| Ok(()));
    sim.overlap(|_| Ok(()));
    // The host would be done with all products before the first of them was over there.
    rt.engine().set_wire(DeviceId(1), wire(5.0 * PRODUCT, 1e18));
    let sums = |rt: &Runtime| -> Vec<Array> {
        let inputs = (1..5).map(|i| rt.from_vec(vec![i as f32 * 0.01; 1024], [32, 32]).unwrap());
        inputs.map(|x| x.matmul(&x).exp().sum(..)).collect()
    };
    // Room for two of the four.
    sim.limit_to(12 << 10);
    let all = sums(&rt);
    rt.eval_all(&all.iter().collect::<Vec<_>>()).unwrap();
    let plan = all[3].plan().unwrap();
    assert_eq!(plan.stages.iter().filter(|s| s.place == "sim:0").count(), 4, "{plan}");
    for (i, sum) in all.iter().enumerate() {
        let want = 1024.0 * (32.0 * (0.01 * (i + 1) as f32).powi(2)).exp();
        assert!((sum.item::<f32>().unwrap() / want - 1.0).abs() < 1e-5);
    }
}
