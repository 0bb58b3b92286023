//! Wisdom: kept, moved, forgotten, and whatever befalls its file.

use crate::home::{Home, ended, text};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

fn samples(home: &Home) -> u64 {
    home.json(&["wisdom", "show"])["devices"][0]["samples"].as_u64().expect("a count")
}

#[test]
fn what_is_learned_is_exported_imported_and_forgotten() {
    let home = Home::calibrated();
    assert!(samples(&home) > 0);
    let file = home.path("export.json");
    assert_eq!(home.steer(&["wisdom", "export", text(&file)]).code, Some(0));
    let printed: Value =
        serde_json::from_str(&home.steer(&["wisdom", "export"]).out).expect("an export is JSON");
    assert_eq!(printed["format"], "steersman-wisdom");

    let other = Home::new();
    let dry = other.json(&["wisdom", "import", text(&file), "--dry-run"]);
    assert!(dry["added"].as_u64().is_some_and(|n| n > 0));
    assert_eq!(samples(&other), 0, "a dry run writes nothing");
    other.json(&["wisdom", "import", text(&file)]);
    assert_eq!(samples(&other), samples(&home));

    let third = Home::new();
    third.json(&["wisdom", "merge", text(&home.wisdom())]);
    assert_eq!(samples(&third), samples(&home));

    home.json(&["wisdom", "reset", "--yes"]);
    assert_eq!(samples(&home), 0);
}

#[test]
fn a_quarantine_is_shown_with_its_reason_and_lifted() {
    let home = Home::new();
    let device = home.json(&["wisdom", "show"])["devices"][0]["fingerprint"].clone();
    let row = |kernel: &str| {
        serde_json::json!({ "device": device, "kernel": kernel, "revision": 1, "op": "exp", "dtype": "f32",
            "reason": "panicked: boom", "when": 0.0 })
    };
    let export = serde_json::json!({ "format": "steersman-wisdom", "version": 1, "exported": 0.0, "devices": [],
        "cells": [], "history": [], "quarantine": [row("mine/one"), row("mine/two")], "usage": [], "meta": [] });
    let file = home.write("bad.json", export.to_string());
    home.json(&["wisdom", "import", text(&file)]);
    let shown = home.steer(&["wisdom", "show"]).out;
    assert!(shown.contains("mine/one for exp f32: panicked: boom"), "{shown}");
    let left = || home.json(&["wisdom", "show"])["devices"][0]["quarantine"].as_array().map(Vec::len);
    let lifted = home.json(&["wisdom", "lift", "mine/one"]);
    assert_eq!((&lifted["lifted"][0]["kernel"], left()), (&"mine/one".into(), Some(1)));
    let said = home.steer(&["wisdom", "lift"]);
    assert!(said.code == Some(0) && said.out.contains("lifted: mine/two"), "{}{}", said.out, said.err);
    assert_eq!(left(), Some(0));
    assert_eq!(home.steer(&["wisdom", "lift", "mine/two"]).code, Some(2));
    assert_eq!(home.json(&["wisdom", "lift"])["lifted"].as_array().map(Vec::len), Some(0));
}

#[test]
fn what_is_no_export_is_refused() {
    let home = Home::new();
    let file = home.write("x.json", "{\"format\": \"something else\"}");
    for args in [["wisdom", "import", text(&file)], ["wisdom", "merge", text(&file)]] {
        let ended = home.steer(&args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.err);
        assert!(ended.err.contains("error:"), "{args:?}: {}", ended.err);
    }
}

#[test]
fn a_damaged_file_is_kept_aside_and_everything_works() {
    let home = Home::new();
    home.write(
        "steersman/wisdom.db",
        "this was never a database, but it is long enough to look at".repeat(40),
    );
    let ended = home.steer(&["explain", "add f32 100 100", "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.err.contains("wisdom.db"), "{}", ended.err);
    assert!(serde_json::from_str::<Value>(&ended.out).is_ok(), "notices stay off standard output");
    let kept = std::fs::read_dir(home.path("steersman")).expect("the folder is there");
    let aside = kept.flatten().any(|f| {
        std::fs::read(f.path()).is_ok_and(|content| content.starts_with(b"this was never a database"))
    });
    assert!(aside, "the damaged file is not thrown away");
}

#[test]
fn without_wisdom_on_disk_calibration_still_works_and_says_so() {
    let home = Home::new();
    let env = [("STEERSMAN_WISDOM_ENABLED", "false")];
    let ended = home.steer_with(&["calibrate", "--quick", "--budget", "2s"], &env);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("memory only"), "{}", ended.out);
    assert!(!home.wisdom().exists());
}

#[test]
fn two_processes_calibrate_at_once() {
    let home = Home::new();
    let start = || {
        let mut command = home.command(&["calibrate", "--quick", "--budget", "1500ms", "--json"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let mut taken = 0;
    for child in [start(), start()] {
        let ended = ended(child.wait_with_output().expect("it ends"));
        let report: Value = serde_json::from_str(&ended.out).expect("a report");
        let samples = report["samples"].as_u64().expect("a count");
        assert_eq!(ended.code, Some(i32::from(samples == 0)), "{}", ended.err);
        taken += samples;
    }
    assert_eq!(samples(&home) > 0, taken > 0, "{taken} samples were taken");
}

#[cfg(unix)]
#[test]
fn ctrl_c_in_calibration_keeps_what_was_learned() {
    let home = Home::new();
    let mut command = home.command(&["calibrate", "--budget", "60s", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    std::thread::sleep(Duration::from_secs(4));
    // SAFETY: sends a signal to our own child, which has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let ended = ended(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, Some(130), "{}{}", ended.out, ended.err);
    let report: Value = serde_json::from_str(&ended.out).expect("a report");
    assert_eq!(report["interrupted"], true);
    let taken = report["samples"].as_u64().expect("a count");
    assert_eq!(samples(&home) > 0, taken > 0, "{taken} samples were taken");
}

#[test]
fn a_calibration_that_measured_nothing_is_a_failure_and_says_why() {
    let home = Home::new();
    let off = [("STEERSMAN_DISABLE", "*")];
    let ended = home.steer_with(&["calibrate", "--quick", "--budget", "200ms"], &off);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("disable=* leaves no kernel"), "{}", ended.err);
    let ended = Home::new().steer(&["calibrate", "--quick", "--budget", "1ms"]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("larger --budget"), "{}", ended.err);
}

#[test]
fn an_export_passes_through_a_pipe() {
    use std::io::Write;
    let home = Home::calibrated();
    let export = home.steer(&["wisdom", "export", "-"]).out;
    assert!(!home.path("-").exists());
    let other = Home::new();
    let mut command = other.command(&["wisdom", "import", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("a pipe").write_all(export.as_bytes()).expect("it reads");
    let ended = ended(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(samples(&other), samples(&home));
}
