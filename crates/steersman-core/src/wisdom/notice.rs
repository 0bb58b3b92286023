//! What went wrong with the file, in words, and what was done about it.

use rusqlite::{ErrorCode, ffi};
use std::fmt;
use std::path::{Path, PathBuf};

/// What befell the wisdom file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoticeKind {
    /// Damaged or no database at all; kept aside under another name.
    Corrupt,
    /// Another program's database; left alone.
    Foreign,
    /// Written by a newer version; left alone.
    Newer,
    /// Can be read but not written.
    ReadOnly,
    /// Another process holds it.
    Locked,
    /// Gone while in use; made anew.
    Vanished,
    /// No room to write.
    DiskFull,
    /// Cannot be opened or made.
    Unavailable,
    /// Something in it cannot be understood; the rest is used.
    Unreadable,
}

/// Something a person should hear about once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What sort.
    pub kind: NoticeKind,
    /// The file it is about.
    pub path: PathBuf,
    /// Why, and what was done.
    pub what: String,
    /// What the reader can do.
    pub advice: String,
}

impl Notice {
    /// Why, without what was done about it: what was done in memory helps nobody whose process ends.
    pub fn cause(&self) -> &str {
        self.what.split_once("; ").map_or(&self.what, |(why, _)| why)
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wisdom file {}: {}; {}", self.path.display(), self.what, self.advice)
    }
}

/// Why wisdom could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum WisdomError {
    /// The store itself failed, the one in memory too.
    #[error("wisdom could not be {doing}: {why}")]
    Store {
        /// `saved`, `read`, ...
        doing: &'static str,
        /// The database's words.
        why: String,
    },
    /// The file cannot be written.
    #[error("wisdom cannot be {doing}: {} is open for reading only; mend its permissions or set STEERSMAN_WISDOM_PATH", path.display())]
    ReadOnly {
        /// `reset`, ...
        doing: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The text to import is not an export.
    #[error("this is not a wisdom export: {0}; make one with `steer wisdom export`")]
    NotAnExport(String),
    /// The other file cannot be merged.
    #[error("cannot merge {}: {why}", path.display())]
    Other {
        /// The other file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
}

/// What the database says, sorted by what can be done about it.
#[derive(Debug)]
pub(super) enum Trouble {
    Corrupt(String),
    Foreign,
    Newer(i64),
    ReadOnly(String),
    Locked(String),
    Full(String),
    Unavailable(String),
    /// There is none, and none is to be made.
    Missing,
    /// The rows themselves cannot be stored, such as a NaN where a number must be.
    Refused(String),
}

impl From<rusqlite::Error> for Trouble {
    fn from(e: rusqlite::Error) -> Trouble {
        let why = e.to_string();
        let extended = e.sqlite_error().map(|e| e.extended_code);
        match e.sqlite_error_code() {
            // How SQLite says that there is no room for a file beside the database.
            Some(ErrorCode::SystemIoFailure) if extended == Some(ffi::SQLITE_IOERR_SHMSIZE) => {
                Trouble::Full(why)
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Trouble::Corrupt(why),
            Some(ErrorCode::ReadOnly) => Trouble::ReadOnly(why),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Trouble::Locked(why),
            Some(ErrorCode::DiskFull) => Trouble::Full(why),
            Some(ErrorCode::ConstraintViolation) => Trouble::Refused(why),
            // Our own tables with missing or foreign columns: damage, though the pages are sound.
            Some(ErrorCode::Unknown) | None => Trouble::Corrupt(why),
            _ => Trouble::Unavailable(why),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Corrupt(w) | Trouble::ReadOnly(w) | Trouble::Locked(w) => f.write_str(w),
            Trouble::Full(w) | Trouble::Unavailable(w) | Trouble::Refused(w) => f.write_str(w),
            Trouble::Missing => f.write_str("there is none"),
            Trouble::Foreign => f.write_str("it is another program's database"),
            Trouble::Newer(v) => write!(f, "it was written by a newer version (schema {v})"),
        }
    }
}

impl Trouble {
    /// Whether a file that cannot be opened for writing because of this may still be read.
    pub(super) fn leaves_reading(&self) -> bool {
        matches!(self, Trouble::Unavailable(_) | Trouble::ReadOnly(_) | Trouble::Full(_))
    }

    pub(super) fn error(self, doing: &'static str) -> WisdomError {
        WisdomError::Store { doing, why: self.to_string() }
    }

    /// The notice for going on in memory because of this.
    pub(super) fn notice(&self, path: &Path) -> Notice {
        let elsewhere = "or set STEERSMAN_WISDOM_PATH to another file".to_string();
        let (kind, what, advice) = match self {
            Trouble::Corrupt(w) => (
                NoticeKind::Corrupt,
                format!("it is damaged ({w}) and could not be moved aside; what is learned stays in memory"),
                format!("move it away {elsewhere}"),
            ),
            Trouble::Foreign => (
                NoticeKind::Foreign,
                "it is another program's database and was left alone; what is learned stays in memory".into(),
                "set STEERSMAN_WISDOM_PATH to another file".into(),
            ),
            Trouble::Newer(v) => (
                NoticeKind::Newer,
                format!(
                    "it was written by a newer version (schema {v}, this one reads {}) and was left alone; what is \
                     learned stays in memory",
                    super::schema::SCHEMA
                ),
                format!("update Steersman {elsewhere}"),
            ),
            Trouble::ReadOnly(w) => (
                NoticeKind::ReadOnly,
                format!("it can only be read ({w}); what is learned from now on stays in memory"),
                format!("mend its permissions {elsewhere}"),
            ),
            Trouble::Locked(w) => (
                NoticeKind::Locked,
                format!("another process holds it ({w}); what is learned stays in memory until it is free"),
                "end that process if it hangs".into(),
            ),
            Trouble::Full(w) => (
                NoticeKind::DiskFull,
                format!("there is no room to write ({w}); what is learned stays in memory until there is"),
                format!("make room {elsewhere}"),
            ),
            Trouble::Missing => (
                NoticeKind::Unavailable,
                "there is none; decisions rest on nothing that was measured".into(),
                format!("calibrate first {elsewhere}"),
            ),
            Trouble::Unavailable(w) | Trouble::Refused(w) => (
                NoticeKind::Unavailable,
                format!("it cannot be used ({w}); what is learned stays in memory"),
                format!("mend the path {elsewhere}"),
            ),
        };
        Notice { kind, path: path.to_path_buf(), what, advice }
    }
}
