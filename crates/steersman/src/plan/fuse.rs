//! Groups as stages: fused, or one op at a time, as the engine's estimates say.

use super::express::Fused;
use super::group::Role;
use super::guess::Guess;
use super::lower::Lower;
use crate::array::node::NodeOp;
use crate::error::Error;
use steersman_core::{DType, Dims, Op, Operand, Workload};

/// Seconds of a stage beside its kernel: addresses, the decision, memory. Ten stages of 100 elements took 1.2 µs
/// more than their kernels.
const DISPATCH: f64 = 120e-9;

/// Runs after which a fused group's time is known: the first ones are cold.
const TRIED: u64 = 5;

impl Lower<'_> {
    /// What a stage is expected to take by the quickest of its candidates.
    pub fn estimate(&self, w: &Workload) -> Option<Guess> {
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

    /// The steps that a group's results need, in order: its own, and others' that are quickly computed again.
    pub fn steps(&mut self, group: u32, arrays: &[u32], reductions: &[u32]) -> Vec<u32> {
        self.stamps += 1;
        let stamp = self.stamps;
        let mut left: Vec<u32> = arrays.to_vec();
        let reduced = reductions.iter().filter_map(|&r| self.items[r as usize].args[0].node());
        left.extend(reduced.filter(|&a| matches!(self.groups.roles[a as usize], Role::Step(_))));
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

    pub fn group(&mut self, group: u32, arrays: &[u32], reductions: &[u32]) -> Result<(), Error> {
        let given = |&r: &u32| {
            let arg = self.items[r as usize].args[0].node().unwrap_or(0);
            !matches!(self.groups.roles[arg as usize], Role::Step(_))
        };
        let (joined, own): (Vec<u32>, Vec<u32>) = reductions.iter().partition(|r| given(r));
        if !joined.is_empty() && !self.joining_pays(group, arrays, &own, &joined) {
            if !arrays.is_empty() || !own.is_empty() {
                self.group(group, arrays, &own)?;
            }
            return joined.iter().try_for_each(|&r| self.alone(r));
        }
        let steps = self.steps(group, arrays, reductions);
        let dims = self.groups.dims(group).clone();
        if let ([only], []) = (&steps[..], reductions) {
            return self.single(*only, &dims);
        }
        let parts = Fused::build(self, &steps, arrays, reductions, None);
        let fused = parts.ok().and_then(|f| Some((self.fused_guess(&f, &dims)?, f)));
        let apart = self.apart(&steps, reductions);
        match fused {
            Some((guess, f)) if apart.is_none_or(|apart| !guess.is_slower(apart)) => {
                let outputs = self.new_outputs(arrays.iter().chain(reductions));
                let expr = f.expr;
                let make = |o: &[Operand]| Ok(Workload::fused(&expr, &dims, o.iter().cloned())?);
                let ops = steps.len() + reductions.len();
                self.push(&make, f.inputs, &outputs, f.scalars, ops)?.instead = apart.map(|a| a.mean);
            }
            fused => {
                let instead = fused.map(|(guess, _)| guess.mean);
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

    /// Whether reductions of a given array are worth running with the group that reads it too, or with each other.
    fn joining_pays(&mut self, group: u32, arrays: &[u32], own: &[u32], joined: &[u32]) -> bool {
        let dims = self.groups.dims(group).clone();
        let all: Vec<u32> = own.iter().chain(joined).copied().collect();
        let steps = self.steps(group, arrays, &all);
        let together = Fused::build(self, &steps, arrays, &all, None).ok();
        let Some(together) = together.and_then(|f| self.fused_guess(&f, &dims)) else { return false };
        let mut apart = self.apart(&[], joined);
        if !steps.is_empty() {
            let steps = self.steps(group, arrays, own);
            let others = self.group_guess(&steps, arrays, own, &dims);
            apart = apart.and_then(|a| Some(a.and(others?)));
        }
        apart.is_none_or(|apart| together.pays(apart))
    }

    /// Slots for these results.
    pub fn new_outputs<'i>(&mut self, items: impl Iterator<Item = &'i u32>) -> Vec<(u32, usize)> {
        let new = |&i: &u32| {
            let slot = self.new_slot(self.items[i as usize].bytes());
            self.slot_of[i as usize] = slot;
            (slot, 0)
        };
        items.map(new).collect()
    }

    /// What a fused group is expected to take. A kernel that refuses the strides may take copies: pushing the stage
    /// finds out.
    pub fn fused_guess(&self, f: &Fused, dims: &Dims) -> Option<Guess> {
        let w = Workload::fused(&f.expr, dims, f.inputs.iter().map(|(_, o)| o.clone())).ok()?;
        self.estimate(&w)
    }

    /// What a group is expected to take in the better way: fused, or one op at a time.
    pub fn group_guess(
        &mut self,
        steps: &[u32],
        arrays: &[u32],
        reductions: &[u32],
        dims: &Dims,
    ) -> Option<Guess> {
        let fused = Fused::build(self, steps, arrays, reductions, None).ok();
        let apart = self.apart(steps, reductions);
        if steps.len() == 1 && reductions.is_empty() {
            return apart;
        }
        match (fused.and_then(|f| self.fused_guess(&f, dims)), apart) {
            (Some(fused), Some(apart)) => Some(if fused.is_slower(apart) { apart } else { fused }),
            (fused, apart) => fused.or(apart),
        }
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
                let f = Fused::build(self, &[i], &[i], &[], None)?;
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
                let built = Fused::build(self, &[i], &[i], &[], None).ok();
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
}
