//! What the way between the host and one device costs, learned in each direction from bytes and seconds.
//!
//! ```
//! use steersman_core::place::Lane;
//! use steersman_core::{Bytes, Seconds};
//!
//! let mut lane = Lane::default();
//! assert!(lane.is_supposed());
//! for kib in [4, 64, 1024, 16_384] {
//!     let bytes = kib * 1024;
//!     lane.add(Bytes(bytes), Seconds(8e-6 + bytes as f64 / 12e9));
//! }
//! let link = lane.link();
//! assert!((link.bandwidth / 12e9 - 1.0).abs() < 0.05);
//! assert!((link.latency.0 / 8e-6 - 1.0).abs() < 0.1);
//! ```

use super::Link;
use crate::{Bytes, Seconds};
use std::collections::VecDeque;

/// Before anything was measured: what an ordinary bus does with small pieces of pageable memory. Where it
/// matters, the first transfers override it.
const SUPPOSED: Link = Link { latency: Seconds(20e-6), bandwidth: 4e9, beyond: 4e9, overlap: true };
/// Samples that are kept; older ones go.
const KEPT: usize = 64;
/// Latency and bandwidth are told apart when the largest transfer is so many times the least, or this many bytes.
const APART: f64 = 4.0;
const SMALL: f64 = 4096.0;

/// Transfers up to this size tell how quick the near bytes are, if there is one of at least an eighth of it.
const NEAR: f64 = Link::NEAR as f64;

/// One direction: time = latency + bytes ÷ bandwidth, fitted to the last transfers; and another bandwidth for what of a
/// transfer is beyond [`Link::NEAR`]. (Mapped memory of a software adapter: 1 MiB at 42 GB/s, 8 at 20, 64 at 13.)
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Lane {
    latency: f64,
    per_byte: f64,
    /// Of bytes beyond; `None` as long as none were seen.
    #[serde(default)]
    beyond: Option<f64>,
    /// Transfers ever seen.
    samples: u32,
    /// Bytes and seconds of the last ones.
    last: VecDeque<(f64, f64)>,
}

impl Default for Lane {
    fn default() -> Lane {
        Lane {
            latency: SUPPOSED.latency.0,
            per_byte: 1.0 / SUPPOSED.bandwidth,
            beyond: None,
            samples: 0,
            last: VecDeque::new(),
        }
    }
}

impl Lane {
    /// Takes in a transfer. What cannot be a time is ignored.
    pub fn add(&mut self, bytes: Bytes, seconds: Seconds) {
        let (bytes, seconds) = (bytes.0 as f64, seconds.0);
        if !(seconds > 0.0 && seconds.is_finite()) {
            return;
        }
        self.samples = self.samples.saturating_add(1);
        self.last.push_back((bytes, seconds));
        if self.last.len() > KEPT {
            self.last.pop_front();
        }
        self.fit();
    }

    fn fit(&mut self) {
        let near = |s: &&(f64, f64)| s.0 <= NEAR;
        let apart = self.last.iter().filter(near).any(|s| s.0 >= NEAR / 8.0);
        // Without any to tell the near bytes by, all tell of all.
        let of_line: Vec<(f64, f64)> = self.last.iter().filter(|s| near(s) || !apart).copied().collect();
        self.fit_line(&of_line);
        // The rest of what larger ones took, by the least relative error.
        let (mut tb, mut bb) = (0.0, 0.0);
        for (bytes, seconds) in self.last.iter().filter(|s| apart && s.0 > NEAR) {
            let y = (bytes - NEAR) / seconds;
            tb += y * (seconds - self.latency - NEAR * self.per_byte) / seconds;
            bb += y * y;
        }
        if bb > 0.0 {
            self.beyond = Some((tb / bb).max(self.per_byte / 8.0));
        }
    }

    /// Least squares of the relative error, which is what transfers of a kilobyte and of a gigabyte share. One that
    /// took far too long weighs next to nothing: its error is never more than the whole of it.
    fn fit_line(&mut self, of: &[(f64, f64)]) {
        let sizes = of.iter().map(|s| s.0);
        let (least, most) = sizes.fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), n| (a.min(n), b.max(n)));
        if most < APART * least.max(SMALL) {
            // Transfers of about one size tell how quick it is, not what of that is latency.
            let ratio = |&(b, t): &(f64, f64)| (t / SUPPOSED.time(Bytes(b as u64)).0).ln();
            let scale = (of.iter().map(ratio).sum::<f64>() / of.len() as f64).exp();
            (self.latency, self.per_byte) = (SUPPOSED.latency.0 * scale, scale / SUPPOSED.bandwidth);
            return;
        }
        let (mut ll, mut lb, mut bb, mut l, mut b) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (bytes, seconds) in of {
            let (x, y) = (1.0 / seconds, bytes / seconds);
            ll += x * x;
            lb += x * y;
            bb += y * y;
            l += x;
            b += y;
        }
        let determinant = ll * bb - lb * lb;
        let (latency, per_byte) = ((l * bb - b * lb) / determinant, (b * ll - l * lb) / determinant);
        // Neither is ever negative; the other then explains all there is.
        (self.latency, self.per_byte) = match () {
            _ if latency.is_nan() || per_byte.is_nan() => return,
            _ if latency < 0.0 => (0.0, b / bb),
            _ if per_byte <= 0.0 => (l / ll, 1e-15),
            _ => (latency, per_byte),
        };
    }

    /// As it stands.
    pub fn link(&self) -> Link {
        let beyond = self.beyond.unwrap_or(self.per_byte);
        let (bandwidth, beyond) = (1.0 / self.per_byte, 1.0 / beyond);
        Link { latency: Seconds(self.latency), bandwidth, beyond, overlap: SUPPOSED.overlap }
    }

    /// Transfers behind it.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// Whether nothing was measured yet.
    pub fn is_supposed(&self) -> bool {
        self.samples == 0
    }
}

/// Both directions between the host and one device.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Wire {
    /// From the host.
    pub out: Lane,
    /// To the host.
    pub home: Lane,
    /// Seconds that it takes less if bytes come home right after the work that wrote them: they wait for it, and nobody
    /// else has to. None where that was not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<f64>,
    /// What it takes to have the host work on operands where they lie, however large these are: of no bytes. None where the
    /// device lends nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lent: Option<Lane>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hiccup_changes_little_and_a_lasting_change_is_followed() {
        let mut lane = Lane::default();
        let time = |bytes: f64, bandwidth: f64| Seconds(10e-6 + bytes / bandwidth);
        for i in 0..32 {
            let bytes = 4096.0 * f64::from(1 << (i % 12));
            lane.add(Bytes(bytes as u64), time(bytes, 10e9));
        }
        lane.add(Bytes(1 << 20), Seconds(3.0));
        assert!((lane.link().bandwidth / 10e9 - 1.0).abs() < 0.2, "{:?}", lane.link());
        for i in 0..KEPT {
            let bytes = 4096.0 * f64::from(1 << (i % 12));
            lane.add(Bytes(bytes as u64), time(bytes, 5e9));
        }
        assert!((lane.link().bandwidth / 5e9 - 1.0).abs() < 0.05, "{:?}", lane.link());
    }

    #[test]
    fn what_is_beyond_the_caches_has_a_rate_of_its_own_and_keeps_it() {
        let time = |bytes: f64| Seconds(1e-6 + bytes.min(NEAR) / 40e9 + (bytes - NEAR).max(0.0) / 10e9);
        let mut lane = Lane::default();
        let close = |lane: &Lane, bytes: f64| {
            let ratio = lane.link().time(Bytes(bytes as u64)).0 / time(bytes).0;
            assert!((ratio - 1.0).abs() < 0.02, "{bytes} bytes: {ratio}");
        };
        for i in 0..12 {
            let bytes = 65536.0 * f64::from(1 << i);
            lane.add(Bytes(bytes as u64), time(bytes));
        }
        [65536.0, NEAR, 4.0 * NEAR, 100.0 * NEAR].iter().for_each(|b| close(&lane, *b));
        for i in 0..2 * KEPT {
            let bytes = 65536.0 * f64::from(1 << (i % 8));
            lane.add(Bytes(bytes as u64), time(bytes));
        }
        close(&lane, 4.0 * NEAR);
        let mut large_only = Lane::default();
        (1..9).for_each(|i| large_only.add(Bytes(i << 27), Seconds(1e-3 + (i << 27) as f64 / 10e9)));
        let at = large_only.link().time(Bytes(1 << 29)).0;
        assert!((at / (1e-3 + f64::from(1 << 29) / 10e9) - 1.0).abs() < 0.02, "{at}");
    }

    #[test]
    fn transfers_of_one_size_are_foretold_well_and_others_are_sound() {
        let mut lane = Lane::default();
        for _ in 0..20 {
            lane.add(Bytes(1 << 20), Seconds(100e-6));
        }
        let at = |bytes: u64| lane.link().time(Bytes(bytes)).0;
        assert!((at(1 << 20) / 100e-6 - 1.0).abs() < 0.02);
        assert!(at(0) >= 0.0 && at(1 << 30) > at(1 << 20));
    }

    #[test]
    fn nonsense_is_not_learned() {
        let mut lane = Lane::default();
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            lane.add(Bytes(1), Seconds(seconds));
        }
        assert!(lane.is_supposed());
        assert_eq!(lane, Lane::default());
    }
}
