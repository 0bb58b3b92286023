//! The state of the machine: load, memory, heat, power. What cannot be read is absent.
//!
//! For measuring code and for people: it opens files, so it never belongs on the hot path.
//! ```
//! use steersman_core::sense::Senses;
//! let senses = Senses::new();
//! let state = senses.read();
//! if let Some(busy) = state.cpu_busy_other {
//!     println!("other processes use {:.0}% of the machine", busy * 100.0);
//! }
//! ```

mod cpu;
mod files;
mod power;

use crate::units::Bytes;
use cpu::CpuTimes;
use files::Root;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A temperature sensor's reading.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Temperature {
    /// The sensor's own name.
    pub sensor: String,
    /// Degrees Celsius.
    pub celsius: f64,
}

/// A battery.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Battery {
    /// How full, 0 to 1.
    pub charge: f64,
    /// Whether the machine runs on it now.
    pub discharging: bool,
}

/// The machine's state at one moment.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct State {
    /// Runnable tasks on average over the last minute.
    pub load1: Option<f64>,
    /// Share of all CPU time that other processes used since the last reading; `None` on the first.
    pub cpu_busy_other: Option<f64>,
    /// Bytes that could be allocated without swapping, within this process's control group.
    pub mem_available: Option<Bytes>,
    /// Every sensor that answered; empty if there is none.
    pub temperatures: Vec<Temperature>,
    /// Whether a core slowed down for heat since the last reading; `None` on the first.
    pub throttled: Option<bool>,
    /// How the first core's clock is governed.
    pub governor: Option<String>,
    /// The battery, if the machine has one.
    pub battery: Option<Battery>,
    /// Memory nodes.
    pub numa_nodes: Option<usize>,
}

/// Reads the machine's state, remembering what differences need.
#[derive(Debug)]
pub struct Senses {
    root: Root,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    cpu: Option<CpuTimes>,
    busy: Option<f64>,
    throttles: Option<u64>,
}

impl Default for Senses {
    fn default() -> Senses {
        Senses::new()
    }
}

impl Senses {
    /// Those of this machine.
    pub fn new() -> Senses {
        Senses::under(PathBuf::from("/"))
    }

    /// Those found in a copy of `/proc` and `/sys` under another folder.
    fn under(root: PathBuf) -> Senses {
        Senses { root: Root(root), last: Mutex::default() }
    }

    /// Everything there is to read.
    pub fn read(&self) -> State {
        State {
            load1: self.root.text("proc/loadavg").and_then(|t| t.split(' ').next()?.parse().ok()),
            cpu_busy_other: self.busy_other(),
            mem_available: self.mem_available(),
            temperatures: power::temperatures(&self.root),
            throttled: self.throttled(),
            governor: self.root.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            battery: power::battery(&self.root),
            numa_nodes: self.root.text("sys/devices/system/node/online").and_then(|t| files::count_list(&t)),
        }
    }

    /// Only the share of CPU time that other processes used since the last reading: two small files' worth of
    /// work, for asking beside every measurement. Readings too close together repeat the last answer.
    pub fn busy_other(&self) -> Option<f64> {
        let now = CpuTimes::read(&self.root)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = last.cpu else {
            last.cpu = Some(now);
            return None;
        };
        if let Some(busy) = now.busy_other_since(&before) {
            last.cpu = Some(now);
            last.busy = Some(busy);
        }
        last.busy
    }

    fn throttled(&self) -> Option<bool> {
        let now = power::throttle_events(&self.root)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.throttles.replace(now).map(|before| now > before)
    }

    fn mem_available(&self) -> Option<Bytes> {
        let info = self.root.text("proc/meminfo")?;
        let line = info.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
        let machine = line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)?;
        let group = || {
            let limit: u64 = self.root.number("sys/fs/cgroup/memory.max")?;
            let used: u64 = self.root.number("sys/fs/cgroup/memory.current")?;
            Some(limit.saturating_sub(used))
        };
        Some(Bytes(group().map_or(machine, |g| g.min(machine))))
    }
}

#[cfg(test)]
mod tests;
