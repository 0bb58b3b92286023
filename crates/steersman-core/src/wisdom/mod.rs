//! What has been learned, on disk.
//!
//! A caller opens it, loads what is known of its device, and now and then saves what is new. None of this
//! fails because of a bad file: it goes on in memory and says so in a [`Notice`].
//! ```
//! use steersman_core::wisdom::{Batch, Cell, Mode, Wisdom};
//! let opened = Wisdom::open(None); // `None`: in memory only
//! let wisdom = opened.wisdom;
//! let cell = Cell { device: 7, kernel: "cpu/scalar".into(), payload: b"..".into(), samples: 3, ..Cell::default() };
//! wisdom.save(Batch { cells: vec![cell], ..Batch::default() })?;
//! assert_eq!(wisdom.load(7).cells[0].samples, 3);
//! assert_eq!(wisdom.mode(), Mode::Memory);
//! # Ok::<(), steersman_core::wisdom::WisdomError>(())
//! ```
//! Several processes at once is the normal case: SQLite in WAL mode, one transaction a save, and rows merge:
//! of two states of a cell the one with more samples stays, unless a batch says that what is stored is outdated; of two
//! histories the later one, if both have as many runs as count; runs are added up.
//!
//! Whatever cannot be written to the file now is kept in an overlay in memory, merged into what is read, and
//! written with the next save that succeeds.

mod check;
mod disk;
mod fallback;
mod notice;
mod read;
mod rows;
mod schema;
mod text;
mod transfer;
mod write;

pub use notice::{Notice, NoticeKind, WisdomError};
pub use rows::{Batch, Cell, DeviceRow, HistoryRow, MetaRow, Outdated, QuarantineRow, Snapshot, UsageRow};
pub use transfer::{CellChange, CellSummary, ImportReport, Refused};

use crate::log::Entry;
use fallback::State;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use write::UsageRule;

/// What the names of values begin with that say what the way to a device takes: of all named values those on which
/// decisions depend.
pub const WIRE: &str = "wire/";

/// Log entries kept in the file unless told otherwise.
const LOG_CAPACITY: usize = 4096;

/// Where wisdom is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the file.
    Disk,
    /// Read from the file; what is new stays in memory.
    ReadOnly,
    /// In memory only.
    Memory,
}

/// Where what was saved is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In the file.
    Disk,
    /// In memory, as was asked for: there is no file.
    Memory,
    /// In memory, because the file cannot be written; each later save tries again.
    Waiting(Notice),
}

/// What to forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All that was learned on the device with this fingerprint.
    Device(u64),
    /// Everything, the log too.
    All,
}

/// A store that can be used, and what there is to say about its file.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub wisdom: Wisdom,
    /// Empty when all is well.
    pub notices: Vec<Notice>,
}

/// The store.
#[derive(Debug)]
pub struct Wisdom {
    path: Option<PathBuf>,
    /// Whether the file may be written at all.
    write: bool,
    log_capacity: usize,
    state: Mutex<State>,
}

impl Wisdom {
    /// Opens or makes the file; `None` keeps everything in memory.
    pub fn open(path: Option<&Path>) -> Opened {
        Wisdom::open_for(path, true)
    }

    /// Opens an existing file without ever writing it: for looking at it, and for frozen mode.
    pub fn open_read_only(path: &Path) -> Opened {
        Wisdom::open_for(Some(path), false)
    }

    fn open_for(path: Option<&Path>, write: bool) -> Opened {
        let wisdom = Wisdom {
            path: path.map(Path::to_path_buf),
            write,
            log_capacity: LOG_CAPACITY,
            state: Mutex::default(),
        };
        wisdom.attach(&mut wisdom.lock());
        let notices = wisdom.take_notices();
        Opened { wisdom, notices }
    }

    /// The same, keeping this many entries of the decision log.
    pub fn with_log_capacity(mut self, entries: usize) -> Wisdom {
        self.log_capacity = entries.max(1);
        self
    }

    /// The file, if it was given one; see [`Wisdom::mode`] for whether it is in use.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Where wisdom is kept now.
    pub fn mode(&self) -> Mode {
        self.lock().mode()
    }

    /// What happened to the file since the last call; each sort of trouble is said once.
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut self.lock().notices)
    }

    /// All that is known of a device. If the file fails, what is in memory, and a notice.
    pub fn load(&self, fingerprint: u64) -> Snapshot {
        self.read(|conn| read::snapshot(conn, fingerprint)).unwrap_or_default()
    }

    /// Writes a batch, all or nothing, merged with what is there. If the file cannot be written, the batch
    /// is kept in memory and written with a later save: an error means that even this failed, or that the
    /// batch itself cannot be stored.
    pub fn save(&self, batch: Batch) -> Result<Kept, WisdomError> {
        let mut state = self.lock();
        self.save_rows(&mut state, &batch, UsageRule::Add).map_err(|t| t.error("saved"))?;
        Ok(self.whereabouts(&state))
    }

    /// Where what was saved so far is.
    pub fn kept(&self) -> Kept {
        self.whereabouts(&self.lock())
    }

    /// Why the file is not in use, if it is to be.
    pub fn trouble(&self) -> Option<Notice> {
        let state = self.lock();
        let path = self.path.as_deref().filter(|_| state.disk.is_none())?;
        Some(state.cause(path))
    }

    /// Adds decisions to the stored log, dropping the oldest beyond its capacity.
    pub fn append_log(&self, entries: &[Entry]) -> Result<(), WisdomError> {
        self.save(Batch { log: entries.to_vec(), ..Batch::default() }).map(|_| ())
    }

    /// The last stored decisions of all processes, oldest first.
    pub fn read_log(&self, limit: usize) -> Vec<Entry> {
        self.read(|conn| read::read_log(conn, limit)).unwrap_or_default()
    }

    /// A stable hash of all that decisions depend on; [`Snapshot::hash`] is that of one device.
    pub fn hash(&self) -> u64 {
        let all = self.read(read::read_all).unwrap_or_default();
        let mut h = rows::Digest::default();
        for d in &all.devices {
            h.number(d.device).text(&d.machine);
        }
        rows::digest_rows(&mut h, &all.cells, &all.history, &all.quarantine);
        rows::digest_meta(&mut h, all.meta.iter().map(|m| (&*m.key, &*m.value)));
        h.value()
    }

    /// Lifts the quarantines of all kernels for whose names `whose` says yes, on every device, and returns them.
    pub fn lift(&self, whose: impl Fn(&str) -> bool) -> Result<Vec<QuarantineRow>, WisdomError> {
        self.must_be_writable("changed")?;
        let mut lifted = self.read(read::read_all).map_err(|t| t.error("read"))?.quarantine;
        lifted.retain(|q| whose(&q.kernel));
        if !lifted.is_empty() {
            self.save(Batch { lifted: lifted.clone(), ..Batch::default() })?;
        }
        Ok(lifted)
    }

    fn must_be_writable(&self, doing: &'static str) -> Result<(), WisdomError> {
        match self.mode() {
            Mode::ReadOnly => {
                Err(WisdomError::ReadOnly { doing, path: self.path.clone().unwrap_or_default() })
            }
            Mode::Disk | Mode::Memory => Ok(()),
        }
    }

    /// Forgets. A file that cannot be changed is an error, and then all stays as it is.
    pub fn reset(&self, scope: Scope) -> Result<(), WisdomError> {
        let device = match scope {
            Scope::Device(d) => Some(d),
            Scope::All => None,
        };
        self.must_be_writable("reset")?;
        let mut state = self.lock();
        if let (None, Some(path)) = (&state.disk, &self.path) {
            self.attach(&mut state);
            if state.disk.is_none() {
                return Err(WisdomError::Store { doing: "reset", why: state.cause(path).to_string() });
            }
        }
        if let Some(disk) = &mut state.disk {
            write::forget(&mut disk.conn, device).map_err(|t| t.error("reset"))?;
        }
        match &mut state.overlay {
            Some(overlay) => write::forget(overlay, device).map_err(|t| t.error("reset")),
            None => Ok(()),
        }
    }

    /// A panic cannot leave a transaction half done, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
