//! Wisdom that travels: export, import, merge.

use super::Wisdom;
use super::check::Checked;
use super::disk::Disk;
use super::notice::{Trouble, WisdomError};
use super::read::read_all;
use super::rows::*;
use super::write::UsageRule;
use crate::cost::REMEMBERED;
use crate::device::fnv1a;
use crate::log::unix_time;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::path::Path;

const FORMAT: &str = "steersman-wisdom";
/// Raised when an older reader would misunderstand.
const VERSION: u32 = 1;

/// The learned part of a store; the decision log stays at home.
#[derive(Serialize)]
struct Export {
    format: String,
    version: u32,
    exported: f64,
    devices: Vec<DeviceRow>,
    cells: Vec<Cell>,
    history: Vec<HistoryRow>,
    quarantine: Vec<QuarantineRow>,
    usage: Vec<UsageRow>,
    meta: Vec<MetaRow>,
}

/// The same as it is read, row by row: one that makes no sense is no reason to refuse the others.
#[derive(Deserialize)]
struct Import {
    devices: Vec<Value>,
    cells: Vec<Value>,
    history: Vec<Value>,
    quarantine: Vec<Value>,
    usage: Vec<Value>,
    meta: Vec<Value>,
}

fn understood<T: DeserializeOwned>(rows: Vec<Value>, table: &str, refused: &mut Vec<Refused>) -> Vec<T> {
    let mut refuse = |i: usize, e: serde_json::Error| {
        refused.push(Refused { row: format!("{table}[{i}]"), reason: e.to_string() });
    };
    let read = |(i, row)| serde_json::from_value(row).map_err(|e| refuse(i, e)).ok();
    rows.into_iter().enumerate().filter_map(read).collect()
}

/// A cell's state in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellSummary {
    /// Measurements behind it.
    pub samples: u64,
    /// Bytes of model state.
    pub bytes: usize,
    /// Hash of the model state.
    pub hash: u64,
    /// Seconds since 1970.
    pub updated: f64,
}

impl CellSummary {
    fn of(cell: &Cell) -> CellSummary {
        let hash = fnv1a(&cell.payload);
        CellSummary { samples: cell.samples, bytes: cell.payload.len(), hash, updated: cell.updated }
    }
}

/// A cell that an import changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellChange {
    /// Kernel, parameters, op, dtype and layout.
    pub cell: String,
    /// What is there, if anything is.
    pub before: Option<CellSummary>,
    /// What will be.
    pub after: CellSummary,
}

/// A row that is not taken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refused {
    /// Which.
    pub row: String,
    /// Why not.
    pub reason: String,
}

/// What an import did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ImportReport {
    /// Rows that were not here.
    pub added: usize,
    /// Rows that replaced poorer ones.
    pub updated: usize,
    /// Rows that are already here, the same or better.
    pub unchanged: usize,
    /// Rows not taken.
    pub refused: Vec<Refused>,
    /// Each changed cell, before and after.
    pub cells: Vec<CellChange>,
    /// Whether nothing was written.
    pub dry_run: bool,
}

impl fmt::Display for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, u, same, r) = (self.added, self.updated, self.unchanged, self.refused.len());
        write!(f, "{a} added, {u} updated, {same} unchanged, {r} refused")?;
        if self.dry_run { f.write_str(" (dry run: nothing written)") } else { Ok(()) }
    }
}

impl Wisdom {
    /// Everything learned, as JSON.
    pub fn export(&self) -> Result<String, WisdomError> {
        let all = self.read(read_all).map_err(|t| t.error("exported"))?;
        let export = Export {
            format: FORMAT.into(),
            version: VERSION,
            exported: unix_time(),
            devices: all.devices,
            cells: all.cells,
            history: all.history,
            quarantine: all.quarantine,
            usage: all.usage,
            meta: all.meta,
        };
        serde_json::to_string_pretty(&export)
            .map_err(|e| WisdomError::Store { doing: "exported", why: e.to_string() })
    }

    /// Takes in an export: what is new or has more samples than what is here. With `dry_run`, only reports.
    pub fn import(&self, json: &str, dry_run: bool) -> Result<ImportReport, WisdomError> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let broken = |e: serde_json::Error| WisdomError::NotAnExport(e.to_string());
        let head: Head = serde_json::from_str(json).map_err(broken)?;
        if head.format != FORMAT {
            return Err(WisdomError::NotAnExport(format!("its format is {:?}", head.format)));
        }
        if head.version > VERSION {
            let why =
                format!("its version {} is newer than {VERSION}, the last this one reads", head.version);
            return Err(WisdomError::NotAnExport(why));
        }
        let e: Import = serde_json::from_str(json).map_err(broken)?;
        let mut refused = Vec::new();
        let r = &mut refused;
        let rows = Batch {
            devices: understood(e.devices, "devices", r),
            cells: understood(e.cells, "cells", r),
            history: understood(e.history, "history", r),
            quarantine: understood(e.quarantine, "quarantine", r),
            usage: understood(e.usage, "usage", r),
            meta: understood(e.meta, "meta", r),
            ..Batch::default()
        };
        self.take_in(rows, refused, dry_run)
    }

    /// Takes in another file's wisdom, as [`Wisdom::import`] does. The other file is not changed.
    pub fn merge(&self, other: &Path) -> Result<ImportReport, WisdomError> {
        let fail = |t: Trouble| WisdomError::Other { path: other.to_path_buf(), why: t.to_string() };
        if other.is_dir() {
            return Err(fail(Trouble::Unavailable("it is a folder; name the file in it".into())));
        }
        if !other.is_file() {
            return Err(fail(Trouble::Unavailable("there is no such file".into())));
        }
        let disk = Disk::open_other(other).map_err(fail)?;
        let rows = read_all(&disk.conn).map_err(fail)?;
        self.take_in(rows, Vec::new(), false)
    }

    fn take_in(
        &self,
        rows: Batch,
        refused: Vec<Refused>,
        dry_run: bool,
    ) -> Result<ImportReport, WisdomError> {
        let here = self.read(read_all).map_err(|t| t.error("read"))?;
        let mut report = ImportReport { dry_run, refused, ..ImportReport::default() };
        let r = &mut report;
        let mut batch = Batch {
            devices: sift(rows.devices, &here.devices, |d| d.device, |new, old| new.updated > old.updated, r),
            history: sift(rows.history, &here.history, history_key, fresher, r),
            quarantine: sift(
                rows.quarantine,
                &here.quarantine,
                quarantine_key,
                |new, old| new.when > old.when,
                r,
            ),
            usage: sift(rows.usage, &here.usage, usage_key, |new, old| new.runs > old.runs, r),
            // Such as this machine's exploration ledger: what is here stays.
            meta: sift(rows.meta, &here.meta, |m| m.key.clone(), |_, _| false, r),
            ..Batch::default()
        };
        let richer = |new: &Cell, old: &Cell| {
            (new.samples, new.updated) > (old.samples, old.updated) && new.payload != old.payload
        };
        batch.cells = sift(rows.cells, &here.cells, cell_key, richer, r);
        let before: HashMap<_, _> = here.cells.iter().map(|c| (cell_key(c), c)).collect();
        for cell in &batch.cells {
            r.cells.push(CellChange {
                cell: cell.label(),
                before: before.get(&cell_key(cell)).map(|c| CellSummary::of(c)),
                after: CellSummary::of(cell),
            });
        }
        if !dry_run && !batch.is_empty() {
            let mut state = self.lock();
            self.save_rows(&mut state, &batch, UsageRule::Larger).map_err(|t| t.error("imported"))?;
        }
        Ok(report)
    }
}

/// More runs up to those that a history counts for, and then the later ones.
fn fresher(new: &HistoryRow, old: &HistoryRow) -> bool {
    let said = |h: &HistoryRow| (h.n.min(REMEMBERED), h.updated);
    said(new) > said(old) && (new.n, new.mean_ln) != (old.n, old.mean_ln)
}

/// The rows worth taking; counts all of them in the report.
fn sift<T: Checked, K: Hash + Eq>(
    rows: Vec<T>,
    here: &[T],
    key: impl Fn(&T) -> K,
    better: impl Fn(&T, &T) -> bool,
    report: &mut ImportReport,
) -> Vec<T> {
    let old: HashMap<K, &T> = here.iter().map(|row| (key(row), row)).collect();
    let mut taken = Vec::new();
    for row in rows {
        if let Err(reason) = row.check() {
            report.refused.push(Refused { row: row.label(), reason: reason.to_string() });
            continue;
        }
        match old.get(&key(&row)) {
            None => report.added += 1,
            Some(o) if better(&row, o) => report.updated += 1,
            Some(_) => {
                report.unchanged += 1;
                continue;
            }
        }
        taken.push(row);
    }
    taken
}

type Key = (u64, String, u32, u16, u16, String, String, String);

fn cell_key(c: &Cell) -> Key {
    let (op, dtype, layout) = (c.op.clone(), c.dtype.clone(), c.layout.clone());
    (c.device, c.kernel.clone(), c.revision, c.threads, c.variant, op, dtype, layout)
}

fn history_key(h: &HistoryRow) -> (u64, String, String, u32, u16, u16) {
    (h.device, h.workload.clone(), h.kernel.clone(), h.revision, h.threads, h.variant)
}

fn quarantine_key(q: &QuarantineRow) -> (u64, String, u32, String, String) {
    (q.device, q.kernel.clone(), q.revision, q.op.clone(), q.dtype.clone())
}

fn usage_key(u: &UsageRow) -> (u64, String, u16, u16, String) {
    (u.device, u.kernel.clone(), u.threads, u.variant, u.op.clone())
}
