//! What cannot be kept is said, and nothing that was there is lost.

use crate::home::{Home, ended, text};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A wisdom file that is there.
fn begun() -> Home {
    let home = Home::new();
    home.json(&["wisdom", "show"]);
    home
}

/// Another process in the middle of writing.
fn held(home: &Home, how: &str) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(home.wisdom()).expect("the file is there");
    other.execute_batch(how).expect("nobody else writes");
    other
}

#[test]
fn a_calibration_that_another_process_keeps_from_the_file_is_a_failure() {
    let home = begun();
    let _lock = held(&home, "BEGIN IMMEDIATE");
    let ended = home.steer(&["calibrate", "--quick", "--budget", "700ms"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("not kept"), "{}", ended.out);
    assert!(
        ended.err.contains("not kept") && ended.err.contains("another process holds it"),
        "{}",
        ended.err
    );
}

#[test]
fn a_calibration_waits_for_another_process_to_be_through() {
    let home = begun();
    let lock = held(&home, "BEGIN IMMEDIATE");
    let child = home
        .command(&["calibrate", "--quick", "--budget", "700ms", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    std::thread::sleep(Duration::from_millis(5500));
    lock.execute_batch("ROLLBACK").expect("it was begun");
    let ended = ended(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let devices: i64 = lock.query_row("SELECT count(*) FROM devices", [], |r| r.get(0)).expect("our tables");
    assert_eq!(devices, 1);
}

#[test]
fn nothing_is_forgotten_taken_in_or_exported_where_the_file_cannot_be_used() {
    let home = Home::new();
    let export = home.path("export.json");
    assert_eq!(Home::calibrated().steer(&["wisdom", "export", text(&export)]).code, Some(0));
    let before = std::fs::read(&export).expect("it was written");
    std::fs::create_dir_all(home.wisdom()).expect("a folder in the file's place");
    for args in [
        &["wisdom", "reset", "--yes"][..],
        &["wisdom", "import", text(&export)],
        &["wisdom", "export", text(&export)],
        &["calibrate", "--quick", "--budget", "700ms"],
    ] {
        let ended = home.steer(args);
        assert_eq!(ended.code, Some(1), "{args:?}: {}{}", ended.out, ended.err);
        let errors: Vec<&str> = ended.err.lines().filter(|l| l.starts_with("error:")).collect();
        assert!(errors.iter().any(|l| l.contains("it is a folder")), "{args:?}: {}", ended.err);
    }
    assert_eq!(std::fs::read(&export).expect("it is there"), before);
    let dry = home.steer(&["wisdom", "import", text(&export), "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}", dry.err);
}

#[test]
fn frozen_wisdom_is_neither_changed_nor_said_to_be() {
    let home = Home::new();
    let export = home.write("export.json", "{}");
    for args in [&["wisdom", "reset", "--yes"][..], &["wisdom", "import", text(&export)]] {
        let ended = home.steer_with(args, &[("STEERSMAN_FROZEN", "true")]);
        assert_eq!(ended.code, Some(1), "{args:?}: {}", ended.err);
        assert!(ended.err.contains("frozen"), "{args:?}: {}", ended.err);
    }
    let shown = home.steer_with(&["wisdom", "show"], &[("STEERSMAN_FROZEN", "true")]);
    assert!(shown.err.contains("there is none"), "{}", shown.err);
}

/// With no file longer than this: what a full disk does, without one.
#[cfg(unix)]
fn cramped(mut command: Command, bytes: u64) -> Command {
    use std::os::unix::process::CommandExt;
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: two system calls that change nothing but the child.
    unsafe {
        command.pre_exec(move || {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            match libc::setrlimit(libc::RLIMIT_FSIZE, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    command
}

#[cfg(unix)]
#[test]
fn a_result_that_finds_no_room_leaves_the_earlier_one() {
    let home = Home::calibrated();
    let export = home.path("export.json");
    assert_eq!(home.steer(&["wisdom", "export", text(&export)]).code, Some(0));
    let before = std::fs::read(&export).expect("it was written");
    let plan = home.write("p.plan", "x = input f32 100x100\ny = exp x\n");
    let picture = home.write("p.svg", "the earlier picture");
    for args in [
        vec!["wisdom", "export", text(&export)],
        vec!["plan", text(&plan), "--runs", "1", "--svg", text(&picture)],
    ] {
        let output = cramped(home.command(&args), 512).output().expect("it runs");
        let ended = ended(output);
        assert_eq!(ended.code, Some(1), "{args:?}: {}", ended.err);
        assert!(ended.err.contains("cannot write"), "{args:?}: {}", ended.err);
    }
    assert_eq!(std::fs::read(&export).expect("it is there"), before);
    assert_eq!(std::fs::read_to_string(&picture).expect("it is there"), "the earlier picture");
}

#[cfg(unix)]
#[test]
fn a_file_that_could_not_be_filled_is_not_taken_for_one_without_permission() {
    let home = Home::new();
    for start in 1..=2 {
        let output = cramped(home.command(&["wisdom", "show"]), 512).output().expect("it runs");
        let ended = ended(output);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert!(ended.err.contains("wisdom file"), "start {start}: {}", ended.err);
        assert!(!ended.err.contains("permissions"), "start {start}: {}", ended.err);
    }
}

#[cfg(unix)]
fn signalled(args: &[&str], home: &Home, after: Duration, signals: &[i32]) -> crate::home::Ended {
    let child = home.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    std::thread::sleep(after);
    for signal in signals {
        // SAFETY: sends a signal to our own child, which has not been waited for.
        unsafe { libc::kill(child.id() as i32, *signal) };
        std::thread::sleep(Duration::from_millis(30));
    }
    ended(child.wait_with_output().expect("it ends"))
}

#[cfg(unix)]
#[test]
fn whoever_ends_a_calibration_and_however_often_what_was_learned_is_kept() {
    for signals in [&[libc::SIGTERM][..], &[libc::SIGHUP], &[libc::SIGINT, libc::SIGINT]] {
        let home = Home::new();
        let args = ["calibrate", "--budget", "60s", "--json"];
        let ended = signalled(&args, &home, Duration::from_secs(2), signals);
        assert_eq!(ended.code, Some(130), "{signals:?}: {}{}", ended.out, ended.err);
        let report: serde_json::Value = serde_json::from_str(&ended.out).expect("a report");
        assert_eq!((&report["interrupted"], &report["kept"]), (&true.into(), &true.into()));
    }
}

#[cfg(unix)]
#[test]
fn the_judge_can_be_interrupted_in_the_middle_of_a_workload() {
    let home = Home::new();
    let file = home.write("w.txt", "matmul f32 2200x2200 2200x2200\n");
    let args = ["regret", text(&file), "--json"];
    let ended = signalled(&args, &home, Duration::from_millis(1500), &[libc::SIGINT]);
    assert_eq!(ended.code, Some(130), "{}{}", ended.out, ended.err);
    let report: serde_json::Value = serde_json::from_str(&ended.out).expect("a report");
    assert_eq!(report["workloads"], 0, "it went on to the end");
}
