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
const SUPPOSED: Link = Link { latency: Seconds(20e-6), bandwidth: 4e9, overlap: true };
/// Samples that are kept; older ones go.
const KEPT: usize = 64;
/// What the prior counts in samples, at a small size and at a large one, so that transfers of one size alone
/// do not settle both latency and bandwidth.
const SUPPOSED_WEIGHT: f64 = 0.02;
const SUPPOSED_AT: [f64; 2] = [4096.0, 16_777_216.0];
/// A transfer so many times off what is known is taken for that much: one hiccup is not news.
const FAR: f64 = 4.0;
/// Samples before that is applied.
const KNOWN: u64 = 4;

/// One direction: time = latency + bytes ÷ bandwidth, fitted to the last transfers.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Lane {
    latency: f64,
    per_byte: f64,
    /// Transfers ever seen.
    samples: u64,
    /// Bytes and seconds of the last ones.
    last: VecDeque<(f64, f64)>,
}

impl Default for Lane {
    fn default() -> Lane {
        Lane {
            latency: SUPPOSED.latency.0,
            per_byte: 1.0 / SUPPOSED.bandwidth,
            samples: 0,
            last: VecDeque::new(),
        }
    }
}

impl Lane {
    /// Takes in a transfer. What cannot be a time is ignored.
    pub fn add(&mut self, bytes: Bytes, seconds: Seconds) {
        let (bytes, mut seconds) = (bytes.0 as f64, seconds.0);
        if !(seconds > 0.0 && seconds.is_finite()) {
            return;
        }
        if self.samples >= KNOWN {
            let expected = self.latency + bytes * self.per_byte;
            seconds = seconds.clamp(expected / FAR, expected * FAR);
        }
        self.samples += 1;
        self.last.push_back((bytes, seconds));
        if self.last.len() > KEPT {
            self.last.pop_front();
        }
        self.fit();
    }

    /// Least squares of the relative error, which is what transfers of a kilobyte and of a gigabyte share.
    fn fit(&mut self) {
        let supposed = SUPPOSED_AT.map(|b| (b, SUPPOSED.latency.0 + b / SUPPOSED.bandwidth, SUPPOSED_WEIGHT));
        let seen = self.last.iter().map(|&(b, t)| (b, t, 1.0));
        let (mut ll, mut lb, mut bb, mut l, mut b) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (bytes, seconds, weight) in seen.chain(supposed) {
            let (x, y) = (1.0 / seconds, bytes / seconds);
            ll += weight * x * x;
            lb += weight * x * y;
            bb += weight * y * y;
            l += weight * x;
            b += weight * y;
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
        Link { latency: Seconds(self.latency), bandwidth: 1.0 / self.per_byte, overlap: SUPPOSED.overlap }
    }

    /// Transfers behind it.
    pub fn samples(&self) -> u64 {
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
