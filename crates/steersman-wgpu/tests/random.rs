//! Random numbers that the device draws are those of the CPU; see `conformance/bodies/random.rs` of the CPU's
//! tests.

#[path = "../../steersman-cpu/tests/conformance/bodies/random.rs"]
mod bodies;
mod hosted;

use bodies::Draw;
use std::sync::Arc;
use steersman_core::expr::Expr;
use steersman_core::{Address, DType, DeviceId, Io, Kernel, Params, Workload};

static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    drawers,
    // Groups draw from the first number on.
    starts: &[0],
    normal_units: 16.0,
};

fn drawers() -> Vec<(String, Draw)> {
    let Some(gpu) = hosted::gpu() else { return Vec::new() };
    let kernels = gpu.kernels(DeviceId(1)).into_iter().filter(|k| {
        let name = k.name().rsplit('/').next().unwrap_or_default();
        name == "fused" || name == "fused-vec4"
    });
    let hosted = |kernel: Arc<dyn Kernel>| hosted::Hosted { gpu: gpu.clone(), kernel, margin: 0 };
    kernels.map(|k| (k.name().to_string(), by(hosted(k)))).collect()
}

fn by(kernel: hosted::Hosted) -> Draw {
    Box::new(move |dist, key, start, n| {
        assert_eq!(start, 0, "groups draw from the first number on");
        let mut b = Expr::builder([]);
        let numbers = b.random(dist, DType::F32, 0).expect("f32 is a float");
        b.output(numbers).expect("an array");
        let w = Workload::fused(&Arc::new(b.finish().expect("an output")), &[n], []).expect("a group");
        let mut x = vec![0f32; n];
        assert_eq!(kernel.supports(&w), Ok(()), "{}", kernel.name());
        let output = Address::host(x.as_mut_ptr().cast::<u8>());
        let io = Io { inputs: &[], output, more: &[], scalars: &[key] };
        // SAFETY: as many numbers as the workload has.
        unsafe { kernel.run(&w, Params::SERIAL, io) }.expect("a run");
        x
    })
}
