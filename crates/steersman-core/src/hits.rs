//! The hit path: a fixed table of decided workloads, read without lock, allocation or system call.
//!
//! Each slot is a sequence lock over plain words: a reader copies the slot and looks again whether it was
//! being written; if so it is a miss. Nothing is ever freed, so nothing can dangle, and memory is bounded.
//! Readers write nothing shared, so hits scale with threads.

use crate::workload::Key;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Words of payload a slot carries.
pub const PAYLOAD: usize = 4;
/// Slots looked at for one key.
const WAYS: usize = 4;
/// 4,096 slots of a cache line each: 256 KiB.
const SLOTS: usize = 4096;

#[repr(align(64))]
#[derive(Default)]
struct Slot {
    /// Odd while being written.
    sequence: AtomicU64,
    key: [AtomicU64; 2],
    payload: [AtomicU64; PAYLOAD],
}

impl Slot {
    /// Whether it is this key's. Only for writers: a reader may see half a key.
    fn holds(&self, key: &Key) -> bool {
        self.key.iter().zip(key.halves()).all(|(s, half)| s.load(Ordering::Relaxed) == half)
    }
}

/// Decided workloads.
pub struct Hits {
    slots: Box<[Slot]>,
    writing: Mutex<u64>,
}

impl Default for Hits {
    fn default() -> Hits {
        Hits { slots: (0..SLOTS).map(|_| Slot::default()).collect(), writing: Mutex::new(0) }
    }
}

impl Hits {
    /// What was stored for this key, if it is there.
    #[inline]
    pub fn get(&self, key: &Key) -> Option<[u64; PAYLOAD]> {
        let [one, other] = key.halves();
        for slot in self.ways(key) {
            if slot.key[0].load(Ordering::Relaxed) != one {
                continue;
            }
            let before = slot.sequence.load(Ordering::Acquire);
            let same =
                slot.key[0].load(Ordering::Relaxed) == one && slot.key[1].load(Ordering::Relaxed) == other;
            let payload: [u64; PAYLOAD] = std::array::from_fn(|i| slot.payload[i].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            let whole = before & 1 == 0 && before != 0 && slot.sequence.load(Ordering::Relaxed) == before;
            if same && whole {
                return Some(payload);
            }
        }
        None
    }

    /// Stores or replaces what is known for this key.
    pub fn put(&self, key: &Key, payload: [u64; PAYLOAD]) {
        let mut turn = self.writing.lock().unwrap_or_else(|e| e.into_inner());
        *turn += 1;
        let mut ways = self.ways(key);
        let at = ways
            .clone()
            .find(|s| s.holds(key))
            .or_else(|| ways.clone().find(|s| s.sequence.load(Ordering::Relaxed) == 0))
            .or_else(|| ways.nth(*turn as usize % WAYS));
        let Some(slot) = at else { return };
        let sequence = slot.sequence.load(Ordering::Relaxed);
        slot.sequence.store(sequence + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        for (s, half) in slot.key.iter().zip(key.halves()) {
            s.store(half, Ordering::Relaxed);
        }
        for (s, p) in slot.payload.iter().zip(payload) {
            s.store(p, Ordering::Relaxed);
        }
        slot.sequence.store(sequence + 2, Ordering::Release);
    }

    #[inline]
    fn ways(&self, key: &Key) -> impl Iterator<Item = &Slot> + Clone {
        let at = (key.hash64() >> 32) as usize % (SLOTS / WAYS) * WAYS;
        self.slots[at..at + WAYS].iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    fn key(n: usize) -> Key {
        format!("exp f32 {n}").parse::<Workload>().unwrap().key()
    }

    #[test]
    fn what_was_put_is_found_and_nothing_else() {
        let hits = Hits::default();
        for n in 1..300 {
            hits.put(&key(n), [n as u64; PAYLOAD]);
        }
        let found = (1..300).filter(|&n| hits.get(&key(n)) == Some([n as u64; PAYLOAD])).count();
        assert!(found > 290, "{found}");
        assert_eq!(hits.get(&key(300)), None);
    }

    #[test]
    fn readers_never_see_half_a_write() {
        let hits = Hits::default();
        std::thread::scope(|s| {
            s.spawn(|| {
                for i in 0..200_000u64 {
                    hits.put(&key(7), [i; PAYLOAD]);
                }
            });
            for _ in 0..2 {
                s.spawn(|| {
                    for _ in 0..200_000 {
                        if let Some(p) = hits.get(&key(7)) {
                            assert!(p.iter().all(|w| *w == p[0]), "{p:?}");
                        }
                    }
                });
            }
        });
    }
}
