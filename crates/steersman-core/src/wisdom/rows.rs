//! What is stored, row by row. Payloads are the model's own bytes: this room never looks inside.

use super::WIRE;
use crate::device::fnv1a;
use crate::log::Entry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A device that something was learned on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceRow {
    /// [`crate::Identity::fingerprint`].
    #[serde(with = "super::text::fingerprint")]
    pub device: u64,
    /// Its identity, as JSON.
    pub identity: String,
    /// Its probed rates, as JSON.
    pub machine: String,
    /// Seconds since 1970; filled in on saving if 0.
    pub updated: f64,
}

/// The learned state of one model cell. Everything before `payload` is its key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The device's fingerprint.
    #[serde(with = "super::text::fingerprint")]
    pub device: u64,
    /// The kernel's name.
    pub kernel: String,
    /// The kernel's revision; cells of other revisions only hint.
    pub revision: u32,
    /// Threads.
    pub threads: u16,
    /// The kernel's variant.
    pub variant: u16,
    /// The op.
    pub op: String,
    /// The element type.
    pub dtype: String,
    /// The layout class.
    pub layout: String,
    /// The model's state.
    #[serde(with = "super::text::payload")]
    pub payload: Vec<u8>,
    /// Measurements behind it: of two writers, the one with more wins.
    pub samples: u64,
    /// Seconds since 1970; filled in on saving if 0.
    pub updated: f64,
}

/// Measurements of one exact workload: Welford's count, mean and sum of squares of ln seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryRow {
    /// The device's fingerprint.
    #[serde(with = "super::text::fingerprint")]
    pub device: u64,
    /// The workload's text form.
    pub workload: String,
    /// The kernel's name.
    pub kernel: String,
    /// The kernel's revision.
    pub revision: u32,
    /// Threads.
    pub threads: u16,
    /// The kernel's variant.
    pub variant: u16,
    /// Measurements.
    pub n: u64,
    /// Their mean.
    pub mean_ln: f64,
    /// Their summed squared distance from the mean.
    pub m2_ln: f64,
    /// Seconds since 1970; filled in on saving if 0.
    pub updated: f64,
}

/// A kernel that must not be chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QuarantineRow {
    /// The device's fingerprint.
    #[serde(with = "super::text::fingerprint")]
    pub device: u64,
    /// The kernel's name.
    pub kernel: String,
    /// The revision that misbehaved; another one is innocent.
    pub revision: u32,
    /// The op it misbehaved in.
    pub op: String,
    /// The element type.
    pub dtype: String,
    /// What it did.
    pub reason: String,
    /// Seconds since 1970; filled in on saving if 0.
    pub when: f64,
}

impl QuarantineRow {
    pub(super) fn same_as(&self, other: &QuarantineRow) -> bool {
        let key = |q: &QuarantineRow| (q.device, q.revision);
        key(self) == key(other)
            && (&self.kernel, &self.op, &self.dtype) == (&other.kernel, &other.op, &other.dtype)
    }
}

/// How often a kernel ran. In a [`Batch`] the numbers are what is to be added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageRow {
    /// The device's fingerprint.
    #[serde(with = "super::text::fingerprint")]
    pub device: u64,
    /// The kernel's name.
    pub kernel: String,
    /// Threads.
    pub threads: u16,
    /// The kernel's variant.
    pub variant: u16,
    /// The op.
    pub op: String,
    /// Runs, failed ones too.
    pub runs: u64,
    /// Failed runs.
    pub failures: u64,
    /// Seconds spent in timed runs.
    pub total_s: f64,
    /// Seconds since 1970.
    pub last_used: f64,
}

/// A named value, such as the exploration ledger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetaRow {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Seconds since 1970; filled in on saving if 0. The later writer wins.
    pub updated: f64,
}

/// What was found out anew, so that what is stored of it no longer counts, however many samples it has.
#[derive(Clone, Debug, PartialEq)]
pub enum Outdated {
    /// All cells and histories of a kernel, of every revision.
    Kernel {
        /// The device's fingerprint.
        device: u64,
        /// The kernel's name.
        kernel: String,
    },
    /// One cell; only its key matters.
    Cell(Cell),
}

/// What one save writes, all or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// What is deleted before the rest is written.
    pub outdated: Vec<Outdated>,
    /// Devices, replacing what is stored of them.
    pub devices: Vec<DeviceRow>,
    /// Cells; each replaces one with no more samples.
    pub cells: Vec<Cell>,
    /// Histories; each replaces one of no more measurements. Those beyond the ones that a later process counts do not
    /// matter: of two such the later one stays, whose machine is today's.
    pub history: Vec<HistoryRow>,
    /// New quarantines.
    pub quarantine: Vec<QuarantineRow>,
    /// Quarantines to lift; reason and time do not matter.
    pub lifted: Vec<QuarantineRow>,
    /// Usage to add.
    pub usage: Vec<UsageRow>,
    /// Named values.
    pub meta: Vec<MetaRow>,
    /// Decisions to append to the log.
    pub log: Vec<Entry>,
}

impl Batch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        *self == Batch::default()
    }
}

/// All that is stored of one device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Probed rates as JSON, if it was probed.
    pub machine: Option<String>,
    /// Cells, of every kernel revision, in key order.
    pub cells: Vec<Cell>,
    /// Histories, of every kernel revision, in key order.
    pub history: Vec<HistoryRow>,
    /// Kernels not to choose.
    pub quarantine: Vec<QuarantineRow>,
    /// Usage so far.
    pub usage: Vec<UsageRow>,
    /// Named values (common to all devices).
    pub meta: BTreeMap<String, String>,
}

impl Snapshot {
    /// A stable hash of what decisions depend on: rates, cells, histories, quarantines and the ways to devices, but
    /// neither times of writing nor usage. The same in every process and after export and import.
    pub fn hash(&self) -> u64 {
        let mut h = Digest::default();
        h.text(self.machine.as_deref().unwrap_or(""));
        digest_rows(&mut h, &self.cells, &self.history, &self.quarantine);
        digest_meta(&mut h, self.meta.iter().map(|(key, value)| (&**key, &**value)));
        h.value()
    }
}

/// Named values in the order of their names.
pub(super) fn digest_meta<'a>(h: &mut Digest, meta: impl Iterator<Item = (&'a str, &'a str)>) {
    for (key, value) in meta.filter(|(key, _)| key.starts_with(WIRE)) {
        h.text(key).text(value);
    }
}

pub(super) fn digest_rows(
    h: &mut Digest,
    cells: &[Cell],
    history: &[HistoryRow],
    quarantine: &[QuarantineRow],
) {
    h.number(cells.len() as u64);
    for c in cells {
        h.number(c.device).text(&c.kernel).number(c.revision as u64).number(c.threads as u64);
        h.number(c.variant as u64).text(&c.op).text(&c.dtype).text(&c.layout).bytes(&c.payload);
        h.number(c.samples);
    }
    h.number(history.len() as u64);
    for r in history {
        h.number(r.device).text(&r.workload).text(&r.kernel).number(r.revision as u64);
        h.number(r.threads as u64).number(r.variant as u64).number(r.n);
        h.number(r.mean_ln.to_bits()).number(r.m2_ln.to_bits());
    }
    h.number(quarantine.len() as u64);
    for q in quarantine {
        h.number(q.device).text(&q.kernel).number(q.revision as u64).text(&q.op).text(&q.dtype);
    }
}

/// Collects fields, each with its length, so that no two contents give the same bytes.
#[derive(Default)]
pub(super) struct Digest(Vec<u8>);

impl Digest {
    pub(super) fn number(&mut self, n: u64) -> &mut Digest {
        self.0.extend_from_slice(&n.to_le_bytes());
        self
    }

    pub(super) fn bytes(&mut self, b: &[u8]) -> &mut Digest {
        self.number(b.len() as u64).0.extend_from_slice(b);
        self
    }

    pub(super) fn text(&mut self, t: &str) -> &mut Digest {
        self.bytes(t.as_bytes())
    }

    pub(super) fn value(&self) -> u64 {
        fnv1a(&self.0)
    }
}
