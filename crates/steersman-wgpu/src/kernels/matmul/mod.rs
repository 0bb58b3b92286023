//! `matmul-naive`, `-tiled`, `-blocked`, `-vec4`: matrix products in batches, any strides; and `matmul-rows`:
//! a workgroup each result, for products with a vector.

pub(super) mod block;
mod fours;
mod rows;
mod shader;

use super::bound::Bound;
use super::cost;
use super::elementwise::addressable;
use super::method::{Method, on};
use super::nest::Nest;
use super::space::{space, weighed};
use crate::device::{Gpu, Key, Source};
use crate::wgsl::Word;
use block::{Lane, TILES, Tile};
use shader::{Cut, Shader};
use smallvec::SmallVec;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::tune::Winners;
use steersman_core::{
    DType, DeviceId, Io, Kernel, KernelError, NumericClass, Op, Operand, ParamList, Params, Ran, Refusal,
    Workload,
};

/// Who computes what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Naive,
    Tiled,
    Blocked,
    Vec4,
}

struct MatMul {
    gpu: Arc<Gpu>,
    form: Form,
    winners: Winners,
}

/// Sides of a workgroup by variant, of the forms with a result each invocation.
const SIDES: [u32; 3] = [8, 16, 32];

/// Every kernel for products.
pub(super) fn kernels(gpu: &Arc<Gpu>, device: DeviceId, prefix: &str) -> Vec<Arc<dyn Kernel>> {
    let forms =
        [(Form::Naive, "naive"), (Form::Tiled, "tiled"), (Form::Blocked, "blocked"), (Form::Vec4, "vec4")];
    let mut all: Vec<Arc<dyn Kernel>> = Vec::new();
    for (form, name) in forms {
        let matmul = MatMul { gpu: gpu.clone(), form, winners: Winners::default() };
        all.push(on(device, prefix, &format!("matmul-{name}"), matmul));
    }
    all.push(on(device, prefix, "matmul-rows", rows::Rows::new(gpu)));
    all
}

/// Whether the device takes a tile with elements of this many words.
pub(super) fn takes_tile(gpu: &Gpu, tile: &Tile, words: u32) -> bool {
    let limits = gpu.limits();
    tile.x * tile.y <= limits.max_compute_invocations_per_workgroup
        && tile.words() * words * 4 <= limits.max_compute_workgroup_storage_size
}

/// Tiles for so many rows and columns of results in so many batches, those first that are thought quickest before any
/// was timed: large ones read less, small ones leave fewer invocations idle.
pub(super) fn ranked_tiles(
    gpu: &Gpu,
    (batch, m, n): (usize, usize, usize),
    fits: impl Fn(usize) -> bool,
) -> SmallVec<[usize; 16]> {
    let least = if gpu.software() { 2.0 } else { 128.0 };
    let score = |v: usize| {
        let (down, across) = (TILES[v].down(), TILES[v].across());
        let groups = (m.div_ceil(down as usize) * n.div_ceil(across as usize)) as f64;
        let idle = (least / (groups * batch as f64)).max(1.0);
        let (down, across) = (f64::from(down), f64::from(across));
        (groups * down * across * idle * (1.0 + 24.0 * (1.0 / down + 1.0 / across)), v)
    };
    // Scored once each: this is on the way of every decision about a product, and took a fifth of one.
    let mut all: SmallVec<[(f64, usize); 16]> = (0..TILES.len()).filter(|v| fits(*v)).map(score).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.into_iter().map(|(_, v)| v).collect()
}

/// Rows and columns of an operand: its last two dimensions, with strides.
fn last_two(o: &Operand) -> (isize, isize) {
    let r = o.rank();
    (o.strides[r - 2], o.strides[r - 1])
}

/// Batches, rows, terms and columns of a product that a shader can address, of a type that this device multiplies.
fn product(gpu: &Gpu, w: &Workload) -> Result<(usize, usize, usize, usize), Refusal> {
    let Some(dims) = w.matmul_dims() else { return Err(Refusal::new("it only multiplies matrices")) };
    takes(gpu, w.dtype())?;
    addressable(gpu, w)?;
    Ok(dims)
}

/// Whether this device multiplies elements of a type.
fn takes(gpu: &Gpu, d: DType) -> Result<(), Refusal> {
    match d {
        DType::F64 if !gpu.can().f64 => {
            Err(Refusal::new("this adapter does not compute in f64, and nothing is rounded silently"))
        }
        DType::I64 => Err(Refusal::new("there is no product of i64 in WGSL: it has no 64-bit integers")),
        _ => Ok(()),
    }
}

impl MatMul {
    fn nest(w: &Workload) -> Nest {
        let batch = w.output().rank() - 2;
        let strides = w.inputs().iter().chain(w.outputs()).map(|o| &o.strides[..batch]);
        Nest::new(&w.output().dims[..batch], strides)
    }

    fn points(&self) -> usize {
        match self.form {
            Form::Naive | Form::Tiled => SIDES.len(),
            Form::Blocked | Form::Vec4 => TILES.len(),
        }
    }

    /// Whether this device takes a variant, and the workload is worth it.
    fn fits(&self, variant: usize, w: &Workload) -> bool {
        let (_, m, _, n) = w.matmul_dims().unwrap_or((1, 1, 1, 1));
        let words = w.dtype().size().div_ceil(4) as u32;
        match self.form {
            Form::Naive | Form::Tiled => SIDES.get(variant).is_some_and(|s| {
                let limits = self.gpu.limits();
                *s == SIDES[0]
                    || m * n > 64
                        && s * s <= limits.max_compute_invocations_per_workgroup
                        && 8 * s * s * words <= limits.max_compute_workgroup_storage_size
            }),
            Form::Blocked | Form::Vec4 => TILES.get(variant).is_some_and(|t| {
                // Twice as large as what there is: half of it or more idle.
                let oversized = t.down() as usize >= 2 * m.max(32) || t.across() as usize >= 2 * n.max(32);
                takes_tile(&self.gpu, t, words) && (variant == 0 || !oversized)
            }),
        }
    }

    fn ranked(&self, w: &Workload) -> SmallVec<[usize; 16]> {
        let (batch, m, _, n) = w.matmul_dims().unwrap_or((1, 1, 1, 1));
        ranked_tiles(&self.gpu, (batch, m, n), |v| self.fits(v, w))
    }

    fn cut(&self, p: Params, lanes: [Lane; 2], fours: bool) -> Cut {
        let variant = usize::from(p.variant).min(self.points() - 1);
        match self.form {
            Form::Naive => Cut::Naive(SIDES[variant]),
            Form::Tiled => Cut::Tiled(SIDES[variant]),
            Form::Blocked | Form::Vec4 => Cut::Block(TILES[variant], lanes, fours),
        }
    }
}

/// What each buffer is an array of.
fn words(bound: &Bound, d: DType, f16: bool, lanes: [Lane; 2], fours: bool) -> SmallVec<[Word; 8]> {
    let mut words: SmallVec<[Word; 8]> = bound.written.iter().map(|w| Word::of(d, *w, f16)).collect();
    // Single elements can be read of it too, if operands share a buffer.
    for (k, four) in [lanes[0] != Lane::Single, lanes[1] != Lane::Single, fours].into_iter().enumerate() {
        if four {
            words[usize::from(bound.spots[k].binding)] = Word::Four;
        }
    }
    words
}

impl Method for MatMul {
    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn handles(&self, op: Op) -> bool {
        op == Op::MatMul
    }

    fn numerics(&self, w: &Workload) -> NumericClass {
        if w.dtype().is_integer() { NumericClass::Exact } else { NumericClass::Reassociated }
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        let (batch, m, k, n) = product(&self.gpu, w)?;
        let most = self.gpu.limits().max_compute_workgroups_per_dimension as usize;
        let (down, across) = self.cut(Params::SERIAL, [Lane::Single; 2], false).span();
        if m.div_ceil(down as usize) > most || n.div_ceil(across as usize) > most {
            return Err(Refusal::new("more tiles along an axis than a dispatch has"));
        }
        if (k + k / 4 + 16) * batch.div_ceil(most) > self.gpu.most_turns() {
            return Err(Refusal::new("so long rows are more turns than one invocation may take"));
        }
        if !self.fits(0, w) {
            return Err(Refusal::new("its tiles are more than a workgroup's memory"));
        }
        match self.form {
            Form::Vec4 if w.dtype() != DType::F32 => Err(Refusal::new("only f32 comes in fours")),
            Form::Vec4 if fours::second(w) == Lane::Single => {
                Err(Refusal::new("rows of the second operand must be runs of four, starting at 16 bytes"))
            }
            _ => Ok(()),
        }
    }

    fn params(&self, w: &Workload) -> ParamList {
        weighed(
            &self.winners,
            w,
            |v| self.fits(v, w),
            || match self.form {
                Form::Naive | Form::Tiled => usize::from(self.fits(1, w)),
                Form::Blocked | Form::Vec4 => self.ranked(w).first().copied().unwrap_or(0),
            },
        )
    }

    fn space(&self, w: &Workload) -> Vec<Params> {
        match self.form {
            Form::Naive | Form::Tiled => space(0..self.points(), |v| self.fits(v, w)),
            Form::Blocked | Form::Vec4 => space(self.ranked(w), |_| true),
        }
    }

    fn winners(&self) -> &Winners {
        &self.winners
    }

    fn revision(&self) -> u32 {
        2
    }

    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        let (_, m, k, n) = w.matmul_dims().unwrap_or((1, 1, 1, 1));
        let (down, across) = self.cut(p, [Lane::Single; 2], false).span();
        // Edges of tiles are computed too, and operands are read once a tile (by the naive form: once a result).
        let padded = |d: usize, span: u32| {
            let span = f64::from(span);
            (d as f64 / span).ceil() * span / d.max(1) as f64
        };
        let waste = padded(m, down) * padded(n, across) * padded(k, 8);
        let (work, reuse) = match self.form {
            Form::Naive => (4.0, 8.0),
            Form::Tiled => (3.0, f64::from(down)),
            Form::Blocked => (1.5, f64::from(down.min(across))),
            Form::Vec4 => (1.0, f64::from(down.min(across))),
        };
        let traffic = (m.min(n).max(1) as f64 / reuse).max(1.0);
        cost::terms(&self.gpu, w, machine, 1.0, traffic, work * waste)
    }

    fn enqueue(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let Some((batch, m, k, n)) = w.matmul_dims() else {
            return Err(KernelError::Failed("it only multiplies matrices".into()));
        };
        if batch * m * n == 0 {
            return Ok(Ran::Clean);
        }
        let d = w.dtype();
        let operands = [(io.inputs[0], d, false), (io.inputs[1], d, false), (io.output, d, true)];
        let bound = Bound::new(&self.gpu, operands.into_iter())?;
        let (lanes, fours) = match self.form {
            Form::Vec4 => fours::lanes(w, &bound.spots),
            _ => ([Lane::Single; 2], false),
        };
        let cut = self.cut(p, lanes, fours);
        let words = words(&bound, d, self.gpu.can().f16, lanes, fours);
        let nest = Self::nest(w);
        let shader = Shader { cut, dtype: d, rank: nest.dims.len(), bound: &bound, words: &words };
        let modes = lanes[0] as u32 | (lanes[1] as u32) << 2 | u32::from(fours) << 4;
        let form = self.form as u32 | modes << 8;
        let mut key: Key =
            smallvec::smallvec![3, form, d as u32, u32::from(p.variant), nest.dims.len() as u32];
        key.extend(bound.spots.iter().map(|s| u32::from(s.binding)));
        let pipeline = self.gpu.pipeline(&key, || {
            Ok(Source { text: shader.text(), written: bound.written.clone(), words: shader.names().len() })
        })?;
        let mut params: SmallVec<[u32; 32]> =
            smallvec::smallvec![m as u32, 0, k as u32, n as u32, batch as u32];
        for (o, spot) in w.inputs().iter().chain(w.outputs()).zip(&bound.spots) {
            let (rs, cs) = last_two(o);
            params.extend([spot.offset, rs as u32, cs as u32]);
        }
        for j in 0..nest.dims.len() {
            params.push(nest.dims[j]);
            params.extend((0..3).map(|o| nest.strides[o][j] as u32));
        }
        let most = self.gpu.limits().max_compute_workgroups_per_dimension;
        let (down, across) = cut.span();
        let groups = [(n as u32).div_ceil(across), (m as u32).div_ceil(down), (batch as u32).min(most)];
        self.gpu.launch(&bound.launch(&pipeline, &params, groups))
    }
}
