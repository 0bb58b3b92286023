//! Rows into a connection, merged with what is there.

use super::notice::Trouble;
use super::read::signed;
use super::rows::*;
use crate::cost::REMEMBERED;
use crate::log::unix_time;
use rusqlite::{Connection, TransactionBehavior};
use std::collections::BTreeSet;

/// Exact-shape histories kept a device: reading and understanding them is part of every start.
const HISTORY_MAX: i64 = 512;

/// How usage is put together with what is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UsageRule {
    /// The numbers are new runs.
    Add,
    /// The numbers are another file's totals: taken if larger, so that importing twice changes nothing.
    Larger,
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
    for o in &batch.outdated {
        delete(tx, o)?;
    }
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
             WHERE min(excluded.n, ?11) > min(n, ?11)
             OR (min(excluded.n, ?11) = min(n, ?11) AND excluded.updated >= updated)",
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
            signed(REMEMBERED),
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

fn delete(tx: &Connection, outdated: &Outdated) -> Result<(), Trouble> {
    match outdated {
        Outdated::Kernel { device, kernel } => {
            for table in ["cells", "history"] {
                let sql = format!("DELETE FROM {table} WHERE device = ?1 AND kernel = ?2");
                tx.prepare_cached(&sql)?.execute((signed(*device), kernel))?;
            }
        }
        Outdated::Cell(c) => {
            tx.prepare_cached(
                "DELETE FROM cells WHERE device = ?1 AND kernel = ?2 AND revision = ?3 AND threads = ?4
                 AND variant = ?5 AND op = ?6 AND dtype = ?7 AND layout = ?8",
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
            ))?;
        }
    }
    Ok(())
}

/// Cells of code that newer code has taken the place of: those that were measured no oftener than the newer ones, and
/// all but the last revision before them. (Two versions of a program side by side keep what each has learned.)
const SUPERSEDED: &str = "DELETE FROM cells WHERE device = ?1 AND kernel = ?2 AND revision < ?3 AND (
    revision < (SELECT max(revision) FROM cells WHERE device = ?1 AND kernel = ?2 AND revision < ?3)
    OR samples <= (SELECT new.samples FROM cells AS new WHERE new.device = ?1 AND new.kernel = ?2
        AND new.revision = ?3 AND new.threads = cells.threads AND new.variant = cells.variant
        AND new.op = cells.op AND new.dtype = cells.dtype AND new.layout = cells.layout))";

/// Keeps cells, history and log bounded.
fn prune(tx: &Connection, batch: &Batch, log_capacity: usize) -> Result<(), Trouble> {
    let written: BTreeSet<(u64, &str, u32)> =
        batch.cells.iter().map(|c| (c.device, &*c.kernel, c.revision)).collect();
    for (device, kernel, revision) in written {
        let mut older = tx.prepare_cached(
            "SELECT 1 FROM cells WHERE device = ?1 AND kernel = ?2 AND revision < ?3 LIMIT 1",
        )?;
        if older.exists((signed(device), kernel, revision))? {
            tx.prepare_cached(SUPERSEDED)?.execute((signed(device), kernel, revision))?;
        }
    }
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
