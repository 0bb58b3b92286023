//! `steer wisdom`: look at what has been learned, move it, forget it.

use crate::args::WisdomCommand;
use crate::exit::{Failure, Outcome};
use crate::replace::replace;
use crate::screen::{Screen, note};
use crate::table::{
    Column::{Left, Right},
    Table,
};
use crate::{keep, open};
use serde_json::json;
use std::io::{self, BufRead, IsTerminal};
use std::path::Path;
use steersman::Runtime;
use steersman_core::units::count;
use steersman_core::wisdom::{ImportReport, Mode, NoticeKind, Scope, WisdomError};

pub fn run(screen: &Screen, what: &WisdomCommand) -> Outcome {
    let runtime = open::runtime()?;
    let changes = match what {
        WisdomCommand::Show | WisdomCommand::Export { .. } => false,
        WisdomCommand::Import { dry_run, .. } => !dry_run,
        WisdomCommand::Merge { .. } | WisdomCommand::Lift { .. } | WisdomCommand::Reset { .. } => true,
    };
    if changes && runtime.knobs().frozen {
        return Err(Failure::failed(
            "the knob frozen forbids changing what was learned; unset STEERSMAN_FROZEN (`steer knobs` says who set it)",
        ));
    }
    match what {
        WisdomCommand::Show => show(screen, &runtime),
        WisdomCommand::Export { file } => export(screen, &runtime, file.as_deref()),
        WisdomCommand::Import { file, dry_run } => {
            let text = open::text(file)?;
            report(screen, &runtime, runtime.wisdom().import(&text, *dry_run))
        }
        WisdomCommand::Merge { file } => report(screen, &runtime, runtime.wisdom().merge(file)),
        WisdomCommand::Lift { kernel } => lift(screen, &runtime, kernel.as_deref()),
        WisdomCommand::Reset { yes } => reset(screen, &runtime, *yes),
    }
}

fn show(screen: &Screen, runtime: &Runtime) -> Outcome {
    let wisdom = runtime.wisdom();
    let mode = match wisdom.mode() {
        Mode::Disk => "disk",
        Mode::ReadOnly => "read-only",
        Mode::Memory => "memory",
    };
    let devices: Vec<_> = runtime
        .engine()
        .devices()
        .into_iter()
        .map(|d| {
            let fingerprint = d.identity.fingerprint();
            (d.identity, fingerprint, wisdom.load(fingerprint))
        })
        .collect();
    if screen.json {
        let devices: Vec<_> = devices
            .iter()
            .map(|(identity, fingerprint, known)| {
                json!({
                    "part": identity.part,
                    "fingerprint": format!("{fingerprint:016x}"),
                    "hash": format!("{:016x}", known.hash()),
                    "probed": known.machine.is_some(),
                    "cells": known.cells.len(),
                    "samples": known.cells.iter().map(|c| c.samples).sum::<u64>(),
                    "history": known.history.len(),
                    "quarantine": known.quarantine,
                    "usage": known.usage,
                })
            })
            .collect();
        return screen.data(&json!({
            "path": wisdom.path(),
            "mode": mode,
            "calibrated": runtime.calibrated(),
            "hash": format!("{:016x}", wisdom.hash()),
            "devices": devices,
        }));
    }
    let path = wisdom.path().map_or("nowhere on disk".to_string(), |p| p.display().to_string());
    let calibrated = if runtime.calibrated() { "calibrated" } else { "not calibrated" };
    screen.line(&format!("wisdom   {path} ({mode}), hash {:016x}, {calibrated}", wisdom.hash()))?;
    for (identity, fingerprint, known) in &devices {
        let samples: u64 = known.cells.iter().map(|c| c.samples).sum();
        screen.line(&format!(
            "\n{} ({fingerprint:016x}): {} from {}, {}",
            identity.part,
            count(known.cells.len(), "cell"),
            count(samples as usize, "sample"),
            count(known.history.len(), "exact workload"),
        ))?;
        for q in &known.quarantine {
            screen.line(&format!("  in quarantine: {} for {} {}: {}", q.kernel, q.op, q.dtype, q.reason))?;
        }
        if known.usage.is_empty() {
            continue;
        }
        let columns =
            [Left("kernel"), Right("threads"), Left("op"), Right("runs"), Right("failures"), Right("timed")];
        let mut table = Table::new(&columns);
        for u in &known.usage {
            table.row([
                u.kernel.clone(),
                u.threads.to_string(),
                u.op.clone(),
                u.runs.to_string(),
                u.failures.to_string(),
                steersman_core::Seconds(u.total_s).to_string(),
            ]);
        }
        screen.print(&table.show(&screen.paint))?;
    }
    Ok(())
}

fn export(screen: &Screen, runtime: &Runtime, file: Option<&Path>) -> Outcome {
    let wisdom = runtime.wisdom();
    let text = wisdom.export().map_err(Failure::failed)?;
    // What is left then is nothing, and would replace an export that holds something.
    let damaged = || runtime.notices().into_iter().find(|n| n.kind == NoticeKind::Corrupt);
    if let Some(why) = wisdom.trouble().or_else(damaged) {
        let (from, cause) = (why.path.display(), why.cause());
        return Err(Failure::failed(format!("nothing was exported: {from} cannot be read: {cause}")));
    }
    let Some(file) = file.filter(|f| *f != Path::new("-")) else { return screen.line(&text) };
    replace(file, text.as_bytes())
        .map_err(|e| Failure::failed(format!("cannot write {}: {e}", file.display())))?;
    if screen.json {
        return screen.data(&json!({ "file": file, "bytes": text.len() }));
    }
    screen.line(&format!("exported to {}", file.display()))
}

fn report(screen: &Screen, runtime: &Runtime, result: Result<ImportReport, WisdomError>) -> Outcome {
    let report = result.map_err(|e| match e {
        WisdomError::NotAnExport(_) | WisdomError::Other { .. } => Failure::input(e),
        _ => Failure::failed(e),
    })?;
    if !report.dry_run {
        keep::kept(runtime, "what was taken in is")?;
    }
    if screen.json {
        return screen.data(&report);
    }
    let mut table = Table::new(&[Left("cell"), Right("samples before"), Right("after")]);
    for c in &report.cells {
        let before = c.before.as_ref().map_or("none".into(), |b| b.samples.to_string());
        table.row([c.cell.clone(), before, c.after.samples.to_string()]);
    }
    if !report.cells.is_empty() {
        screen.print(&table.show(&screen.paint))?;
    }
    for r in &report.refused {
        note("refused", &format!("{}: {}", r.row, r.reason));
    }
    screen.line(&report.to_string())
}

fn lift(screen: &Screen, runtime: &Runtime, kernel: Option<&str>) -> Outcome {
    let lifted = runtime.lift(kernel.unwrap_or("*"))?;
    if let (true, Some(kernel)) = (lifted.is_empty(), kernel) {
        return Err(Failure::input(format!(
            "no kernel named '{kernel}' is in quarantine; `steer wisdom show` lists those that are"
        )));
    }
    if screen.json {
        return screen.data(&json!({ "lifted": lifted }));
    }
    if lifted.is_empty() {
        return screen.line("nobody was in quarantine");
    }
    for q in &lifted {
        screen.line(&format!("lifted: {} for {} {}: {}", q.kernel, q.op, q.dtype, q.reason))?;
    }
    Ok(())
}

fn reset(screen: &Screen, runtime: &Runtime, yes: bool) -> Outcome {
    let path = runtime.wisdom().path().map_or("memory".to_string(), |p| p.display().to_string());
    if !yes && !agreed(&path)? {
        return Err(Failure::failed("nothing was forgotten"));
    }
    runtime.wisdom().reset(Scope::All).map_err(Failure::failed)?;
    let compiled = runtime.wisdom().path().and_then(Path::parent).filter(|folder| holds_pipelines(folder));
    if let Some(folder) = compiled {
        let files = folder.join("pipelines-*.bin");
        note(
            "note",
            &format!("what drivers compiled stays; remove {} to have it compiled anew", files.display()),
        );
    }
    if screen.json {
        screen.data(&json!({ "reset": path }))
    } else {
        screen.line(&format!("forgot all in {path}"))
    }
}

/// Whether programs compiled for devices are kept there: they are no wisdom, and drivers check them.
fn holds_pipelines(folder: &Path) -> bool {
    let ours = |name: &str| name.starts_with("pipelines-") && name.ends_with(".bin");
    std::fs::read_dir(folder)
        .is_ok_and(|files| files.flatten().any(|f| f.file_name().to_str().is_some_and(ours)))
}

fn agreed(path: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::input(
            "this forgets everything learned; say `steer wisdom reset --yes` if you mean it",
        ));
    }
    note("question", &format!("forget everything in {path}? Type yes to go on"));
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|e| Failure::failed(format!("cannot read the answer: {e}")))?;
    Ok(matches!(answer.trim(), "yes" | "y"))
}
