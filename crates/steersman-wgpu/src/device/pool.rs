//! Buffers by size class, each with addresses of its own.
//!
//! A buffer given back is kept for the next of its class: what was enqueued before still finds its content,
//! since the queue keeps order. Buffers that nobody has are half of the limit at most, and are let go first when
//! it is near.

use super::fault::Mishap;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use steersman_core::Address;
use steersman_core::memory::MemoryError;

/// A buffer and where its addresses start.
#[derive(Debug)]
pub(crate) struct Held {
    pub buffer: wgpu::Buffer,
    pub start: u64,
    pub bytes: u64,
}

/// Why no block was taken.
#[derive(Debug, PartialEq)]
pub(super) enum Untaken {
    Said(MemoryError),
    /// The driver has less than the limit.
    NoMemory {
        need: usize,
        why: String,
    },
}

impl From<MemoryError> for Untaken {
    fn from(why: MemoryError) -> Untaken {
        Untaken::Said(why)
    }
}

impl From<Untaken> for MemoryError {
    fn from(untaken: Untaken) -> MemoryError {
        match untaken {
            Untaken::Said(why) => why,
            Untaken::NoMemory { need, why } => MemoryError::Refused { need, why },
        }
    }
}

/// Every buffer of a device.
pub(super) struct Pool {
    limit: u64,
    largest: u64,
    next: u64,
    all: BTreeMap<u64, Arc<Held>>,
    free: HashMap<u64, Vec<Arc<Held>>>,
    /// The class's bytes of each block that is taken, by its first address.
    taken: HashMap<u64, u64>,
    in_use: u64,
    kept: u64,
}

/// No block starts below: an address of zero or of a small mistake is nobody's.
const FIRST: u64 = 1 << 32;
/// Between blocks: an address one past the end is not the next block's.
const GAP: u64 = 4096;
const SMALLEST: u64 = 256;

/// The bytes that a block of this size gets: eight classes an octave, so at most an eighth is lost.
pub(super) fn class(bytes: u64) -> u64 {
    let bytes = bytes.max(SMALLEST);
    let step = (bytes.next_power_of_two() / 16).max(SMALLEST);
    bytes.div_ceil(step) * step
}

impl Pool {
    pub fn new(limit: u64, largest: u64) -> Pool {
        Pool {
            limit,
            largest: largest & !(SMALLEST - 1),
            next: FIRST,
            all: BTreeMap::new(),
            free: HashMap::new(),
            taken: HashMap::new(),
            in_use: 0,
            kept: 0,
        }
    }

    /// A block of at least `bytes`, and whether buffers were let go for it.
    pub fn take(
        &mut self,
        bytes: usize,
        make: impl FnOnce(u64) -> Result<wgpu::Buffer, Mishap>,
    ) -> Result<(Address, bool), Untaken> {
        let want = class(bytes as u64).min(self.largest.max(SMALLEST));
        if bytes as u64 > want {
            return Err(MemoryError::TooLarge { need: bytes, most: self.largest as usize }.into());
        }
        let full =
            MemoryError::Full { need: bytes, in_use: self.in_use as usize, limit: self.limit as usize };
        let (held, dropped) = match self.free.get_mut(&want).and_then(Vec::pop) {
            Some(held) => {
                self.kept -= want;
                (held, false)
            }
            None => {
                if self.in_use + want > self.limit {
                    return Err(full.into());
                }
                let dropped = self.shed(self.limit - self.in_use - want);
                let buffer = make(want).map_err(|m| match m.memory {
                    true => Untaken::NoMemory { need: bytes, why: m.why },
                    false => Untaken::Said(MemoryError::Refused { need: bytes, why: m.why }),
                })?;
                let held = Arc::new(Held { buffer, start: self.next, bytes: want });
                self.next += (want + GAP).next_multiple_of(GAP);
                self.all.insert(held.start, held.clone());
                (held, dropped)
            }
        };
        self.in_use += want;
        self.taken.insert(held.start, want);
        Ok((Address(held.start), dropped))
    }

    /// Takes a block back; whether buffers were let go.
    pub fn give_back(&mut self, at: Address) -> bool {
        let Some(want) = self.taken.remove(&at.0) else { return false };
        self.in_use -= want;
        if let Some(held) = self.all.get(&at.0) {
            self.kept += want;
            self.free.entry(want).or_default().push(held.clone());
        }
        self.shed(self.limit / 2)
    }

    /// Lets every buffer go that nobody has.
    pub fn let_go(&mut self) {
        self.shed(0);
    }

    /// The buffer an address lies in, and how many bytes in.
    pub fn find(&self, at: Address) -> Option<(Arc<Held>, u64)> {
        let (_, held) = self.all.range(..=at.0).next_back()?;
        let offset = at.0 - held.start;
        (offset < held.bytes).then(|| (held.clone(), offset))
    }

    /// Lets buffers go that nobody has, largest first, until those left have at most `most` bytes.
    fn shed(&mut self, most: u64) -> bool {
        let mut dropped = false;
        while self.kept > most {
            let Some(&largest) = self.free.iter().filter(|(_, v)| !v.is_empty()).map(|(k, _)| k).max() else {
                break;
            };
            if let Some(held) = self.free.get_mut(&largest).and_then(Vec::pop) {
                self.kept -= largest;
                self.all.remove(&held.start);
                dropped = true;
            }
        }
        dropped
    }

    pub fn in_use(&self) -> u64 {
        self.in_use
    }

    /// Bytes of all buffers there are, taken or kept.
    pub fn held(&self) -> u64 {
        self.in_use + self.kept
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_loses_at_most_an_eighth_and_is_its_own_class() {
        for bytes in [1, 255, 256, 257, 1000, 5000, 65_537, 1 << 20, 123_456_789] {
            let c = class(bytes);
            assert!(c >= bytes && c.is_multiple_of(4));
            assert!(c <= (bytes + bytes / 8).max(bytes + SMALLEST), "{bytes} gets {c}");
            assert_eq!(class(c), c);
        }
    }

    #[test]
    fn what_the_driver_says_is_passed_on_and_only_missing_memory_is_worth_another_try() {
        let mut pool = Pool::new(1 << 20, 1 << 20);
        let refuse = |memory: bool| move |_| Err(Mishap { why: "the driver's own words".into(), memory });
        match pool.take(1000, refuse(true)) {
            Err(Untaken::NoMemory { need: 1000, why }) => assert_eq!(why, "the driver's own words"),
            other => panic!("{other:?}"),
        }
        match pool.take(1000, refuse(false)) {
            Err(Untaken::Said(why @ MemoryError::Refused { need: 1000, .. })) => {
                assert!(why.to_string().contains("the driver's own words"), "{why}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!((pool.in_use(), pool.held()), (0, 0));
        let full = pool.take(2 << 20, refuse(true)).map_err(MemoryError::from);
        assert!(matches!(full, Err(MemoryError::TooLarge { .. })), "{full:?}");
    }
}
