//! Transfers beside work: in which order stages run so that fewer wait for what is under way, when each transfer
//! starts, and how long it all lasts then.
//!
//! Only plans with places whose memory says that it can ([`Memory::overlaps`](steersman_core::Memory::overlaps)) come
//! here. The host goes through the stages in order; it hands work to devices without waiting for it, and waits for a
//! transfer only before the stage that needs it.

use super::mover::{Lane, lane};
use super::stage::{Base, Carry, Early, Placed, Stage};
use std::collections::HashMap;
use steersman_core::Place;

/// Stages up to which their order is reconsidered: looking for the next one takes as long as there are ready ones.
const REORDERED: usize = 1024;
/// A transfer is started so many times its expected length before it is needed, if it can be: as late as that, so that
/// what arrives takes up memory no longer than it must.
const MARGIN: f64 = 2.0;

/// Which transfers go beside work: from where, to where.
pub(super) type Beside<'a> = &'a dyn Fn(Place, Place) -> bool;

/// Which of the stages that could be next is.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// The one that the host gets to soonest.
    Soonest,
    /// One for a device, so that it has something to do.
    DevicesFirst,
}

/// The order before and after.
pub(super) struct Arranged {
    order: Vec<usize>,
}

/// Puts stages in order and has transfers start early; `None` if no transfer can go beside anything.
pub(super) fn arrange(
    stages: &mut Vec<Stage>,
    placed: &mut Placed,
    slots: usize,
    beside: Beside<'_>,
) -> Option<Arranged> {
    let all = || stages.iter().flat_map(|s| &s.carries).chain(&placed.homeward);
    if !all().any(|c| beside(c.from, c.to)) {
        return None;
    }
    let clock = || Clock::new(stages, placed, slots, beside);
    let lasts = |order: &[usize]| {
        let mut clock = clock();
        order.iter().for_each(|&s| {
            clock.run(s);
        });
        clock.come_home()
    };
    let mut order: Vec<usize> = (0..stages.len()).collect();
    if stages.len() <= REORDERED {
        // Whether the host should wait for a device to be given its work, or go on meanwhile, only the whole tells.
        for rule in [Rule::Soonest, Rule::DevicesFirst] {
            let other = clock().order(rule);
            if lasts(&other) < lasts(&order) {
                order = other;
            }
        }
    }
    put(stages, &order);
    let mut clock = Clock::new(stages, placed, slots, beside);
    let begins: Vec<f64> = (0..stages.len()).map(|s| clock.run(s)).collect();
    placed.lasts = Some(clock.come_home());
    placed.early = starts(stages, placed, slots, &begins, beside);
    Some(Arranged { order })
}

/// The order as it was, and every transfer right before its value is needed.
pub(super) fn undo(stages: &mut Vec<Stage>, placed: &mut Placed, arranged: &Arranged) {
    let mut back = vec![0; arranged.order.len()];
    arranged.order.iter().enumerate().for_each(|(to, &from)| back[from] = to);
    put(stages, &back);
    placed.early.clear();
    placed.lasts = None;
}

/// Stage `order[i]` comes to place `i`, and each value is carried for the first stage that needs it.
fn put(stages: &mut Vec<Stage>, order: &[usize]) {
    let mut carries: HashMap<(Base, Place), Carry> = HashMap::new();
    let mut old: Vec<Option<Stage>> = std::mem::take(stages).into_iter().map(Some).collect();
    for stage in old.iter_mut().flatten() {
        carries.extend(stage.carries.drain(..).map(|c| ((c.base, c.to), c)));
    }
    stages.extend(order.iter().filter_map(|&s| old[s].take()));
    for stage in stages {
        let place = stage.place;
        let first = stage.inputs.iter().filter_map(|i| carries.remove(&(i.base, place)));
        stage.carries = first.collect();
    }
}

/// When each transfer starts that can be started before it is needed.
fn starts(stages: &[Stage], placed: &Placed, slots: usize, begins: &[f64], beside: Beside<'_>) -> Vec<Early> {
    let mut made = vec![0; slots];
    for (s, stage) in stages.iter().enumerate() {
        stage.outputs.iter().for_each(|o| made[o.0 as usize] = s + 1);
    }
    let ready = |c: &Carry| if let Base::Slot(slot) = c.base { made[slot as usize] } else { 0 };
    let mut early = Vec::new();
    for (index, c) in placed.homeward.iter().enumerate().filter(|(_, c)| beside(c.from, c.to)) {
        early.push(Early { start: ready(c), stage: stages.len(), index });
    }
    // From the end: a transfer must be done before the next one on its way has to start.
    let mut due: HashMap<Lane, f64> = HashMap::new();
    for (s, stage) in stages.iter().enumerate().rev() {
        for (index, c) in stage.carries.iter().enumerate().rev().filter(|(_, c)| beside(c.from, c.to)) {
            let due = due.entry(lane(c.from, c.to)).or_insert(f64::INFINITY);
            let end = due.min(begins[s]);
            *due = end - c.predicted;
            let latest = end - MARGIN * c.predicted;
            let start = (ready(c)..s).rev().find(|&at| begins[at] <= latest).unwrap_or(ready(c));
            early.push(Early { start, stage: s, index });
        }
    }
    early.retain(|e| e.start < e.stage);
    early.sort_by_key(|e| (e.start, e.stage, e.index));
    early
}

/// What is expected to happen when.
struct Clock<'a> {
    stages: &'a [Stage],
    placed: &'a Placed,
    beside: Beside<'a>,
    carries: HashMap<(Base, Place), &'a Carry>,
    /// Until when the host, each device and each lane are busy.
    host: f64,
    devices: HashMap<Place, f64>,
    lanes: HashMap<Lane, f64>,
    /// When each slot is written, and when each value that is carried is there.
    made: Vec<f64>,
    arrived: HashMap<(Base, Place), f64>,
}

impl<'a> Clock<'a> {
    fn new(stages: &'a [Stage], placed: &'a Placed, slots: usize, beside: Beside<'a>) -> Clock<'a> {
        let carries = stages.iter().flat_map(|s| &s.carries).map(|c| ((c.base, c.to), c)).collect();
        let (devices, lanes, arrived) = Default::default();
        Clock { stages, placed, beside, carries, host: 0.0, devices, lanes, made: vec![0.0; slots], arrived }
    }

    /// When a value is there if it is carried next.
    fn arrival(&self, c: &Carry) -> f64 {
        let made = if let Base::Slot(slot) = c.base { self.made[slot as usize] } else { 0.0 };
        let free = match (self.beside)(c.from, c.to) {
            true => self.lanes.get(&lane(c.from, c.to)).copied().unwrap_or(0.0),
            false => self.host,
        };
        made.max(free) + c.predicted
    }

    /// When the host gets to a stage if it is the next one.
    fn begin(&self, s: usize) -> f64 {
        let stage = &self.stages[s];
        let needs = stage.inputs.iter().map(|i| (i.base, stage.place));
        let there = needs.map(|key| match (self.arrived.get(&key), self.carries.get(&key)) {
            (Some(&at), _) => at,
            (None, Some(c)) => self.arrival(c),
            (None, None) => 0.0,
        });
        there.fold(self.host, f64::max)
    }

    fn carry(&mut self, c: &Carry) -> f64 {
        let at = self.arrival(c);
        match (self.beside)(c.from, c.to) {
            true => drop(self.lanes.insert(lane(c.from, c.to), at)),
            false => self.host = self.host.max(at),
        }
        self.arrived.insert((c.base, c.to), at);
        at
    }

    /// Lets a stage happen next; returns when the host gets to it.
    fn run(&mut self, s: usize) -> f64 {
        let stage = &self.stages[s];
        for input in &stage.inputs {
            let key = (input.base, stage.place);
            if let Some(&c) = self.carries.get(&key).filter(|_| !self.arrived.contains_key(&key)) {
                self.carry(c);
            }
        }
        let begin = self.begin(s);
        let end = match stage.place {
            Place::Host => begin + stage.predicted,
            place => self.devices.get(&place).copied().unwrap_or(0.0).max(begin) + stage.predicted,
        };
        self.host = begin;
        if stage.place == Place::Host {
            self.host = end;
        } else {
            self.devices.insert(stage.place, end);
        }
        stage.outputs.iter().for_each(|o| self.made[o.0 as usize] = self.made[o.0 as usize].max(end));
        begin
    }

    /// Lets results come home; returns when all is done.
    fn come_home(mut self) -> f64 {
        let homeward = &self.placed.homeward;
        let home = homeward.iter().map(|c| self.carry(c)).fold(0.0, f64::max);
        self.devices.values().copied().fold(home.max(self.host), f64::max)
    }

    /// Stages by a rule, each after those that it reads from. Of equals one for a device is first: it is only handed
    /// over.
    fn order(mut self, rule: Rule) -> Vec<usize> {
        let mut writers: Vec<Vec<usize>> = vec![Vec::new(); self.made.len()];
        for (s, stage) in self.stages.iter().enumerate() {
            stage.outputs.iter().for_each(|o| writers[o.0 as usize].push(s));
        }
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); self.stages.len()];
        let mut left = vec![0usize; self.stages.len()];
        for (s, stage) in self.stages.iter().enumerate() {
            let read = stage.inputs.iter().filter_map(|i| match i.base {
                Base::Slot(slot) => Some(&writers[slot as usize]),
                _ => None,
            });
            let mut before: Vec<usize> = read.flatten().copied().collect();
            before.sort_unstable();
            before.dedup();
            left[s] = before.len();
            before.into_iter().for_each(|w| after[w].push(s));
        }
        let mut ready: Vec<usize> = (0..left.len()).filter(|&s| left[s] == 0).collect();
        let mut order = Vec::with_capacity(left.len());
        while !ready.is_empty() {
            let key = |&s: &usize| {
                let home = self.stages[s].place == Place::Host;
                (rule == Rule::DevicesFirst && home, self.begin(s), home, s)
            };
            let sooner = |a: (bool, f64, bool, usize), b: (bool, f64, bool, usize)| {
                a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then((a.2, a.3).cmp(&(b.2, b.3)))
            };
            let next = ready.iter().enumerate().min_by(|a, b| sooner(key(a.1), key(b.1)));
            let Some((at, &s)) = next else { break };
            ready.swap_remove(at);
            self.run(s);
            order.push(s);
            for &t in &after[s] {
                left[t] -= 1;
                if left[t] == 0 {
                    ready.push(t);
                }
            }
        }
        order
    }
}
