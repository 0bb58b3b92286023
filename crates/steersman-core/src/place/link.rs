//! What moving bytes costs between each ordered pair of places.

use super::{MAX_PLACES, PlaceError};
use crate::{Bytes, Place, Seconds};

/// One direction between two places. The way back is a link of its own and may differ.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Link {
    /// Time before the first byte arrives.
    pub latency: Seconds,
    /// Bytes per second after that; infinite is allowed.
    pub bandwidth: f64,
    /// Bytes per second of what comes after the first [`Link::NEAR`] bytes, which caches do not help with.
    pub beyond: f64,
    /// Whether both ends can compute while the link is busy.
    pub overlap: bool,
}

impl Link {
    /// Bytes that a transfer may have before those beyond take what memory takes.
    pub const NEAR: u64 = 8 << 20;

    /// One that is as quick however much it carries, and leaves both ends free.
    ///
    /// ```
    /// use steersman_core::{Bytes, Seconds, place::Link};
    /// let pcie = Link::new(Seconds(10e-6), 25e9);
    /// assert_eq!(pcie.time(Bytes(5_000_000)), Seconds(10e-6 + 200e-6));
    /// ```
    pub fn new(latency: Seconds, bandwidth: f64) -> Link {
        Link { latency, bandwidth, beyond: bandwidth, overlap: true }
    }

    /// How long so many bytes take.
    pub fn time(&self, bytes: Bytes) -> Seconds {
        let near = bytes.0.min(Link::NEAR);
        let beyond = (bytes.0 - near) as f64 / self.beyond;
        Seconds(self.latency.0 + near as f64 / self.bandwidth + beyond)
    }

    /// One link after the other: a detour.
    pub fn then(&self, next: &Link) -> Link {
        Link {
            latency: self.latency + next.latency,
            bandwidth: 1.0 / (1.0 / self.bandwidth + 1.0 / next.bandwidth),
            beyond: 1.0 / (1.0 / self.beyond + 1.0 / next.beyond),
            overlap: self.overlap && next.overlap,
        }
    }
}

/// The places of a machine and the link of every ordered pair. A pair with no wire of its own gets the
/// link of its detour (latencies added, bandwidths in series): values travel in one step here.
#[derive(Clone, Debug)]
pub struct Links {
    places: Vec<Place>,
    links: Vec<Link>,
}

impl Links {
    /// Asks `link(from, to)` once for every ordered pair of different places.
    pub fn new(places: &[Place], mut link: impl FnMut(Place, Place) -> Link) -> Result<Links, PlaceError> {
        if places.is_empty() || places.len() > MAX_PLACES {
            return Err(PlaceError::PlaceCount(places.len()));
        }
        let mut links = Vec::with_capacity(places.len() * places.len());
        for (i, &from) in places.iter().enumerate() {
            if places[..i].contains(&from) {
                return Err(PlaceError::TwicePlace(from));
            }
            for &to in places {
                if from == to {
                    links.push(Link::new(Seconds::ZERO, f64::INFINITY));
                    continue;
                }
                let l = link(from, to);
                let bandwidth = if l.bandwidth > 0.0 { l.beyond } else { l.bandwidth };
                let latency = l.latency.0;
                let sound = latency >= 0.0 && latency.is_finite() && bandwidth > 0.0;
                if !sound {
                    return Err(PlaceError::BadLink { from, to, latency, bandwidth });
                }
                links.push(l);
            }
        }
        Ok(Links { places: places.to_vec(), links })
    }

    /// The places, as given.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    pub(super) fn index(&self, place: Place) -> Option<u8> {
        self.places.iter().position(|&p| p == place).map(|i| i as u8)
    }

    pub(super) fn between(&self, from: u8, to: u8) -> &Link {
        &self.links[from as usize * self.places.len() + to as usize]
    }
}
