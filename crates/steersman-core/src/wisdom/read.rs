//! Rows out of a connection.

use super::notice::Trouble;
use super::rows::*;
use crate::log::Entry;
use rusqlite::{Connection, Params, Row};

/// SQLite's integers are signed; for a fingerprint only the bits matter, and no count gets that far.
pub(super) fn signed(n: u64) -> i64 {
    n as i64
}

fn unsigned(r: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(r.get::<_, i64>(column)? as u64)
}

fn device(r: &Row<'_>) -> rusqlite::Result<u64> {
    unsigned(r, 0)
}

fn device_row(r: &Row<'_>) -> rusqlite::Result<DeviceRow> {
    Ok(DeviceRow { device: device(r)?, identity: r.get(1)?, machine: r.get(2)?, updated: r.get(3)? })
}

fn cell(r: &Row<'_>) -> rusqlite::Result<Cell> {
    Ok(Cell {
        device: device(r)?,
        kernel: r.get(1)?,
        revision: r.get(2)?,
        threads: r.get(3)?,
        variant: r.get(4)?,
        op: r.get(5)?,
        dtype: r.get(6)?,
        layout: r.get(7)?,
        payload: r.get(8)?,
        samples: unsigned(r, 9)?,
        updated: r.get(10)?,
    })
}

fn history(r: &Row<'_>) -> rusqlite::Result<HistoryRow> {
    Ok(HistoryRow {
        device: device(r)?,
        workload: r.get(1)?,
        kernel: r.get(2)?,
        revision: r.get(3)?,
        threads: r.get(4)?,
        variant: r.get(5)?,
        n: unsigned(r, 6)?,
        mean_ln: r.get(7)?,
        m2_ln: r.get(8)?,
        updated: r.get(9)?,
    })
}

fn quarantine(r: &Row<'_>) -> rusqlite::Result<QuarantineRow> {
    Ok(QuarantineRow {
        device: device(r)?,
        kernel: r.get(1)?,
        revision: r.get(2)?,
        op: r.get(3)?,
        dtype: r.get(4)?,
        reason: r.get(5)?,
        when: r.get(6)?,
    })
}

fn usage(r: &Row<'_>) -> rusqlite::Result<UsageRow> {
    Ok(UsageRow {
        device: device(r)?,
        kernel: r.get(1)?,
        threads: r.get(2)?,
        variant: r.get(3)?,
        op: r.get(4)?,
        runs: unsigned(r, 5)?,
        failures: unsigned(r, 6)?,
        total_s: r.get(7)?,
        last_used: r.get(8)?,
    })
}

fn meta(r: &Row<'_>) -> rusqlite::Result<MetaRow> {
    Ok(MetaRow { key: r.get(0)?, value: r.get(1)?, updated: r.get(2)? })
}

fn list<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    row: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    conn.prepare_cached(sql)?.query_map(params, row)?.collect()
}

/// Everything, except the schema's own note of its version.
pub(super) fn read_all(conn: &Connection) -> Result<Batch, Trouble> {
    // One transaction, so that the tables fit together while another process writes.
    let tx = conn.unchecked_transaction()?;
    Ok(Batch {
        outdated: Vec::new(),
        devices: list(&tx, "SELECT * FROM devices ORDER BY device", [], device_row)?,
        cells: list(&tx, "SELECT * FROM cells ORDER BY 1, 2, 3, 4, 5, 6, 7, 8", [], cell)?,
        history: list(&tx, "SELECT * FROM history ORDER BY 1, 2, 3, 4, 5, 6", [], history)?,
        quarantine: list(&tx, "SELECT * FROM quarantine ORDER BY 1, 2, 3, 4, 5", [], quarantine)?,
        lifted: Vec::new(),
        usage: list(&tx, "SELECT * FROM usage ORDER BY 1, 2, 3, 4, 5", [], usage)?,
        meta: list(&tx, "SELECT * FROM meta WHERE key <> 'schema' ORDER BY key", [], meta)?,
        log: read_log(&tx, usize::MAX)?,
    })
}

/// All of one device.
pub(super) fn snapshot(conn: &Connection, fingerprint: u64) -> Result<Snapshot, Trouble> {
    let tx = conn.unchecked_transaction()?;
    let of = [signed(fingerprint)];
    let machine = list(&tx, "SELECT * FROM devices WHERE device = ?1", of, device_row)?;
    Ok(Snapshot {
        machine: machine.into_iter().next().map(|d| d.machine),
        cells: list(&tx, "SELECT * FROM cells WHERE device = ?1 ORDER BY 2, 3, 4, 5, 6, 7, 8", of, cell)?,
        history: list(&tx, "SELECT * FROM history WHERE device = ?1 ORDER BY 2, 3, 4, 5, 6", of, history)?,
        quarantine: list(
            &tx,
            "SELECT * FROM quarantine WHERE device = ?1 ORDER BY 2, 3, 4, 5",
            of,
            quarantine,
        )?,
        usage: list(&tx, "SELECT * FROM usage WHERE device = ?1 ORDER BY 2, 3, 4, 5", of, usage)?,
        meta: list(&tx, "SELECT * FROM meta WHERE key <> 'schema'", [], meta)?
            .into_iter()
            .map(|m| (m.key, m.value))
            .collect(),
    })
}

/// The last `limit` entries, oldest first, numbered as stored.
pub(super) fn read_log(conn: &Connection, limit: usize) -> Result<Vec<Entry>, Trouble> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = conn.prepare_cached("SELECT id, entry FROM log ORDER BY id DESC LIMIT ?1")?;
    let rows = statement.query_map([limit], |r| Ok((unsigned(r, 0)?, r.get::<_, String>(1)?)))?;
    let mut entries = Vec::new();
    for row in rows {
        let (id, text) = row?;
        // An entry of a later version that this one cannot read is left out, not fatal.
        if let Ok(entry) = serde_json::from_str::<Entry>(&text) {
            entries.push(Entry { seq: id, ..entry });
        }
    }
    entries.reverse();
    Ok(entries)
}
