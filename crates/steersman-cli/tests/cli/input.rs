//! Bad input: exit 2, a message that names what is wrong, nothing on standard output.

use crate::home::{Ended, Home, text};

fn refused(ended: &Ended, word: &str) {
    assert_eq!(ended.code, Some(2), "{}{}", ended.out, ended.err);
    assert!(ended.err.contains(word), "{:?} should say {word:?}", ended.err);
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
    assert_eq!(ended.out, "");
}

const MALFORMED: [(&str, &str); 12] = [
    ("matmul f32 3x4 5x6", "columns (4)"),
    ("add f99 10 10", "f99"),
    ("frob f32 10", "frob"),
    ("sum f32 10x10 axis=7", "axis 7"),
    ("", "empty"),
    ("add f32 -3 4", "-3"),
    ("matmul f32 99999999999x99999999999 99999999999x9", "too large"),
    ("add f32 10", "2 operand"),
    ("exp i32 10", "i32"),
    ("min f32 0", "zero elements"),
    ("exp f32 8@cuda:0", "there is no place 'cuda:0'; expected one of: host cpu:0"),
    ("add f32 10 10 -> vulkan:3", "vulkan:3"),
];

#[test]
fn malformed_workloads_are_refused_by_every_command_that_takes_one() {
    let home = Home::new();
    for (workload, word) in MALFORMED {
        refused(&home.steer(&["explain", workload]), word);
        refused(&home.steer(&["explain", workload, "--json"]), word);
        refused(&home.steer(&["run", workload]), word);
    }
}

#[test]
fn a_malformed_line_of_a_file_is_named() {
    let home = Home::new();
    let file = home.write("w.txt", "# fine\nadd f32 10 10\n\nadd f32 ten\n");
    refused(&home.steer(&["regret", text(&file)]), "line 4");
    let empty = home.write("empty.txt", "# nothing\n");
    refused(&home.steer(&["regret", text(&empty)]), "holds no workloads");
    refused(&home.steer(&["regret", "missing.txt"]), "missing.txt");
}

#[test]
fn a_file_that_is_no_text_is_named_with_its_line_and_cannot_draw_on_the_screen() {
    let home = Home::new();
    let file = home.write("w.txt", b"add f32 10 10\nadd f32 \xff 10\n");
    refused(&home.steer(&["regret", text(&file)]), "line 2 is not UTF-8");
    let file = home.write("w.txt", "add f32 \x1b[2J 10\n");
    let ended = home.steer(&["regret", text(&file)]);
    refused(&ended, "\\u{1b}[2J");
    assert!(!ended.err.contains('\x1b'), "{:?}", ended.err);
}

#[test]
fn help_tells_the_whole_text_form() {
    let home = Home::new();
    for command in ["explain", "run"] {
        let help = home.steer(&[command, "--help"]).out;
        for word in ["stride=", "pad=", "@host", "-> host", ":1,1000", "bf16", "atan2", "conv2d", "numerics="]
        {
            assert!(help.contains(word), "{command}: {word} is missing in {help}");
        }
        assert!(!help.contains('\\'), "{help}");
    }
}

#[test]
fn what_the_command_line_does_not_take_is_refused() {
    let home = Home::new();
    for (args, word) in [
        (&["frobnicate"][..], "frobnicate"),
        (&["explain"], "WORKLOAD"),
        (&["explain", "add f32 1 1", "--numerics", "sloppy"], "relaxed"),
        (&["calibrate", "--budget", "soon"], "300ms"),
        (&["calibrate", "--budget", "-1s"], "-1"),
        (&["run", "add f32 1 1", "--repeat", "0"], "repeat"),
        (&["run", "add f32 1 1", "--kernel", "cpu/none"], "cpu/none"),
        (&["run", "add f32 1 1", "--kernel", "cpu/gemm"], "cpu/gemm cannot run"),
        (&["run", "add f32 1 1", "--threads", "999"], "there is"),
        (&["run", "add f32 1 1", "--output", "c.npy"], "--input"),
        (&["log", "--csv", "--trace"], "trace"),
        (&["log", "--csv", "--json"], "one"),
        (&["wisdom", "import", "missing.json"], "missing.json"),
        (&["wisdom", "reset"], "--yes"),
        (&["wisdom", "lift", "cpu/nobody"], "cpu/nobody"),
    ] {
        refused(&home.steer(args), word);
    }
}

#[test]
fn nonsense_in_the_environment_names_the_knob() {
    let home = Home::new();
    for (name, value, word) in [
        ("STEERSMAN_THREADS_MAX", "lots", "threads.max"),
        ("STEERSMAN_EXPLORE_BUDGET", "2", "explore.budget"),
        ("STEERSMAN_FROZEN", "maybe", "frozen"),
        ("STEERSMAN_FROZZEN", "true", "STEERSMAN_FROZEN"),
        ("STEERSMAN_CONFIG", "/does/not/exist.toml", "/does/not/exist.toml"),
    ] {
        for args in [&["devices"][..], &["knobs"], &["explain", "add f32 1 1"], &["log"], &[]] {
            refused(&home.steer_with(args, &[(name, value)]), word);
        }
    }
    home.write("steersman/config.toml", "tie_band = \"wide\"\n");
    refused(&home.steer(&["devices"]), "tie_band");
}

#[test]
fn a_workload_nothing_can_run_is_a_failure_with_reasons() {
    let ended = Home::new().steer_with(&["explain", "add f32 10 10"], &[("STEERSMAN_DISABLE", "*")]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("no kernel can run"), "{}", ended.err);
}

#[test]
fn frozen_forbids_calibration() {
    refused(&Home::new().steer_with(&["calibrate"], &[("STEERSMAN_FROZEN", "true")]), "frozen");
}

#[test]
fn help_has_examples_everywhere() {
    let home = Home::new();
    for args in [
        &["--help"][..],
        &["devices", "--help"],
        &["calibrate", "--help"],
        &["explain", "--help"],
        &["run", "--help"],
        &["plan", "--help"],
        &["regret", "--help"],
        &["bench", "decide", "--help"],
        &["log", "--help"],
        &["wisdom", "export", "--help"],
        &["wisdom", "import", "--help"],
        &["wisdom", "merge", "--help"],
        &["wisdom", "lift", "--help"],
        &["wisdom", "reset", "--help"],
        &["knobs", "--help"],
    ] {
        let ended = home.steer(args);
        assert_eq!(ended.code, Some(0), "{args:?}");
        assert!(ended.out.contains("Example"), "{args:?}: {}", ended.out);
    }
}

#[test]
fn a_forced_kernel_that_cannot_run_it_is_named_with_the_reason() {
    let home = Home::new();
    for (kernel, why) in [("cpu/nope", "no kernel of that name"), ("cpu/gemm", "does not do this op")] {
        let ended = home.steer_with(&["explain", "add f32 10 10"], &[("STEERSMAN_FORCE", kernel)]);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let said = ended.err.contains(&format!("force={kernel} is not obeyed")) && ended.err.contains(why);
        assert!(said, "{}", ended.err);
    }
}

#[test]
fn what_no_machine_holds_is_said() {
    let home = Home::new();
    let ended = home.steer(&["explain", "exp f32 2000000000000"]);
    assert!(ended.code == Some(0) && ended.err.contains("take 16.0 TB together"), "{}", ended.err);
    let limited = [("STEERSMAN_MEMORY_LIMIT", "1MB")];
    let ended = home.steer_with(&["explain", "add f32 1000000 1000000"], &limited);
    assert!(ended.err.contains("take 12.0 MB together, and there are 1.00 MB"), "{}", ended.err);
    // Each fits, both do not.
    let ended = home.steer_with(&["run", "exp f32 200000"], &limited);
    assert!(ended.code == Some(1) && ended.err.contains("there are 1.00 MB"), "{}", ended.err);
}
