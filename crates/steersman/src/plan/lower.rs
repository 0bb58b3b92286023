//! From roles to stages: builds the workloads, and decides for each group whether it runs fused.

use super::collect::Scratch;
use super::express::Fused;
use super::graph::{Item, items};
use super::group::{Event, Groups, Role};
use super::guess::Guess;
use super::place;
use super::stage::{Base, Compiled, Keep, Source, Stage};
use crate::array::node::NodeOp;
use crate::error::Error;
use crate::runtime::Runtime;
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use steersman_core::{DType, Dims, Op, Operand, Place, Strides, Workload, WorkloadError};

/// An operand with where it comes from.
pub(super) type Fed = (Source, Operand);

pub(super) struct Lower<'a> {
    rt: &'a Runtime,
    pub items: &'a [Item],
    pub groups: Groups<'a>,
    /// The slot an item's elements are in.
    pub slot_of: Vec<u32>,
    slots: Vec<usize>,
    stages: Vec<Stage>,
    /// The group in whose expression an item is being built, by a number that grows.
    pub stamp: Vec<u32>,
    pub stamps: u32,
    /// Estimates of single ops, by what they depend on.
    singles: HashMap<(u64, DType, Dims, [u8; 3]), Option<Guess>>,
}

pub(super) const NO_SLOT: u32 = u32::MAX;

/// Seconds of a stage beside its kernel: addresses, the decision, memory. Ten stages of 100 elements took 1.2 µs
/// more than their kernels.
const DISPATCH: f64 = 120e-9;

/// Runs after which a fused group's time is known: the first ones are cold.
const TRIED: u64 = 5;

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
    for event in &events {
        match event {
            Event::Alone(i) => lower.alone(*i)?,
            Event::Group { group, arrays, reductions } => lower.group(*group, arrays, reductions)?,
        }
    }
    let finals = lower.keeps();
    let Lower { mut stages, slots, .. } = lower;
    let (placed, peak) = place::assign(rt, scratch, &mut stages, &slots, &finals)?;
    Ok(Compiled {
        key: scratch.words.clone().into(),
        stages,
        slots,
        finals,
        placed,
        peak,
        input_bytes: items.iter().filter(|i| i.leaf.is_some()).map(|i| i.bytes()).sum(),
        nodes: scratch.order.len(),
        expressions: items.len(),
        runs: AtomicU64::new(0),
    })
}

impl Lower<'_> {
    fn new_slot(&mut self, bytes: usize) -> u32 {
        self.slots.push(bytes);
        self.slots.len() as u32 - 1
    }

    /// An item's elements in memory.
    pub fn fed(&self, i: u32) -> Fed {
        let (base, look) = self.groups.look(i);
        let (item, owner) = (&self.items[i as usize], &self.items[base as usize]);
        let offset = look.offset * item.dtype.size() as isize;
        let (from, align) = match (&self.groups.roles[base as usize], &owner.leaf) {
            (Role::Empty, _) => (Base::Empty, 6),
            (_, Some(leaf)) => (Base::Leaf(leaf.number), leaf.align_log2),
            _ => (Base::Slot(self.slot_of[base as usize]), 6),
        };
        let align_log2 = if offset == 0 { align } else { align.min(offset.trailing_zeros().min(6) as u8) };
        let operand = Operand {
            dtype: item.dtype,
            place: Place::Host,
            align_log2,
            dims: item.dims.clone(),
            strides: look.strides,
        };
        (Source { base: from, offset }, operand)
    }

    /// Argument `k` of an element-wise item as an operand of an op of its own.
    fn operand(&self, i: u32, k: usize) -> Result<Fed, WorkloadError> {
        let item = &self.items[i as usize];
        let constant = |s: u32, dtype| {
            Ok((
                Source { base: Base::Scalar(s), offset: 0 },
                Operand { align_log2: 3, ..Operand::new(dtype, &[])? },
            ))
        };
        if let Some(s) = item.args[k].scalar() {
            return constant(s, self.argument_type(i, k));
        }
        let a = item.args[k].node().unwrap_or(0);
        match (&self.groups.roles[a as usize], self.items[a as usize].args.first().and_then(|a| a.scalar())) {
            (Role::Constant(_), Some(s)) => constant(s, self.items[a as usize].dtype),
            (Role::Step(_), _) if self.slot_of[a as usize] == NO_SLOT => {
                // Only asked for to be estimated.
                let item = &self.items[a as usize];
                Ok((Source { base: Base::Empty, offset: 0 }, Operand::new(item.dtype, &item.dims)?))
            }
            _ => Ok(self.fed(a)),
        }
    }

    /// The element type of argument `k`, which may be a bare number.
    pub fn argument_type(&self, i: u32, k: usize) -> DType {
        let item = &self.items[i as usize];
        let of = |k: usize| item.args[k].node().map(|a| self.items[a as usize].dtype);
        match item.op {
            NodeOp::Binary(_) => of(k).or_else(|| of(1 - k)).unwrap_or(item.dtype),
            _ => of(k).unwrap_or(item.dtype),
        }
    }

    /// An element-wise item as the engine's own op, if it has one.
    fn plain(&self, i: u32) -> Result<Option<(Workload, Vec<Fed>)>, WorkloadError> {
        let item = &self.items[i as usize];
        let op = match item.op {
            NodeOp::Unary(u) => Op::Unary(u),
            NodeOp::Binary(b) => Op::Binary(b),
            NodeOp::Ternary(t) => Op::Ternary(t),
            _ => return Ok(None),
        };
        let inputs = (0..item.args.len()).map(|k| self.operand(i, k)).collect::<Result<Vec<_>, _>>()?;
        let w = Workload::new(op, inputs.iter().map(|(_, o)| o.clone()))?;
        // Two numbers and a scalar condition broadcast to less than the item's shape.
        Ok((w.output().dims == item.dims).then_some((w, inputs)))
    }

    /// What a stage is expected to take by the quickest of its candidates.
    fn estimate(&self, w: &Workload) -> Option<Guess> {
        let w = w.clone().with_numerics(self.rt.knobs().numerics);
        let all = self.rt.engine().estimates(&w);
        let best = all.iter().min_by(|a, b| a.estimate.mean.0.total_cmp(&b.estimate.mean.0))?;
        Some(Guess {
            mean: best.estimate.mean.0 + DISPATCH,
            least: best.estimate.low.0 + DISPATCH,
            tried: best.estimate.evidence.exact >= TRIED,
            proven: best.proven(),
        })
    }

    /// Adds a stage that writes these slots. Operands whose strides no kernel takes are copied first.
    fn push(
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
    fn alone(&mut self, i: u32) -> Result<(), Error> {
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

    /// The steps that a group's results need, in order: its own, and others' that are quickly computed again.
    fn steps(&mut self, group: u32, arrays: &[u32], reductions: &[u32]) -> Vec<u32> {
        self.stamps += 1;
        let stamp = self.stamps;
        let mut left: Vec<u32> = arrays.to_vec();
        left.extend(reductions.iter().filter_map(|&r| self.items[r as usize].args[0].node()));
        let mut steps = Vec::new();
        while let Some(i) = left.pop() {
            if std::mem::replace(&mut self.stamp[i as usize], stamp) == stamp {
                continue;
            }
            steps.push(i);
            for a in self.items[i as usize].args.iter().filter_map(|a| a.node()) {
                let written = self.groups.must[a as usize] && self.groups.group_of(a) != Some(group);
                if matches!(self.groups.roles[a as usize], Role::Step(_)) && !written {
                    left.push(a);
                }
            }
        }
        steps.sort_unstable();
        steps
    }

    fn group(&mut self, group: u32, arrays: &[u32], reductions: &[u32]) -> Result<(), Error> {
        let steps = self.steps(group, arrays, reductions);
        let dims = self.groups.dims(group).clone();
        if let ([only], []) = (&steps[..], reductions) {
            return self.single(*only, &dims);
        }
        let parts = Fused::build(self, &steps, arrays, reductions);
        let fused = parts.ok().and_then(|f| {
            let w = Workload::fused(&f.expr, &dims, f.inputs.iter().map(|(_, o)| o.clone())).ok()?;
            // A kernel that refuses the strides may take copies: pushing the stage finds out.
            let guess = self.estimate(&w)?;
            Some((f, guess))
        });
        let apart = self.apart(&steps, reductions);
        match fused {
            Some((f, guess)) if apart.is_none_or(|apart| !guess.is_slower(apart)) => {
                let outputs: Vec<(u32, usize)> = arrays
                    .iter()
                    .chain(reductions)
                    .map(|&i| {
                        let slot = self.new_slot(self.items[i as usize].bytes());
                        self.slot_of[i as usize] = slot;
                        (slot, 0)
                    })
                    .collect();
                let expr = f.expr;
                let make = |o: &[Operand]| Ok(Workload::fused(&expr, &dims, o.iter().cloned())?);
                let ops = steps.len() + reductions.len();
                self.push(&make, f.inputs, &outputs, f.scalars, ops)?.instead = apart.map(|a| a.mean);
            }
            fused => {
                let instead = fused.map(|(_, guess)| guess.mean);
                for &i in &steps {
                    self.single(i, &dims)?;
                }
                for &r in reductions {
                    self.alone(r)?;
                }
                if let Some(last) = self.stages.last_mut() {
                    last.instead = instead;
                }
            }
        }
        Ok(())
    }

    /// One element-wise op as a stage.
    fn single(&mut self, i: u32, dims: &Dims) -> Result<(), Error> {
        let plain = self.plain(i)?;
        let slot = self.new_slot(self.items[i as usize].bytes());
        let (op, inputs, scalars) = match plain {
            Some((w, inputs)) => (Err(w.op()), inputs, Vec::new()),
            None => {
                self.stamps += 1;
                self.stamp[i as usize] = self.stamps;
                let f = Fused::build(self, &[i], &[i], &[])?;
                (Ok(f.expr), f.inputs, f.scalars)
            }
        };
        self.slot_of[i as usize] = slot;
        let make = |o: &[Operand]| match &op {
            Ok(expr) => Ok(Workload::fused(expr, dims, o.iter().cloned())?),
            Err(op) => Ok(Workload::new(*op, o.iter().cloned())?),
        };
        self.push(&make, inputs, &[(slot, 0)], scalars, 1)?;
        Ok(())
    }

    /// What the steps and reductions are expected to take one op at a time; `None` if one of them cannot.
    fn apart(&mut self, steps: &[u32], reductions: &[u32]) -> Option<Guess> {
        let mut total = Guess { mean: 0.0, least: 0.0, tried: true, proven: true };
        for &i in steps {
            total = total.and(self.alike(i)?);
        }
        for &r in reductions {
            let item = &self.items[r as usize];
            let NodeOp::Reduce { kind, axes } = item.op else { return None };
            let from = &self.items[item.args[0].node()? as usize];
            let operand = Operand::new(from.dtype, &from.dims).ok()?;
            total = total.and(self.estimate(&Workload::new(Op::Reduce { kind, axes }, [operand]).ok()?)?);
        }
        Some(total)
    }

    /// The estimate of one op; ops that differ only in which values they take share it.
    fn alike(&mut self, i: u32) -> Option<Guess> {
        let item = &self.items[i as usize];
        let kind = |k: usize| match item.args.get(k).map(|a| a.node()) {
            None => Some(0),
            Some(None) => Some(1),
            Some(Some(a)) => match self.groups.roles[a as usize] {
                Role::Constant(_) => Some(1),
                Role::Step(_) if self.items[a as usize].dims == item.dims => Some(2),
                _ => None,
            },
        };
        let key = match (kind(0), kind(1), kind(2)) {
            (Some(a), Some(b), Some(c)) => Some((
                super::collect::op_word(&item.op),
                self.argument_type_or_own(i),
                item.dims.clone(),
                [a, b, c],
            )),
            _ => None,
        };
        if let Some(key) = &key
            && let Some(&known) = self.singles.get(key)
        {
            return known;
        }
        let w = match self.plain(i) {
            Ok(Some((w, _))) => Some(w),
            Ok(None) => {
                self.stamps += 1;
                self.stamp[i as usize] = self.stamps;
                let built = Fused::build(self, &[i], &[i], &[]).ok();
                built.and_then(|f| {
                    Workload::fused(
                        &f.expr,
                        &self.items[i as usize].dims,
                        f.inputs.into_iter().map(|(_, o)| o),
                    )
                    .ok()
                })
            }
            Err(_) => None,
        };
        let estimate = w.and_then(|w| self.estimate(&w));
        if let Some(key) = key {
            self.singles.insert(key, estimate);
        }
        estimate
    }

    fn argument_type_or_own(&self, i: u32) -> DType {
        if self.items[i as usize].args.is_empty() {
            self.items[i as usize].dtype
        } else {
            self.argument_type(i, 0)
        }
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
