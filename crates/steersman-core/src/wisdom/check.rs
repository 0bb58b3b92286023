//! What a row from outside must be like to be believed.

use super::rows::*;
use crate::log::unix_time;

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
        if self.kernel.is_empty() { Err("it names no kernel") } else { time_is_sane(self.when) }
    }
}

impl Checked for UsageRow {
    fn label(&self) -> String {
        format!("usage of {} for {}", self.kernel, self.op)
    }
    fn check(&self) -> Result<(), &'static str> {
        if self.failures > self.runs || !self.total_s.is_finite() || self.total_s < 0.0 {
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
