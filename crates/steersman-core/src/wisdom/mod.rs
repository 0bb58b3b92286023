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
//! of two states of a cell the one with more samples stays; runs are added up.
//!
//! Whatever cannot be written to the file now is kept in an overlay in memory, merged into what is read, and
//! written with the next save that succeeds.

mod disk;
mod notice;
mod rows;
mod schema;
mod sql;
mod text;
mod transfer;

pub use notice::{Notice, NoticeKind, WisdomError};
pub use rows::{Batch, Cell, DeviceRow, HistoryRow, MetaRow, QuarantineRow, Snapshot, UsageRow};
pub use transfer::{CellChange, CellSummary, ImportReport, Refused};

use crate::log::Entry;
use disk::{Disk, FileId};
use notice::Trouble;
use rusqlite::Connection;
use sql::UsageRule;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a file that could not be used is left before it is tried again.
const RETRY: Duration = Duration::from_secs(10);

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

#[derive(Debug, Default)]
struct State {
    disk: Option<Disk>,
    /// What is not in the file.
    overlay: Option<Connection>,
    tried: Option<Instant>,
    /// Said but not yet heard.
    notices: Vec<Notice>,
    /// Sorts of trouble already said, until all is well again.
    said: Vec<NoticeKind>,
}

impl State {
    fn say(&mut self, notice: Notice) {
        if !self.said.contains(&notice.kind) {
            self.said.push(notice.kind);
            self.notices.push(notice);
        }
    }

    fn overlay(&mut self) -> Result<&mut Connection, Trouble> {
        if self.overlay.is_none() {
            self.overlay = Some(schema::memory()?);
        }
        Ok(self.overlay.as_mut().expect("the overlay was made just above"))
    }

    fn mode(&self) -> Mode {
        match &self.disk {
            Some(d) if d.writable => Mode::Disk,
            Some(_) => Mode::ReadOnly,
            None => Mode::Memory,
        }
    }
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
        self.read(|conn| sql::snapshot(conn, fingerprint)).unwrap_or_default()
    }

    /// Writes a batch, all or nothing, merged with what is there. If the file cannot be written, the batch
    /// is kept in memory and written with a later save: an error means that even this failed, or that the
    /// batch itself cannot be stored.
    pub fn save(&self, batch: Batch) -> Result<(), WisdomError> {
        let mut state = self.lock();
        self.save_rows(&mut state, &batch, UsageRule::Add).map_err(|t| t.error("saved"))
    }

    /// Adds decisions to the stored log, dropping the oldest beyond its capacity.
    pub fn append_log(&self, entries: &[Entry]) -> Result<(), WisdomError> {
        self.save(Batch { log: entries.to_vec(), ..Batch::default() })
    }

    /// The last stored decisions of all processes, oldest first.
    pub fn read_log(&self, limit: usize) -> Vec<Entry> {
        self.read(|conn| sql::read_log(conn, limit)).unwrap_or_default()
    }

    /// A stable hash of all that decisions depend on; [`Snapshot::hash`] is that of one device.
    pub fn hash(&self) -> u64 {
        let all = self.read(sql::read_all).unwrap_or_default();
        let mut h = rows::Digest::default();
        for d in &all.devices {
            h.number(d.device).text(&d.machine);
        }
        rows::digest_rows(&mut h, &all.cells, &all.history, &all.quarantine);
        h.value()
    }

    /// Forgets.
    pub fn reset(&self, scope: Scope) -> Result<(), WisdomError> {
        let device = match scope {
            Scope::Device(d) => Some(d),
            Scope::All => None,
        };
        let mut state = self.lock();
        if state.mode() == Mode::ReadOnly {
            return Err(WisdomError::ReadOnly {
                doing: "reset",
                path: self.path.clone().unwrap_or_default(),
            });
        }
        if let Some(disk) = &mut state.disk {
            sql::forget(&mut disk.conn, device).map_err(|t| t.error("reset"))?;
        }
        match &mut state.overlay {
            Some(overlay) => sql::forget(overlay, device).map_err(|t| t.error("reset")),
            None => Ok(()),
        }
    }

    /// A panic cannot leave a transaction half done, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the file if there is one to open, mending what can be mended; else says why not.
    fn attach(&self, state: &mut State) {
        let Some(path) = self.path.as_deref() else { return };
        state.tried = Some(Instant::now());
        let id = FileId::of(path);
        let opened = if self.write { Disk::open(path) } else { Disk::open_to_read(path) };
        let opened = match opened {
            Err(Trouble::Corrupt(why)) if self.write => disk::move_aside(path, id, &why).and_then(|notice| {
                state.say(notice);
                Disk::open(path)
            }),
            other => other,
        };
        match opened {
            Ok(disk) => {
                if !disk.writable && self.write {
                    state.say(Trouble::ReadOnly("its permissions forbid writing".into()).notice(path));
                }
                state.disk = Some(disk);
            }
            Err(trouble) => state.say(trouble.notice(path)),
        }
    }

    /// Runs `f` on everything there is: the file, the overlay, or both merged.
    fn read<T>(&self, f: impl Fn(&Connection) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let mut state = self.lock();
        if let Some(disk) = &state.disk {
            let result = match &state.overlay {
                None => f(&disk.conn),
                Some(overlay) => merged(&disk.conn, overlay).and_then(|both| f(&both)),
            };
            match result {
                Err(trouble) => self.lose(&mut state, trouble),
                fine => return fine,
            }
        }
        f(state.overlay()?)
    }

    fn save_rows(&self, state: &mut State, batch: &Batch, rule: UsageRule) -> Result<(), Trouble> {
        self.refresh(state);
        loop {
            match self.write_through(state, batch, rule) {
                None => break,
                Some(Ok(())) => {
                    state.said.clear();
                    return Ok(());
                }
                Some(Err(refused @ Trouble::Refused(_))) => return Err(refused),
                // A new file takes the damaged one's place, and gets one try.
                Some(Err(damaged @ Trouble::Corrupt(_))) if !state.said.contains(&NoticeKind::Corrupt) => {
                    self.lose(state, damaged)
                }
                Some(Err(trouble)) => {
                    self.lose(state, trouble);
                    break;
                }
            }
        }
        sql::write(state.overlay()?, &[batch], rule, self.log_capacity)
    }

    /// Writes what waits and then the batch to the file, if there is one to write to.
    fn write_through(
        &self,
        state: &mut State,
        batch: &Batch,
        rule: UsageRule,
    ) -> Option<Result<(), Trouble>> {
        let disk = state.disk.as_mut().filter(|d| d.writable)?;
        // Apart from the batch's own transaction, because only waiting usage is always to be added up.
        if let Some(overlay) = &state.overlay {
            let flushed = sql::read_all(overlay)
                .and_then(|rows| sql::write(&mut disk.conn, &[&rows], UsageRule::Add, self.log_capacity));
            if let Err(trouble) = flushed {
                return Some(Err(trouble));
            }
            state.overlay = None;
        }
        Some(sql::write(&mut disk.conn, &[batch], rule, self.log_capacity))
    }

    /// Before a save: notices a file that vanished, and tries again one that could not be used.
    fn refresh(&self, state: &mut State) {
        let Some(path) = self.path.as_deref().filter(|_| self.write) else { return };
        match state.disk.take() {
            Some(disk) if !disk.writable || disk.is_there(path) => state.disk = Some(disk),
            Some(disk) => {
                // The open connection still reaches the removed file, so nothing learned is lost. It must be
                // closed before the path is opened again: both would use the same companion files.
                let rest = sql::read_all(&disk.conn);
                drop(disk);
                state.say(Notice {
                    kind: NoticeKind::Vanished,
                    path: path.to_path_buf(),
                    what: "it was removed or replaced while in use; what was known is written there again"
                        .into(),
                    advice: "use `steer wisdom reset` to forget".into(),
                });
                self.attach(state);
                if let Err(trouble) = rest.and_then(|rest| self.restore(state, &rest)) {
                    state.say(trouble.notice(path));
                }
            }
            None if state.tried.is_none_or(|t| t.elapsed() >= RETRY) => self.attach(state),
            None => {}
        }
    }

    /// Puts back what a vanished file held. Another process may have done so too, hence no adding up.
    fn restore(&self, state: &mut State, rest: &Batch) -> Result<(), Trouble> {
        if let Some(disk) = state.disk.as_mut().filter(|d| d.writable)
            && sql::write(&mut disk.conn, &[rest], UsageRule::Larger, self.log_capacity).is_ok()
        {
            return Ok(());
        }
        sql::write(state.overlay()?, &[rest], UsageRule::Add, self.log_capacity)
    }

    /// The file failed: says so, and lets go of it if it is beyond use.
    fn lose(&self, state: &mut State, trouble: Trouble) {
        let Some(path) = self.path.as_deref() else { return };
        match trouble {
            // The next save may succeed.
            Trouble::Locked(_) | Trouble::Full(_) => state.say(trouble.notice(path)),
            Trouble::ReadOnly(_) => {
                state.say(trouble.notice(path));
                if let Some(disk) = &mut state.disk {
                    disk.writable = false;
                }
            }
            _ => {
                state.disk = None;
                match trouble {
                    Trouble::Corrupt(_) if self.write => {
                        self.attach_after_damage(state, path, &trouble.to_string())
                    }
                    _ => state.say(trouble.notice(path)),
                }
            }
        }
    }

    fn attach_after_damage(&self, state: &mut State, path: &Path, why: &str) {
        match disk::move_aside(path, FileId::of(path), why) {
            Ok(notice) => {
                state.say(notice);
                self.attach(state);
            }
            Err(trouble) => state.say(trouble.notice(path)),
        }
    }
}

/// File and overlay as one, in memory.
fn merged(disk: &Connection, overlay: &Connection) -> Result<Connection, Trouble> {
    let mut both = schema::memory()?;
    let (below, above) = (sql::read_all(disk)?, sql::read_all(overlay)?);
    sql::write(&mut both, &[&below, &above], UsageRule::Add, usize::MAX)?;
    Ok(both)
}

#[cfg(test)]
mod tests;
