//! Rates measured on one device, from which prior costs are made. What was not probed is absent.

use crate::dtype::DType;
use crate::op::Op;
use crate::tune::Kept;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;

/// A memory level with its size and bandwidth.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Level {
    /// `L1`, `L2`, `L3`, `main`.
    pub name: String,
    /// Bytes it holds; `None` for main memory.
    pub capacity: Option<u64>,
    /// Whether each core has its own.
    pub private: bool,
    /// Bytes per second by number of threads (index 0: one thread): reading and writing as a copy does.
    pub copy: Vec<f64>,
    /// The same when only reading.
    pub read: Vec<f64>,
    /// The same with streaming stores, where the machine has them.
    pub stream: Vec<f64>,
}

/// Measured values by name.
pub type Rates = HashMap<String, f64, BuildHasherDefault<super::mix::Mix>>;

/// What is known of a device's speed.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Machine {
    /// Memory levels, nearest first; empty if nothing was probed.
    pub levels: Vec<Level>,
    /// Peak operations per second of one core, by instruction set, for f32 (f64 is half).
    pub peak_f32: BTreeMap<String, f64>,
    /// Threads there were when it was probed: of more nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Seconds to hand work to another thread and wait for it, hot.
    pub handoff: Option<f64>,
    /// What it is like undisturbed.
    #[serde(default)]
    pub rest: Rest,
    /// Seconds that a fixed number of cycles took when all this was measured, on a device whose clock changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<f64>,
    /// How many times longer than that they take now, if it was looked at.
    #[serde(skip)]
    pub pace: Option<f64>,
    /// Seconds of a hand-off, as [`Rest::handoff`] counts them, as if which there always were all times of several threads are
    /// learned: cores of a virtual machine lie near each other or far. `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met: Option<f64>,
    /// Seconds of a hand-off now, if it was looked at.
    #[serde(skip)]
    pub meets: Option<f64>,
    /// Whether its last cache and its way to main memory are those of a group of cores, so that two cores far apart have two of each
    /// and two near ones share them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grouped: bool,
    /// Seconds per element of an op in a kernel with operands in the nearest cache, by `kernel|op|dtype`; of other parts of
    /// its work with their name behind.
    #[serde(default)]
    pub rates: Rates,
    /// Seconds by which a kernel's first run is longer, on average: compiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<f64>,
    /// What searches found best, by kernel.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub winners: BTreeMap<String, Kept>,
}

impl Machine {
    /// Whether what was probed says something of so many threads.
    pub fn covers(&self, threads: usize) -> bool {
        self.threads.is_none_or(|known| known as usize >= threads)
    }
}

/// A machine at rest: two things that tell a disturbed spell.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Rest {
    /// Seconds that a hand-off to another thread usually takes; of many cores, took at its quickest.
    pub handoff: Option<f64>,
    /// The quickest ever, seen twice, of a short run that fills a core, in ticks of its clock ([`Machine::tick`]). (Under its
    /// former name it was seen once, and mostly too quick.)
    #[serde(default, rename = "pulse_seen_twice")]
    pub pulse: Option<f64>,
}

/// Assumed where nothing was probed: an ordinary core of 2020. Only a starting point for a prior that
/// the first samples override; never shown as a measurement.
const ASSUMED_BANDWIDTH: [f64; 4] = [150e9, 60e9, 25e9, 10e9];
const ASSUMED_CAPACITY: [u64; 3] = [32 << 10, 1 << 20, 16 << 20];
const ASSUMED_HANDOFF: f64 = 2e-6;

/// By how much longer a short run on two threads takes than it took, for each second that a hand-off does. (On a Zen 5 with hand-offs
/// of 0.09 and 0.39 µs: `neg` of 23,108 f64 1.14 and 1.97 µs, `cos` of 3,423 f64 1.01 and 1.87, `tanh` of 8,084 f32 0.9 and 1.7, `min` of
/// 12,029 f64 1.1 and 1.8.)
const TRANSFERS: f64 = 2.7;
/// How many times longer a hand-off takes at most because of where cores lie: beyond that a thread was kept from running.
const FARTHEST: f64 = 5.0;

/// Seconds of a hand-off from which on two cores are of different groups. (On a Zen 5 80 to 130 ns in one and 210 to 400 in two, on a Zen 4
/// 100 and 350.)
const APART: f64 = 165e-9;
/// How many times what one thread gets of main memory two get that share the way to it, and two that do not. (By eight probes of near
/// cores of a Zen 5 1.00 to 1.07 when copying and 1.1 to 1.2 past the caches, by four of far ones 1.85 to 1.98 in both.)
const SHARED_WAY: f64 = 1.05;
const SHARED_WAY_STREAMED: f64 = 1.15;
const OWN_WAYS: f64 = 1.93;

/// Of what multiple of its size on the last cache holds less of a footprint, and from which on nothing. (Sums of two arrays on a
/// Zen 5 take 0.14, 0.17, 0.27, 0.33 and 0.4 ns for 18, 24, 38, 54 and 66 MB on one thread, whose cache holds 32 MiB.)
const L3_FADES: (f64, f64) = (0.6, 2.2);

/// How a kernel moves bytes, for the bandwidth that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Reads and writes through the cache.
    Copy,
    /// Only reads.
    Read,
    /// Reads, and writes past the cache.
    Stream,
}

impl Machine {
    /// Number of memory levels the priors distinguish.
    pub const LEVELS: usize = 4;

    /// Bytes held by level `i` (0 to 2).
    #[inline]
    pub fn capacity(&self, i: usize) -> f64 {
        self.levels.get(i).and_then(|l| l.capacity).unwrap_or(ASSUMED_CAPACITY[i.min(2)]) as f64
    }

    /// Bytes per second at level `i` with this many threads together.
    #[inline]
    pub fn bandwidth(&self, i: usize, traffic: Traffic, threads: usize) -> f64 {
        let found = self.levels.get(i).and_then(|l| {
            let list = match traffic {
                Traffic::Copy => &l.copy,
                Traffic::Read => &l.read,
                Traffic::Stream => &l.stream,
            };
            let probed = list.get(threads.saturating_sub(1)).or(list.last()).copied();
            match self.is_apart().filter(|_| i + 1 == Machine::LEVELS && threads == 2) {
                Some(apart) => {
                    let gain = match traffic {
                        _ if apart => OWN_WAYS,
                        Traffic::Stream => SHARED_WAY_STREAMED,
                        _ => SHARED_WAY,
                    };
                    list.first().map(|one| one * gain)
                }
                None => probed,
            }
        });
        found.filter(|b| *b > 0.0).unwrap_or_else(|| {
            // Private caches scale with threads, shared levels hardly.
            let scale = if i < 2 { threads as f64 } else { (threads as f64).sqrt() };
            ASSUMED_BANDWIDTH[i.min(3)] * scale
        })
    }

    /// How a footprint spreads over the levels, each with the bandwidth that applies: infinite at levels it
    /// does not touch, which are most.
    #[inline]
    pub fn streams(&self, footprint: f64, traffic: Traffic, threads: usize) -> [(f64, f64); Machine::LEVELS] {
        let spread = self.remembered_spread(footprint, threads);
        std::array::from_fn(|i| {
            let untouched = spread[i] == 0.0;
            (spread[i], if untouched { f64::INFINITY } else { self.bandwidth(i, traffic, threads) })
        })
    }

    /// Operations per second of one core with this instruction set on elements of this many bytes; `assumed` for
    /// f32 where nothing was probed.
    #[inline]
    pub fn peak(&self, isa: &str, element: usize, assumed: f64) -> f64 {
        let f32_rate = self.peak_f32.get(isa).copied().unwrap_or(assumed);
        f32_rate * 4.0 / element.max(1) as f64
    }

    /// Seconds to hand work to `threads` threads (0 for one).
    #[inline]
    pub fn handoff(&self, threads: usize) -> f64 {
        if threads <= 1 {
            0.0
        } else {
            self.handoff.unwrap_or(ASSUMED_HANDOFF) * (1.0 + (threads as f64).log2()) / 2.0
        }
    }

    /// Seconds that a run on so many threads takes longer than was learned (less, if negative) because of where cores lie now, or
    /// lay when this machine was last seen at rest.
    #[inline]
    pub fn lag(&self, threads: usize) -> f64 {
        match (self.met, self.meets.or(self.rest.handoff)) {
            (Some(then), Some(now)) if threads > 1 => TRANSFERS * (now.min(FARTHEST * then) - then),
            _ => 0.0,
        }
    }

    /// Measured seconds per element of `op` in `kernel`, if it was probed.
    pub fn rate(&self, kernel: &str, op: Op, dtype: DType) -> Option<f64> {
        self.part(kernel, op, dtype, "")
    }

    /// The same of another part of its work, such as `|row`: seconds per row.
    pub fn part(&self, kernel: &str, op: Op, dtype: DType, part: &str) -> Option<f64> {
        // Built on the stack: this sits on the way of every estimate.
        let mut key = arrayish::Key::new();
        key.push(kernel).push("|").push(op.name()).push("|").push(dtype.name()).push(part);
        self.rates.get(key.as_str()).copied()
    }

    /// The key of [`Machine::rate`].
    pub fn rate_key(kernel: &str, op: Op, dtype: DType) -> String {
        format!("{kernel}|{}|{dtype}", op.name())
    }

    /// The same spread is asked for by every candidate of a workload, and takes logarithms: the last ones are kept.
    fn remembered_spread(&self, footprint: f64, threads: usize) -> [f64; Machine::LEVELS] {
        type Known = ([f64; 6], [f64; Machine::LEVELS]);
        thread_local! {
            static LAST: [Cell<Known>; 2] = const { [const { Cell::new(([f64::NAN; 6], [0.0; 4])) }; 2] };
        }
        let own = (0..3).fold(0u8, |own, i| 2 * own + u8::from(self.has_its_own(i)));
        let own = f64::from(own);
        let asked = [footprint, threads as f64, self.capacity(0), self.capacity(1), self.capacity(2), own];
        LAST.with(|last| {
            let cell = &last[usize::from(threads > 1)];
            let (known, spread) = cell.get();
            if known == asked {
                return spread;
            }
            let spread = self.spread(footprint, threads);
            cell.set((asked, spread));
            spread
        })
    }

    /// Whether its two cores are of different groups now, or were when it was last seen at rest; `None` where that is not known, or
    /// makes no difference.
    #[inline]
    fn is_apart(&self) -> Option<bool> {
        let known = self.grouped && self.met.is_some();
        self.meets.or(self.rest.handoff).filter(|_| known).map(|now| now > APART)
    }

    /// Whether each core has its own cache of level `i`.
    #[inline]
    fn has_its_own(&self, i: usize) -> bool {
        if let Some(apart) = self.is_apart().filter(|_| i == 2) {
            return apart;
        }
        self.levels.get(i).map_or(i < 2, |l| l.private)
    }

    /// How a footprint spreads over the levels: weights that sum to 1, moving linearly in log size from
    /// one level to the next, since real caches fade rather than end.
    #[inline]
    pub fn spread(&self, footprint: f64, threads: usize) -> [f64; Machine::LEVELS] {
        let of = |i: usize| {
            let bytes = if self.has_its_own(i) { footprint / threads.max(1) as f64 } else { footprint };
            bytes / self.capacity(i)
        };
        let knots = [(of(0), 0.7f64, 3.0f64), (of(1), 0.6, 2.5), (of(2), L3_FADES.0, L3_FADES.1)];
        let mut left = 1.0;
        let mut out = [0.0; Machine::LEVELS];
        for (i, (ratio, from, to)) in knots.into_iter().enumerate() {
            // Logs only where a footprint straddles two levels: this is on the way of every estimate.
            let beyond = match ratio {
                r if r > from && r < to => (r / from).ln() / (to / from).ln(),
                r => f64::from(r >= to),
            };
            out[i] = left * (1.0 - beyond);
            left *= beyond;
        }
        out[Machine::LEVELS - 1] = left;
        out
    }
}

mod arrayish {
    /// A short string on the stack; longer keys are cut, which only misses the table.
    pub struct Key {
        bytes: [u8; 96],
        len: usize,
    }
    impl Key {
        pub fn new() -> Key {
            Key { bytes: [0; 96], len: 0 }
        }
        pub fn push(&mut self, s: &str) -> &mut Key {
            let n = s.len().min(self.bytes.len() - self.len);
            self.bytes[self.len..self.len + n].copy_from_slice(&s.as_bytes()[..n]);
            self.len += n;
            self
        }
        pub fn as_str(&self) -> &str {
            std::str::from_utf8(&self.bytes[..self.len]).unwrap_or("")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footprint_spreads_over_levels_with_weights_that_sum_to_one() {
        let m = Machine::default();
        for exp in 0..40 {
            let s = m.spread((1u64 << exp) as f64, 1);
            assert!((s.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        assert_eq!(m.spread(1000.0, 1)[0], 1.0);
        assert_eq!(m.spread(1e12, 1)[3], 1.0);
    }

    #[test]
    fn several_threads_take_longer_when_their_cores_lie_farther_apart_than_they_did() {
        let machine = |met, meets, usual| Machine {
            met,
            meets,
            rest: Rest { handoff: usual, pulse: None },
            ..Machine::default()
        };
        let near = Some(0.2e-6);
        assert_eq!(machine(near, Some(0.4e-6), near).lag(2), TRANSFERS * (0.4e-6 - 0.2e-6));
        assert_eq!(machine(near, None, Some(0.4e-6)).lag(2), TRANSFERS * (0.4e-6 - 0.2e-6), "as at rest");
        assert!(machine(Some(0.4e-6), near, None).lag(2) < 0.0, "nearer");
        assert_eq!(machine(near, Some(0.4e-6), None).lag(1), 0.0, "one thread meets nobody");
        assert_eq!([machine(None, near, near).lag(2), machine(near, None, None).lag(2)], [0.0; 2]);
    }

    #[test]
    fn cores_of_two_groups_have_two_last_caches_and_two_ways_to_memory() {
        let level = |name: &str, capacity, copy: &[f64]| Level {
            name: name.into(),
            capacity,
            private: false,
            copy: copy.to_vec(),
            read: vec![],
            stream: vec![],
        };
        let levels = vec![
            level("L1", Some(48 << 10), &[]),
            level("L2", Some(1 << 20), &[]),
            level("L3", Some(32 << 20), &[]),
            level("main", None, &[50e9, 70e9]),
        ];
        let machine = |grouped, met, meets| Machine {
            levels: levels.clone(),
            grouped,
            met,
            meets,
            ..Machine::default()
        };
        let (near, far) = (Some(0.1e-6), Some(0.3e-6));
        let seen = |m: Machine| (m.spread(50e6, 2)[3] > 0.5, m.bandwidth(3, Traffic::Copy, 2) / 50e9);
        for met in [near, far] {
            assert_eq!(seen(machine(true, met, near)), (true, SHARED_WAY));
            assert_eq!(seen(machine(true, met, far)), (false, OWN_WAYS));
        }
        for unknown in [machine(false, near, far), machine(true, None, far), machine(true, near, None)] {
            assert_eq!(seen(unknown), (true, 1.4), "as probed");
        }
        assert_eq!(machine(true, near, far).bandwidth(3, Traffic::Copy, 1), 50e9, "one thread has one way");
    }

    #[test]
    fn machines_that_differ_in_whose_their_caches_are_are_not_taken_for_each_other() {
        let machine = |own: [bool; 3]| {
            let level = |(i, private): (usize, bool)| Level {
                name: format!("L{}", i + 1),
                capacity: Some([32 << 10, 1 << 20, 32 << 20][i]),
                private,
                copy: vec![],
                read: vec![],
                stream: vec![],
            };
            Machine { levels: own.into_iter().enumerate().map(level).collect(), ..Machine::default() }
        };
        for footprint in [60e3, 2e6, 60e6] {
            for bits in 0..8 {
                let m = machine([bits & 1 > 0, bits & 2 > 0, bits & 4 > 0]);
                let shares = m.streams(footprint, Traffic::Copy, 2).map(|(share, _)| share);
                assert_eq!(shares, m.spread(footprint, 2), "{footprint} {bits:03b}");
            }
        }
    }

    #[test]
    fn what_one_thread_has_in_a_cache_of_its_own_two_have_twice_of() {
        let level = |name: &str, capacity, private| Level {
            name: name.into(),
            capacity: Some(capacity),
            private,
            copy: vec![],
            read: vec![],
            stream: vec![],
        };
        let machine = |apart| Machine {
            levels: vec![
                level("L1", 32 << 10, true),
                level("L2", 1 << 20, true),
                level("L3", 32 << 20, apart),
            ],
            ..Machine::default()
        };
        let main = |m: &Machine, threads| m.spread(60e6, threads)[3];
        let (shared, apart) = (machine(false), machine(true));
        assert_eq!(main(&shared, 1), main(&apart, 1));
        assert_eq!(main(&shared, 2), main(&shared, 1));
        assert!(main(&apart, 2) < 0.5 * main(&apart, 1), "{}", main(&apart, 2));
    }
}
