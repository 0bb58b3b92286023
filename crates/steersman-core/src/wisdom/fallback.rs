//! Going on when the file does not: opening, mending, letting go, and what waits in memory meanwhile.

use super::disk::{self, Disk, FileId};
use super::notice::{Notice, NoticeKind, Trouble};
use super::read::read_all;
use super::rows::{Batch, Outdated, QuarantineRow};
use super::write::{UsageRule, write};
use super::{Kept, Mode, Wisdom, schema};
use rusqlite::Connection;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a file that could not be used is left before it is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// The same of one that another process holds: mostly not for long.
const RETRY_LOCKED: Duration = Duration::from_millis(500);

/// The file if it can be used, and what is not in it.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) disk: Option<Disk>,
    /// What is not in the file.
    pub(super) overlay: Option<Connection>,
    /// Quarantines lifted but still in the file.
    pub(super) lifted: Vec<QuarantineRow>,
    /// Outdated but still in the file.
    pub(super) outdated: Vec<Outdated>,
    pub(super) tried: Option<Instant>,
    /// Said but not yet heard.
    pub(super) notices: Vec<Notice>,
    /// Sorts of trouble already said, until all is well again.
    pub(super) said: Vec<NoticeKind>,
    /// The latest trouble, said or not.
    pub(super) last: Option<Notice>,
}

impl State {
    pub(super) fn say(&mut self, notice: Notice) {
        self.last = Some(notice.clone());
        if !self.said.contains(&notice.kind) {
            self.said.push(notice.kind);
            self.notices.push(notice);
        }
    }

    pub(super) fn overlay(&mut self) -> Result<&mut Connection, Trouble> {
        if self.overlay.is_none() {
            self.overlay = Some(schema::memory()?);
        }
        Ok(self.overlay.as_mut().expect("the overlay was made just above"))
    }

    /// Why the file is not written.
    pub(super) fn cause(&self, path: &Path) -> Notice {
        let unsaid = || Trouble::ReadOnly("it was opened for reading only".into()).notice(path);
        self.last.clone().unwrap_or_else(unsaid)
    }

    fn is_due(&self) -> bool {
        let held = self.last.as_ref().is_some_and(|n| n.kind == NoticeKind::Locked);
        self.tried.is_none_or(|t| t.elapsed() >= if held { RETRY_LOCKED } else { RETRY })
    }

    pub(super) fn mode(&self) -> Mode {
        match &self.disk {
            Some(d) if d.writable => Mode::Disk,
            Some(_) => Mode::ReadOnly,
            None => Mode::Memory,
        }
    }
}

impl Wisdom {
    /// Where what was saved is.
    pub(super) fn whereabouts(&self, state: &State) -> Kept {
        match &self.path {
            None => Kept::Memory,
            Some(path) if state.overlay.is_some() || state.disk.is_none() => Kept::Waiting(state.cause(path)),
            Some(_) => Kept::Disk,
        }
    }

    /// Opens the file if there is one to open, mending what can be mended; else says why not.
    pub(super) fn attach(&self, state: &mut State) {
        let Some(path) = self.path.as_deref() else { return };
        state.tried = Some(Instant::now());
        let id = FileId::of(path);
        let opened = match self.write {
            true => Disk::open(path),
            false if !path.exists() => Err(Trouble::Missing),
            false => Disk::open_to_read(path),
        };
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
                    let forbidden = Trouble::ReadOnly("its permissions forbid writing".into());
                    state.say(disk.why.as_ref().unwrap_or(&forbidden).notice(path));
                }
                state.disk = Some(disk);
            }
            Err(trouble) => state.say(trouble.notice(path)),
        }
    }

    /// Runs `f` on everything there is: the file, the overlay, or both merged.
    pub(super) fn read<T>(&self, f: impl Fn(&Connection) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let mut state = self.lock();
        if let Some(disk) = &state.disk {
            let result = match &state.overlay {
                None => f(&disk.conn),
                Some(overlay) => merged(&disk.conn, overlay, &state).and_then(|both| f(&both)),
            };
            match result {
                Err(trouble) => self.lose(&mut state, trouble),
                fine => return fine,
            }
        }
        f(state.overlay()?)
    }

    pub(super) fn save_rows(&self, state: &mut State, batch: &Batch, rule: UsageRule) -> Result<(), Trouble> {
        self.refresh(state);
        loop {
            match self.write_through(state, batch, rule) {
                None => break,
                Some(Ok(())) => {
                    state.said.clear();
                    state.last = None;
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
        state.lifted.retain(|l| !batch.quarantine.iter().any(|q| q.same_as(l)));
        state.lifted.extend_from_slice(&batch.lifted);
        state.outdated.extend_from_slice(&batch.outdated);
        write(state.overlay()?, &[batch], rule, self.log_capacity)
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
            let flushed = read_all(overlay).and_then(|rows| {
                let rows = Batch { lifted: state.lifted.clone(), outdated: state.outdated.clone(), ..rows };
                write(&mut disk.conn, &[&rows], UsageRule::Add, self.log_capacity)
            });
            if let Err(trouble) = flushed {
                return Some(Err(trouble));
            }
            state.overlay = None;
            state.lifted.clear();
            state.outdated.clear();
        }
        Some(write(&mut disk.conn, &[batch], rule, self.log_capacity))
    }

    /// Before a save: notices a file that vanished, and tries again one that could not be used.
    fn refresh(&self, state: &mut State) {
        let Some(path) = self.path.as_deref().filter(|_| self.write) else { return };
        match state.disk.take() {
            Some(disk) if !disk.writable || disk.is_there(path) => state.disk = Some(disk),
            Some(disk) => {
                // The open connection still reaches the removed file, so nothing learned is lost. It must be
                // closed before the path is opened again: both would use the same companion files.
                let rest = read_all(&disk.conn);
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
            None if state.is_due() => self.attach(state),
            None => {}
        }
    }

    /// Puts back what a vanished file held. Another process may have done so too, hence no adding up.
    fn restore(&self, state: &mut State, rest: &Batch) -> Result<(), Trouble> {
        if let Some(disk) = state.disk.as_mut().filter(|d| d.writable)
            && write(&mut disk.conn, &[rest], UsageRule::Larger, self.log_capacity).is_ok()
        {
            return Ok(());
        }
        write(state.overlay()?, &[rest], UsageRule::Add, self.log_capacity)
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
fn merged(disk: &Connection, overlay: &Connection, state: &State) -> Result<Connection, Trouble> {
    let mut both = schema::memory()?;
    let below = Batch { lifted: state.lifted.clone(), ..read_all(disk)? };
    let above = Batch { outdated: state.outdated.clone(), ..read_all(overlay)? };
    write(&mut both, &[&below, &above], UsageRule::Add, usize::MAX)?;
    Ok(both)
}
