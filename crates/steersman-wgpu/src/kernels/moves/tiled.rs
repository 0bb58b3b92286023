//! Two axes exchanged through workgroup memory, so that both sides are read and written in long runs.

use super::{bits, movable, moves, seen};
use crate::device::{Gpu, Key, Source};
use crate::kernels::bound::Bound;
use crate::kernels::cost;
use crate::kernels::method::Method;
use crate::kernels::nest::Nest;
use crate::kernels::space::{space, weighed};
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::tune::Winners;
use steersman_core::{DType, Io, KernelError, Op, ParamList, Params, Ran, Refusal, Workload};

pub(super) struct Tiled {
    gpu: Arc<Gpu>,
    winners: Winners,
}

/// Sides of a tile and rows of invocations by variant; a workgroup has as many invocations across as the side. The
/// order is what is remembered of them: new ones go at the end.
const TILES: [(u32, u32); 6] = [(16, 8), (32, 8), (16, 16), (32, 4), (32, 16), (64, 4)];

/// A move as tiles: which loop the input's neighbours lie along. The output's lie along the last.
fn crossing(nest: &Nest) -> Option<usize> {
    let last = nest.dims.len().checked_sub(1)?;
    let j = nest.strides[0].iter().position(|s| *s == 1)?;
    (j != last && nest.strides[1][last] == 1).then_some(j)
}

impl Tiled {
    pub fn new(gpu: &Arc<Gpu>) -> Tiled {
        Tiled { gpu: gpu.clone(), winners: Winners::default() }
    }

    fn fits(&self, variant: usize, w: &Workload) -> bool {
        let limits = self.gpu.limits();
        TILES.get(variant).is_some_and(|&(side, rows)| {
            side * rows <= limits.max_compute_invocations_per_workgroup
                && side * (side + 1) * w.dtype().size() as u32 <= limits.max_compute_workgroup_storage_size
                && (variant == 0 || w.output().elements() > 4096)
        })
    }

    fn nest(w: &Workload) -> Nest {
        Nest::new(&w.output().dims, [&seen(w)[..], &w.output().strides[..]].into_iter())
    }

    fn source((side, down): (u32, u32), rank: usize, cross: usize, bound: &Bound, wide: bool) -> Source {
        let last = rank - 1;
        let others: Vec<usize> = (0..rank).filter(|j| *j != last && *j != cross).collect();
        let mut names: Vec<String> = ["zero", "batches", "from_", "to_"].map(String::from).into();
        for j in 0..rank {
            names.extend([format!("d{j}"), format!("s{j}"), format!("t{j}")]);
        }
        let fields: String = names.iter().map(|n| format!("    {n}: u32,\n")).collect();
        let unit = if wide { "vec2<u32>" } else { "u32" };
        let mut walk = String::from("        var rest = z; var a = p.from_; var b = p.to_;\n");
        for j in others.iter().rev() {
            walk += &format!(
                "        {{ let c = rest % p.d{j}; rest = rest / p.d{j}; a += c * p.s{j}; b += c * p.t{j}; }}\n"
            );
        }
        let binding = |k: usize| bound.spots[k].binding;
        let arrays: String = bound
            .written
            .iter()
            .enumerate()
            .map(|(i, w)| {
                let access = if *w { "read_write" } else { "read" };
                format!("@group(0) @binding({}) var<storage, {access}> b{i}: array<{unit}>;\n", i + 1)
            })
            .collect();
        let text = format!(
            "struct P {{\n{fields}}}\n@group(0) @binding(0) var<uniform> p: P;\n{arrays}\
             var<workgroup> tile: array<array<{unit}, {pad}>, {side}>;\n\
             @compute @workgroup_size({side}, {down})\n\
             fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(num_workgroups) all: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {{\n\
             \x20   let x0 = g.x * {side}u; let y0 = g.y * {side}u;\n\
             \x20   for (var z = g.z; z < p.batches; z += all.z) {{\n{walk}\
             \x20       for (var r = l.y; r < {side}u; r += {down}u) {{\n\
             \x20           let x = x0 + r; let y = y0 + l.x;\n\
             \x20           if (x < p.d{last} && y < p.d{cross}) {{ tile[r][l.x] = b{input}[a + x * p.s{last} + y * p.s{cross}]; }}\n\
             \x20       }}\n\
             \x20       workgroupBarrier();\n\
             \x20       for (var r = l.y; r < {side}u; r += {down}u) {{\n\
             \x20           let x = x0 + l.x; let y = y0 + r;\n\
             \x20           if (x < p.d{last} && y < p.d{cross}) {{ b{output}[b + x * p.t{last} + y * p.t{cross}] = tile[l.x][r]; }}\n\
             \x20       }}\n\
             \x20       workgroupBarrier();\n\
             \x20   }}\n}}\n",
            pad = side + 1,
            input = binding(0),
            output = binding(1),
        );
        Source { text, written: bound.written.clone(), words: names.len() }
    }
}

impl Method for Tiled {
    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn handles(&self, op: Op) -> bool {
        moves(op)
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        movable(&self.gpu, w)?;
        if w.dtype().size() < 4 {
            return Err(Refusal::new("elements smaller than a word cannot be written side by side"));
        }
        let nest = Self::nest(w);
        let Some(cross) = crossing(&nest) else {
            return Err(Refusal::new("input and output run along the same axis, or neither along any"));
        };
        let most = self.gpu.limits().max_compute_workgroups_per_dimension;
        let tiles = |d: u32| d.div_ceil(TILES[0].0);
        if tiles(nest.dims[cross]) > most || nest.dims.last().is_some_and(|d| tiles(*d) > most) {
            return Err(Refusal::new("more tiles along an axis than a dispatch has"));
        }
        Ok(())
    }

    fn params(&self, w: &Workload) -> ParamList {
        weighed(&self.winners, w, |v| self.fits(v, w), || usize::from(self.fits(1, w)))
    }

    fn space(&self, w: &Workload) -> Vec<Params> {
        space(0..TILES.len(), |v| self.fits(v, w))
    }

    fn winners(&self) -> &Winners {
        &self.winners
    }

    fn terms(&self, w: &Workload, _: Params, machine: &Machine) -> Terms {
        cost::terms(&self.gpu, w, machine, 1.0, 1.0, 2.0)
    }

    fn enqueue(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let nest = Self::nest(w);
        if nest.elements() == 0 {
            return Ok(Ran::Clean);
        }
        let Some(cross) = crossing(&nest) else {
            return Err(KernelError::Failed("there is nothing to cross".into()));
        };
        let d = bits(w.dtype());
        let (side, down) = TILES[usize::from(p.variant).min(TILES.len() - 1)];
        let bound = Bound::new(&self.gpu, [(io.inputs[0], d, false), (io.output, d, true)].into_iter())?;
        let (rank, wide) = (nest.dims.len(), d == DType::I64);
        let mut key: Key =
            smallvec::smallvec![2, side | down << 16, rank as u32, cross as u32, u32::from(wide)];
        key.extend(bound.spots.iter().map(|s| u32::from(s.binding)));
        let pipeline =
            self.gpu.pipeline(&key, || Ok(Self::source((side, down), rank, cross, &bound, wide)))?;
        let (x, y) = (nest.dims[rank - 1], nest.dims[cross]);
        let batches = nest.elements() / x / y;
        let mut params: smallvec::SmallVec<[u32; 32]> =
            smallvec::smallvec![0, batches, bound.spots[0].offset, bound.spots[1].offset];
        for j in 0..rank {
            params.extend([nest.dims[j], nest.strides[0][j] as u32, nest.strides[1][j] as u32]);
        }
        let most = self.gpu.limits().max_compute_workgroups_per_dimension;
        let groups = [x.div_ceil(side), y.div_ceil(side), batches.min(most)];
        self.gpu.launch(&bound.launch(&pipeline, &params, groups))
    }
}
