//! `conv-direct`: an invocation each result. `conv-tiled`: the same as a product of filters and patches, where
//! patches are never laid out in memory: tiles of them are gathered into workgroup memory.

mod shader;

use super::bound::Bound;
use super::cost;
use super::elementwise::addressable;
use super::matmul::block::TILES;
use super::matmul::{ranked_tiles, takes_tile};
use super::method::{Method, on};
use super::nest::MOST;
use super::space::{space, weighed};
use crate::device::{Gpu, Key, Source};
use shader::{Cut, Shader};
use smallvec::SmallVec;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::tune::Winners;
use steersman_core::{
    DType, DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran, Refusal, Workload,
};

/// Invocations of a workgroup by variant, of the direct form.
const WORKGROUPS: [u32; 4] = [64, 128, 256, 512];

struct Conv {
    gpu: Arc<Gpu>,
    tiled: bool,
    winners: Winners,
}

/// Both kernels.
pub(super) fn kernels(gpu: &Arc<Gpu>, device: DeviceId, prefix: &str) -> Vec<Arc<dyn Kernel>> {
    [("conv-direct", false), ("conv-tiled", true)]
        .map(|(name, tiled)| -> Arc<dyn Kernel> {
            on(device, prefix, name, Conv { gpu: gpu.clone(), tiled, winners: Winners::default() })
        })
        .into()
}

/// A convolution as a product: images, filters, terms of a sum, results of an image and filter.
fn product(w: &Workload) -> Option<(usize, usize, usize, usize)> {
    if !matches!(w.op(), Op::Conv2d { .. }) {
        return None;
    }
    let (f, y) = (&w.inputs()[1].dims, &w.output().dims);
    Some((y[0], y[1], f[1] * f[2] * f[3], y[2] * y[3]))
}

impl Conv {
    fn points(&self) -> usize {
        if self.tiled { TILES.len() } else { WORKGROUPS.len() }
    }

    fn fits(&self, variant: usize, w: &Workload) -> bool {
        let (_, m, k, n) = product(w).unwrap_or((1, 1, 1, 1));
        let words = w.dtype().size().div_ceil(4) as u32;
        if !self.tiled {
            let most = self.gpu.limits().max_compute_invocations_per_workgroup;
            return WORKGROUPS.get(variant).is_some_and(|s| *s <= most);
        }
        TILES.get(variant).is_some_and(|t| {
            let oversized = t.down() as usize >= 2 * m.max(32) || t.across() as usize >= 2 * n.max(32);
            // Results that are no number are computed once more, term by term.
            let turns = k * (2 + (t.rows * t.columns) as usize);
            takes_tile(&self.gpu, t, words) && turns <= self.gpu.most_turns() && (variant == 0 || !oversized)
        })
    }

    fn ranked(&self, w: &Workload) -> SmallVec<[usize; 16]> {
        let (images, m, _, n) = product(w).unwrap_or((1, 1, 1, 1));
        ranked_tiles(&self.gpu, (images, m, n), |v| self.fits(v, w))
    }

    fn cut(&self, p: Params) -> Cut {
        let variant = usize::from(p.variant).min(self.points() - 1);
        if self.tiled { Cut::Tiled(TILES[variant]) } else { Cut::Direct(WORKGROUPS[variant]) }
    }
}

impl Method for Conv {
    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Conv2d { .. })
    }

    fn numerics(&self, _: &Workload) -> NumericClass {
        NumericClass::Reassociated
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        let Some((images, m, k, n)) = product(w) else { return Err(Refusal::new("it only convolves")) };
        if w.dtype() == DType::F64 && !self.gpu.can().f64 {
            return Err(Refusal::new(
                "this adapter does not compute in f64, and nothing is rounded silently",
            ));
        }
        addressable(&self.gpu, w)?;
        if n.max(k).max(images * m * n) >= MOST {
            return Err(Refusal::new("positions in a shader have 31 bits"));
        }
        let most = self.gpu.limits().max_compute_workgroups_per_dimension as usize;
        let turns = match self.tiled {
            true => k * images.div_ceil(most),
            false => k * (images * m * n).div_ceil(most * WORKGROUPS[0] as usize),
        };
        if turns + 16 > self.gpu.most_turns() {
            return Err(Refusal::new("so many terms are more turns than one invocation may take"));
        }
        if self.tiled && !self.fits(0, w) {
            return Err(Refusal::new("its tiles are more than a workgroup's memory, or its sums too long"));
        }
        let tile = TILES[0];
        let fits = n.div_ceil(tile.across() as usize) <= most && m.div_ceil(tile.down() as usize) <= most;
        if self.tiled && !fits {
            return Err(Refusal::new("more tiles along an axis than a dispatch has"));
        }
        Ok(())
    }

    fn params(&self, w: &Workload) -> ParamList {
        let usual = || if self.tiled { self.ranked(w).first().copied().unwrap_or(0) } else { 0 };
        weighed(&self.winners, w, |v| self.fits(v, w), usual)
    }

    fn space(&self, w: &Workload) -> Vec<Params> {
        match self.tiled {
            true => space(self.ranked(w), |_| true),
            false => space(0..self.points(), |v| self.fits(v, w)),
        }
    }

    fn winners(&self) -> &Winners {
        &self.winners
    }

    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        let (_, m, _, n) = product(w).unwrap_or((1, 1, 1, 1));
        let padded = |d: usize, span: u32| d.next_multiple_of(span as usize) as f64 / d.max(1) as f64;
        let work = match self.cut(p) {
            Cut::Direct(_) => 5.0,
            Cut::Tiled(t) => 2.0 * padded(m, t.down()) * padded(n, t.across()),
        };
        cost::terms(&self.gpu, w, machine, 1.0, 1.0, work)
    }

    fn enqueue(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let (Some((images, m, k, n)), Op::Conv2d { stride, pad }) = (product(w), w.op()) else {
            return Err(KernelError::Failed("it only convolves".into()));
        };
        if images * m * n == 0 {
            return Ok(Ran::Clean);
        }
        let d = w.dtype();
        let operands = [(io.inputs[0], d, false), (io.inputs[1], d, false), (io.output, d, true)];
        let bound = Bound::new(&self.gpu, operands.into_iter())?;
        let cut = self.cut(p);
        let shader = Shader { cut, dtype: d, f16: self.gpu.can().f16, bound: &bound };
        let mut key: Key = smallvec::smallvec![4, u32::from(self.tiled), d as u32, u32::from(p.variant)];
        key.extend(bound.spots.iter().map(|s| u32::from(s.binding)));
        let pipeline = self.gpu.pipeline(&key, || {
            Ok(Source { text: shader.text(), written: bound.written.clone(), words: shader::NAMES.len() })
        })?;
        let (x, f, y) = (&w.inputs()[0], &w.inputs()[1], w.output());
        let sizes = [m, 0, k, n, images, x.dims[2], x.dims[3], y.dims[3], f.dims[2], f.dims[3]];
        let mut params: SmallVec<[u32; 32]> = sizes.iter().map(|s| *s as u32).collect();
        params.extend([u32::from(stride), u32::from(pad)]);
        for (o, spot) in [x, f, y].into_iter().zip(&bound.spots) {
            params.push(spot.offset);
            params.extend(o.strides.iter().map(|s| *s as u32));
        }
        let most = self.gpu.limits().max_compute_workgroups_per_dimension;
        let groups = match cut {
            Cut::Direct(size) => [((images * m * n) as u32).div_ceil(size).min(most), 1, 1],
            Cut::Tiled(t) => {
                let (n, m) = ((n as u32).div_ceil(t.across()), (m as u32).div_ceil(t.down()));
                [n, m, (images as u32).min(most)]
            }
        };
        self.gpu.launch(&bound.launch(&pipeline, &params, groups))
    }
}
