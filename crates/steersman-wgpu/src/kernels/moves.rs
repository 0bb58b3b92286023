//! `copy`, `copy-vec4`: elements into another order, any layout. `transpose-tiled`: two axes exchanged through
//! workgroup memory, so that both sides are read and written in long runs.

use super::bound::Bound;
use super::elementwise::{addressable, cut, cuts, in_fours};
use super::nest::Nest;
use super::{cost, map, single};
use crate::device::{Gpu, Key, Launch, Source};
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::expr::Expr;
use steersman_core::{
    DType, DeviceId, Io, Kernel, KernelError, Op, Operand, ParamList, Params, Ran, Refusal, Strides, Workload,
};

struct Moves {
    gpu: Arc<Gpu>,
    device: DeviceId,
    name: String,
    wide: bool,
    /// The identity on elements of 1, 2, 4 and 8 bytes.
    identities: Arc<[Arc<Expr>; 4]>,
}

/// A type of the same size whose bits survive being moved.
fn bits(d: DType) -> DType {
    match d.size() {
        1 => DType::U8,
        2 => DType::BF16,
        4 => DType::I32,
        _ => DType::I64,
    }
}

/// Every kernel for moves.
pub(super) fn kernels(gpu: &Arc<Gpu>, device: DeviceId, prefix: &str) -> Vec<Arc<dyn Kernel>> {
    let identity = |d: DType| single::of_op(Op::Copy, d).ok();
    let made = [DType::U8, DType::BF16, DType::I32, DType::I64].map(identity);
    let [Some(a), Some(b), Some(c), Some(d)] = made else { return Vec::new() };
    let identities = Arc::new([a, b, c, d]);
    let copy = |name: &str, wide: bool| -> Arc<dyn Kernel> {
        let name = format!("{prefix}/{name}");
        Arc::new(Moves { gpu: gpu.clone(), device, name, wide, identities: Arc::clone(&identities) })
    };
    let tiled = Tiled { gpu: gpu.clone(), device, name: format!("{prefix}/transpose-tiled") };
    vec![copy("copy", false), copy("copy-vec4", true), Arc::new(tiled)]
}

/// The operand as the output sees it: its axes in the output's order.
fn seen(w: &Workload) -> Strides {
    let input = &w.inputs()[0];
    match w.op() {
        Op::Transpose { perm } => perm.iter().map(|a| input.strides[a]).collect(),
        _ => input.strides.clone(),
    }
}

fn moves(op: Op) -> bool {
    matches!(op, Op::Copy | Op::Transpose { .. })
}

impl Moves {
    /// The move as a copy of bits.
    fn plain(&self, w: &Workload) -> Result<Workload, KernelError> {
        let d = bits(w.dtype());
        let failed = |e: steersman_core::WorkloadError| KernelError::Failed(e.to_string());
        let out = w.output();
        let input = Operand::strided(d, &out.dims, seen(w)).map_err(failed)?;
        let output = Operand { dtype: d, ..out.clone() };
        Workload::new(Op::Copy, [input]).and_then(|w| w.with_output(output)).map_err(failed)
    }
}

impl Kernel for Moves {
    fn name(&self) -> &str {
        &self.name
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn handles(&self, op: Op) -> bool {
        moves(op)
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        if !moves(w.op()) {
            return Err(Refusal::new("it only moves"));
        }
        addressable(w)?;
        if !self.wide {
            return Ok(());
        }
        match w.op() {
            Op::Copy => in_fours(w),
            _ => Err(Refusal::new("it copies four neighbours at a time")),
        }
    }

    fn params(&self, w: &Workload) -> ParamList {
        cuts(&self.gpu, w.output().elements())
    }

    fn terms(&self, w: &Workload, _: Params, machine: &Machine) -> Terms {
        let scattered = if w.op() == Op::Copy { 1.0 } else { 2.0 };
        cost::terms(&self.gpu, w, machine, 1.0, scattered, if self.wide { 1.0 } else { 1.5 })
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let plain = self.plain(w)?;
        let identity = &self.identities[w.dtype().size().trailing_zeros() as usize];
        map::run(&self.gpu, &plain, identity, io, self.wide, cut(p))
    }
}

struct Tiled {
    gpu: Arc<Gpu>,
    device: DeviceId,
    name: String,
}

/// Sides of a tile by variant; a workgroup has as many invocations across, and 8 down.
const SIDES: [u32; 2] = [16, 32];
const ROWS: u32 = 8;

/// A move as tiles: which loop the input's neighbours lie along. The output's lie along the last.
fn crossing(nest: &Nest) -> Option<usize> {
    let last = nest.dims.len().checked_sub(1)?;
    let j = nest.strides[0].iter().position(|s| *s == 1)?;
    (j != last && nest.strides[1][last] == 1).then_some(j)
}

impl Tiled {
    fn nest(w: &Workload) -> Nest {
        Nest::new(&w.output().dims, [&seen(w)[..], &w.output().strides[..]].into_iter())
    }

    fn source(side: u32, rank: usize, cross: usize, bound: &Bound, wide: bool) -> Source {
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
             @compute @workgroup_size({side}, {ROWS})\n\
             fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(num_workgroups) all: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {{\n\
             \x20   let x0 = g.x * {side}u; let y0 = g.y * {side}u;\n\
             \x20   for (var z = g.z; z < p.batches; z += all.z) {{\n{walk}\
             \x20       for (var r = l.y; r < {side}u; r += {ROWS}u) {{\n\
             \x20           let x = x0 + r; let y = y0 + l.x;\n\
             \x20           if (x < p.d{last} && y < p.d{cross}) {{ tile[r][l.x] = b{input}[a + x * p.s{last} + y * p.s{cross}]; }}\n\
             \x20       }}\n\
             \x20       workgroupBarrier();\n\
             \x20       for (var r = l.y; r < {side}u; r += {ROWS}u) {{\n\
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

impl Kernel for Tiled {
    fn name(&self) -> &str {
        &self.name
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn handles(&self, op: Op) -> bool {
        moves(op)
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        if !moves(w.op()) {
            return Err(Refusal::new("it only moves"));
        }
        addressable(w)?;
        if w.dtype().size() < 4 {
            return Err(Refusal::new("elements smaller than a word cannot be written side by side"));
        }
        let nest = Self::nest(w);
        let Some(cross) = crossing(&nest) else {
            return Err(Refusal::new("input and output run along the same axis, or neither along any"));
        };
        let most = self.gpu.limits().max_compute_workgroups_per_dimension;
        let tiles = |d: u32| d.div_ceil(SIDES[0]);
        if tiles(nest.dims[cross]) > most || nest.dims.last().is_some_and(|d| tiles(*d) > most) {
            return Err(Refusal::new("more tiles along an axis than a dispatch has"));
        }
        Ok(())
    }

    fn params(&self, w: &Workload) -> ParamList {
        let limits = self.gpu.limits();
        let bytes = |s: u32| s * (s + 1) * w.dtype().size() as u32;
        let fits = |s: u32| {
            s * ROWS <= limits.max_compute_invocations_per_workgroup
                && bytes(s) <= limits.max_compute_workgroup_storage_size
                && (s == SIDES[0] || w.output().elements() > 4096)
        };
        let list = SIDES.iter().enumerate().filter(|(_, s)| fits(**s));
        list.map(|(v, _)| Params { threads: 1, variant: v as u16 }).collect()
    }

    fn terms(&self, w: &Workload, _: Params, machine: &Machine) -> Terms {
        cost::terms(&self.gpu, w, machine, 1.0, 1.0, 2.0)
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let nest = Self::nest(w);
        if nest.elements() == 0 {
            return Ok(Ran::Clean);
        }
        let Some(cross) = crossing(&nest) else {
            return Err(KernelError::Failed("there is nothing to cross".into()));
        };
        let d = bits(w.dtype());
        let side = SIDES[usize::from(p.variant).min(SIDES.len() - 1)];
        let bound = Bound::new(&self.gpu, [(io.inputs[0], d, false), (io.output, d, true)].into_iter())?;
        let (rank, wide) = (nest.dims.len(), d == DType::I64);
        let mut key: Key = smallvec::smallvec![2, side, rank as u32, cross as u32, u32::from(wide)];
        key.extend(bound.spots.iter().map(|s| u32::from(s.binding)));
        let pipeline = self.gpu.pipeline(&key, || Ok(Self::source(side, rank, cross, &bound, wide)))?;
        let (x, y) = (nest.dims[rank - 1], nest.dims[cross]);
        let batches = nest.elements() / x / y;
        let mut params: smallvec::SmallVec<[u32; 32]> =
            smallvec::smallvec![0, batches, bound.spots[0].offset, bound.spots[1].offset];
        for j in 0..rank {
            params.extend([nest.dims[j], nest.strides[0][j] as u32, nest.strides[1][j] as u32]);
        }
        let most = self.gpu.limits().max_compute_workgroups_per_dimension;
        let groups = [x.div_ceil(side), y.div_ceil(side), batches.min(most)];
        self.gpu.launch(&Launch { pipeline: &pipeline, buffers: &bound.buffers, params: &params, groups })
    }
}
