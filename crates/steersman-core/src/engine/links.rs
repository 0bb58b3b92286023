//! Between places: what moving costs, what has to be moved, what is lost.

use super::{Engine, read, write};
use crate::candidate::{self, Candidate, Move, Way};
use crate::device::{DeviceId, Place, Places};
use crate::kernel::Refusal;
use crate::place::{Lane, Link, Wire};
use crate::units::{Bytes, Seconds};
use crate::workload::Workload;
use std::sync::atomic::Ordering;

/// What has to be carried for a workload to run somewhere.
pub(super) struct Carried {
    pub bytes: Bytes,
    pub seconds: Seconds,
    /// Transfers behind the least known link on the way; 0 if that is only supposed.
    pub samples: u32,
}

impl Carried {
    /// The least it can take: a link that was never measured may be ten times as quick as supposed.
    pub fn least(&self) -> Seconds {
        self.seconds * if self.samples == 0 { 0.1 } else { 0.8 }
    }
}

/// From so much arithmetic for a byte on operands are not lent: copying them is a few percent of the work then, and while
/// they are lent nobody else gets at their device.
const TOO_LONG_TO_LEND: f64 = 256.0;

/// A transfer that changes what its link is thought to take by more than this has decisions made anew.
const NEWS: f64 = 0.1;

impl Engine {
    /// Takes in how long a transfer took between the host and a device. Others are no single link's time.
    pub fn observe_transfer(&self, from: Place, to: Place, bytes: Bytes, seconds: Seconds) {
        if self.frozen.load(Ordering::Acquire) {
            return;
        }
        let mut wires = write(&self.wires);
        let (device, homeward) = match (from, to) {
            (Place::Host, Place::Device(d)) => (d, false),
            (Place::Device(d), Place::Host) => (d, true),
            _ => return,
        };
        let Some(wire) = wires.get_mut(device.0 as usize) else { return };
        let lane = if homeward { &mut wire.home } else { &mut wire.out };
        let news = learn(lane, bytes, seconds);
        drop(wires);
        self.transferred(news);
    }

    /// Takes in how long it took to have the host work on operands where a device has them, without the work.
    pub fn observe_lent(&self, device: DeviceId, seconds: Seconds) {
        if self.frozen.load(Ordering::Acquire) {
            return;
        }
        let mut wires = write(&self.wires);
        let lane = wires.get_mut(device.0 as usize).and_then(|w| w.lent.as_mut());
        let Some(lane) = lane else { return };
        let news = learn(lane, Bytes(0), seconds);
        drop(wires);
        self.transferred(news);
    }

    fn transferred(&self, news: bool) {
        self.transfers.fetch_add(1, Ordering::Relaxed);
        if news {
            self.invalidate();
        }
    }

    /// Has a device lend its memory to the host from now on, which costs so much, or never.
    pub fn set_lent(&self, device: DeviceId, lane: Option<Lane>) {
        if let Some(w) = write(&self.wires).get_mut(device.0 as usize) {
            w.lent = lane;
        }
        self.transferred(true);
    }

    /// Whether what a device holds of this workload is lent if it runs on the host, rather than carried.
    pub fn lends(&self, w: &Workload, device: DeviceId) -> bool {
        w.intensity() < TOO_LONG_TO_LEND && self.lent(device).is_some()
    }

    /// What it takes to have the host work on what a device has where it lies, and how often that was seen; none if it lends
    /// nothing.
    pub fn lent(&self, device: DeviceId) -> Option<(Link, u32)> {
        let wires = read(&self.wires);
        let lane = wires.get(device.0 as usize)?.lent.as_ref()?;
        Some((Link::new(lane.link().latency, f64::INFINITY), lane.samples()))
    }

    /// How many transfers were learned from: to tell whether there is something to save.
    pub fn transfers(&self) -> u64 {
        self.transfers.load(Ordering::Relaxed)
    }

    /// What is known of the way between the host and a device.
    pub fn wire(&self, device: DeviceId) -> Option<Wire> {
        read(&self.wires).get(device.0 as usize).cloned()
    }

    /// Replaces it: what an earlier process learned.
    pub fn set_wire(&self, device: DeviceId, wire: Wire) {
        if let Some(w) = write(&self.wires).get_mut(device.0 as usize) {
            *w = wire;
        }
        self.invalidate();
    }

    /// What moving costs from one place to another, and the transfers behind that (0: only supposed). Between two
    /// devices the way is by the host. Why there is none, if one of them does not exist or was lost.
    pub fn link(&self, from: Place, to: Place) -> Result<(Link, u32), Refusal> {
        let wires = read(&self.wires);
        let end = |place: Place| match place {
            Place::Host => Ok(None),
            Place::Device(d) => {
                let lost = self.guard.lost(d);
                let lost = lost.map(|why| Refusal::new(format!("{place} was lost: {why}")));
                let wire = wires.get(d.0 as usize);
                match (lost, wire) {
                    (Some(why), _) => Err(why),
                    (None, Some(wire)) => Ok(Some(wire)),
                    (None, None) => Err(Refusal::new(format!("there is no device at {place}"))),
                }
            }
        };
        let free = Link::new(Seconds::ZERO, f64::INFINITY);
        Ok(match (end(from)?, end(to)?) {
            (None, None) => (free, u32::MAX),
            (None, Some(w)) => (w.out.link(), w.out.samples()),
            (Some(w), None) => (w.home.link(), w.home.samples()),
            (Some(_), Some(_)) if from == to => (free, u32::MAX),
            (Some(a), Some(b)) => (a.home.link().then(&b.out.link()), a.home.samples().min(b.out.samples())),
        })
    }

    /// Everything that has to be carried if this kernel runs the workload, one by one.
    pub fn moves(&self, w: &Workload, kernel: u16) -> Result<Vec<Move>, Refusal> {
        let place = self.place_of(kernel).unwrap_or(Place::Host);
        candidate::moves(w, place, |from, to| self.way(w, place, from, to)).map(|m| m.into_vec())
    }

    /// How an operand of a workload that runs at `place` gets from one place to another.
    fn way(&self, w: &Workload, place: Place, from: Place, to: Place) -> Result<Way, Refusal> {
        let (link, samples) = self.link(from, to)?;
        let away = if from == place { to } else { from };
        if let (Place::Host, Place::Device(id)) = (place, away)
            && self.lends(w, id)
            && let Some((link, samples)) = self.lent(id)
        {
            return Ok(Way { link, samples, lent: true, joined: Seconds::ZERO });
        }
        let joined = from.device().filter(|_| to == Place::Host);
        let joined = joined.and_then(|id| read(&self.wires).get(id.0 as usize)?.joined);
        Ok(Way { link, samples, lent: false, joined: Seconds(joined.unwrap_or(0.0)) })
    }

    /// The same in sum, for all kernels at a place.
    pub(super) fn moves_to(&self, w: &Workload, place: Place) -> Result<Carried, Refusal> {
        let all = candidate::moves(w, place, |from, to| self.way(w, place, from, to))?;
        Ok(Carried {
            bytes: Bytes(all.iter().map(|m| m.bytes.0).sum()),
            seconds: all.iter().fold(Seconds::ZERO, |t, m| t + m.seconds),
            samples: all.iter().map(|m| m.samples).min().unwrap_or(u32::MAX),
        })
    }

    /// Where a kernel reads and writes.
    pub fn place_of(&self, kernel: u16) -> Option<Place> {
        let device = self.registry.get(kernel)?.device();
        Some(read(&self.devices).get(device.0 as usize).map_or(Place::Host, |d| d.place))
    }

    /// The quickest candidate among the kernels at this place, by mean and doubt together.
    pub fn best_at(&self, w: &Workload, place: Place) -> Option<Candidate> {
        let cautious = |c: &Candidate| c.estimate.cautious().0;
        let hash = w.key().hash64();
        let all = self.legal_candidates(w, hash).into_iter();
        let there = all.filter(|c| self.place_of(c.variant.kernel) == Some(place));
        there.min_by(|a, b| cautious(a).total_cmp(&cautious(b)))
    }

    /// What people call the places of this engine's devices.
    pub fn places(&self) -> Places {
        Places::of(&read(&self.devices))
    }

    /// A device is gone, and with it all its kernels and all that was in its memory. Returns whether that is news.
    pub fn lose_device(&self, device: DeviceId, why: impl Into<String>) -> bool {
        let new = self.guard.lose(device, why.into());
        self.invalidate();
        new
    }
}

/// Adds a transfer to a lane; whether that changes what others of its size are thought to take.
fn learn(lane: &mut Lane, bytes: Bytes, seconds: Seconds) -> bool {
    let before = lane.link().time(bytes);
    lane.add(bytes, seconds);
    (lane.link().time(bytes) / before).ln().abs() > NEWS
}
