//! The order of groups and stages: whatever needs a value from memory comes later than what writes it.

use super::group::{Groups, Role};

pub(super) const NEVER: u32 = u32::MAX;

/// What writes a value to memory: a stage of its own at some time, or a group.
#[derive(Clone, Copy)]
pub(super) enum Dep {
    At(u32),
    Group(u32),
}

/// Something that happens at one time.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A stage of its own.
    Alone(u32),
    /// A group: its steps that must be in memory, and its reductions.
    Group { group: u32, arrays: Vec<u32>, reductions: Vec<u32> },
}

impl Groups<'_> {
    /// When an item's elements are in memory; `None` if they always were.
    pub fn written(&self, i: u32) -> Option<Dep> {
        match self.roles[i as usize] {
            Role::View { base, .. } if base != i => self.written(base),
            Role::Step(g) | Role::Reduced(g) | Role::Constant(Some(g)) => Some(Dep::Group(self.find(g))),
            Role::Alone(t) => Some(Dep::At(t)),
            _ => None,
        }
    }

    pub fn used(&mut self, dep: Option<Dep>, time: u32) {
        if let Some(Dep::Group(g)) = dep {
            let g = self.find(g);
            let first = &mut self.groups[g as usize].first_use;
            *first = (*first).min(time);
        }
    }

    pub fn next(&mut self) -> u32 {
        self.clock += 1;
        self.clock
    }

    pub fn time(&self, g: u32) -> u32 {
        self.groups[self.find(g) as usize].time
    }

    pub fn at(&self, d: Dep) -> u32 {
        match d {
            Dep::At(t) => t,
            Dep::Group(g) => self.time(g),
        }
    }

    /// The group that a group was merged into.
    pub fn find(&self, mut g: u32) -> u32 {
        let parent = |g: u32| self.groups[g as usize].parent.get();
        while parent(g) != g {
            // Halves the way for the next one who asks.
            self.groups[g as usize].parent.set(parent(parent(g)));
            g = parent(g);
        }
        g
    }

    /// Everything that happens, in order.
    pub fn events(&self) -> Vec<Event> {
        let mut by_group: Vec<Option<Event>> = (0..self.groups.len()).map(|_| None).collect();
        let mut timed: Vec<(u32, Event)> = Vec::new();
        for (i, role) in self.roles.iter().enumerate() {
            let (g, reduced) = match *role {
                Role::Alone(time) => {
                    timed.push((time, Event::Alone(i as u32)));
                    continue;
                }
                Role::Step(g) | Role::Constant(Some(g)) if self.must[i] => (self.find(g), false),
                Role::Reduced(g) => (self.find(g), true),
                _ => continue,
            };
            let event = by_group[g as usize].get_or_insert_with(|| Event::Group {
                group: g,
                arrays: Vec::new(),
                reductions: Vec::new(),
            });
            if let Event::Group { arrays, reductions, .. } = event {
                if reduced { reductions.push(i as u32) } else { arrays.push(i as u32) }
            }
        }
        for (g, event) in by_group.into_iter().enumerate() {
            timed.extend(event.map(|e| (self.groups[g].time, e)));
        }
        timed.sort_by_key(|(time, _)| *time);
        timed.into_iter().map(|(_, event)| event).collect()
    }
}
