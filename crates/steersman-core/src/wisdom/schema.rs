//! The tables, and telling our file from others.

use super::notice::Trouble;
use crate::log::unix_time;
use rusqlite::{Connection, TransactionBehavior};

/// The version this code reads and writes, kept in `user_version`. Raised on any change of meaning.
pub(super) const SCHEMA: i64 = 1;

/// "STRS" in `application_id`: how a file says that it is ours.
const APPLICATION: i64 = 0x5354_5253;

/// Keys come first and cluster the rows, so that one device's are read in one sweep.
const TABLES: &str = "
CREATE TABLE devices(device INTEGER PRIMARY KEY, identity TEXT NOT NULL, machine TEXT NOT NULL,
    updated REAL NOT NULL);
CREATE TABLE cells(device INTEGER NOT NULL, kernel TEXT NOT NULL, revision INTEGER NOT NULL,
    threads INTEGER NOT NULL, variant INTEGER NOT NULL, op TEXT NOT NULL, dtype TEXT NOT NULL,
    layout TEXT NOT NULL, payload BLOB NOT NULL, samples INTEGER NOT NULL, updated REAL NOT NULL,
    PRIMARY KEY(device, kernel, revision, threads, variant, op, dtype, layout)) WITHOUT ROWID;
CREATE TABLE history(device INTEGER NOT NULL, workload TEXT NOT NULL, kernel TEXT NOT NULL,
    revision INTEGER NOT NULL, threads INTEGER NOT NULL, variant INTEGER NOT NULL, n INTEGER NOT NULL,
    mean_ln REAL NOT NULL, m2_ln REAL NOT NULL, updated REAL NOT NULL,
    PRIMARY KEY(device, workload, kernel, revision, threads, variant)) WITHOUT ROWID;
CREATE TABLE quarantine(device INTEGER NOT NULL, kernel TEXT NOT NULL, revision INTEGER NOT NULL,
    op TEXT NOT NULL, dtype TEXT NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY(device, kernel, revision, op, dtype)) WITHOUT ROWID;
CREATE TABLE usage(device INTEGER NOT NULL, kernel TEXT NOT NULL, threads INTEGER NOT NULL,
    variant INTEGER NOT NULL, op TEXT NOT NULL, runs INTEGER NOT NULL, failures INTEGER NOT NULL,
    total_s REAL NOT NULL, last_used REAL NOT NULL,
    PRIMARY KEY(device, kernel, threads, variant, op)) WITHOUT ROWID;
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL, updated REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE log(id INTEGER PRIMARY KEY AUTOINCREMENT, entry TEXT NOT NULL);
";

/// What a file is.
pub(super) enum Kind {
    Ours,
    Empty,
}

pub(super) fn identify(conn: &Connection) -> Result<Kind, Trouble> {
    let number = |pragma: &str| conn.query_row(&format!("PRAGMA {pragma}"), [], |r| r.get::<_, i64>(0));
    let version = number("user_version")?;
    match number("application_id")? {
        APPLICATION if version > SCHEMA => Err(Trouble::Newer(version)),
        APPLICATION => Ok(Kind::Ours),
        _ => {
            let objects: i64 = conn.query_row("SELECT count(*) FROM sqlite_master", [], |r| r.get(0))?;
            if objects == 0 { Ok(Kind::Empty) } else { Err(Trouble::Foreign) }
        }
    }
}

/// Makes the tables, unless another process did so in the meantime.
pub(super) fn create(conn: &mut Connection) -> Result<(), Trouble> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Kind::Empty = identify(&tx)? {
        tx.execute_batch(TABLES)?;
        tx.pragma_update(None, "application_id", APPLICATION)?;
        tx.pragma_update(None, "user_version", SCHEMA)?;
        tx.execute("INSERT INTO meta VALUES('schema', ?1, ?2)", (SCHEMA.to_string(), unix_time()))?;
    }
    tx.commit()?;
    Ok(())
}

/// An empty store that lives in memory.
pub(super) fn memory() -> Result<Connection, Trouble> {
    let mut conn = Connection::open_in_memory()?;
    create(&mut conn)?;
    Ok(conn)
}
