//! Rows in and out of a connection.

use super::notice::Trouble;
use super::rows::*;
use crate::log::{Entry, unix_time};
use rusqlite::{Connection, Params, Row, TransactionBehavior};

/// Exact-shape histories kept a device: at some 150 bytes each they load in about a millisecond.
const HISTORY_MAX: i64 = 4096;

/// How usage is put together with what is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UsageRule {
    /// The numbers are new runs.
    Add,
    /// The numbers are another file's totals: taken if larger, so that importing twice changes nothing.
    Larger,
}

/// SQLite's integers are signed; for a fingerprint only the bits matter, and no count gets that far.
fn signed(n: u64) -> i64 {
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

/// Writes batches in one transaction, merging each row with what is there.
pub(super) fn write(
    conn: &mut Connection,
    batches: &[&Batch],
    rule: UsageRule,
    log_capacity: usize,
) -> Result<(), Trouble> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for batch in batches {
        write_rows(&tx, batch, rule, log_capacity)?;
    }
    tx.commit()?;
    Ok(())
}

fn write_rows(tx: &Connection, batch: &Batch, rule: UsageRule, log_capacity: usize) -> Result<(), Trouble> {
    let now = unix_time();
    let at = |time: f64| if time == 0.0 { now } else { time };
    for d in &batch.devices {
        tx.prepare_cached(
            "INSERT INTO devices VALUES(?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET identity = excluded.identity,
             machine = excluded.machine, updated = excluded.updated WHERE excluded.updated >= updated",
        )?
        .execute((signed(d.device), &d.identity, &d.machine, at(d.updated)))?;
    }
    for c in &batch.cells {
        tx.prepare_cached(
            "INSERT INTO cells VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO UPDATE SET
             payload = excluded.payload, samples = excluded.samples, updated = excluded.updated
             WHERE excluded.samples > samples OR (excluded.samples = samples AND excluded.updated >= updated)",
        )?
        .execute((
            signed(c.device),
            &c.kernel,
            c.revision,
            c.threads,
            c.variant,
            &c.op,
            &c.dtype,
            &c.layout,
            &c.payload,
            signed(c.samples),
            at(c.updated),
        ))?;
    }
    for h in &batch.history {
        tx.prepare_cached(
            "INSERT INTO history VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO UPDATE SET
             n = excluded.n, mean_ln = excluded.mean_ln, m2_ln = excluded.m2_ln, updated = excluded.updated
             WHERE excluded.n > n OR (excluded.n = n AND excluded.updated >= updated)",
        )?
        .execute((
            signed(h.device),
            &h.workload,
            &h.kernel,
            h.revision,
            h.threads,
            h.variant,
            signed(h.n),
            h.mean_ln,
            h.m2_ln,
            at(h.updated),
        ))?;
    }
    for q in &batch.quarantine {
        tx.prepare_cached(
            "INSERT INTO quarantine VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET
             reason = excluded.reason, at = excluded.at WHERE excluded.at >= at",
        )?
        .execute((
            signed(q.device),
            &q.kernel,
            q.revision,
            &q.op,
            &q.dtype,
            &q.reason,
            at(q.when),
        ))?;
    }
    for q in &batch.lifted {
        tx.prepare_cached(
            "DELETE FROM quarantine WHERE device = ?1 AND kernel = ?2 AND revision = ?3 AND op = ?4 AND dtype = ?5",
        )?
        .execute((signed(q.device), &q.kernel, q.revision, &q.op, &q.dtype))?;
    }
    let usage_sql = match rule {
        UsageRule::Add => {
            "INSERT INTO usage VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO UPDATE SET
             runs = runs + excluded.runs, failures = failures + excluded.failures,
             total_s = total_s + excluded.total_s, last_used = max(last_used, excluded.last_used)"
        }
        UsageRule::Larger => {
            "INSERT INTO usage VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO UPDATE SET
             runs = excluded.runs, failures = excluded.failures, total_s = excluded.total_s,
             last_used = excluded.last_used WHERE excluded.runs > runs"
        }
    };
    for u in &batch.usage {
        tx.prepare_cached(usage_sql)?.execute((
            signed(u.device),
            &u.kernel,
            u.threads,
            u.variant,
            &u.op,
            signed(u.runs),
            signed(u.failures),
            u.total_s,
            at(u.last_used),
        ))?;
    }
    for m in &batch.meta {
        tx.prepare_cached(
            "INSERT INTO meta VALUES(?1, ?2, ?3) ON CONFLICT DO UPDATE SET value = excluded.value,
             updated = excluded.updated WHERE excluded.updated >= updated",
        )?
        .execute((&m.key, &m.value, at(m.updated)))?;
    }
    for e in &batch.log {
        let text = serde_json::to_string(e).map_err(|e| Trouble::Unavailable(e.to_string()))?;
        tx.prepare_cached("INSERT INTO log(entry) VALUES(?1)")?.execute([text])?;
    }
    prune(tx, batch, log_capacity)
}

/// Keeps history and log bounded.
fn prune(tx: &Connection, batch: &Batch, log_capacity: usize) -> Result<(), Trouble> {
    let mut devices: Vec<u64> = batch.history.iter().map(|h| h.device).collect();
    devices.sort_unstable();
    devices.dedup();
    for device in devices {
        tx.prepare_cached(
            "DELETE FROM history WHERE device = ?1 AND updated <
             (SELECT updated FROM history WHERE device = ?1 ORDER BY updated DESC LIMIT 1 OFFSET ?2)",
        )?
        .execute((signed(device), HISTORY_MAX - 1))?;
    }
    if !batch.log.is_empty() {
        let keep = i64::try_from(log_capacity).unwrap_or(i64::MAX);
        tx.prepare_cached("DELETE FROM log WHERE id <= (SELECT max(id) FROM log) - ?1")?.execute([keep])?;
    }
    Ok(())
}

/// Forgets one device, or everything.
pub(super) fn forget(conn: &mut Connection, device: Option<u64>) -> Result<(), Trouble> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for table in ["devices", "cells", "history", "quarantine", "usage"] {
        match device {
            Some(d) => tx.execute(&format!("DELETE FROM {table} WHERE device = ?1"), [signed(d)])?,
            None => tx.execute(&format!("DELETE FROM {table}"), [])?,
        };
    }
    if device.is_none() {
        tx.execute_batch("DELETE FROM meta WHERE key <> 'schema'; DELETE FROM log;")?;
    }
    tx.commit()?;
    Ok(())
}
