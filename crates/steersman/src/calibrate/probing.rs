//! The machine's limits and rates, before anything is measured.

use super::{Calibrate, Calibrator};
use crate::refresh::Anew;
use crate::remember;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;
use steersman_core::cost::{CellKey, Machine};
use steersman_core::{DType, Op, OpClass};
use steersman_cpu::rates;

impl Calibrator {
    /// Probes what is not known of the host yet, or all of it for a refresh.
    pub(super) fn probe(&self, how: &Calibrate, slice: Duration, tell: &mut dyn FnMut(String) -> bool) {
        let devices = self.engine.devices();
        let mut machine = devices.get(self.device.0 as usize).map(|d| d.machine.clone()).unwrap_or_default();
        if machine.levels.is_empty() || !machine.covers(self.cpu.team.max()) || how.refresh {
            let mut go_on = |_: &str, _| tell("probing the machine's limits".into());
            let Some(limits) = self.cpu.probe(slice, &mut go_on) else { return };
            // Rates are of single kernels: those that there is no time for stay as they were.
            machine = Machine { rates: machine.rates, ..limits };
            self.engine.set_machine(self.device, machine.clone());
            self.keeper.probed.store(true, Ordering::Release);
        }
        let lacking = |m: &Machine, op: Op, dtype: DType| rates::unknown(&self.engine, m, op, dtype);
        let mut due = rates::all(how.quick);
        let lacked: Vec<((Op, DType), Vec<u16>)> =
            due.iter().map(|&(op, dtype)| ((op, dtype), lacking(&machine, op, dtype))).collect();
        if !how.refresh {
            due = lacked.iter().filter(|(_, kernels)| !kernels.is_empty()).map(|(pair, _)| *pair).collect();
        }
        if due.is_empty() {
            return;
        }
        let mut go_on = || tell("timing each op in the nearest cache".into());
        rates::probe(&self.cpu, &self.engine, &mut machine, due, &mut go_on);
        let mut found = HashSet::new();
        for ((op, dtype), kernels) in lacked {
            let still = lacking(&machine, op, dtype);
            let new = kernels.into_iter().filter(|k| !still.contains(k));
            found.extend(new.map(|kernel| (kernel, op.name(), dtype)));
        }
        self.engine.set_machine(self.device, machine);
        let cells = self.forget(&found);
        self.keeper.outdate(remember::outdated(&self.engine, &Anew { cells, ..Anew::default() }));
        self.keeper.probed.store(true, Ordering::Release);
    }

    /// Forgets what was learned as if rates were others: corrections of a rate that was only supposed would be taken for
    /// those of the one that was found, and be wrong for every size.
    fn forget(&self, found: &HashSet<(u16, &'static str, DType)>) -> Vec<CellKey> {
        let pools: HashSet<(u16, DType)> = found.iter().map(|(kernel, _, dtype)| (*kernel, *dtype)).collect();
        let dtypes: HashSet<DType> = pools.iter().map(|(_, dtype)| *dtype).collect();
        let here =
            |kernel: u16| self.engine.registry().get(kernel).is_some_and(|k| k.device() == self.device);
        self.engine.with_model_mut(|m| {
            m.forget(|key| match key.op {
                // Groups are made of the rates of their steps.
                _ if key.class == OpClass::Fused => dtypes.contains(&key.dtype) && here(key.variant.kernel),
                Some(op) => found.contains(&(key.variant.kernel, op, key.dtype)),
                None => pools.contains(&(key.variant.kernel, key.dtype)),
            })
        })
    }
}
