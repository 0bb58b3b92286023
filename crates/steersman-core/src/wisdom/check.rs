//! What a row from outside must be like to be believed.

use super::rows::*;
use crate::dtype::DType;
use crate::log::unix_time;
use crate::op::{FUSED, Op, OpClass};
use crate::workload::Layout;

/// A row from outside, to be looked at before it is believed.
pub(super) trait Checked {
    fn label(&self) -> String;
    fn check(&self) -> Result<(), &'static str>;
}

fn time_is_sane(time: f64) -> Result<(), &'static str> {
    // A clock that is a day ahead would otherwise win every later comparison.
    let latest = unix_time() + 86_400.0;
    if (0.0..=latest).contains(&time) { Ok(()) } else { Err("its time lies in the future or makes no sense") }
}

/// More than a cell gets in a thousand years; with more, nothing measured here would ever win against it.
const MOST_SAMPLES: u64 = 1 << 40;
/// What a sum of runs can reach without overflow.
const MOST_RUNS: u64 = 1 << 60;

/// Cells name the class with the op, `*` for all of it; ops of a user's own have any name.
fn op_is_known(text: &str) -> Result<(), &'static str> {
    let (class, op) = match text.split_once('/') {
        Some((class, op)) if is_word_of::<OpClass>(class) => (class, op),
        Some(_) => return Err("its op is of an unknown class"),
        None => ("", text),
    };
    match class == "custom" || op == "*" || op == FUSED || Op::from_name(op).is_some() {
        true => Ok(()),
        false => Err("its op is unknown"),
    }
}

fn dtype_is_known(text: &str) -> Result<(), &'static str> {
    text.parse::<DType>().map(|_| ()).map_err(|_| "its element type is unknown")
}

fn is_word_of<T: serde::de::DeserializeOwned>(text: &str) -> bool {
    serde_json::from_value::<T>(text.into()).is_ok()
}

impl Checked for DeviceRow {
    fn label(&self) -> String {
        format!("device {:016x}", self.device)
    }
    fn check(&self) -> Result<(), &'static str> {
        for json in [&self.identity, &self.machine] {
            serde_json::from_str::<serde::de::IgnoredAny>(json)
                .map_err(|_| "it holds text that is not JSON")?;
        }
        time_is_sane(self.updated)
    }
}

impl Checked for Cell {
    fn label(&self) -> String {
        let params = crate::kernel::Params { threads: self.threads, variant: self.variant };
        format!("{} r{} {params} {} {} {}", self.kernel, self.revision, self.op, self.dtype, self.layout)
    }
    fn check(&self) -> Result<(), &'static str> {
        if self.kernel.is_empty() {
            return Err("it names no kernel");
        }
        if self.payload.is_empty() || self.samples == 0 {
            return Err("there is nothing learned in it");
        }
        if self.samples > MOST_SAMPLES {
            return Err("nobody takes so many samples");
        }
        if self.threads == 0 {
            return Err("it is of no threads");
        }
        op_is_known(&self.op)?;
        dtype_is_known(&self.dtype)?;
        if !is_word_of::<Layout>(&self.layout) {
            return Err("its layout is unknown");
        }
        time_is_sane(self.updated)
    }
}

impl Checked for HistoryRow {
    fn label(&self) -> String {
        format!("history of {} by {}", self.workload, self.kernel)
    }
    fn check(&self) -> Result<(), &'static str> {
        if self.kernel.is_empty() || self.workload.is_empty() {
            return Err("it names no kernel or no workload");
        }
        if self.threads == 0 {
            return Err("it is of no threads");
        }
        if self.n > MOST_SAMPLES {
            return Err("nobody takes so many samples");
        }
        if self.n == 0 || !self.mean_ln.is_finite() || !self.m2_ln.is_finite() || self.m2_ln < 0.0 {
            return Err("its numbers make no sense");
        }
        time_is_sane(self.updated)
    }
}

impl Checked for QuarantineRow {
    fn label(&self) -> String {
        format!("quarantine of {} for {} {}", self.kernel, self.op, self.dtype)
    }
    fn check(&self) -> Result<(), &'static str> {
        if self.kernel.is_empty() {
            return Err("it names no kernel");
        }
        dtype_is_known(&self.dtype)?;
        time_is_sane(self.when)
    }
}

impl Checked for UsageRow {
    fn label(&self) -> String {
        format!("usage of {} for {}", self.kernel, self.op)
    }
    fn check(&self) -> Result<(), &'static str> {
        if self.failures > self.runs
            || self.runs > MOST_RUNS
            || !self.total_s.is_finite()
            || self.total_s < 0.0
        {
            return Err("its numbers make no sense");
        }
        time_is_sane(self.last_used)
    }
}

impl Checked for MetaRow {
    fn label(&self) -> String {
        format!("value {}", self.key)
    }
    fn check(&self) -> Result<(), &'static str> {
        if self.key.is_empty() || self.key == "schema" { Err("its name is not allowed") } else { Ok(()) }
    }
}
