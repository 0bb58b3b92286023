//! Between the engine's model and wisdom on disk.

use crate::refresh::Anew;
use std::collections::BTreeMap;
use std::path::Path;
use steersman_core::cost::{CellKey, History, Knowledge, Machine};

use steersman_core::guard::Quarantined;
use steersman_core::op::FUSED;
use steersman_core::tune::Kept;
use steersman_core::wisdom::{
    Batch, Cell, DeviceRow, HistoryRow, MetaRow, Notice, NoticeKind, Outdated, QuarantineRow, Snapshot, WIRE,
    Wisdom,
};
use steersman_core::{Convicted, DeviceId, Engine, Kernel, Layout, OpClass, Params, Remembered, Runs};

/// Marks the pool of a class among cells.
const POOL: &str = "*";

const LAYOUTS: [(Layout, &str); 4] = [
    (Layout::Contiguous, "contiguous"),
    (Layout::Broadcast, "broadcast"),
    (Layout::PerRow, "perrow"),
    (Layout::Strided, "strided"),
];
const CLASSES: [(OpClass, &str); 9] = [
    (OpClass::Unary, "unary"),
    (OpClass::Binary, "binary"),
    (OpClass::Ternary, "ternary"),
    (OpClass::Reduce, "reduce"),
    (OpClass::MatMul, "matmul"),
    (OpClass::Move, "move"),
    (OpClass::Conv, "conv"),
    (OpClass::Custom, "custom"),
    (OpClass::Fused, FUSED),
];

fn by_name<T: Copy>(table: &[(T, &'static str)], name: &str) -> Option<T> {
    table.iter().find(|(_, n)| *n == name).map(|(t, _)| *t)
}
fn name_of<T: PartialEq>(table: &[(T, &'static str)], value: T) -> &'static str {
    table.iter().find(|(t, _)| *t == value).map_or("?", |(_, n)| n)
}

/// What was there of a device.
pub struct Restored {
    /// Whether a finished calibration was: one whose rates cannot be read is to be done again.
    pub calibrated: bool,
    /// Why its rates cannot be read, if there were any.
    pub unreadable: Option<String>,
}

impl Restored {
    /// What there is to say about it.
    pub fn notice(&self, wisdom: &Wisdom, engine: &Engine, device: DeviceId) -> Option<Notice> {
        let why = self.unreadable.as_ref()?;
        let part =
            engine.devices().get(device.0 as usize).map(|d| d.identity.part.clone()).unwrap_or_default();
        Some(Notice {
            kind: NoticeKind::Unreadable,
            path: wisdom.path().map(Path::to_path_buf).unwrap_or_default(),
            what: format!("what was probed of {part} cannot be read ({why}) and was left out"),
            advice: "run `steer calibrate` to have it probed again".into(),
        })
    }
}

/// The probed rates of a device, if there are any.
pub fn machine(snapshot: &Snapshot) -> Result<Option<Machine>, String> {
    let read = |text: &String| serde_json::from_str(text).map_err(|why| why.to_string());
    snapshot.machine.as_ref().map(read).transpose()
}

/// Puts what wisdom holds of a device into the engine.
pub fn restore(engine: &Engine, device: DeviceId, fingerprint: u64, snapshot: &mut Snapshot) -> Restored {
    let machine = machine(snapshot);
    let unreadable = machine.as_ref().err().cloned();
    if let Ok(Some(machine)) = machine {
        restore_winners(engine, device, &machine);
        engine.set_machine(device, machine);
    }
    let cells = std::mem::take(&mut snapshot.cells);
    engine.recall(
        cells.into_iter().filter_map(|mut cell| Some((std::mem::take(&mut cell.kernel), remembered(cell)?))),
    );
    let wire = snapshot.meta.get(&wire_key(fingerprint));
    if let Some(wire) = wire.and_then(|w| serde_json::from_str(w).ok()) {
        engine.set_wire(device, wire);
    }
    engine.recall_runs(snapshot.history.iter().map(|h| Runs {
        workload: h.workload.clone(),
        kernel: h.kernel.clone(),
        revision: h.revision,
        params: Params { threads: h.threads, variant: h.variant },
        history: History { n: h.n, mean: h.mean_ln, m2: h.m2_ln },
    }));
    engine.recall_quarantines(snapshot.quarantine.iter().filter_map(|q| {
        Some(Convicted {
            kernel: q.kernel.clone(),
            revision: q.revision,
            op: q.op.clone(),
            dtype: q.dtype.parse().ok()?,
            why: Quarantined::read(&q.reason),
        })
    }));
    let calibrated = unreadable.is_none() && snapshot.meta.contains_key(&calibrated_key(fingerprint));
    Restored { calibrated, unreadable }
}

/// Gives the device's kernels back what searches found best for them, unless their code has changed since.
fn restore_winners(engine: &Engine, device: DeviceId, machine: &Machine) {
    for (_, kernel) in engine.registry().iter().filter(|(_, k)| k.device() == device) {
        let kept = machine.winners.get(kernel.name()).filter(|k| k.revision == kernel.revision());
        if let Some((winners, kept)) = kernel.winners().zip(kept) {
            winners.restore(&kept.by_kind);
        }
    }
}

/// What searches found best for the device's kernels so far.
fn winners(engine: &Engine, device: DeviceId) -> BTreeMap<String, Kept> {
    let of_device = engine.registry().iter().filter(|(_, k)| k.device() == device);
    of_device
        .filter_map(|(_, k)| {
            let by_kind = k.winners()?.list();
            (!by_kind.is_empty()).then(|| (k.name().into(), Kept { revision: k.revision(), by_kind }))
        })
        .collect()
}

/// The meta key that says a device was calibrated.
pub fn calibrated_key(fingerprint: u64) -> String {
    format!("calibrated/{fingerprint:016x}")
}

/// The meta key of the way to a device.
fn wire_key(fingerprint: u64) -> String {
    format!("{WIRE}{fingerprint:016x}")
}

/// Op and class as stored: pools are `*class`, custom ops keep their own name.
fn op_text(key: &CellKey) -> String {
    match key.op {
        Some(op) => format!("{}/{op}", name_of(&CLASSES, key.class)),
        None => format!("{}/{POOL}", name_of(&CLASSES, key.class)),
    }
}

fn remembered(cell: Cell) -> Option<Remembered> {
    let (class, op) = cell.op.split_once('/')?;
    Some(Remembered {
        revision: cell.revision,
        params: Params { threads: cell.threads, variant: cell.variant },
        op: (op != POOL).then(|| op.to_string()),
        class: by_name(&CLASSES, class)?,
        dtype: cell.dtype.parse().ok()?,
        layout: by_name(&LAYOUTS, &cell.layout)?,
        knowledge: Knowledge::from_bytes(cell.payload)?,
    })
}

/// The row of a cell, with nothing in it.
fn row(kernel: &dyn Kernel, key: &CellKey, fingerprint: u64) -> Cell {
    Cell {
        device: fingerprint,
        kernel: kernel.name().into(),
        revision: kernel.revision(),
        threads: key.variant.params.threads,
        variant: key.variant.params.variant,
        op: op_text(key),
        dtype: key.dtype.name().into(),
        layout: name_of(&LAYOUTS, key.layout).into(),
        ..Cell::default()
    }
}

/// What no longer counts of what is stored, now that this was learned anew.
pub fn outdated(engine: &Engine, anew: &Anew) -> Vec<Outdated> {
    let devices = engine.devices();
    let find = |index: u16| {
        let kernel = engine.registry().get(index)?;
        let device = devices.get(kernel.device().0 as usize)?.identity.fingerprint();
        Some((kernel, device))
    };
    let kernels = anew.kernels.iter().filter_map(|&i| {
        let (kernel, device) = find(i)?;
        Some(Outdated::Kernel { device, kernel: kernel.name().into() })
    });
    let cells = anew.cells.iter().filter_map(|key| {
        let (kernel, device) = find(key.variant.kernel)?;
        Some(Outdated::Cell(row(&**kernel, key, device)))
    });
    kernels.chain(cells).collect()
}

/// Everything the engine knows of a device, to be saved; histories only where they changed since. Quarantines are taken
/// out: each is written once, so that nobody writes again what somebody lifted meanwhile.
pub fn collect(engine: &Engine, device: DeviceId, fingerprint: u64, calibrated: bool, since: u64) -> Batch {
    let mut batch = Batch::default();
    if let Some(d) = engine.devices().get(device.0 as usize) {
        let machine = Machine { winners: winners(engine, device), ..d.machine.clone() }.finite();
        batch.devices.push(DeviceRow {
            device: fingerprint,
            identity: serde_json::to_string(&d.identity).unwrap_or_default(),
            machine: serde_json::to_string(&machine).unwrap_or_default(),
            updated: 0.0,
        });
    }
    let of_device = |kernel: u16| engine.registry().get(kernel).filter(|k| k.device() == device);
    engine.with_model(|model| {
        for (key, known) in model.cells() {
            let Some(kernel) = of_device(key.variant.kernel) else { continue };
            let samples = known.samples();
            let row = row(&**kernel, &key, fingerprint);
            batch.cells.push(Cell { samples, payload: known.into_bytes(), ..row });
        }
    });
    for r in engine.runs_since(since) {
        let here = engine.registry().find(&r.kernel).is_some_and(|k| of_device(k).is_some());
        if here {
            batch.history.push(HistoryRow {
                device: fingerprint,
                workload: r.workload,
                kernel: r.kernel,
                revision: r.revision,
                threads: r.params.threads,
                variant: r.params.variant,
                n: r.history.n,
                mean_ln: r.history.mean,
                m2_ln: r.history.m2,
                updated: 0.0,
            });
        }
    }
    for (case, why) in engine.guard().take_changes(|kernel| of_device(kernel).is_some()) {
        let Some(k) = of_device(case.kernel) else { continue };
        let row = QuarantineRow {
            device: fingerprint,
            kernel: k.name().into(),
            revision: k.revision(),
            op: case.op_text(),
            dtype: case.dtype.name().into(),
            reason: why.as_ref().map(ToString::to_string).unwrap_or_default(),
            when: 0.0,
        };
        if why.is_some() { &mut batch.quarantine } else { &mut batch.lifted }.push(row);
    }
    if calibrated {
        batch.meta.push(MetaRow { key: calibrated_key(fingerprint), value: "true".into(), updated: 0.0 });
    }
    batch
}

/// Adds all that is known of a device with memory of its own, and of the way to it.
pub fn add_accelerator(
    batch: &mut Batch,
    engine: &Engine,
    device: DeviceId,
    fingerprint: u64,
    calibrated: bool,
    since: u64,
) {
    let other = collect(engine, device, fingerprint, calibrated, since);
    batch.devices.extend(other.devices);
    batch.cells.extend(other.cells);
    batch.history.extend(other.history);
    batch.quarantine.extend(other.quarantine);
    batch.lifted.extend(other.lifted);
    batch.meta.extend(other.meta);
    if let Some(wire) = engine.wire(device) {
        let value = serde_json::to_string(&wire).unwrap_or_default();
        batch.meta.push(MetaRow { key: wire_key(fingerprint), value, updated: 0.0 });
    }
}

/// A wisdom store that is never missing.
pub fn open(path: Option<&Path>, frozen: bool, log_capacity: usize) -> (Wisdom, Vec<Notice>) {
    let opened = match path {
        Some(p) if frozen => Wisdom::open_read_only(p),
        _ => Wisdom::open(path),
    };
    (opened.wisdom.with_log_capacity(log_capacity), opened.notices)
}
