//! From roles to stages: the order of what happens, each with its workload and the slots it reads and writes.

use super::collect::Scratch;
use super::graph::{Item, items};
use super::group::{Groups, Role};
use super::guess::Guess;

use super::stage::{Base, Compiled, Keep, Source, Stage};
use super::time::Event;
use super::{epilogue, place};
use crate::array::node::NodeOp;
use crate::error::Error;
use crate::runtime::Runtime;
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use steersman_core::{DType, Dims, Op, Operand, Place, Strides, Workload};

/// An operand with where it comes from.
pub(super) type Fed = (Source, Operand);

pub(super) struct Lower<'a> {
    pub rt: &'a Runtime,
    pub items: &'a [Item],
    pub groups: Groups<'a>,
    /// The slot an item's elements are in.
    pub slot_of: Vec<u32>,
    slots: Vec<usize>,
    pub stages: Vec<Stage>,
    /// The group in whose expression an item is being built, by a number that grows.
    pub stamp: Vec<u32>,
    pub stamps: u32,
    /// Estimates of single ops, by what they depend on.
    pub singles: HashMap<(u64, DType, Dims, [u8; 3]), Option<Guess>>,
}

pub(super) const NO_SLOT: u32 = u32::MAX;

/// Plans the graph of a walk.
pub(super) fn compile(rt: &Runtime, scratch: &Scratch) -> Result<Compiled, Error> {
    let items = items(scratch);
    let groups = Groups::new(&items);
    let events = groups.events();
    let mut lower = Lower {
        rt,
        items: &items,
        groups,
        slot_of: vec![NO_SLOT; items.len()],
        slots: Vec::new(),
        stages: Vec::new(),
        stamp: vec![0; items.len()],
        stamps: 0,
        singles: HashMap::new(),
    };
    let epilogues = epilogue::find(&mut lower, &events);
    for event in &events {
        match event {
            // A product that may be one stage with the group behind it waits for that.
            Event::Alone(i) if epilogues.values().any(|p| p == i) => {}
            Event::Alone(i) => lower.alone(*i)?,
            Event::Group { group, arrays, reductions } => match epilogues.get(group) {
                Some(&product) => lower.behind_product(product, *group, arrays)?,
                None => lower.group(*group, arrays, reductions)?,
            },
        }
    }
    let finals = lower.keeps();
    let Lower { mut stages, slots, slot_of, .. } = lower;
    let (mut placed, peak) = place::assign(rt, scratch, &mut stages, &slots, &finals)?;
    if !placed.slots.is_empty() {
        let kept = |slot: u32| stages.iter().flat_map(|s| &s.keeps).any(|k| k.from.base == Base::Slot(slot));
        let away = |slot: u32| slot != NO_SLOT && placed.slot(slot) != Place::Host && kept(slot);
        let made = slot_of.iter().zip(&items).filter(|(slot, _)| away(**slot));
        placed.makers = made.map(|(&slot, item)| (slot, item.node)).collect();
    }
    Ok(Compiled {
        key: scratch.words.clone().into(),
        stages,
        slots,
        finals,
        placed,
        peak,
        inputs: items.iter().filter(|i| i.leaf.is_some()).map(|i| (i.to_string(), i.bytes())).collect(),
        nodes: scratch.order.len(),
        expressions: items.len(),
        runs: AtomicU64::new(0),
        lasted: AtomicU64::new(0),
    })
}

impl Lower<'_> {
    pub fn new_slot(&mut self, bytes: usize) -> u32 {
        self.slots.push(bytes);
        self.slots.len() as u32 - 1
    }

    /// Adds a stage that writes these slots. Operands whose strides no kernel takes are copied first.
    pub fn push(
        &mut self,
        make: &dyn Fn(&[Operand]) -> Result<Workload, Error>,
        mut inputs: Vec<Fed>,
        outputs: &[(u32, usize)],
        scalars: Vec<u32>,
        ops: usize,
    ) -> Result<&mut Stage, Error> {
        let operands = |inputs: &[Fed]| inputs.iter().map(|(_, o)| o.clone()).collect::<Vec<_>>();
        let numerics = self.rt.knobs().numerics;
        let mut workload = make(&operands(&inputs))?.with_numerics(numerics);
        let mut judged = self.rt.engine().judge(&workload);
        if judged.is_err() && inputs.iter().any(|(_, o)| !o.is_contiguous()) && workload.op() != Op::Copy {
            for fed in inputs.iter_mut().filter(|(_, o)| !o.is_contiguous()) {
                let slot = self.new_slot(fed.1.bytes());
                let copied = Operand::new(fed.1.dtype, &fed.1.dims)?;
                let copy = |o: &[Operand]| Ok(Workload::new(Op::Copy, o.iter().cloned())?);
                self.push(&copy, vec![fed.clone()], &[(slot, 0)], Vec::new(), 0)?;
                *fed = (Source { base: Base::Slot(slot), offset: 0 }, copied);
            }
            workload = make(&operands(&inputs))?.with_numerics(numerics);
            judged = self.rt.engine().judge(&workload);
        }
        let decision = judged?;
        self.stages.push(Stage {
            kernel: self.rt.engine().name(decision.variant().kernel),
            predicted: decision.predicted().0,
            workload,
            inputs: inputs.into_iter().map(|(source, _)| source).collect(),
            outputs: SmallVec::from_slice(outputs),
            scalars,
            place: Place::Host,
            carries: Vec::new(),
            take: smallvec![],
            reuse: smallvec![],
            free: smallvec![],
            keeps: smallvec![],
            instead: None,
            ops,
            measured: AtomicU64::new(0),
        });
        let last = self.stages.len() - 1;
        Ok(&mut self.stages[last])
    }

    /// A stage that is not a group.
    pub fn alone(&mut self, i: u32) -> Result<(), Error> {
        let item = &self.items[i as usize];
        let args: Vec<u32> = item.args.iter().filter_map(|a| a.node()).collect();
        let inputs: Vec<Fed> = args.iter().map(|&a| self.fed(a)).collect();
        let slot = self.new_slot(item.bytes());
        self.slot_of[i as usize] = slot;
        if let NodeOp::Concat(axis) = item.op {
            return self.concat(i, axis, inputs);
        }
        let op = match item.op {
            NodeOp::Reduce { kind, axes } => Op::Reduce { kind, axes },
            NodeOp::MatMul => Op::MatMul,
            NodeOp::Conv2d { stride, pad } => Op::Conv2d { stride, pad },
            _ => Op::Copy,
        };
        let make = |o: &[Operand]| Ok(Workload::new(op, o.iter().cloned())?);
        self.push(&make, inputs, &[(slot, 0)], Vec::new(), 1)?;
        Ok(())
    }

    /// Copies every part to its place in the whole.
    fn concat(&mut self, i: u32, axis: usize, parts: Vec<Fed>) -> Result<(), Error> {
        let item = &self.items[i as usize];
        let whole = crate::array::value::contiguous(&item.dims);
        let mut at = 0usize;
        for part in parts {
            let dims = part.1.dims.clone();
            if dims.contains(&0) {
                continue;
            }
            let offset = at * whole[axis] as usize * item.dtype.size();
            at += dims[axis];
            let strides = Strides::from_slice(&whole);
            let align_log2 = if offset == 0 { 6 } else { offset.trailing_zeros().min(6) as u8 };
            let to = Operand { align_log2, ..Operand::strided(item.dtype, &dims, strides)? };
            let make =
                |o: &[Operand]| Ok(Workload::new(Op::Copy, o.iter().cloned())?.with_output(to.clone())?);
            self.push(&make, vec![part], &[(self.slot_of[i as usize], offset)], Vec::new(), 1)?;
        }
        Ok(())
    }

    /// Has every value that someone wants handed over as soon as it is written; returns those that are there.
    fn keeps(&mut self) -> Vec<Keep> {
        let mut writer: Vec<usize> = vec![usize::MAX; self.slots.len()];
        for (s, stage) in self.stages.iter().enumerate() {
            stage.outputs.iter().for_each(|o| writer[o.0 as usize] = s);
        }
        let mut finals = Vec::new();
        for i in 0..self.items.len() as u32 {
            let item = &self.items[i as usize];
            if item.keepers.is_empty() || item.leaf.is_some() {
                continue;
            }
            let in_memory = match self.groups.roles[i as usize] {
                Role::Step(_) | Role::Constant(_) => self.groups.must[i as usize],
                _ => true,
            };
            if !in_memory {
                continue;
            }
            let (from, operand) = self.fed(i);
            for &node in &item.keepers {
                let keep = Keep { node, from, strides: operand.strides.clone() };
                match from.base {
                    Base::Slot(slot) => self.stages[writer[slot as usize]].keeps.push(keep),
                    _ => finals.push(keep),
                }
            }
        }
        finals
    }
}
