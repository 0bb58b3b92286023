//! Matrix products and the groups behind them: bias, activation, scale while the product is in cache.
//!
//! A product that only one group reads may be one stage with it; whether it is, estimates decide, as for any group.

use super::express::Fused;
use super::group::Role;
use super::guess::Guess;
use super::lower::Lower;
use super::time::Event;
use crate::array::node::NodeOp;
use crate::error::Error;
use std::collections::HashMap;
use steersman_core::{Op, Operand, Workload};

/// Who reads a product.
#[derive(Clone, Copy)]
enum Reader {
    Group(u32),
    /// More than one, or not as a group of its shape does.
    Others,
}

/// For each group the product that may run with it, the last one if there are several.
pub(super) fn find(l: &mut Lower<'_>, events: &[Event]) -> HashMap<u32, u32> {
    let is_product = |l: &Lower<'_>, a: u32| {
        let item = &l.items[a as usize];
        item.op == NodeOp::MatMul
            && item.keepers.is_empty()
            && matches!(l.groups.roles[a as usize], Role::Alone(_))
    };
    let mut readers: HashMap<u32, Reader> = HashMap::new();
    if !(0..l.items.len() as u32).any(|i| is_product(l, i)) {
        return HashMap::new();
    }
    for (i, item) in l.items.iter().enumerate() {
        for a in item.args.iter().filter_map(|a| a.node()).filter(|&a| is_product(l, a)) {
            if !matches!(l.groups.roles[i], Role::Step(_)) {
                readers.insert(a, Reader::Others);
            }
        }
    }
    for event in events {
        let Event::Group { group, arrays, reductions } = event else { continue };
        for i in l.steps(*group, arrays, reductions) {
            for a in l.items[i as usize].args.iter().filter_map(|a| a.node()).filter(|&a| is_product(l, a)) {
                let fits = reductions.is_empty() && l.items[a as usize].dims == *l.groups.dims(*group);
                let reader = match readers.get(&a) {
                    None if fits => Reader::Group(*group),
                    Some(Reader::Group(g)) if fits && g == group => continue,
                    _ => Reader::Others,
                };
                readers.insert(a, reader);
            }
        }
    }
    let mut found: HashMap<u32, u32> = HashMap::new();
    for (product, reader) in readers {
        if let Reader::Group(group) = reader {
            let last = found.entry(group).or_insert(product);
            *last = product.max(*last);
        }
    }
    found
}

impl Lower<'_> {
    /// A group with the product that only it reads: as one stage, or the product and then the group.
    pub fn behind_product(&mut self, product: u32, group: u32, arrays: &[u32]) -> Result<(), Error> {
        let dims = self.groups.dims(group).clone();
        let steps = self.steps(group, arrays, &[]);
        let together = Fused::build(self, &steps, arrays, &[], Some(product)).ok();
        let together = together.and_then(|f| Some((self.fused_guess(&f, &dims)?, f)));
        let one_by_one = self.product_guess(product);
        let one_by_one =
            one_by_one.and_then(|p| Some(p.and(self.group_guess(&steps, arrays, &[], &dims)?)));
        match together {
            Some((guess, f)) if one_by_one.is_none_or(|apart| guess.pays(apart)) => {
                let outputs = self.new_outputs(arrays.iter());
                let make = |o: &[Operand]| Ok(Workload::fused(&f.expr, &dims, o.iter().cloned())?);
                let stage = self.push(&make, f.inputs, &outputs, f.scalars, steps.len() + 1)?;
                stage.instead = one_by_one.map(|a| a.mean);
                Ok(())
            }
            together => {
                self.alone(product)?;
                self.group(group, arrays, &[])?;
                // The group says what its ops take one by one; the product, what both take as one.
                let multiplies = |s: &&mut super::stage::Stage| s.workload.op() == Op::MatMul;
                if let Some(stage) = self.stages.iter_mut().rev().find(multiplies) {
                    stage.instead = together.map(|(guess, _)| guess.mean);
                }
                Ok(())
            }
        }
    }

    fn product_guess(&self, product: u32) -> Option<Guess> {
        let factors = self.items[product as usize].args.iter().filter_map(|a| a.node());
        self.estimate(&Workload::new(Op::MatMul, factors.map(|a| self.fed(a).1)).ok()?)
    }
}
