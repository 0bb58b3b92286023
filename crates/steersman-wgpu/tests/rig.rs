//! A rig times what is resident on the device, checks it against the CPU, and a search finds parameters.

mod hosted;

use hosted::gpu;
use std::sync::Arc;
use std::time::Duration;
use steersman_core::measure::Rig;
use steersman_core::{DeviceId, Engine, Variant, Workload};
use steersman_cpu::Cpu;
use steersman_wgpu::{GpuRig, search};

/// An engine with the CPU's reference kernels and the adapter's.
fn engine() -> Option<(Arc<steersman_wgpu::Gpu>, Arc<Engine>)> {
    let gpu = gpu()?;
    let engine = Engine::default();
    let cpu = Cpu::new(Some(1), 1 << 24);
    for k in cpu.kernels(DeviceId(0), None).into_iter().chain(gpu.kernels(DeviceId(1))) {
        engine.register(k).expect("names are unique");
    }
    Some((gpu, Arc::new(engine)))
}

/// The adapter's variants of a workload.
fn variants(engine: &Engine, w: &Workload) -> Vec<Variant> {
    let kernels = engine.registry();
    let ours = kernels.iter().filter(|(_, k)| k.device() == DeviceId(1) && k.handles(w.op()));
    ours.filter(|(_, k)| k.supports(w).is_ok())
        .flat_map(|(kernel, k)| k.params(w).into_iter().map(move |params| Variant { kernel, params }))
        .collect()
}

#[test]
fn every_variant_runs_and_checks() {
    let Some((gpu, engine)) = engine() else { return };
    for text in [
        "add f32 1000 1000",
        "tanh f32 100x10",
        "sum f32 60x50 axis=1",
        "matmul f32 20x30 30x40",
        "transpose f32 20x30",
    ] {
        let w: Workload = text.parse().expect("a workload");
        let mut rig = GpuRig::new(&gpu, &engine, DeviceId(1), &w).expect("a small workload");
        let all = variants(&engine, &w);
        assert!(all.len() >= 2, "{text}");
        for v in all {
            rig.run(v).expect("a run");
            rig.check(v).unwrap_or_else(|e| panic!("{}: {e}", engine.name(v.kernel)));
        }
    }
}

#[test]
fn kernels_of_other_devices_are_not_run_here() {
    let Some((gpu, engine)) = engine() else { return };
    let w: Workload = "add f32 1000 1000".parse().expect("a workload");
    let mut rig = GpuRig::new(&gpu, &engine, DeviceId(1), &w).expect("a small workload");
    let other = Variant { kernel: 0, params: steersman_core::Params::SERIAL };
    assert!(rig.run(other).expect_err("a kernel of the CPU").to_string().contains("another device"));
}

#[test]
fn a_search_ranks_every_variant_it_had_time_for() {
    let Some((gpu, engine)) = engine() else { return };
    let w: Workload = "matmul f32 96x96 96x96".parse().expect("a workload");
    let mut rig = GpuRig::new(&gpu, &engine, DeviceId(1), &w).expect("a small workload");
    let all = variants(&engine, &w);
    let found = search(&mut rig, &all, Duration::from_millis(1500));
    assert_eq!(found.len(), all.len());
    assert!(found[0].best.is_some() && found.iter().all(|f| f.failed.is_none()));
    assert!(found.is_sorted_by_key(|f| f.best.map_or(f64::INFINITY, |b| b.0)));
}

#[test]
fn a_probe_measures_what_there_is_time_for() {
    let Some(gpu) = gpu() else { return };
    let none = gpu.probe(Duration::ZERO).expect("no time, no error");
    assert!(none.machine.handoff.is_none() && none.link.upload.is_empty());
    let all = gpu.probe(Duration::from_secs(20)).expect("a probe");
    assert!(all.machine.handoff.is_some_and(|h| h > 0.0) && !all.machine.levels.is_empty());
    assert!(!all.machine.peak_f32.is_empty());
    assert!(all.link.upload.len() >= 4 && all.link.upload.len() == all.link.download.len());
}
