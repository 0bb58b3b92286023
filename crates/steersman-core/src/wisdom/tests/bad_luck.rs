//! Files that are damaged, foreign, newer, locked, read-only, gone, or have no room.

use super::*;
use rusqlite::Connection;
use std::time::Duration;

/// Opens a bad file, checks the notice, and that the store can be used all the same.
fn open_badly(path: &Path, kind: NoticeKind, mode: Mode) -> Wisdom {
    let Opened { wisdom, notices } = Wisdom::open(Some(path));
    assert_eq!(notices.iter().map(|n| n.kind).collect::<Vec<_>>(), [kind]);
    let said = notices[0].to_string();
    assert!(said.contains(&path.display().to_string()), "{said}");
    assert_eq!(wisdom.mode(), mode);
    wisdom.save(cells(&[("new", 1)])).unwrap();
    assert!(wisdom.load(HERE).cells.contains(&cell("new", 1)));
    wisdom
}

fn kept_aside(path: &Path) -> Vec<PathBuf> {
    let aside = |p: &PathBuf| p.file_name().unwrap().to_string_lossy().contains(".corrupt-");
    fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().path()).filter(aside).collect()
}

/// A sound file with many cells, closed.
fn filled(path: &Path) {
    let rows: Vec<Cell> = (0..2000).map(|i| cell(&format!("kernel-{i}"), 1)).collect();
    open(path).save(Batch { cells: rows, ..Batch::default() }).unwrap();
}

#[test]
fn a_text_file_is_kept_aside_and_a_new_one_begun() {
    let (_dir, path) = fresh();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = "dear diary, ".repeat(1000);
    fs::write(&path, &text).unwrap();
    open_badly(&path, NoticeKind::Corrupt, Mode::Disk);
    let aside = kept_aside(&path);
    assert_eq!(fs::read_to_string(&aside[0]).unwrap(), text);
    assert_eq!(open(&path).load(HERE).cells, [cell("new", 1)]);
}

#[test]
fn a_truncated_file_is_kept_aside_and_a_new_one_begun() {
    for share in [3, 50, 97] {
        let (_dir, path) = fresh();
        filled(&path);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() * share / 100]).unwrap();
        open_badly(&path, NoticeKind::Corrupt, Mode::Disk);
        assert_eq!(kept_aside(&path).len(), 1);
    }
}

#[test]
fn an_empty_file_is_simply_filled() {
    let (_dir, path) = fresh();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "").unwrap();
    open(&path).save(cells(&[("a", 1)])).unwrap();
    assert_eq!(open(&path).load(HERE).cells.len(), 1);
}

#[test]
fn damage_found_only_while_reading_is_kept_aside_too() {
    let (_dir, path) = fresh();
    filled(&path);
    let mut bytes = fs::read(&path).unwrap();
    let n = bytes.len();
    bytes[8192..n].fill(0x5a);
    fs::write(&path, &bytes).unwrap();
    let Opened { wisdom, mut notices } = Wisdom::open(Some(&path));
    assert!(wisdom.load(HERE).cells.is_empty());
    notices.extend(wisdom.take_notices());
    assert_eq!(notices.iter().map(|n| n.kind).collect::<Vec<_>>(), [NoticeKind::Corrupt]);
    assert_eq!(kept_aside(&path).len(), 1);
    wisdom.save(cells(&[("new", 1)])).unwrap();
    assert_eq!(open(&path).load(HERE).cells, [cell("new", 1)]);
}

#[test]
fn a_table_of_the_wrong_shape_is_damage() {
    let (_dir, path) = fresh();
    filled(&path);
    Connection::open(&path)
        .unwrap()
        .execute_batch("ALTER TABLE cells RENAME COLUMN op TO opp; DROP TABLE usage")
        .unwrap();
    let wisdom = open(&path);
    wisdom.save(everything()).unwrap();
    assert_eq!(wisdom.take_notices()[0].kind, NoticeKind::Corrupt);
    assert_eq!(open(&path).load(HERE).cells, everything().cells);
}

#[test]
fn another_programs_database_is_left_alone() {
    let (_dir, path) = fresh();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let theirs = Connection::open(&path).unwrap();
    theirs.execute_batch("CREATE TABLE bookmarks(url); INSERT INTO bookmarks VALUES('x')").unwrap();
    drop(theirs);
    let before = fs::read(&path).unwrap();
    open_badly(&path, NoticeKind::Foreign, Mode::Memory);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(kept_aside(&path).is_empty());
}

#[test]
fn a_newer_file_is_left_alone() {
    let (_dir, path) = fresh();
    filled(&path);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", schema::SCHEMA + 1).unwrap();
    let before = fs::read(&path).unwrap();
    open_badly(&path, NoticeKind::Newer, Mode::Memory);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(kept_aside(&path).is_empty());
}

#[test]
fn a_folder_in_the_files_place_means_memory() {
    let (_dir, path) = fresh();
    fs::create_dir_all(&path).unwrap();
    open_badly(&path, NoticeKind::Unavailable, Mode::Memory);
    assert!(path.is_dir());
}

#[test]
fn a_file_in_the_folders_place_means_memory() {
    let (dir, path) = fresh();
    fs::write(dir.path().join("deep"), "in the way").unwrap();
    open_badly(&path, NoticeKind::Unavailable, Mode::Memory);
}

#[test]
fn a_file_opened_for_reading_is_never_written_but_learning_goes_on_above_it() {
    let (_dir, path) = fresh();
    open(&path).save(Batch { usage: vec![usage(5)], ..cells(&[("a", 5), ("b", 5)]) }).unwrap();
    let before = fs::read(&path).unwrap();
    let opened = Wisdom::open_read_only(&path);
    assert_eq!(opened.notices, [], "it was asked for");
    let wisdom = opened.wisdom;
    assert_eq!(wisdom.mode(), Mode::ReadOnly);
    wisdom.save(Batch { usage: vec![usage(2)], ..cells(&[("a", 6), ("b", 4), ("c", 1)]) }).unwrap();
    let s = wisdom.load(HERE);
    assert_eq!(s.cells.iter().map(|c| c.samples).collect::<Vec<_>>(), [6, 5, 1]);
    assert_eq!(s.usage[0].runs, 7);
    assert!(matches!(wisdom.reset(Scope::All), Err(WisdomError::ReadOnly { .. })));
    drop(wisdom);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_file_that_turns_read_only_is_still_read() {
    let (_dir, path) = fresh();
    let wisdom = open(&path);
    wisdom.save(cells(&[("a", 1)])).unwrap();
    wisdom.lock().disk.as_ref().unwrap().conn.pragma_update(None, "query_only", true).unwrap();
    wisdom.save(cells(&[("b", 1)])).unwrap();
    assert_eq!(wisdom.mode(), Mode::ReadOnly);
    assert_eq!(wisdom.take_notices()[0].kind, NoticeKind::ReadOnly);
    assert_eq!(wisdom.load(HERE).cells.len(), 2);
    wisdom.save(cells(&[("c", 1)])).unwrap();
    assert_eq!(wisdom.take_notices(), [], "said once");
}

#[test]
fn a_quarantine_lifted_while_the_file_cannot_be_written_is_lifted_later() {
    let (_dir, path) = fresh();
    let wisdom = open(&path);
    wisdom.save(everything()).unwrap();
    let query_only = |on: bool| {
        let mut state = wisdom.lock();
        let disk = state.disk.as_mut().unwrap();
        disk.conn.pragma_update(None, "query_only", on).unwrap();
        disk.writable = !on;
    };
    query_only(true);
    let lift = || Batch { lifted: everything().quarantine, ..Batch::default() };
    wisdom.save(lift()).unwrap();
    assert!(wisdom.load(HERE).quarantine.is_empty());
    assert_eq!(open(&path).load(HERE).quarantine.len(), 1);
    let offender = || Batch { quarantine: everything().quarantine, ..Batch::default() };
    wisdom.save(offender()).unwrap();
    query_only(false);
    wisdom.save(Batch::default()).unwrap();
    assert_eq!(open(&path).load(HERE).quarantine.len(), 1, "caught again");
    query_only(true);
    wisdom.save(lift()).unwrap();
    query_only(false);
    wisdom.save(Batch::default()).unwrap();
    assert!(open(&path).load(HERE).quarantine.is_empty());
}

/// Runs only as a child of the test below, as a user who may not write.
#[test]
fn child_without_permission() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let path = Path::new(&path);
    let opened = Wisdom::open(Some(path));
    assert_eq!(opened.notices[0].kind, NoticeKind::ReadOnly);
    assert_eq!(opened.wisdom.mode(), Mode::ReadOnly);
    assert_eq!(opened.wisdom.load(HERE).cells, [cell("a", 1)]);
    opened.wisdom.save(cells(&[("b", 1)])).unwrap();
    assert_eq!(opened.wisdom.load(HERE).cells.len(), 2);
    if fs::create_dir(path.with_file_name("new")).is_err() {
        let nowhere = Wisdom::open(Some(&path.with_file_name("new/wisdom.db")));
        assert_eq!(nowhere.notices[0].kind, NoticeKind::Unavailable);
        assert_eq!(nowhere.wisdom.mode(), Mode::Memory);
        nowhere.wisdom.save(cells(&[("b", 1)])).unwrap();
    }
}

const CHILD: &str = "STEERSMAN_TEST_READ_ONLY_CHILD";

/// Permissions do not bind root, so the child gives root up.
#[cfg(unix)]
#[test]
fn a_file_in_a_folder_without_permission_to_write_is_read() {
    use std::os::unix::{fs::PermissionsExt, process::CommandExt};
    let (dir, path) = fresh();
    open(&path).save(cells(&[("a", 1)])).unwrap();
    let allow = |p: &Path, mode: u32| fs::set_permissions(p, fs::Permissions::from_mode(mode)).unwrap();
    let folder = path.parent().unwrap();
    allow(dir.path(), 0o755);
    // SAFETY: geteuid has no preconditions.
    let root = unsafe { libc::geteuid() } == 0;
    for (file_mode, folder_mode) in [(0o444, 0o555), (0o666, 0o555), (0o444, 0o777)] {
        allow(&path, file_mode);
        allow(folder, folder_mode);
        // A copy, because the user may not reach the folder the tests were built in.
        let me = dir.path().join("tests");
        fs::copy(std::env::current_exe().unwrap(), &me).unwrap();
        let mut child = std::process::Command::new(&me);
        child.args(["--exact", "wisdom::tests::bad_luck::child_without_permission"]).env(CHILD, &path);
        child.current_dir("/");
        if root {
            child.uid(65_534).gid(65_534);
        }
        let out = child.output().unwrap();
        allow(folder, 0o755);
        assert!(
            out.status.success(),
            "{file_mode:o} {folder_mode:o} {}",
            String::from_utf8_lossy(&out.stdout)
        );
    }
}

#[test]
fn a_locked_file_means_memory_until_it_is_free() {
    let (_dir, path) = fresh();
    filled(&path);
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM meta").unwrap();
    let wisdom = open_badly(&path, NoticeKind::Locked, Mode::Memory);
    holder.execute_batch("ROLLBACK").unwrap();
    drop(holder);
    wisdom.lock().tried = None;
    wisdom.save(cells(&[("later", 1)])).unwrap();
    assert_eq!(wisdom.mode(), Mode::Disk);
    assert_eq!(open(&path).load(HERE).cells.len(), 2002, "what waited is written too");
}

#[test]
fn a_save_that_finds_the_file_locked_waits_in_memory_for_the_next() {
    let (_dir, path) = fresh();
    let wisdom = open(&path);
    wisdom.lock().disk.as_ref().unwrap().conn.busy_timeout(Duration::ZERO).unwrap();
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let batch = |k| Batch { usage: vec![usage(1)], ..cells(&[(k, 1)]) };
    wisdom.save(batch("a")).unwrap();
    wisdom.save(batch("b")).unwrap();
    let kinds: Vec<_> = wisdom.take_notices().iter().map(|n| n.kind).collect();
    assert_eq!(kinds, [NoticeKind::Locked]);
    assert_eq!(wisdom.load(HERE).cells.len(), 2);
    holder.execute_batch("ROLLBACK").unwrap();
    wisdom.save(batch("c")).unwrap();
    let s = open(&path).load(HERE);
    assert_eq!((s.cells.len(), s.usage[0].runs), (3, 3));
}

#[cfg(unix)]
#[test]
fn a_file_that_vanishes_is_made_again_with_all_that_was_known() {
    let (dir, path) = fresh();
    let wisdom = open(&path);
    wisdom.save(Batch { usage: vec![usage(4)], ..cells(&[("a", 1)]) }).unwrap();
    fs::remove_dir_all(dir.path().join("deep")).unwrap();
    wisdom.save(Batch { usage: vec![usage(1)], ..cells(&[("b", 1)]) }).unwrap();
    assert_eq!(wisdom.take_notices()[0].kind, NoticeKind::Vanished);
    assert_eq!(wisdom.mode(), Mode::Disk);
    let s = open(&path).load(HERE);
    assert_eq!((s.cells.len(), s.usage[0].runs), (2, 5));
}

#[cfg(unix)]
#[test]
fn a_file_that_vanishes_for_good_leaves_all_in_memory() {
    let (dir, path) = fresh();
    let wisdom = open(&path);
    wisdom.save(cells(&[("a", 1)])).unwrap();
    fs::remove_dir_all(dir.path().join("deep")).unwrap();
    fs::write(dir.path().join("deep"), "in the way").unwrap();
    wisdom.save(cells(&[("b", 1)])).unwrap();
    wisdom.save(cells(&[("c", 1)])).unwrap();
    let kinds: Vec<_> = wisdom.take_notices().iter().map(|n| n.kind).collect();
    assert_eq!(kinds, [NoticeKind::Vanished, NoticeKind::Unavailable]);
    assert_eq!(wisdom.mode(), Mode::Memory);
    assert_eq!(wisdom.load(HERE).cells.len(), 3);
}

#[test]
fn a_full_disk_keeps_what_is_new_in_memory_until_there_is_room() {
    let (_dir, path) = fresh();
    let wisdom = open(&path);
    wisdom.save(cells(&[("a", 1)])).unwrap();
    let room = |pages: u32| {
        let state = wisdom.lock();
        let conn = &state.disk.as_ref().unwrap().conn;
        conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
    };
    room(1);
    let rows: Vec<Cell> = (0..500).map(|i| cell(&format!("kernel-{i}"), 1)).collect();
    wisdom.save(Batch { cells: rows, usage: vec![usage(2)], ..Batch::default() }).unwrap();
    assert_eq!(wisdom.take_notices()[0].kind, NoticeKind::DiskFull);
    assert_eq!(wisdom.load(HERE).cells.len(), 501);
    assert_eq!(open(&path).load(HERE).cells.len(), 1, "nothing half-written");
    room(100_000);
    wisdom.save(cells(&[("z", 1)])).unwrap();
    let s = open(&path).load(HERE);
    assert_eq!((s.cells.len(), s.usage[0].runs), (502, 2));
}

#[test]
fn a_save_says_whether_it_reached_the_file_and_what_waits_goes_with_the_next_one() {
    let (_dir, path) = fresh();
    let wisdom = open(&path);
    assert_eq!(wisdom.save(cells(&[("a", 1)])).unwrap(), Kept::Disk);
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let kept = wisdom.save(cells(&[("b", 1)])).unwrap();
    assert!(matches!(&kept, Kept::Waiting(why) if why.kind == NoticeKind::Locked), "{kept:?}");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(wisdom.save(Batch::default()).unwrap(), Kept::Disk);
    assert_eq!(open(&path).load(HERE).cells.len(), 2);
    assert_eq!(Wisdom::open(None).wisdom.save(cells(&[("a", 1)])).unwrap(), Kept::Memory);
}

#[test]
fn a_file_that_cannot_be_changed_is_not_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let foreign = dir.path().join("foreign.db");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE songs(a)").unwrap();
    for (path, why) in [(dir.path(), "folder"), (&foreign, "another program")] {
        let wisdom = Wisdom::open(Some(path)).wisdom;
        let said = wisdom.reset(Scope::All).expect_err(why).to_string();
        assert!(said.contains(why), "{said}");
        assert!(wisdom.trouble().is_some_and(|t| t.cause().contains(why)));
    }
}

#[test]
fn where_nothing_is_to_be_made_a_missing_file_is_called_missing() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Wisdom::open_read_only(&dir.path().join("none.db"));
    assert!(opened.notices[0].what.starts_with("there is none"), "{:?}", opened.notices);
}
