//! Between the engine's model and wisdom on disk.

use std::collections::{BTreeMap, HashMap};
use steersman_core::cost::{CellKey, History, Knowledge, Machine};

use steersman_core::guard::Offence;
use steersman_core::op::FUSED;
use steersman_core::tune::Kept;
use steersman_core::wisdom::{Batch, Cell, DeviceRow, HistoryRow, MetaRow, QuarantineRow, Snapshot, Wisdom};
use steersman_core::{DType, DeviceId, Engine, Layout, Op, OpClass, Params, Remembered, Runs};

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

/// Puts what wisdom holds of a device into the engine. Returns whether a finished calibration was there.
pub fn restore(engine: &Engine, device: DeviceId, fingerprint: u64, snapshot: &mut Snapshot) -> bool {
    let machine = snapshot.machine.as_ref().and_then(|m| serde_json::from_str::<Machine>(m).ok());
    if let Some(machine) = machine {
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
    let kernels: HashMap<&str, (u16, u32)> =
        engine.registry().iter().map(|(i, k)| (k.name(), (i, k.revision()))).collect();
    for q in &snapshot.quarantine {
        // A kernel whose code changed since gets another chance.
        if let Some(&(kernel, revision)) = kernels.get(q.kernel.as_str())
            && revision == q.revision
            && let Some(op) = op_name(&q.op)
            && let Ok(dtype) = q.dtype.parse::<DType>()
        {
            engine.guard().quarantine(kernel, op, dtype, Offence::Failed, q.reason.clone());
        }
    }
    snapshot.meta.contains_key(&calibrated_key(fingerprint))
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

/// The name as the engine has it, if there is such an op.
fn op_name(name: &str) -> Option<&'static str> {
    if name == FUSED { Some(FUSED) } else { Op::from_name(name).map(Op::name) }
}

/// The meta key that says a device was calibrated.
pub fn calibrated_key(fingerprint: u64) -> String {
    format!("calibrated/{fingerprint:016x}")
}

/// The meta key of the way to a device.
fn wire_key(fingerprint: u64) -> String {
    format!("wire/{fingerprint:016x}")
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

/// Everything the engine knows of a device, to be saved.
pub fn collect(engine: &Engine, device: DeviceId, fingerprint: u64, calibrated: bool) -> Batch {
    let mut batch = Batch::default();
    if let Some(d) = engine.devices().get(device.0 as usize) {
        let machine = Machine { winners: winners(engine, device), ..d.machine.clone() };
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
            batch.cells.push(Cell {
                device: fingerprint,
                kernel: kernel.name().into(),
                revision: kernel.revision(),
                threads: key.variant.params.threads,
                variant: key.variant.params.variant,
                op: op_text(&key),
                dtype: key.dtype.name().into(),
                layout: name_of(&LAYOUTS, key.layout).into(),
                samples: known.samples(),
                payload: known.into_bytes(),
                updated: 0.0,
            });
        }
    });
    for r in engine.runs() {
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
    for ((kernel, op, dtype), q) in engine.guard().list() {
        let Some(k) = of_device(kernel) else { continue };
        batch.quarantine.push(QuarantineRow {
            device: fingerprint,
            kernel: k.name().into(),
            revision: k.revision(),
            op: op.into(),
            dtype: dtype.name().into(),
            reason: q.detail,
            when: 0.0,
        });
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
) {
    let other = collect(engine, device, fingerprint, calibrated);
    batch.devices.extend(other.devices);
    batch.cells.extend(other.cells);
    batch.history.extend(other.history);
    batch.quarantine.extend(other.quarantine);
    batch.meta.extend(other.meta);
    if let Some(wire) = engine.wire(device) {
        let value = serde_json::to_string(&wire).unwrap_or_default();
        batch.meta.push(MetaRow { key: wire_key(fingerprint), value, updated: 0.0 });
    }
}

/// A wisdom store that is never missing.
pub fn open(path: Option<&std::path::Path>, frozen: bool) -> (Wisdom, Vec<steersman_core::wisdom::Notice>) {
    let opened = match path {
        Some(p) if frozen => Wisdom::open_read_only(p),
        _ => Wisdom::open(path),
    };
    (opened.wisdom, opened.notices)
}
