//! Where each stage runs, and what is carried for it.
//!
//! Stages are placed after they are formed and before they get memory: a place changes neither what is fused nor
//! what is computed, only where operands live and what must be moved in between. Each stage costs at each place what
//! the engine expects of the best kernel there; [`steersman_core::place`] finds the placement that takes least,
//! moves included. Without a device that has memory of its own there is nothing to decide.

use super::away;
use super::collect::Scratch;
use super::given::{Choices, Leaves};
use super::stage::{Base, Carry, Keep, Placed, Stage};
use super::{memory, overlap};
use crate::error::Error;
use crate::runtime::Runtime;
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use steersman_core::place::{Graph, Links, MAX_PLACES, NodeId, PlaceError};
use steersman_core::{Bytes, Place, Seconds};

/// Gives every stage its place, what is carried for it, and its slots memory. Returns the peak on the host too.
pub(super) fn assign(
    rt: &Runtime,
    scratch: &Scratch,
    stages: &mut Vec<Stage>,
    slots: &[usize],
    finals: &[Keep],
) -> Result<(Placed, usize), Error> {
    let mut placed = Placed::default();
    if rt.inner.carrier.accelerators.count() > 0 {
        placed = over_places(rt, scratch, stages, slots, finals)?;
    }
    let mut peaks = memory::assign(stages, slots, &placed);
    let host = peaks.iter().position(|(p, _)| *p == Place::Host).map_or(0, |at| peaks.swap_remove(at).1);
    placed.peaks = peaks;
    Ok((placed, host))
}

/// Tries all places; those whose part does not fit are left out, with the reason.
fn over_places(
    rt: &Runtime,
    scratch: &Scratch,
    stages: &mut Vec<Stage>,
    slots: &[usize],
    finals: &[Keep],
) -> Result<Placed, Error> {
    let names = rt.engine().places();
    let all = &rt.inner.carrier.accelerators;
    let mut notes = Vec::new();
    let mut places = vec![Place::Host];
    for (id, _) in all.iter().take(MAX_PLACES - 1) {
        let place = Place::Device(id);
        match rt.engine().guard().lost(id) {
            Some(why) => notes.push(format!("{} was lost: {why}", names.name(place))),
            None if scratch.avoided.contains(&place) => {
                notes.push(format!("{} is done without this time", names.name(place)));
            }
            None => places.push(place),
        }
    }
    let mut leaves = Leaves::of(rt, scratch, &places)?;
    let choices = Choices::of(rt, stages, &places);
    loop {
        let problem = Problem { rt, scratch, stages, slots, finals, places: &places, leaves: &leaves };
        let stage_places = problem.solve(&choices)?;
        let mut placed = problem.settle(&choices, &stage_places);
        let Some((place, peak, in_use, limit)) = short_of(rt, stages, slots, &placed) else {
            overlap_where_it_fits(rt, stages, slots, &mut placed);
            placed.notes = notes;
            return Ok(placed);
        };
        // Copies of what is elsewhere too are the first to go.
        if peak <= limit && rt.inner.carrier.drop_copies(place) > 0 {
            leaves = Leaves::of(rt, scratch, &places)?;
            continue;
        }
        let (peak, in_use, limit) = (Bytes(peak as u64), Bytes(in_use as u64), Bytes(limit as u64));
        let name = names.name(place);
        let why = format!("{peak} more at the peak, {in_use} of {limit} in use");
        away::note(rt, "a plan", &name, &why);
        notes.push(format!("{name} has no room for it: {why}"));
        places.retain(|p| *p != place);
    }
}

/// A device without room for its part of a plan: the peak there, what is in use, and the limit.
fn short_of(
    rt: &Runtime,
    stages: &mut [Stage],
    slots: &[usize],
    placed: &Placed,
) -> Option<(Place, usize, usize, usize)> {
    memory::assign(stages, slots, placed).into_iter().find_map(|(place, peak)| {
        let memory = rt.inner.carrier.accelerators.memory(place)?;
        let (limit, in_use) = (memory.limit()?, memory.in_use());
        (in_use + peak > limit).then_some((place, peak, in_use, limit))
    })
}

/// Has transfers go on beside other stages, unless what arrives early leaves some place without room: then time is the
/// lesser loss.
fn overlap_where_it_fits(rt: &Runtime, stages: &mut Vec<Stage>, slots: &[usize], placed: &mut Placed) {
    let all = &rt.inner.carrier.accelerators;
    let beside = |from: Place, to: Place| {
        [from, to].into_iter().all(|p| p == Place::Host || all.memory(p).is_some_and(|m| m.overlaps()))
    };
    let at_home = |peaks: &[(Place, usize)]| peaks.iter().find(|p| p.0 == Place::Host).map_or(0, |p| p.1);
    let before = at_home(&memory::assign(stages, slots, placed));
    let Some(arranged) = overlap::arrange(stages, placed, slots.len(), &beside) else { return };
    let after = at_home(&memory::assign(stages, slots, placed));
    let over = rt.knobs().memory_limit.is_some_and(|limit| {
        let room = (limit.0 as usize).saturating_sub(rt.cpu().memory.stats().in_use);
        before <= room && after > room
    });
    if over || short_of(rt, stages, slots, placed).is_some() {
        overlap::undo(stages, placed, &arranged);
    }
}

struct Problem<'a> {
    rt: &'a Runtime,
    scratch: &'a Scratch,
    stages: &'a mut [Stage],
    slots: &'a [usize],
    finals: &'a [Keep],
    places: &'a [Place],
    leaves: &'a Leaves,
}

impl Problem<'_> {
    /// The place of each stage.
    fn solve(&self, choices: &Choices) -> Result<Vec<Place>, Error> {
        let mut places: Vec<Place> = self.places.to_vec();
        for n in 0..self.leaves.0.len() as u32 {
            places.extend(self.leaves.held(n).iter().filter(|p| !self.places.contains(p)));
        }
        places.sort_unstable();
        places.dedup();
        let engine = self.rt.engine();
        // What a lender has the host reads where it is.
        let link = |from: Place, to| {
            let lent = from.device().filter(|_| to == Place::Host).and_then(|id| engine.lent(id));
            lent.map_or_else(|| engine.link(from, to).map_or(UNKNOWN, |(link, _)| link), |(link, _)| link)
        };
        let wrong = |why: PlaceError| Error::AllFailed { workload: "a plan".into(), last: why.to_string() };
        let mut graph = Graph::new(Links::new(&places, link).map_err(wrong)?);
        let mut leaf_nodes = Vec::new();
        for n in 0..self.leaves.0.len() as u32 {
            let bytes = Bytes(self.leaves.bytes(n) as u64);
            leaf_nodes.push(graph.leaf(self.leaves.held(n), bytes).map_err(wrong)?);
        }
        let read: Vec<u32> = self.read_by_host().filter_map(|k| k.from.base.slot()).collect();
        let units = self.units();
        let mut node_of: Vec<Option<NodeId>> = vec![None; self.slots.len()];
        let mut unit_nodes = Vec::with_capacity(units.len());
        for unit in &units {
            let mut inputs: Vec<NodeId> = Vec::new();
            for source in unit.iter().flat_map(|&s| &self.stages[s].inputs) {
                match source.base {
                    Base::Leaf(n) => inputs.push(leaf_nodes[n as usize]),
                    Base::Slot(slot) => inputs.extend(node_of[slot as usize]),
                    Base::Scalar(_) | Base::Empty => {}
                }
            }
            let mut written: Vec<u32> =
                unit.iter().flat_map(|&s| &self.stages[s].outputs).map(|o| o.0).collect();
            written.sort_unstable();
            written.dedup();
            let bytes: usize = written.iter().map(|&s| self.slots[s as usize]).sum();
            let read: usize =
                written.iter().filter(|s| read.contains(s)).map(|&s| self.slots[s as usize]).sum();
            let cost = |place: &Place| {
                let all = unit.iter().map(|&s| choices.0[s].get(place).map(|c| c.cautious));
                // What programs read they get a copy of, also from a lender.
                let lender = read > 0 && place.device().is_some_and(|id| engine.lent(id).is_some());
                let home = if lender { self.time((*place, Place::Host), read) } else { 0.0 };
                all.sum::<Option<f64>>().map(|seconds| (*place, Seconds(seconds + home)))
            };
            let costs: Vec<(Place, Seconds)> = self.places.iter().filter_map(cost).collect();
            let node = graph.node(&costs, &inputs, Bytes(bytes as u64)).map_err(wrong)?;
            written.iter().for_each(|&s| node_of[s as usize] = Some(node));
            unit_nodes.push(node);
        }
        for keep in self.read_by_host() {
            let node = match keep.from.base {
                Base::Leaf(n) => Some(leaf_nodes[n as usize]),
                Base::Slot(slot) => node_of[slot as usize],
                Base::Scalar(_) | Base::Empty => None,
            };
            if let Some(node) = node {
                graph.want(node, Place::Host).map_err(wrong)?;
            }
        }
        let placement = graph.place();
        let mut at = vec![Place::Host; self.stages.len()];
        for (unit, &node) in units.iter().zip(&unit_nodes) {
            unit.iter().for_each(|&s| at[s] = placement.place(node));
        }
        Ok(at)
    }

    /// Stages that write parts of one slot go together; each unit stands where its last stage does.
    fn units(&self) -> Vec<Vec<usize>> {
        let mut writer: Vec<Option<usize>> = vec![None; self.slots.len()];
        let mut units: Vec<Vec<usize>> = Vec::new();
        for (s, stage) in self.stages.iter().enumerate() {
            let together: Vec<usize> = stage.outputs.iter().filter_map(|o| writer[o.0 as usize]).collect();
            let mut unit: Vec<usize> = Vec::new();
            for u in together {
                unit.append(&mut units[u]);
            }
            unit.push(s);
            let written = unit.iter().flat_map(|&s| &self.stages[s].outputs);
            written.for_each(|o| writer[o.0 as usize] = Some(units.len()));
            units.push(unit);
        }
        units.retain(|u| !u.is_empty());
        units
    }

    /// The results that the host is about to read.
    fn read_by_host(&self) -> impl Iterator<Item = &Keep> {
        let all = self.stages.iter().flat_map(|s| &s.keeps).chain(self.finals);
        all.filter(|k| self.scratch.homeward && self.scratch.roots.contains(&k.node))
    }

    /// Puts the places into the stages, with what must be carried.
    fn settle(mut self, choices: &Choices, at: &[Place]) -> Placed {
        let mut placed = Placed { slots: vec![Place::Host; self.slots.len()], ..Placed::default() };
        for (stage, &place) in self.stages.iter().zip(at) {
            stage.outputs.iter().for_each(|o| placed.slots[o.0 as usize] = place);
        }
        let results_lent: Vec<Option<Place>> =
            (0..at.len()).map(|s| self.result_lent(s, choices, at)).collect();
        for (stage, lender) in self.stages.iter().zip(&results_lent) {
            lender.iter().for_each(|&place| placed.slots[stage.outputs[0].0 as usize] = place);
        }
        let mut carried = HashSet::new();
        for (s, &place) in at.iter().enumerate() {
            let bases: SmallVec<[Base; 4]> = self.stages[s].inputs.iter().map(|i| i.base).collect();
            let mut carries = Vec::new();
            let mut lent: SmallVec<[(usize, Place); 4]> = SmallVec::new();
            for (i, base) in bases.into_iter().enumerate() {
                match self.lender(base, (s, place), choices, &placed, &carried) {
                    Some(lender) => lent.push((i, lender)),
                    None => carries.extend(self.carry(base, place, &placed, &mut carried)),
                }
            }
            let stage = &mut self.stages[s];
            stage.carries = carries;
            stage.place = place;
            if let Some(choice) = choices.0[s].get(&place) {
                let workload = choice.workload.clone();
                let workload = results_lent[s].iter().fold(workload, |w, &lender| w.with_output_at(lender));
                stage.workload = lent.iter().fold(workload, |w, &(i, lender)| w.with_input_at(i, lender));
                stage.kernel = self.rt.engine().name(choice.kernel);
                stage.predicted = choice.mean;
                let lender = lent.first().map(|l| l.1).or(results_lent[s]).and_then(Place::device);
                let (once, _) = lender.and_then(|id| self.rt.engine().lent(id)).unzip();
                stage.predicted += once.map_or(0.0, |link| link.latency.0);
            }
        }
        let wanted: Vec<Base> = self.read_by_host().map(|k| k.from.base).collect();
        placed.homeward = wanted
            .into_iter()
            .filter_map(|base| self.carry(base, Place::Host, &placed, &mut carried))
            .collect();
        // Nothing is away after all: then all goes as if there were only the host.
        let leaves_at_home =
            (0..self.leaves.0.len() as u32).all(|n| self.leaves.held(n).contains(&Place::Host));
        if leaves_at_home && at.iter().all(|p| *p == Place::Host) {
            placed.slots.clear();
        }
        placed
    }

    /// Whose memory the host works on in place of a copy of this operand.
    fn lender(
        &self,
        base: Base,
        (s, place): (usize, Place),
        choices: &Choices,
        placed: &Placed,
        carried: &HashSet<(Base, Place)>,
    ) -> Option<Place> {
        if place != Place::Host || carried.contains(&(base, place)) {
            return None;
        }
        let from = match base {
            Base::Leaf(n) => {
                *self.leaves.held(n).first().filter(|_| !self.leaves.held(n).contains(&place))?
            }
            Base::Slot(slot) => placed.slot(slot),
            Base::Scalar(_) | Base::Empty => return None,
        };
        self.lends(s, from, choices).then_some(from)
    }

    /// Whose memory the host writes the result of a stage to: that of the only device which reads it.
    fn result_lent(&self, s: usize, choices: &Choices, at: &[Place]) -> Option<Place> {
        let [(slot, 0)] = self.stages[s].outputs[..] else { return None };
        let whole = self.stages[s].workload.output().bytes() == self.slots[slot as usize];
        let kept = self.stages.iter().flat_map(|s| &s.keeps).chain(self.finals);
        if at[s] != Place::Host || !whole || kept.into_iter().any(|k| k.from.base == Base::Slot(slot)) {
            return None;
        }
        let reads = |stage: &Stage| stage.inputs.iter().any(|i| i.base == Base::Slot(slot));
        let mut readers =
            self.stages.iter().zip(at).filter(|(stage, _)| reads(stage)).map(|(_, place)| *place);
        let place = readers.next()?;
        (readers.all(|p| p == place) && self.lends(s, place, choices)).then_some(place)
    }

    /// Whether a place lends what it has of a stage that runs on the host.
    fn lends(&self, s: usize, place: Place, choices: &Choices) -> bool {
        let choice = choices.0[s].get(&Place::Host);
        let lends = |id| choice.is_some_and(|c| self.rt.engine().lends(&c.workload, id));
        place.device().is_some_and(lends)
    }

    /// Seconds that a copy of so many bytes takes.
    fn time(&self, (from, to): (Place, Place), bytes: usize) -> f64 {
        let link = self.rt.engine().link(from, to).map_or(UNKNOWN, |(link, _)| link);
        link.time(Bytes(bytes as u64)).0
    }

    /// What brings a value to a place, unless it is there or was brought there before.
    fn carry(
        &mut self,
        base: Base,
        to: Place,
        placed: &Placed,
        carried: &mut HashSet<(Base, Place)>,
    ) -> Option<Carry> {
        let time = |from, bytes: usize| self.time((from, to), bytes);
        let (from, bytes) = match base {
            Base::Leaf(n) => {
                let (held, bytes) = (self.leaves.held(n), self.leaves.bytes(n));
                if held.contains(&to) {
                    return None;
                }
                let nearest = held.iter().min_by(|a, b| time(**a, bytes).total_cmp(&time(**b, bytes)));
                (*nearest?, bytes)
            }
            Base::Slot(slot) => (placed.slot(slot), self.slots[slot as usize]),
            Base::Scalar(_) | Base::Empty => return None,
        };
        if from == to || !carried.insert((base, to)) {
            return None;
        }
        let predicted = time(from, bytes);
        Some(Carry { base, from, to, bytes, predicted, measured: AtomicU64::new(0) })
    }
}

/// For a link that vanished while the plan was made: never worth taking.
const UNKNOWN: steersman_core::place::Link =
    steersman_core::place::Link { latency: Seconds(1e3), bandwidth: 1e6, beyond: 1e6, overlap: false };
