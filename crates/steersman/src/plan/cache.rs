//! Plans by the structure of their graphs. Bounded in number and in size.

use super::stage::Compiled;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Plans kept at most.
const PLANS: usize = 512;
/// Words of keys kept at most: 8 MiB. A graph with a longer key takes far longer to run than to plan.
const WORDS: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Cache {
    plans: HashMap<u64, Entry>,
    /// Counts lookups, to tell which plan was used last.
    clock: u64,
    words: usize,
}

struct Entry {
    plan: Arc<Compiled>,
    used: u64,
}

impl Cache {
    pub fn get(&mut self, hash: u64, words: &[u64]) -> Option<Arc<Compiled>> {
        self.clock += 1;
        let entry = self.plans.get_mut(&hash)?;
        entry.used = self.clock;
        // Equal words, not just equal hashes: a plan for another graph would compute something else.
        (*entry.plan.key == *words && !entry.plan.is_stale()).then(|| entry.plan.clone())
    }

    /// The same only to look at it: also if the next run would plan anew.
    pub fn peek(&self, hash: u64, words: &[u64]) -> Option<Arc<Compiled>> {
        self.plans.get(&hash).map(|e| &e.plan).filter(|plan| *plan.key == *words).cloned()
    }

    pub fn put(&mut self, hash: u64, plan: Arc<Compiled>) {
        if plan.key.len() > WORDS / 4 {
            return;
        }
        self.words += plan.key.len();
        let entry = Entry { plan: plan.clone(), used: self.clock };
        if let Some(old) = self.plans.insert(hash, entry) {
            self.words -= old.plan.key.len();
            // Made anew with what was learned since: it goes on counting, so that the next time is later.
            plan.runs.fetch_add(old.plan.runs.load(Relaxed) + 1, Relaxed);
        }
        while self.plans.len() > PLANS || self.words > WORDS {
            let Some((&oldest, _)) = self.plans.iter().min_by_key(|(_, e)| e.used) else { return };
            if let Some(old) = self.plans.remove(&oldest) {
                self.words -= old.plan.key.len();
            }
        }
    }

    pub fn remove(&mut self, hash: u64) {
        if let Some(old) = self.plans.remove(&hash) {
            self.words -= old.plan.key.len();
        }
    }

    pub fn clear(&mut self) {
        self.plans.clear();
        self.words = 0;
    }

    pub fn len(&self) -> usize {
        self.plans.len()
    }
}
