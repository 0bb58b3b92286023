use super::*;
use std::fs;
use tempfile::TempDir;

mod bad_luck;
mod together;
mod travel;

pub(super) const HERE: u64 = 0xfedc_ba98_7654_3210;

pub(super) fn cell(kernel: &str, samples: u64) -> Cell {
    Cell {
        device: HERE,
        kernel: kernel.into(),
        revision: 2,
        threads: 1,
        op: "add".into(),
        dtype: "f32".into(),
        layout: "contiguous".into(),
        payload: format!("{{\"samples\":{samples}}}").into_bytes(),
        samples,
        updated: 1000.0 + samples as f64,
        ..Cell::default()
    }
}

pub(super) fn cells(rows: &[(&str, u64)]) -> Batch {
    Batch { cells: rows.iter().map(|(k, n)| cell(k, *n)).collect(), ..Batch::default() }
}

pub(super) fn usage(runs: u64) -> UsageRow {
    UsageRow {
        device: HERE,
        kernel: "k".into(),
        threads: 1,
        op: "add".into(),
        runs,
        total_s: 0.5,
        ..Default::default()
    }
}

/// One row of every table.
pub(super) fn everything() -> Batch {
    Batch {
        devices: vec![DeviceRow {
            device: HERE,
            identity: "{}".into(),
            machine: "{\"a\":1}".into(),
            updated: 5.0,
        }],
        cells: vec![cell("cpu/simd", 9)],
        history: vec![HistoryRow {
            device: HERE,
            workload: "add f32 7".into(),
            kernel: "cpu/simd".into(),
            revision: 2,
            threads: 2,
            variant: 1,
            n: 4,
            mean_ln: -11.5,
            m2_ln: 0.25,
            updated: 6.0,
        }],
        quarantine: vec![QuarantineRow {
            device: HERE,
            kernel: "cpu/bad".into(),
            revision: 1,
            op: "exp".into(),
            dtype: "f64".into(),
            reason: "wrong by 3 ulp".into(),
            when: 7.0,
        }],
        usage: vec![usage(10)],
        meta: vec![MetaRow { key: "ledger".into(), value: "{}".into(), updated: 8.0 }],
        ..Batch::default()
    }
}

pub(super) fn fresh() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er/wisdom.db");
    (dir, path)
}

/// Opens a file that should give no trouble.
pub(super) fn open(path: &Path) -> Wisdom {
    let opened = Wisdom::open(Some(path));
    assert_eq!(opened.notices, []);
    assert_eq!(opened.wisdom.mode(), Mode::Disk);
    opened.wisdom
}

#[test]
fn what_is_saved_is_loaded_by_the_next_process() {
    let (_dir, path) = fresh();
    let batch = everything();
    open(&path).save(batch.clone()).unwrap();
    let s = open(&path).load(HERE);
    assert_eq!(s.machine.as_deref(), Some("{\"a\":1}"));
    assert_eq!(s.cells, batch.cells);
    assert_eq!(s.history, batch.history);
    assert_eq!(s.quarantine, batch.quarantine);
    assert_eq!(s.meta["ledger"], "{}");
    assert_eq!((s.usage[0].runs, s.usage[0].total_s), (10, 0.5));
    let elsewhere = open(&path).load(1);
    assert!(elsewhere.cells.is_empty() && elsewhere.machine.is_none());
    assert_eq!(elsewhere.meta.len(), 1, "named values are common to all devices");
}

#[test]
fn a_poorer_cell_does_not_replace_a_richer_one_and_usage_adds_up() {
    let wisdom = Wisdom::open(None).wisdom;
    wisdom.save(Batch { usage: vec![usage(10)], ..cells(&[("a", 5)]) }).unwrap();
    wisdom.save(Batch { usage: vec![usage(3)], ..cells(&[("a", 4)]) }).unwrap();
    let s = wisdom.load(HERE);
    assert_eq!(s.cells, [cell("a", 5)]);
    assert_eq!((s.usage[0].runs, s.usage[0].total_s), (13, 1.0));
    wisdom.save(cells(&[("a", 6)])).unwrap();
    assert_eq!(wisdom.load(HERE).cells, [cell("a", 6)]);
    let relearned = Cell { updated: 2000.0, payload: b"new".to_vec(), ..cell("a", 6) };
    wisdom.save(Batch { cells: vec![relearned.clone()], ..Batch::default() }).unwrap();
    assert_eq!(wisdom.load(HERE).cells, [relearned], "as many samples but later");
}

#[test]
fn what_is_outdated_goes_however_many_samples_it_has() {
    let (_dir, path) = fresh();
    let far = Cell { device: 1, ..cell("a", 900) };
    let older = Cell { revision: 1, ..cell("a", 900) };
    let before = [cell("a", 900), older, far.clone(), cell("b", 900), cell("c", 900)].to_vec();
    let mut batch = everything();
    batch.cells = before;
    let one = batch.history[0].clone();
    let history = |kernel: &str| HistoryRow { kernel: kernel.into(), ..one.clone() };
    batch.history = vec![history("a"), history("b")];
    // Into the file, and into memory while the file cannot be written.
    for wait in [false, true] {
        let wisdom = open(&path);
        wisdom.save(batch.clone()).unwrap();
        let other = rusqlite::Connection::open(&path).unwrap();
        if wait {
            other.execute_batch("BEGIN IMMEDIATE").unwrap();
        }
        let kernel = Outdated::Kernel { device: HERE, kernel: "a".into() };
        let outdated = vec![kernel, Outdated::Cell(cell("b", 0))];
        wisdom.save(Batch { outdated, ..cells(&[("a", 3), ("b", 3), ("c", 3)]) }).unwrap();
        let want = [cell("a", 3), cell("b", 3), cell("c", 900)];
        assert_eq!(wisdom.load(HERE).cells[..3], want, "waiting: {wait}");
        drop(other);
        wisdom.save(cells(&[("d", 1)])).unwrap();
        let known = open(&path).load(HERE);
        assert_eq!(known.cells[..3], want, "waiting: {wait}");
        assert_eq!(known.history, [history("b")]);
        assert_eq!(open(&path).load(1).cells, [far.clone()]);
    }
}

#[test]
fn a_lifted_quarantine_is_gone() {
    let wisdom = Wisdom::open(None).wisdom;
    let batch = everything();
    wisdom.save(batch.clone()).unwrap();
    wisdom.save(Batch { lifted: batch.quarantine, ..Batch::default() }).unwrap();
    assert!(wisdom.load(HERE).quarantine.is_empty());
}

#[test]
fn a_batch_with_a_number_that_cannot_be_stored_changes_nothing() {
    let (_dir, path) = fresh();
    let wisdom = open(&path);
    let mut batch = everything();
    batch.history[0].mean_ln = f64::NAN;
    assert!(wisdom.save(batch).is_err());
    assert!(wisdom.load(HERE).cells.is_empty());
    assert_eq!(wisdom.mode(), Mode::Disk, "the file is not to blame");
}

#[test]
fn the_stored_log_keeps_the_newest_of_all_processes() {
    let (_dir, path) = fresh();
    let (a, b) = (open(&path).with_log_capacity(5), open(&path).with_log_capacity(5));
    let entry =
        |i: usize| Entry { workload: format!("add f32 {i}"), high_s: f64::INFINITY, ..Entry::default() };
    for i in 0..4 {
        a.append_log(&[entry(2 * i)]).unwrap();
        b.append_log(&[entry(2 * i + 1)]).unwrap();
    }
    let log = a.read_log(100);
    let sizes: Vec<&str> = log.iter().map(|e| e.workload.rsplit(' ').next().unwrap()).collect();
    assert_eq!(sizes, ["3", "4", "5", "6", "7"]);
    assert_eq!(b.read_log(2).len(), 2);
    assert!(log.windows(2).all(|w| w[0].seq < w[1].seq));
}

#[test]
fn cells_of_older_code_go_when_the_newer_has_been_measured_as_often() {
    let wisdom = Wisdom::open(None).wisdom;
    let of = |revision: u32, samples: u64| Cell { revision, ..cell("a", samples) };
    let elsewhere = Cell { op: "mul".into(), ..of(2, 4) };
    let save = |cells: Vec<Cell>| wisdom.save(Batch { cells, ..Batch::default() }).unwrap();
    let kept =
        || -> Vec<(u32, u64)> { wisdom.load(HERE).cells.iter().map(|c| (c.revision, c.samples)).collect() };
    save(vec![of(1, 50)]);
    save(vec![of(2, 9), elsewhere]);
    assert_eq!(kept(), [(1, 50), (2, 9), (2, 4)], "more is known of the old");
    save(vec![of(1, 51)]);
    assert_eq!(kept(), [(1, 51), (2, 9), (2, 4)], "old code takes nothing from the new");
    save(vec![of(2, 51)]);
    assert_eq!(kept(), [(2, 51), (2, 4)]);
    save(vec![of(3, 5)]);
    save(vec![of(4, 5)]);
    assert_eq!(kept(), [(4, 5)], "of all the older ones the last alone counts, and has no more samples");
}

#[test]
fn history_is_bounded_by_dropping_the_oldest() {
    let wisdom = Wisdom::open(None).wisdom;
    let row = |i: usize| HistoryRow {
        workload: format!("add f32 {i}"),
        updated: 1.0 + i as f64,
        ..everything().history[0].clone()
    };
    wisdom.save(Batch { history: (0..5000).map(row).collect(), ..Batch::default() }).unwrap();
    let kept = wisdom.load(HERE).history;
    assert_eq!(kept.len(), 512);
    assert!(kept.iter().all(|h| h.updated > 5000.0 - 512.0));
}

#[test]
fn of_two_histories_with_runs_enough_the_later_one_stays() {
    let wisdom = Wisdom::open(None).wisdom;
    let row = |n: u64, mean_ln: f64, updated: f64| HistoryRow {
        n,
        mean_ln,
        updated,
        ..everything().history[0].clone()
    };
    let after = |h: HistoryRow| {
        wisdom.save(Batch { history: vec![h], ..Batch::default() }).unwrap();
        wisdom.load(HERE).history[0].mean_ln
    };
    assert_eq!(after(row(1000, -11.0, 100.0)), -11.0);
    assert_eq!(after(row(17, -12.0, 200.0)), -12.0, "measured today");
    assert_eq!(after(row(1000, -13.0, 150.0)), -12.0, "measured before that");
    assert_eq!(after(row(3, -14.0, 300.0)), -12.0, "hardly measured");
}

#[test]
fn reset_forgets_one_device_or_all() {
    let wisdom = Wisdom::open(None).wisdom;
    wisdom.save(everything()).unwrap();
    wisdom.save(Batch { cells: vec![Cell { device: 1, ..cell("a", 1) }], ..Batch::default() }).unwrap();
    wisdom.append_log(&[Entry::default()]).unwrap();
    wisdom.reset(Scope::Device(HERE)).unwrap();
    assert!(wisdom.load(HERE).cells.is_empty());
    assert_eq!(wisdom.load(1).cells.len(), 1);
    wisdom.reset(Scope::All).unwrap();
    assert!(
        wisdom.load(1).cells.is_empty() && wisdom.read_log(9).is_empty() && wisdom.load(1).meta.is_empty()
    );
}

#[test]
fn the_hash_follows_what_decisions_depend_on_and_nothing_else() {
    let (_dir, path) = fresh();
    let wisdom = open(&path);
    wisdom.save(everything()).unwrap();
    let (all, one) = (wisdom.hash(), wisdom.load(HERE).hash());
    assert_eq!(open(&path).hash(), all, "the same in another process");
    let still = Batch { usage: vec![usage(1)], meta: everything().meta, ..Batch::default() };
    wisdom.save(still).unwrap();
    assert_eq!((wisdom.hash(), wisdom.load(HERE).hash()), (all, one));
    wisdom.save(cells(&[("cpu/simd", 10)])).unwrap();
    assert_ne!(wisdom.hash(), all);
    assert_ne!(wisdom.load(HERE).hash(), one);
    let (all, one) = (wisdom.hash(), wisdom.load(HERE).hash());
    let wire = MetaRow { key: format!("{WIRE}{HERE:016x}"), value: "{}".into(), updated: 9.0 };
    wisdom.save(Batch { meta: vec![wire], ..Batch::default() }).unwrap();
    assert_ne!(wisdom.hash(), all, "what moving costs decides too");
    assert_ne!(wisdom.load(HERE).hash(), one);
}

#[test]
fn a_relative_file_name_needs_no_folder() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file:odd?name#1.db");
    open(&path).save(cells(&[("a", 1)])).unwrap();
    assert!(fs::metadata(&path).unwrap().len() > 0);
    assert_eq!(Wisdom::open_read_only(&path).wisdom.load(HERE).cells.len(), 1);
}
