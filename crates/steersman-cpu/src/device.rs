//! The CPU as a device: its identity, threads, memory and kernels, and how its rates are probed.

use crate::context::Context;
use crate::host::Host;
use crate::memory::MemoryPool;
use crate::probe::{self, Probes, Store};
use crate::threads::{Calm, Team};
use crate::{conv, fused, isa, map, matmul, moves, reduce};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steersman_core::cost::{Level, Machine};
use steersman_core::{Device, DeviceId, Identity, Kernel, Place};

/// The CPU.
#[derive(Clone)]
pub struct Cpu {
    /// What it is.
    pub host: Arc<Host>,
    /// Its threads.
    pub team: Arc<Team>,
    /// Memory for results.
    pub memory: MemoryPool,
    /// Whether its threads are undisturbed.
    pub calm: Arc<Calm>,
}

impl Cpu {
    /// This machine's CPU, with at most `threads` threads, no more than it has cores for this process, and this many idle
    /// bytes kept.
    pub fn new(threads: Option<usize>, idle_limit: usize) -> Cpu {
        let host = Host::detect();
        let threads = threads.unwrap_or(host.cores).min(host.cores).clamp(1, 1024);
        Cpu {
            team: Arc::new(Team::new(threads)),
            memory: MemoryPool::new(idle_limit),
            host: Arc::new(host),
            calm: Arc::default(),
        }
    }

    /// Bytes of memory that may be taken, as far as is known.
    pub fn room(&self) -> Option<usize> {
        let has = self.host.memory.map(|bytes| bytes as usize);
        has.into_iter().chain(self.memory.hard_limit()).min()
    }

    /// As a device of an engine, with nothing probed yet.
    pub fn device(&self) -> Device {
        Device { identity: self.identity(), place: Place::Host, machine: Machine::default() }
    }

    /// What it is, for wisdom to be valid by. How many threads there may be is no part of it: what one takes is the same, and
    /// kernels on more than there may be are not offered.
    pub fn identity(&self) -> Identity {
        let h = &self.host;
        let mut isa: Vec<String> = isa::Level::present().map(|l| l.name().to_string()).collect();
        if matmul::amx::Amx::available() {
            isa.push("amx-bf16".into());
        }
        isa.sort();
        Identity {
            family: "cpu".into(),
            part: h.brand.clone().unwrap_or_else(|| std::env::consts::ARCH.into()),
            driver: h.os.clone().unwrap_or_else(|| std::env::consts::OS.into()),
            memory: h.memory,
            parallelism: h.logical_cpus.unwrap_or(h.cores) as u32,
            isa,
        }
    }

    /// Every kernel of this CPU, plainest first in each class.
    pub fn kernels(&self, device: DeviceId, blas: Option<&Path>) -> Vec<Arc<dyn Kernel>> {
        let ctx = Context { device, team: self.team.clone(), host: self.host.clone() };
        let mut all = map::kernels(&ctx);
        all.extend(reduce::kernels(&ctx));
        all.extend(moves::kernels(&ctx));
        all.extend(fused::kernels(&ctx));
        all.extend(conv::kernels(&ctx));
        all.extend(matmul::candidates::kernels(&ctx, blas));
        all
    }

    /// Measures this CPU's rates; `None` once `progress` says that this is enough.
    pub fn probe(&self, budget: Duration, progress: &mut dyn FnMut(&str, f64) -> bool) -> Option<Machine> {
        let rates = machine(&self.host, &probe::run(&self.host, &self.team, budget, progress)?);
        let mut looks: Vec<f64> = (0..LOOKS).filter_map(|_| self.handoff(Duration::ZERO)).collect();
        looks.sort_by(f64::total_cmp);
        let met = looks.get(looks.len() / 2).copied();
        let threads = Some(self.team.max() as u32);
        Some(Machine { tick: Some(self.tick(Duration::ZERO)), met, threads, ..rates })
    }

    /// Seconds of a hand-off between its two threads, as it was not longer ago than this: [`Machine::met`].
    pub fn handoff(&self, old: Duration) -> Option<f64> {
        self.calm.handoff(&self.team, old)
    }

    /// The same in passing, by one short look at most.
    pub fn glance(&self, old: Duration) -> Option<f64> {
        self.calm.glance(&self.team, old)
    }

    /// Seconds of a tick of its clock, as it was not longer ago than this: [`Machine::tick`].
    pub fn tick(&self, old: Duration) -> f64 {
        self.calm.whole.tempo.tick(old)
    }
}

/// Looks at how far apart cores lie, of which the middle one is what times are learned for.
const LOOKS: usize = 31;

/// Probed rates in the model's terms.
fn machine(host: &Host, p: &Probes) -> Machine {
    let most = p.bandwidths.iter().map(|b| b.threads).max().unwrap_or(1);
    let level = |name: &str, store: Store, capacity: Option<usize>, private: bool| {
        // One entry for each thread count; those not probed take the nearest fewer.
        let by_threads = |pick: fn(&probe::Bandwidth) -> f64| -> Vec<f64> {
            let mut last = 0.0;
            (1..=most)
                .map(|t| {
                    last = p.bandwidth(store, t).map_or(last, pick);
                    last
                })
                .collect()
        };
        Level {
            name: name.into(),
            capacity: capacity.map(|c| c as u64),
            private,
            copy: by_threads(|b| b.copy),
            read: by_threads(|b| b.read),
            stream: by_threads(|b| b.triad),
        }
    };
    let last = host.caches.last().map(|c| c.level);
    let bytes = |l: u8| p.reach.filter(|_| Some(l) == last).or(host.cache(l).map(|c| c.bytes));
    Machine {
        levels: vec![
            level("L1", Store::Cache(1), bytes(1), true),
            level("L2", Store::Cache(2), bytes(2), true),
            level("L3", Store::Cache(3), bytes(3), p.apart == Some(true)),
            level("main", Store::Main, None, false),
        ],
        peak_f32: p.peaks.iter().map(|k| (k.isa.clone(), k.f32_flops)).collect(),
        handoff: p.handoff.as_ref().map(|h| h.hot),
        grouped: host.is_grouped(),
        ..Machine::default()
    }
}
