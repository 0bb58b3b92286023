//! Data on standard output: JSON with the promised keys, plain text without colours, quiet when nobody reads.

use crate::home::{Home, text};
use serde_json::Value;
use std::process::Stdio;

fn has(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some_and(|v| !v.is_null()), "{key} is missing in {value}");
    }
}

#[test]
fn what_can_be_looked_at_is_json() {
    let home = Home::new();
    has(
        &home.json(&["devices"])["devices"][0],
        &["part", "parallelism", "isa", "fingerprint", "kernels", "host"],
    );
    has(
        &home.json(&["knobs"])["knobs"][0],
        &["name", "value", "default", "source", "env", "accepts", "help"],
    );
    assert_eq!(home.json(&["log"]), Value::Array(vec![]));
    has(&home.json(&["wisdom", "show"]), &["path", "mode", "hash", "devices"]);
}

#[test]
fn explain_lists_candidates_refusals_and_crossovers() {
    let home = Home::new();
    let e = home.json(&["explain", "matmul f32 333x777 777x555"]);
    has(&e, &["workload", "flops", "bytes", "chosen", "confidence", "reason", "refused", "crossovers"]);
    let candidates = e["candidates"].as_array().expect("a list");
    assert!(candidates.len() >= 5, "{} candidates", candidates.len());
    for c in candidates {
        has(
            c,
            &["kernel", "threads", "mean_s", "low_s", "high_s", "launch_s", "move_s", "work_s", "evidence"],
        );
    }
    let chosen: Vec<&Value> = candidates.iter().filter(|c| c["chosen"] == true).collect();
    assert_eq!(chosen.len(), 1);
    assert_eq!(chosen[0]["id"], e["chosen"]);
    assert!(!e["refused"].as_array().expect("a list").is_empty());
    let plain = home.steer(&["explain", "matmul f32 333x777 777x555"]);
    assert!(plain.out.contains("▸") && plain.out.contains("refused:") && plain.out.contains("confidence"));
}

#[test]
fn relaxed_numerics_are_passed_on() {
    let e = Home::new().json(&["explain", "matmul f32 64x64 64x64", "--numerics", "relaxed"]);
    assert_eq!(e["numerics"], "relaxed");
    let exact = Home::new().json(&["explain", "matmul f32 64x64 64x64 numerics=exact"]);
    assert_eq!(exact["numerics"], "exact");
    let large = Home::new().json(&["explain", "matmul f32 400x400 400x400", "--numerics", "exact"]);
    assert_eq!(
        large["candidates"].as_array().map(Vec::len),
        Some(1),
        "exact results are to be had at any size"
    );
}

#[test]
fn a_forced_kernel_runs_and_is_logged() {
    let home = Home::new();
    let e = home.json(&["explain", "add f32 1000 1000"]);
    let last = e["candidates"].as_array().and_then(|c| c.last()).expect("candidates")["id"].clone();
    let id = last.as_str().expect("text");
    let r = home.json(&["run", "add f32 1000 1000", "--kernel", id, "--repeat", "3"]);
    assert_eq!(r["id"], last);
    assert_eq!(r["forced"], true);
    assert_eq!(r["samples_s"].as_array().map(Vec::len), Some(3));
    assert!(r["median_s"].as_f64().is_some_and(|s| s > 0.0));
    let expected = e["candidates"].as_array().and_then(|c| c.last()).and_then(|c| c["mean_s"].as_f64());
    let (expected, predicted) = (expected.expect("a time"), r["predicted_s"].as_f64().expect("a time"));
    assert!((predicted / expected - 1.0).abs() < 1e-6, "{predicted} is of another kernel than {expected}");
    let log = home.json(&["log"]);
    assert_eq!(log[0]["workload"], "add f32 1000 1000");
    assert_eq!(log[0]["reason"], "forced");
    assert!(home.steer(&["log", "--csv"]).out.starts_with("seq,"));
    let trace: Value = serde_json::from_str(&home.steer(&["log", "--trace"]).out).expect("a trace is JSON");
    has(&trace, &["traceEvents"]);
    assert!(home.steer(&["log", "--limit", "1"]).out.contains("add f32 1000 1000"));
    assert!(home.steer(&["log", "--limit", "0"]).out.contains("--limit 0"));
}

#[test]
fn a_kernel_that_others_outdo_runs_by_name_and_is_not_what_a_number_of_threads_means() {
    let home = Home::new();
    let w = "matmul f32 4x4 4x4";
    let e = home.json(&["explain", w]);
    let weighed: Vec<&str> =
        e["candidates"].as_array().into_iter().flatten().filter_map(|c| c["kernel"].as_str()).collect();
    let outdone = "cpu/matmul-packed-sse2";
    let narrow = cfg!(target_arch = "x86_64").then_some(outdone).filter(|k| !weighed.contains(k));
    if let Some(kernel) = narrow {
        let r = home.json(&["run", w, "--kernel", kernel, "--repeat", "1"]);
        assert_eq!((&r["kernel"], &r["forced"]), (&kernel.into(), &true.into()));
    }
    let r = home.json(&["run", w, "--threads", "1", "--repeat", "1"]);
    assert!(r["kernel"].as_str().is_some_and(|k| weighed.contains(&k)), "{} of {weighed:?}", r["kernel"]);
}

#[test]
fn decisions_are_measured_with_the_promised_keys() {
    let home = Home::new();
    has(&home.json(&["bench", "call"]), &["call_ns_p50", "call_ns_p99", "allocations_per_call"]);
    has(&home.json(&["bench", "start"]), &["start_s_p50", "calibrated"]);
    let b = home.json(&["bench", "decide"]);
    has(&b, &["hit_ns_p50", "hit_ns_p99", "miss_ns_p50", "candidates"]);
    assert_eq!(b["allocations_per_hit"], 0.0, "a hit allocates nothing");
}

#[test]
fn regret_has_the_promised_keys_and_judges_every_line() {
    let home = Home::new();
    let file = home.write("w.txt", "add f32 1000 1000\nmatmul f32 9x9 9x9 # small\n");
    let r = home.json(&["regret", text(&file)]);
    has(&r, &["mean_regret", "p50_regret", "p99_regret", "worst_regret", "top1_rate", "mape", "coverage90"]);
    assert_eq!(r["workloads"], 2);
    for row in r["rows"].as_array().expect("a list") {
        has(
            row,
            &["workload", "chosen", "chosen_s", "best", "best_s", "regret", "predicted_s", "low_s", "high_s"],
        );
        has(row, &["candidates"]);
    }
}

#[test]
fn where_nothing_was_judged_there_are_keys_but_no_numbers() {
    let home = Home::new();
    let file = home.write("w.txt", "add f32 1000 1000\n");
    let off = [("STEERSMAN_DISABLE", "*")];
    let ended = home.steer_with(&["regret", text(&file), "--json"], &off);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let report: Value = serde_json::from_str(&ended.out).expect("a report");
    for key in ["mean_regret", "p50_regret", "p99_regret", "worst_regret", "top1_rate", "mape", "coverage90"]
    {
        assert_eq!(report.get(key), Some(&Value::Null), "{key}");
    }
    let plain = home.steer_with(&["regret", text(&file)], &off);
    assert_eq!(plain.out, "nothing was judged, so that there is no regret to show\n");
}

#[test]
fn the_log_holds_as_many_decisions_as_the_knob_says() {
    let home = Home::new();
    for n in ["10", "20", "30", "40"] {
        let w = format!("add f32 {n} {n}");
        let ended = home.steer_with(&["run", &w, "--repeat", "1"], &[("STEERSMAN_LOG_CAPACITY", "2")]);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }
    assert_eq!(home.json(&["log"]).as_array().map(Vec::len), Some(2));
}

#[test]
fn there_are_no_more_threads_than_cores_and_fewer_keep_what_was_learned() {
    let home = Home::new();
    let cores = std::thread::available_parallelism().expect("a number").get() as u64;
    let with = |threads: &str| {
        let ended = home.steer_with(&["devices", "--json"], &[("STEERSMAN_THREADS_MAX", threads)]);
        let all: Value = serde_json::from_str(&ended.out).expect("devices are JSON");
        all["devices"][0].clone()
    };
    let (one, many) = (with("1"), with("1000"));
    assert_eq!((&one["threads"], &many["threads"]), (&1.into(), &cores.into()));
    assert_eq!(one["fingerprint"], many["fingerprint"]);
}

#[test]
fn what_is_set_and_cannot_be_had_is_said() {
    let home = Home::new();
    for (name, value) in [("STEERSMAN_BLAS_PATH", "/nonexist.so"), ("STEERSMAN_DISABLE", "cpu/nothere")] {
        let ended = home.steer_with(&["explain", "add f32 10 10"], &[(name, value)]);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert!(ended.err.contains(value), "{name}: {:?}", ended.err);
    }
    let fine = home.steer_with(&["explain", "add f32 10 10"], &[("STEERSMAN_DISABLE", "cpu/gemm")]);
    assert!(!fine.err.contains("disable"), "{}", fine.err);
}

#[test]
fn piped_output_has_no_colours() {
    let home = Home::new();
    for args in [&["devices"][..], &["knobs"], &["explain", "add f32 100 100"], &["--help"]] {
        let ended = home.steer(args);
        assert!(!ended.out.contains('\x1b') && !ended.err.contains('\x1b'), "{args:?}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let home = Home::new();
    for args in [&["knobs"][..], &["explain", "add f32 100 100", "--json"]] {
        let mut child =
            home.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdout.take());
        let ended = crate::home::ended(child.wait_with_output().expect("it ends"));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert!(!ended.err.contains("error"), "{}", ended.err);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has /dev/full");
    let output = Home::new().command(&["knobs"]).stdout(full).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_tour_shows_choices_regret_and_crossovers() {
    let home = Home::calibrated();
    let t = home.json(&[]);
    let workloads = t["workloads"].as_array().expect("a list");
    assert!(workloads.len() >= 5, "{} workloads", workloads.len());
    for w in workloads {
        has(w, &["workload", "chosen", "chosen_s", "best", "best_s", "worst", "worst_s", "regret"]);
        assert!(w["best_s"].as_f64() <= w["chosen_s"].as_f64(), "{w}");
    }
    assert!(
        t["crossovers"].as_array().is_some_and(|c| c.iter().all(|l| l["rungs"][0]["winner"].is_string()))
    );
}

#[test]
fn more_memory_than_there_is_is_refused_before_it_is_touched() {
    let ended = Home::new().steer(&["run", "exp f32 9999999999999"]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("take 80.0 TB together, and there are"), "{}", ended.err);
}

#[test]
fn an_adapter_that_is_left_out_is_shown_with_the_knob_that_left_it_out_and_a_used_one_with_what_it_is() {
    let home = Home::new();
    let off = home.steer(&["devices"]);
    assert_eq!(off.code, Some(0), "{}", off.err);
    if !off.out.contains("not used;") {
        return;
    }
    assert!(off.out.contains("STEERSMAN_WEBGPU_ENABLED=true lets it take part"), "{}", off.out);
    let on = ("STEERSMAN_WEBGPU_ENABLED", "true");
    let others = home.steer_with(&["devices"], &[on, ("STEERSMAN_WEBGPU_ADAPTERS", "nosuch")]);
    assert!(others.out.contains("is not among webgpu.adapters=nosuch"), "{}", others.out);
    assert!(!others.out.contains("lets it take part"), "{}", others.out);
    if off.out.contains("software on this CPU") {
        let used = home.steer_with(&["devices"], &[on]);
        assert!(!used.out.contains("not used;"), "{}", used.out);
        assert!(used.out.contains("software on this CPU"), "{}", used.out);
        assert!(used.out.contains("at most") && !used.out.contains("at once"), "{}", used.out);
    }
}
