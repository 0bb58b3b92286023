//! `matmul-naive`, `-tiled`, `-blocked`, `-vec4`: matrix products in batches, any strides; and `matmul-rows`:
//! a workgroup each result, for products with a vector.

mod rows;
mod shader;

use super::bound::Bound;
use super::cost;
use super::elementwise::addressable;
use super::nest::Nest;
use crate::device::{Gpu, Key, Launch, Source};
use crate::wgsl::Word;
use shader::{Form, Shader};
use smallvec::SmallVec;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::{
    DType, DeviceId, Io, Kernel, KernelError, NumericClass, Op, Operand, ParamList, Params, Ran, Refusal,
    Workload,
};

struct MatMul {
    gpu: Arc<Gpu>,
    device: DeviceId,
    name: String,
    form: Form,
}

/// Sides of a workgroup by variant.
const SIDES: [u32; 2] = [8, 16];

/// Every kernel for products.
pub(super) fn kernels(gpu: &Arc<Gpu>, device: DeviceId, prefix: &str) -> Vec<Arc<dyn Kernel>> {
    let forms =
        [(Form::Naive, "naive"), (Form::Tiled, "tiled"), (Form::Blocked, "blocked"), (Form::Vec4, "vec4")];
    let mut all: Vec<Arc<dyn Kernel>> = Vec::new();
    for (form, name) in forms {
        let name = format!("{prefix}/matmul-{name}");
        all.push(Arc::new(MatMul { gpu: gpu.clone(), device, name, form }));
    }
    all.push(Arc::new(rows::Rows::new(gpu, device, prefix)));
    all
}

/// Rows and columns of an operand: its last two dimensions, with strides.
fn last_two(o: &Operand) -> (isize, isize) {
    let r = o.rank();
    (o.strides[r - 2], o.strides[r - 1])
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
    /// Whether the second operand's rows are runs of four, and the results' too.
    fn in_fours(w: &Workload) -> Result<(), Refusal> {
        let b = &w.inputs()[1];
        let (rs, cs) = last_two(b);
        let n = w.output().dims[w.output().rank() - 1];
        let fours = |s: isize| s % 4 == 0;
        let batches = b.strides[..b.rank() - 2].iter().all(|s| fours(*s));
        if w.dtype() != DType::F32 {
            return Err(Refusal::new("only f32 comes in fours"));
        }
        if cs != 1 || !n.is_multiple_of(4) || !fours(rs) || !batches || b.align_log2 < 4 {
            return Err(Refusal::new(
                "rows of the second operand must be runs of four, starting at 16 bytes",
            ));
        }
        Ok(())
    }

    fn nest(w: &Workload) -> Nest {
        let batch = w.output().rank() - 2;
        let strides = w.inputs().iter().chain(w.outputs()).map(|o| &o.strides[..batch]);
        Nest::new(&w.output().dims[..batch], strides)
    }
}

/// What each buffer is an array of.
fn words(form: Form, bound: &Bound, d: DType) -> SmallVec<[Word; 8]> {
    let plain = if d == DType::F64 { Word::Double } else { Word::Plain };
    let mut words: SmallVec<[Word; 8]> = SmallVec::from_elem(plain, bound.buffers.len());
    if d.size() < 4 {
        words[usize::from(bound.spots[2].binding)] = Word::Atomic;
    }
    // Single elements can be had of it too, if operands share a buffer.
    if form == Form::Vec4 {
        words[usize::from(bound.spots[1].binding)] = Word::Four;
    }
    words
}

impl Kernel for MatMul {
    fn name(&self) -> &str {
        &self.name
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn handles(&self, op: Op) -> bool {
        op == Op::MatMul
    }

    fn numerics(&self, w: &Workload) -> NumericClass {
        if w.dtype() == DType::I32 { NumericClass::Exact } else { NumericClass::Reassociated }
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        let Some((batch, m, k, n)) = w.matmul_dims() else {
            return Err(Refusal::new("it only multiplies matrices"));
        };
        takes(&self.gpu, w.dtype())?;
        addressable(w)?;
        let limits = self.gpu.limits();
        let most = limits.max_compute_workgroups_per_dimension as usize;
        let span = self.form.span(SIDES[0]) as usize;
        if m.div_ceil(span) > most || n.div_ceil(span) > most {
            return Err(Refusal::new("more tiles along an axis than a dispatch has"));
        }
        if (k + k / 4 + 16) * batch.div_ceil(most) > self.gpu.most_turns() {
            return Err(Refusal::new("so long rows are more turns than one invocation may take"));
        }
        let bytes = match self.form {
            Form::Naive => 0,
            Form::Tiled => 2 * SIDES[0] * SIDES[0],
            Form::Blocked | Form::Vec4 => 8 * SIDES[0] * SIDES[0],
        } * w.dtype().size().max(4) as u32;
        if bytes > limits.max_compute_workgroup_storage_size {
            return Err(Refusal::new("its tiles are more than a workgroup's memory"));
        }
        if self.form == Form::Vec4 { Self::in_fours(w) } else { Ok(()) }
    }

    fn params(&self, w: &Workload) -> ParamList {
        let limits = self.gpu.limits();
        let room = limits.max_compute_workgroup_storage_size / w.dtype().size().max(4) as u32;
        let small = w.output().elements() <= 64;
        let fits = |s: u32| {
            s == SIDES[0]
                || !small && s * s <= limits.max_compute_invocations_per_workgroup && 8 * s * s <= room
        };
        let list = SIDES.iter().enumerate().filter(|(_, s)| fits(**s));
        list.map(|(v, _)| Params { threads: 1, variant: v as u16 }).collect()
    }

    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        let (_, m, k, n) = w.matmul_dims().unwrap_or((1, 1, 1, 1));
        let side = SIDES[usize::from(p.variant).min(1)];
        let span = self.form.span(side) as f64;
        // Edges of tiles are computed too, and operands are read once a tile (by the naive form: once a result).
        let padded = |d: usize| (d as f64 / span).ceil() * span / d.max(1) as f64;
        let waste = padded(m) * padded(n) * (k as f64 / side as f64).ceil() * side as f64 / k.max(1) as f64;
        let (work, reuse) = match self.form {
            Form::Naive => (4.0, 8.0),
            Form::Tiled => (3.0, span),
            Form::Blocked => (1.5, span),
            Form::Vec4 => (1.0, span),
        };
        let traffic = (m.min(n).max(1) as f64 / reuse).max(1.0);
        cost::terms(&self.gpu, w, machine, 1.0, traffic, work * waste)
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let Some((batch, m, k, n)) = w.matmul_dims() else {
            return Err(KernelError::Failed("it only multiplies matrices".into()));
        };
        if batch * m * n == 0 {
            return Ok(Ran::Clean);
        }
        let d = w.dtype();
        let operands = [(io.inputs[0], d, false), (io.inputs[1], d, false), (io.output, d, true)];
        let bound = Bound::new(&self.gpu, operands.into_iter())?;
        // The workload promised an alignment; if the address has it not, single elements do.
        let fours = bound.spots[1].offset.is_multiple_of(4);
        let form = if self.form == Form::Vec4 && !fours { Form::Blocked } else { self.form };
        let words = words(form, &bound, d);
        let nest = Self::nest(w);
        let side = SIDES[usize::from(p.variant).min(SIDES.len() - 1)];
        let shader = Shader { form, dtype: d, side, rank: nest.dims.len(), bound: &bound, words: &words };
        let mut key: Key = smallvec::smallvec![3, form as u32, d as u32, side, nest.dims.len() as u32];
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
        let span = form.span(side);
        let groups = [(n as u32).div_ceil(span), (m as u32).div_ceil(span), (batch as u32).min(most)];
        self.gpu.launch(&Launch { pipeline: &pipeline, buffers: &bound.buffers, params: &params, groups })
    }
}
