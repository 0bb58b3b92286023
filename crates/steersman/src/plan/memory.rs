//! Memory of a plan: who gets fresh memory, who takes over what nobody needs any more, and the peak.

use super::stage::{Base, Carry, Placed, Stage};
use steersman_core::{Op, Operand, Place, Workload};

/// Bytes alive at each place.
#[derive(Default)]
struct Alive {
    now: Vec<(Place, usize)>,
    peaks: Vec<(Place, usize)>,
}

impl Alive {
    fn add(&mut self, place: Place, bytes: usize) {
        match self.now.iter_mut().find(|(p, _)| *p == place) {
            Some((_, now)) => *now += bytes,
            None => self.now.push((place, bytes)),
        }
    }

    fn remove(&mut self, place: Place, bytes: usize) {
        if let Some((_, now)) = self.now.iter_mut().find(|(p, _)| *p == place) {
            *now -= bytes;
        }
    }

    fn note(&mut self) {
        for &(place, now) in &self.now {
            match self.peaks.iter_mut().find(|(p, _)| *p == place) {
                Some((_, peak)) => *peak = now.max(*peak),
                None => self.peaks.push((place, now)),
            }
        }
    }
}

/// Decides for every stage which slots get memory before it and lose it after it. Returns the peak in bytes of each
/// place that takes part.
pub(super) fn assign(stages: &mut [Stage], slots: &[usize], placed: &Placed) -> Vec<(Place, usize)> {
    let mut last = vec![usize::MAX; slots.len()];
    let mut kept = vec![false; slots.len()];
    for (s, stage) in stages.iter_mut().enumerate() {
        stage.take.clear();
        stage.reuse.clear();
        stage.free.clear();
        let read = stage.inputs.iter().filter_map(slot);
        for slot in read.chain(stage.outputs.iter().map(|o| o.0)) {
            last[slot as usize] = s;
        }
        for keep in &stage.keeps {
            if let Base::Slot(slot) = keep.from.base {
                kept[slot as usize] = true;
            }
        }
    }
    let mut has_memory = vec![false; slots.len()];
    let mut alive = Alive::default();
    // Copies of slots at other places; they go when the slot goes.
    let mut copies: Vec<(u32, Place)> = Vec::new();
    let arrivals = arrivals(stages, placed);
    let mut next = arrivals.iter().peekable();
    for (s, stage) in stages.iter_mut().enumerate() {
        while let Some(arrival) = next.next_if(|a| a.from <= s) {
            alive.add(arrival.to, rounded(arrival.bytes));
            if let Base::Slot(slot) = arrival.base {
                copies.push((slot, arrival.to));
            }
        }
        let outputs: Vec<u32> = stage.outputs.iter().map(|o| o.0).collect();
        let mut replaced: Vec<u32> = Vec::new();
        for (n, &out) in outputs.iter().enumerate() {
            if has_memory[out as usize] {
                continue;
            }
            has_memory[out as usize] = true;
            // Memory that has a copy elsewhere is not taken over: the copy would be of what was there before.
            let copied = |from: u32| copies.iter().any(|c| c.0 == from);
            let dies = |from: u32| {
                last[from as usize] == s
                    && !kept[from as usize]
                    && !replaced.contains(&from)
                    && placed.slot(from) == placed.slot(out)
                    // What is lent is lent to be read or to be written.
                    && placed.slot(out) == stage.place
                    && !copied(from)
            };
            match in_place(stage, n, slots, dies) {
                Some(from) => {
                    stage.reuse.push((out, from));
                    replaced.push(from);
                }
                None => {
                    stage.take.push(out);
                    alive.add(placed.slot(out), rounded(slots[out as usize]));
                }
            }
        }
        alive.note();
        let read: Vec<u32> = stage.inputs.iter().filter_map(slot).collect();
        for used in read.into_iter().chain(outputs) {
            let dead = last[used as usize] == s && !kept[used as usize];
            if dead && !replaced.contains(&used) && !stage.free.contains(&used) {
                stage.free.push(used);
                let bytes = rounded(slots[used as usize]);
                alive.remove(placed.slot(used), bytes);
                copies.retain(|&(slot, place)| {
                    if slot == used {
                        alive.remove(place, bytes);
                    }
                    slot != used
                });
            }
        }
    }
    for arrival in next {
        alive.add(arrival.to, rounded(arrival.bytes));
    }
    alive.note();
    alive.peaks
}

/// Memory for a value that is carried somewhere, from the start of a stage on.
struct Arrival {
    from: usize,
    base: Base,
    to: Place,
    bytes: usize,
}

/// All of them in order; what starts early takes up memory from then on.
fn arrivals(stages: &[Stage], placed: &Placed) -> Vec<Arrival> {
    let lists = stages.iter().map(|s| &s.carries).chain([&placed.homeward]);
    let all = lists.enumerate().flat_map(|(s, list)| list.iter().enumerate().map(move |(i, c)| (s, i, c)));
    let arrival = |(s, i, c): (usize, usize, &Carry)| {
        let from = placed.starts(s, i).unwrap_or(s);
        Arrival { from, base: c.base, to: c.to, bytes: c.bytes }
    };
    let mut all: Vec<Arrival> = all.map(arrival).collect();
    all.sort_by_key(|a| a.from);
    all
}

fn slot(source: &super::stage::Source) -> Option<u32> {
    match source.base {
        Base::Slot(s) => Some(s),
        _ => None,
    }
}

/// The slot that output `n` can replace: read whole, by one operand only, of the same shape and element size.
fn in_place(stage: &Stage, n: usize, slots: &[usize], dies: impl Fn(u32) -> bool) -> Option<u32> {
    let w: &Workload = &stage.workload;
    // A product needs its operands, and what follows it the others, after the first results are written.
    let in_order = w.op().is_elementwise() || matches!(w.op(), Op::Fused(_));
    if !in_order || w.product().is_some() {
        return None;
    }
    let output = &w.outputs()[n];
    let fits = |o: &Operand| {
        o.dims == output.dims && o.strides == output.strides && o.dtype.size() == output.dtype.size()
    };
    for (source, operand) in stage.inputs.iter().zip(w.inputs()) {
        let Some(from) = slot(source) else { continue };
        let readers = stage.inputs.iter().filter(|i| slot(i) == Some(from)).count();
        let whole = source.offset == 0 && slots[from as usize] == output.bytes();
        if whole && readers == 1 && fits(operand) && dies(from) {
            return Some(from);
        }
    }
    None
}

/// Bytes as the pool counts them: four size classes from one power of two to the next.
pub(super) fn rounded(bytes: usize) -> usize {
    if bytes <= 256 {
        return 256;
    }
    let step = 1usize << ((bytes - 1).ilog2() - 2);
    bytes.div_ceil(step) * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use steersman_cpu::memory::MemoryPool;

    #[test]
    fn sizes_are_rounded_as_the_pool_rounds_them() {
        let pool = MemoryPool::new(0);
        for bytes in (1..5000).step_by(37).chain([4096, 1 << 20, (1 << 20) + 1, 33_177_600]) {
            let block = pool.take(bytes).unwrap();
            assert_eq!(pool.stats().in_use, rounded(bytes), "{bytes}");
            drop(block);
        }
    }
}
