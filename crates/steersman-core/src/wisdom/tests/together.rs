//! Several writers of one file.

use super::*;

#[test]
fn two_writers_at_once_lose_nothing() {
    let (_dir, path) = fresh();
    std::thread::scope(|s| {
        for t in 0..2 {
            let path = &path;
            s.spawn(move || {
                let wisdom = Wisdom::open(Some(path)).wisdom;
                for i in 1..=50 {
                    let own = format!("own-{t}-{i}");
                    let batch = Batch { usage: vec![usage(1)], ..cells(&[(&own, 1), ("shared", 2 * i + t)]) };
                    wisdom.save(batch).unwrap();
                }
                assert_eq!(wisdom.take_notices(), []);
            });
        }
    });
    let s = open(&path).load(HERE);
    assert_eq!(s.cells.len(), 101);
    assert_eq!(s.usage[0].runs, 100);
    let shared = s.cells.iter().find(|c| c.kernel == "shared").unwrap();
    assert_eq!(*shared, cell("shared", 101), "the richest state wins, whoever wrote it last");
}

#[test]
fn many_openers_of_a_new_file_agree_on_it() {
    let (_dir, path) = fresh();
    let barrier = std::sync::Barrier::new(6);
    std::thread::scope(|s| {
        for i in 0..6 {
            let (path, barrier) = (&path, &barrier);
            s.spawn(move || {
                barrier.wait();
                let opened = Wisdom::open(Some(path));
                opened.wisdom.save(cells(&[(&format!("k{i}"), 1)])).unwrap();
                assert_eq!(opened.wisdom.mode(), Mode::Disk, "{:?}", opened.notices);
            });
        }
    });
    assert_eq!(open(&path).load(HERE).cells.len(), 6);
}

const CHILD: &str = "STEERSMAN_TEST_WISDOM_CHILD";

/// Runs only as a child of the test below.
#[test]
fn child_writer() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let wisdom = Wisdom::open(Some(Path::new(&path))).wisdom;
    for i in 1..=30 {
        wisdom.save(Batch { usage: vec![usage(1)], ..cells(&[("shared", i)]) }).unwrap();
    }
    assert_eq!(wisdom.mode(), Mode::Disk);
}

#[test]
fn two_processes_at_once_lose_nothing() {
    let (_dir, path) = fresh();
    let me = std::env::current_exe().unwrap();
    let child = || {
        let mut command = std::process::Command::new(&me);
        command.args(["--exact", "wisdom::tests::together::child_writer"]).env(CHILD, &path);
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let children = [child(), child()];
    for mut c in children {
        assert!(c.wait().unwrap().success());
    }
    let s = open(&path).load(HERE);
    assert_eq!((s.usage[0].runs, s.cells[0].samples), (60, 30));
}
