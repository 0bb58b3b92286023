//! Parameters are searched once and kept; what is compiled counts.

use crate::{adapter, with_adapter};
use std::ops::ControlFlow;
use std::time::Duration;
use steersman::core::tune::{Kind, Winner};
use steersman::core::wisdom::{Batch, MetaRow, Wisdom};
use steersman::core::{DeviceId, Seconds, Workload};
use steersman::webgpu::DeviceOptions;
use steersman::{Calibrate, Knobs, Runtime};

fn winners(rt: &Runtime) -> Vec<(String, Vec<Winner>)> {
    let all = rt.engine().registry();
    let found = all.iter().filter_map(|(_, k)| Some((k.name().to_string(), k.winners()?.list())));
    found.filter(|(_, list)| !list.is_empty()).collect()
}

/// Again until it is so, but not for ever: the host comes first, and where nothing is optimised and others run its last
/// workload may take a device's whole share.
fn until(mut is_so: impl FnMut() -> bool) {
    let _ = (0..6).any(|_| is_so());
}

#[test]
fn what_a_search_found_best_is_used_by_a_later_process_without_another_search() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wisdom.db");
    let wisdom = [("wisdom.enabled", "true"), ("wisdom.path", path.to_str().unwrap())];
    let Some(gpu) = adapter(DeviceOptions::default()) else { return };
    let rt = with_adapter(&gpu, &wisdom);
    assert!(winners(&rt).is_empty());
    // What it really takes, so that only what there is time for is searched.
    let probed = gpu.probe(Duration::from_millis(500)).unwrap();
    rt.engine().set_machine(DeviceId(1), probed.machine);
    let how = Calibrate { budget: Some(Duration::from_secs(6)), ..Calibrate::default() };
    let mut searched = false;
    until(|| {
        rt.calibrate(&how, &mut |s| {
            searched |= s.phase.starts_with("searching parameters");
            ControlFlow::Continue(())
        })
        .unwrap();
        searched && !winners(&rt).is_empty()
    });
    let found = winners(&rt);
    assert!(searched && !found.is_empty());
    let candidates = |rt: &Runtime| {
        let w: Workload = "add f32 200000 200000".parse().unwrap();
        let e = rt.engine().explain(&w).unwrap();
        let there = |k: u16| rt.engine().name(k).starts_with(&gpu.identity().family);
        e.candidates.iter().filter(|c| there(c.variant.kernel)).map(|c| c.variant).collect::<Vec<_>>()
    };
    assert!(candidates(&rt).len() <= 2, "one point a kernel");
    drop(rt);
    // Another process: the same adapter, kernels made anew.
    let rt = with_adapter(&gpu, &wisdom);
    assert_eq!(winners(&rt), found);
    let how = Calibrate { budget: Some(Duration::from_secs(1)), ..Calibrate::default() };
    rt.calibrate(&how, &mut |_| ControlFlow::Continue(())).unwrap();
    let now = winners(&rt);
    for (kernel, list) in &found {
        let later = &now.iter().find(|(k, _)| k == kernel).expect("still there").1;
        let mut finished = list.iter().filter(|w| w.left.is_empty());
        assert!(finished.all(|w| later.contains(w)), "{kernel}: {list:?} became {later:?}");
    }
}

/// Points that searches did not get to, of each kernel and kind of work that there was a search for.
fn left(rt: &Runtime) -> Vec<((String, Kind), usize)> {
    let each = |(name, list): (String, Vec<Winner>)| {
        list.into_iter().map(move |w| ((name.clone(), w.kind), w.left.len()))
    };
    winners(rt).into_iter().flat_map(each).collect()
}

#[test]
fn a_search_that_was_broken_off_goes_on_in_the_next_calibration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wisdom.db");
    let wisdom = [("wisdom.enabled", "true"), ("wisdom.path", path.to_str().unwrap())];
    let Some(gpu) = adapter(DeviceOptions::default()) else { return };
    let rt = with_adapter(&gpu, &wisdom);
    let machine = gpu.probe(Duration::from_millis(500)).unwrap().machine;
    rt.engine().set_machine(DeviceId(1), machine.clone());
    let how = Calibrate { budget: Some(Duration::from_secs(6)), ..Calibrate::default() };
    // As soon as a search is in the middle of something.
    let halfway = || left(&rt).iter().any(|(_, left)| *left > 0);
    let mut steps = 0;
    until(|| {
        rt.calibrate(&how, &mut |s| {
            steps += usize::from(s.phase.starts_with("searching"));
            if steps > 100 || halfway() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        steps > 100 || halfway()
    });
    let first = left(&rt);
    assert!(first.iter().any(|(_, left)| *left > 0), "nothing was cut short: {first:?}");
    drop(rt);
    let rt = with_adapter(&gpu, &wisdom);
    assert_eq!(left(&rt), first, "kept");
    rt.engine().set_machine(DeviceId(1), machine);
    until(|| {
        rt.calibrate(&how, &mut |_| ControlFlow::Continue(())).unwrap();
        left(&rt) != first
    });
    // Others may have had the time, or it.
    let later = left(&rt);
    let tried = |k: &(String, Kind), n: usize| later.iter().any(|(l, left)| l == k && *left <= n);
    assert!(first.iter().all(|(k, n)| tried(k, *n)), "{first:?} became {later:?}");
    assert_ne!(later, first, "nothing went on");
}

#[test]
fn a_single_call_does_not_wait_for_a_compiler_and_a_loop_soon_does() {
    let Some(gpu) = adapter(DeviceOptions::default()) else { return };
    let rt = with_adapter(&gpu, &[("explore.budget", "0")]);
    rt.engine().learn_setup(DeviceId(1), Seconds(0.1));
    let w: Workload = "tanh f32 3000".parse().unwrap();
    let there = |v: steersman::core::Variant| rt.engine().name(v.kernel).starts_with(&gpu.identity().family);
    // Measured to be quicker than any other, once it runs.
    for c in rt.engine().estimates(&w).iter().filter(|c| there(c.variant)) {
        (0..8).for_each(|_| rt.engine().learn(c.variant, &w, 1e-9, 1.0));
    }
    rt.engine().invalidate();
    let e = rt.engine().explain(&w).unwrap();
    assert!(there(e.decision.variant()) && !there(e.once.variant()));
    let calls = |n| there(rt.engine().judge_for(&w, n).unwrap().variant());
    assert!(!calls(1) && calls(1_000_000_000), "so many calls have the wait back");
    let cold = e.candidates.iter().filter(|c| there(c.variant));
    assert!(cold.clone().count() > 0 && cold.into_iter().all(|c| c.estimate.setup == Seconds(0.1)));
    assert!(!there(rt.engine().decide(&w).unwrap().variant()));
    // Somebody else had it compiled.
    let x = vec![0.5f32; 3000];
    let v = e.decision.variant();
    let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_ne_bytes()).collect();
    let mut out = vec![0; 12_000];
    rt.run_raw(&w, &[&bytes], &mut out, Some(v)).unwrap();
    rt.engine().invalidate();
    let e = rt.engine().explain(&w).unwrap();
    assert_eq!(e.decision.variant(), e.once.variant());
    assert!(there(rt.engine().decide(&w).unwrap().variant()), "it is ready now");
}

#[test]
fn compiled_pipelines_are_kept_beside_the_wisdom_where_the_driver_can() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wisdom.db");
    let mut knobs = steersman::Knobs::default();
    for (name, value) in [
        ("wisdom.path", path.to_str().unwrap()),
        ("calibrate.background", "false"),
        ("webgpu.enabled", "true"),
    ] {
        knobs.set(name, value).unwrap();
    }
    let Some(gpu) = adapter(DeviceOptions::default()) else { return };
    let rt = Runtime::with_knobs(knobs).unwrap();
    rt.wait_for_devices();
    rt.save().unwrap();
    let can = gpu.identity().isa.iter().any(|i| i == "pipeline-cache");
    let kept =
        std::fs::read_dir(folder.path()).unwrap().filter_map(|f| f.ok()?.file_name().into_string().ok());
    let kept = kept.filter(|name| name.starts_with("pipelines-")).count();
    assert_eq!(kept > 0, can);
}

#[test]
fn an_adapter_that_was_never_calibrated_is_in_the_background_though_the_host_was() {
    let Some(gpu) = adapter(DeviceOptions::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wisdom.db");
    let mut knobs = Knobs::default();
    for (name, value) in [("wisdom.path", path.to_str().unwrap()), ("calibrate.background", "false")] {
        knobs.set(name, value).unwrap();
    }
    let host = Runtime::with_knobs(knobs.clone()).unwrap().fingerprint();
    let calibrated = |device: u64| format!("calibrated/{device:016x}");
    let known = MetaRow { key: calibrated(host), value: "true".into(), updated: 0.0 };
    let wisdom = Wisdom::open(Some(&path)).wisdom;
    wisdom.save(Batch { meta: vec![known], ..Batch::default() }).unwrap();
    knobs.set("calibrate.background", "true").unwrap();
    knobs.set("webgpu.enabled", "true").unwrap();
    let device = gpu.identity().fingerprint();
    let done = || Wisdom::open(Some(&path)).wisdom.load(device).meta.contains_key(&calibrated(device));
    let rt = Runtime::with_knobs(knobs).unwrap();
    assert!(rt.calibrated(), "the host was");
    for _ in 0..600 {
        rt.save().unwrap();
        if done() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(done(), "nobody calibrated the adapter");
    assert!(!winners(&rt).is_empty(), "nothing was searched");
}
