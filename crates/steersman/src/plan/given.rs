//! What a placement starts from: where the leaves of a graph are, and what each stage takes at each place.

use super::collect::Scratch;
use super::stage::{Base, Stage};
use crate::array::Shape;
use crate::error::Error;
use crate::runtime::Runtime;
use smallvec::SmallVec;
use std::collections::HashMap;
use steersman_core::{Place, Workload};

/// Where the leaves of a graph are, and how many bytes moving one takes.
pub(super) struct Leaves(pub Vec<(SmallVec<[Place; 2]>, usize)>);

impl Leaves {
    pub fn of(rt: &Runtime, scratch: &Scratch, places: &[Place]) -> Result<Leaves, Error> {
        let leaf = |&at: &u32| {
            let node = &scratch.order[at as usize].node;
            let Some(value) = node.value.get() else { return Ok((smallvec::smallvec![Place::Host], 0)) };
            let held = value.buffer.places();
            let gone = |p: &Place| matches!(p, Place::Device(id) if rt.engine().guard().lost(*id).is_some());
            let left: SmallVec<[Place; 2]> = held.iter().copied().filter(|p| !gone(p)).collect();
            if left.is_empty() {
                let Place::Device(id) = held[0] else { unreachable!("the host is never lost") };
                return Err(Error::Lost {
                    what: format!("{} {}", node.dtype, Shape(&node.dims)),
                    place: rt.engine().places().name(held[0]),
                    why: rt.engine().guard().lost(id).unwrap_or_default(),
                });
            }
            // A place that takes no part in this plan still holds what it holds.
            let known: SmallVec<[Place; 2]> = left.iter().copied().filter(|p| places.contains(p)).collect();
            Ok((if known.is_empty() { left } else { known }, value.buffer.bytes()))
        };
        scratch.leaves.iter().map(leaf).collect::<Result<_, _>>().map(Leaves)
    }

    pub fn held(&self, n: u32) -> &[Place] {
        &self.0[n as usize].0
    }

    pub fn bytes(&self, n: u32) -> usize {
        self.0[n as usize].1
    }
}

/// The best kernel of each stage at each place, with what it is expected to take.
pub(super) struct Choices(pub Vec<HashMap<Place, Choice>>);

pub(super) struct Choice {
    pub workload: Workload,
    pub kernel: u16,
    pub mean: f64,
    pub cautious: f64,
}

impl Choices {
    pub fn of(rt: &Runtime, stages: &[Stage], places: &[Place]) -> Choices {
        let at = |stage: &Stage, place: Place| {
            let workload = localised(stage, place);
            let best = rt.engine().best_at(&workload, place)?;
            let (kernel, mean) = (best.variant.kernel, best.estimate.mean.0);
            Some((place, Choice { workload, kernel, mean, cautious: best.estimate.cautious().0 }))
        };
        Choices(stages.iter().map(|s| places.iter().filter_map(|&p| at(s, p)).collect()).collect())
    }
}

/// A stage's workload with its operands at one place; numbers stay on the host, which passes them along.
fn localised(stage: &Stage, place: Place) -> Workload {
    let mut w = stage.workload.clone().with_output_at(place);
    for (i, source) in stage.inputs.iter().enumerate() {
        let place = if matches!(source.base, Base::Scalar(_)) { Place::Host } else { place };
        w = w.with_input_at(i, place);
    }
    w
}
