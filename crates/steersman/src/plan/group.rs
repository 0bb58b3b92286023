//! Which expressions are computed together.
//!
//! Every element-wise expression belongs to a group of one shape, every other one is a stage of its own, and both
//! have a time: whatever needs a value from memory comes later than what writes it. Groups are merged when one
//! expression takes values of both, as long as one of them can be moved to the other's time. A reduction joins
//! the group of what it reduces.

use super::graph::Item;
use super::layout::{Look, view};
use super::time::{Dep, NEVER};
use crate::array::node::NodeOp;
use crate::array::value::contiguous;
use smallvec::SmallVec;
use std::cell::Cell;
use steersman_core::{Axes, Dims};

/// Steps of a group at most. A Monte Carlo chain of 256 steps has 1,300; from here on a cut costs one write and
/// one read of an array in thousands of operations.
pub(super) const MAX_STEPS: usize = 4096;

/// What becomes of an expression.
#[derive(Clone, Debug)]
pub(super) enum Role {
    /// It has no elements: nothing is computed.
    Empty,
    /// Its value is there.
    Leaf,
    /// One number; a group of its own only if it must be in memory.
    Constant(Option<u32>),
    /// A step of a group.
    Step(u32),
    /// A reduction of a group's value.
    Reduced(u32),
    /// Computed alone, at this time.
    Alone(u32),
    /// A look at another item's memory.
    View { base: u32, look: Look },
}

pub(super) struct Group {
    pub parent: Cell<u32>,
    pub time: u32,
    pub dims: Dims,
    pub deps: Vec<Dep>,
    /// The earliest stage or other group that takes something of this one from memory.
    pub first_use: u32,
    pub steps: usize,
    /// What its reductions run over, but for those over everything: fused kernels take one set.
    pub over: Option<Axes>,
}

/// Roles of all items.
pub(super) struct Groups<'a> {
    pub items: &'a [Item],
    pub roles: Vec<Role>,
    /// Whether an item's elements must be in memory.
    pub must: Vec<bool>,
    pub groups: Vec<Group>,
    pub clock: u32,
}

impl<'a> Groups<'a> {
    /// Finds every item's role.
    pub fn new(items: &'a [Item]) -> Groups<'a> {
        let mut g = Groups {
            items,
            roles: Vec::with_capacity(items.len()),
            must: vec![false; items.len()],
            groups: Vec::new(),
            clock: 0,
        };
        for i in 0..items.len() {
            let role = g.role(i);
            g.roles.push(role);
        }
        for (i, item) in items.iter().enumerate() {
            if item.root {
                g.require(i as u32);
            }
        }
        g.join_what_reads_the_same();
        g.join_reductions();
        g.keep_what_was_passed_twice();
        g.keep_what_is_dear();
        g
    }

    fn role(&mut self, i: usize) -> Role {
        let item = &self.items[i];
        if item.elements() == 0 {
            return Role::Empty;
        }
        match &item.op {
            NodeOp::Data | NodeOp::Bad(_) => Role::Leaf,
            NodeOp::Full => Role::Constant(None),
            NodeOp::Unary(_)
            | NodeOp::Binary(_)
            | NodeOp::Ternary(_)
            | NodeOp::Cast
            | NodeOp::Position
            | NodeOp::Random(_) => Role::Step(self.step(i)),
            NodeOp::Reduce { axes, .. } => {
                let arg = item.args[0].node().unwrap_or(0) as usize;
                let group = self.group_of(arg as u32);
                match group.filter(|_| matches!(self.roles[arg], Role::Step(_))) {
                    Some(g) if self.reduces(g, *axes, self.items[arg].dims.len()) => Role::Reduced(g),
                    _ => self.alone(i),
                }
            }
            NodeOp::MatMul | NodeOp::Conv2d { .. } | NodeOp::Concat(_) => self.alone(i),
            op => {
                let arg = item.args[0].node().unwrap_or(0);
                if matches!(self.roles[arg as usize], Role::Empty) {
                    return self.alone(i);
                }
                self.require(arg);
                let (base, look) = self.look(arg);
                match view(op, &self.items[arg as usize].dims, &look, &item.dims) {
                    Some(look) => Role::View { base, look },
                    None => self.alone(i),
                }
            }
        }
    }

    /// Whose memory an item's elements are in, and how it looks at it.
    pub fn look(&self, i: u32) -> (u32, Look) {
        match &self.roles[i as usize] {
            Role::View { base, look } => (*base, look.clone()),
            _ => {
                let item = &self.items[i as usize];
                let strides =
                    item.leaf.as_ref().map_or_else(|| contiguous(&item.dims), |l| l.strides.clone());
                (i, Look { offset: 0, strides })
            }
        }
    }

    /// Has an item's elements be in memory.
    fn require(&mut self, i: u32) {
        let base = match self.roles[i as usize] {
            Role::View { base, .. } => base,
            _ => i,
        };
        self.must[base as usize] = true;
        if let Role::Constant(None) = self.roles[base as usize] {
            let g = self.new_group(base as usize);
            self.roles[base as usize] = Role::Constant(Some(g));
        }
    }

    fn alone(&mut self, i: usize) -> Role {
        let items = self.items;
        let args: SmallVec<[u32; 4]> = items[i].args.iter().filter_map(|a| a.node()).collect();
        for &a in &args {
            self.require(a);
        }
        let time = self.next();
        for &a in &args {
            self.used(self.written(a), time);
        }
        Role::Alone(time)
    }

    /// Puts an element-wise item into a group.
    fn step(&mut self, i: usize) -> u32 {
        let items = self.items;
        let item = &items[i];
        let (mut mates, mut deps): (SmallVec<[u32; 4]>, SmallVec<[Dep; 4]>) = Default::default();
        for a in item.args.iter().filter_map(|a| a.node()) {
            match self.roles[a as usize] {
                Role::Constant(None) => {}
                Role::Step(g) if items[a as usize].dims == item.dims => mates.push(self.find(g)),
                _ => deps.extend(self.written(a)),
            }
        }
        let mut target: Option<u32> = None;
        for mate in mates {
            target = Some(match target {
                None => mate,
                Some(t) => {
                    let (t, mate) = (self.find(t), self.find(mate));
                    let merged = if t == mate { Some(t) } else { self.merge(t, mate) };
                    merged.unwrap_or_else(|| {
                        let (late, early) =
                            if self.time(t) > self.time(mate) { (t, mate) } else { (mate, t) };
                        deps.push(Dep::Group(early));
                        late
                    })
                }
            });
        }
        let target = match target {
            Some(t) if self.groups[t as usize].steps < MAX_STEPS && self.fits(t, &deps) => t,
            other => {
                deps.extend(other.map(Dep::Group));
                self.new_group(i)
            }
        };
        let time = self.time(target);
        for &d in &deps {
            self.used(Some(d), time);
        }
        let group = &mut self.groups[target as usize];
        group.steps += 1;
        group.deps.extend(deps);
        target
    }

    /// Whether a fused kernel can reduce a group's value so: over all axes, the first or the last ones, and over the
    /// same ones as the group's other reductions.
    pub fn reduces(&mut self, g: u32, axes: Axes, rank: usize) -> bool {
        if axes.len() == rank {
            return true;
        }
        let first = (0..axes.len()).all(|a| axes.contains(a));
        let last = (rank - axes.len()..rank).all(|a| axes.contains(a));
        let over = &mut self.groups[g as usize].over;
        (first || last) && *over.get_or_insert(axes) == axes
    }

    pub fn new_group(&mut self, i: usize) -> u32 {
        let id = self.groups.len() as u32;
        let time = self.next();
        let dims = self.items[i].dims.clone();
        self.groups.push(Group {
            parent: Cell::new(id),
            time,
            dims,
            deps: Vec::new(),
            first_use: NEVER,
            steps: 0,
            over: None,
        });
        id
    }

    /// The group an item is a step of.
    pub fn group_of(&self, i: u32) -> Option<u32> {
        match self.roles[i as usize] {
            Role::Step(g) | Role::Constant(Some(g)) => Some(self.find(g)),
            _ => None,
        }
    }

    pub fn dims(&self, g: u32) -> &Dims {
        &self.groups[g as usize].dims
    }
}
