//! One open file.

use super::notice::{Notice, NoticeKind, Trouble};
use super::schema::{self, Kind};
use rusqlite::{Connection, OpenFlags};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Opening must not hold up a first call; what is locked longer than this is looked at again later.
const OPEN_PATIENCE: Duration = Duration::from_millis(200);
/// Saving is off the hot path: another process's transaction, at most some ten milliseconds, is waited out.
const SAVE_PATIENCE: Duration = Duration::from_secs(2);

/// A new file is locked while another process makes its tables, without SQLite's own waiting; how long that
/// is waited for.
const BIRTH: Duration = Duration::from_secs(1);

fn is_new(path: &Path) -> bool {
    let age = std::fs::metadata(path).and_then(|m| m.modified()).map(|t| t.elapsed());
    matches!(age, Ok(Ok(age)) if age < 2 * BIRTH)
}

/// Which file is behind a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(u64, u64);

impl FileId {
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> Option<FileId> {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).ok().map(|m| FileId(m.dev(), m.ino()))
    }

    /// Elsewhere an open file cannot be replaced, so existing is being the same.
    #[cfg(not(unix))]
    pub(super) fn of(path: &Path) -> Option<FileId> {
        std::fs::metadata(path).ok().map(|_| FileId(0, 0))
    }
}

/// A file that was found to be ours.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) conn: Connection,
    pub(super) writable: bool,
    /// Why not, if it is for want of room.
    pub(super) why: Option<Trouble>,
    id: Option<FileId>,
}

/// Whether its end is missing, which SQLite takes for zeros.
fn ends_within_a_page(path: &Path, conn: &Connection) -> bool {
    let page = conn.query_row("PRAGMA page_size", [], |r| r.get::<_, u32>(0)).map(u64::from);
    let bytes = std::fs::metadata(path).map(|m| m.len());
    matches!((page, bytes), (Ok(page), Ok(bytes)) if page > 0 && !bytes.is_multiple_of(page))
}

/// Bytes of a page of a new file. A calibrated machine's cells are a few KiB each, and a read for every 4 KiB of them was
/// a third of a start: 4.9 ms, and 3.1 with this.
const PAGE: u32 = 32 << 10;

/// What SQLite keeps of it. A start goes through all of it once: with SQLite's own 2 MB each page was fresh memory (2.8 ms of
/// a process's start, 2.1 with this).
const CACHE_KIB: i64 = 256;

impl Disk {
    /// Opens or makes the file; if it cannot be written, opens it for reading.
    pub(super) fn open(path: &Path) -> Result<Disk, Trouble> {
        if path.is_dir() {
            return Err(Trouble::Unavailable("it is a folder".into()));
        }
        if let Some(parent) = path.parent() {
            // If this fails, opening does too, and says why.
            let _ = std::fs::create_dir_all(parent);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let begun = Instant::now();
        let mut opened = Disk::open_as(path, flags);
        while matches!(opened, Err(Trouble::Locked(_))) && is_new(path) && begun.elapsed() < BIRTH {
            std::thread::sleep(Duration::from_millis(2));
            opened = Disk::open_as(path, flags);
        }
        match opened {
            Err(first) if first.leaves_reading() && path.is_file() => match Disk::open_to_read(path) {
                // There is nothing in it to read: what kept it from being filled is the trouble.
                Err(Trouble::ReadOnly(_)) => Err(first),
                Ok(disk) if matches!(first, Trouble::Full(_)) => Ok(Disk { why: Some(first), ..disk }),
                other => other,
            },
            other => other,
        }
    }

    /// Opens an existing file for reading only.
    pub(super) fn open_to_read(path: &Path) -> Result<Disk, Trouble> {
        match Disk::open_as(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
            // In a folder that cannot be written, the files beside the database that WAL needs cannot be
            // made; taken as immutable, it can be read without them.
            Err(why) if why.leaves_reading() && path.is_file() => Disk::open_immutable(path),
            other => other,
        }
    }

    /// Opens a file that is somebody else's for reading, and leaves nothing beside it: where nobody has it open, all of it is
    /// in the file itself.
    pub(super) fn open_other(path: &Path) -> Result<Disk, Trouble> {
        if suffixed(path, "-wal").exists() { Disk::open_to_read(path) } else { Disk::open_immutable(path) }
    }

    fn open_immutable(path: &Path) -> Result<Disk, Trouble> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        Disk::open_as(Path::new(&format!("file:{escaped}?immutable=1")), flags)
    }

    fn open_as(path: &Path, flags: OpenFlags) -> Result<Disk, Trouble> {
        let mut conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        conn.busy_timeout(OPEN_PATIENCE)?;
        conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
        let writable = !conn.is_readonly("main")?;
        // In one transaction: another process may make the tables between two looks, and ours would then
        // pass for another program's.
        let look = conn.unchecked_transaction()?;
        let kind = schema::identify(&look)?;
        look.finish()?;
        match kind {
            Kind::Ours if ends_within_a_page(path, &conn) => {
                return Err(Trouble::Corrupt("it was cut off within a page".into()));
            }
            Kind::Ours => {}
            Kind::Empty if writable => {
                conn.pragma_update(None, "page_size", PAGE)?;
                conn.pragma_update(None, "journal_mode", "WAL")?;
                conn.busy_timeout(SAVE_PATIENCE)?;
                schema::create(&mut conn)?;
            }
            Kind::Empty => return Err(Trouble::ReadOnly("it is empty".into())),
        }
        conn.pragma_update(None, "synchronous", "NORMAL")?;
        conn.busy_timeout(SAVE_PATIENCE)?;
        Ok(Disk { conn, writable, why: None, id: FileId::of(path) })
    }

    /// Whether the path still leads to this file.
    pub(super) fn is_there(&self, path: &Path) -> bool {
        self.id.is_some() && FileId::of(path) == self.id
    }
}

/// A file beside another one.
fn suffixed(base: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(base);
    name.push(suffix);
    PathBuf::from(name)
}

/// Moves a damaged file, and what belongs to it, out of the way. `id` guards against moving a good file that
/// another process has put there in the meantime.
pub(super) fn move_aside(path: &Path, id: Option<FileId>, why: &str) -> Result<Notice, Trouble> {
    if FileId::of(path) != id {
        return Err(Trouble::Locked("another process is mending it".into()));
    }
    let stamp = crate::log::unix_time() as u64;
    let mut aside = suffixed(path, &format!(".corrupt-{stamp}"));
    for n in 2.. {
        if !aside.exists() {
            break;
        }
        aside = suffixed(path, &format!(".corrupt-{stamp}-{n}"));
    }
    std::fs::rename(path, &aside).map_err(|e| Trouble::Corrupt(format!("{why}; {e}")))?;
    for companion in ["-wal", "-shm"] {
        // Usually absent.
        let _ = std::fs::rename(suffixed(path, companion), suffixed(&aside, companion));
    }
    Ok(Notice {
        kind: NoticeKind::Corrupt,
        path: path.to_path_buf(),
        what: format!("it is damaged ({why}); it was kept as {} and a new one begun", aside.display()),
        advice: "run `steer calibrate` to learn afresh".into(),
    })
}
