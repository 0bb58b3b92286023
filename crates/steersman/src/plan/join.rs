//! When two groups may be one: if one of them can be moved to the other's time.

use super::group::{Groups, MAX_STEPS, Role};
use super::time::{Dep, NEVER};
use crate::array::node::NodeOp;
use std::collections::{BTreeMap, HashMap};

/// Steps of a group at most that runs side by side with another for what both read: in long ones one read is nothing,
/// and what both keep in cache would be twice as much.
const SIDE_BY_SIDE: usize = 64;

impl Groups<'_> {
    /// Whether a group can come after these, if need be by moving it to the end.
    pub fn fits(&mut self, g: u32, deps: &[Dep]) -> bool {
        if deps.iter().all(|&d| self.at(d) < self.time(g)) {
            return true;
        }
        let itself = deps.iter().any(|&d| matches!(d, Dep::Group(h) if self.find(h) == g));
        if itself || self.groups[g as usize].first_use != NEVER {
            return false;
        }
        self.groups[g as usize].time = self.next();
        true
    }

    /// Makes two groups one, if one can be moved to the other's time.
    pub fn merge(&mut self, a: u32, b: u32) -> Option<u32> {
        let (early, late) = if self.time(a) < self.time(b) { (a, b) } else { (b, a) };
        let (e, l) = (&self.groups[early as usize], &self.groups[late as usize]);
        if e.steps + l.steps > MAX_STEPS || e.over.zip(l.over).is_some_and(|(a, b)| a != b) {
            return None;
        }
        let time = if l.deps.iter().all(|&d| self.at(d) < e.time) {
            e.time
        } else if e.first_use > l.time {
            l.time
        } else {
            return None;
        };
        let deps = std::mem::take(&mut self.groups[late as usize].deps);
        for &d in &deps {
            self.used(Some(d), time);
        }
        let l = &self.groups[late as usize];
        let (steps, first_use, over) = (l.steps, l.first_use, l.over);
        self.groups[late as usize].parent.set(early);
        let e = &mut self.groups[early as usize];
        e.time = time;
        e.steps += steps;
        e.over = e.over.or(over);
        e.first_use = e.first_use.min(first_use);
        e.deps.extend(deps);
        Some(early)
    }

    /// Makes groups one that read the same array, though neither takes a value of the other: it is then read once.
    pub fn join_what_reads_the_same(&mut self) {
        let items = self.items;
        let mut reader: HashMap<u32, u32> = HashMap::new();
        for i in 0..items.len() {
            let Role::Step(g) = self.roles[i] else { continue };
            for a in items[i].args.iter().filter_map(|a| a.node()) {
                let outside = !matches!(self.roles[a as usize], Role::Step(_) | Role::Constant(_));
                // Only what is as long as the group is worth it: reading a row again is nothing.
                if !outside || items[a as usize].dims != items[i].dims {
                    continue;
                }
                let g = self.find(g);
                let other = self.find(*reader.entry(a).or_insert(g));
                let few = |s: &Groups<'_>, g: u32| s.groups[g as usize].steps <= SIDE_BY_SIDE;
                if other != g && few(self, g) && few(self, other) {
                    self.merge(other, g);
                }
            }
        }
    }

    /// Has reductions of an array in memory run with what else reads that array: with a group, or with each other. Each
    /// must be done before anything takes its result.
    pub fn join_reductions(&mut self) {
        let items = self.items;
        let first_use = self.first_uses();
        let mut together: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
        for (r, item) in items.iter().enumerate() {
            let (Role::Alone(time), NodeOp::Reduce { .. }) = (&self.roles[r], &item.op) else { continue };
            let Some(a) = item.args[0].node() else { continue };
            let outside = matches!(self.roles[a as usize], Role::Leaf | Role::Alone(_) | Role::View { .. });
            if outside {
                together.entry(a).or_default().push((*time, r as u32));
            }
        }
        if together.is_empty() {
            return;
        }
        let mut readers: HashMap<u32, Vec<u32>> = HashMap::new();
        for (i, item) in items.iter().enumerate() {
            let Some(g) = self.group_of(i as u32) else { continue };
            for a in item.args.iter().filter_map(|a| a.node()) {
                if together.contains_key(&a) && items[a as usize].dims == *self.dims(g) {
                    readers.entry(a).or_default().push(g);
                }
            }
        }
        for (a, mut reductions) in together {
            reductions.sort_unstable();
            for &g in readers.get(&a).into_iter().flatten() {
                let time = self.time(g);
                reductions.retain(|&(_, r)| first_use[r as usize] <= time || !self.take_in(g, r));
            }
            // What is left runs at the time of the last of them, if that is before all of their uses.
            let Some(&(last, _)) = reductions.last() else { continue };
            reductions.retain(|&(_, r)| first_use[r as usize] > last);
            if reductions.len() > 1 {
                let g = self.new_group(a as usize);
                self.groups[g as usize].time = last;
                for &(_, r) in &reductions {
                    self.take_in(g, r);
                }
            }
        }
    }

    /// Makes a reduction one of a group's, if the group's kernel can do it with the others.
    fn take_in(&mut self, g: u32, r: u32) -> bool {
        let NodeOp::Reduce { axes, .. } = self.items[r as usize].op else { return false };
        let rank = self.dims(g).len();
        let taken = self.reduces(g, axes, rank);
        if taken {
            self.roles[r as usize] = Role::Reduced(g);
        }
        taken
    }

    /// When something first takes each item from memory.
    fn first_uses(&self) -> Vec<u32> {
        let mut first = vec![NEVER; self.items.len()];
        for (i, item) in self.items.iter().enumerate() {
            let time = match self.roles[i] {
                Role::Step(g) | Role::Reduced(g) | Role::Constant(Some(g)) => self.time(g),
                Role::Alone(time) => time,
                _ => continue,
            };
            for a in item.args.iter().filter_map(|a| a.node()) {
                let base = match self.roles[a as usize] {
                    Role::View { base, .. } => base,
                    _ => a,
                };
                first[base as usize] = first[base as usize].min(time);
            }
        }
        first
    }
}
