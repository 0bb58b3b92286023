//! Derives the result of an op from its operands, and brings operands into the form kernels see.

use super::WorkloadError;
use super::operand::{Dims, Operand, Strides};
use crate::dtype::DType;
use crate::op::{Axes, Op, Perm, ReduceOp, TernaryOp};
use smallvec::SmallVec;

type Inputs = SmallVec<[Operand; 3]>;

pub(super) fn infer(op: Op, mut inputs: Inputs) -> Result<(Op, Inputs, Operand), WorkloadError> {
    if let Op::Fused(_) = op {
        return Err(WorkloadError::NoExpr);
    }
    if inputs.len() != op.arity() {
        return Err(WorkloadError::Arity { op: op.name(), expected: op.arity(), got: inputs.len() });
    }
    check_dtypes(op, &inputs)?;
    let dtype = inputs[inputs.len() - 1].dtype;
    let (op, output) = match op {
        Op::Unary(_) | Op::Copy | Op::Custom(_) | Op::Fused(_) => (op, Operand::new(dtype, &inputs[0].dims)?),
        Op::Binary(_) | Op::Ternary(_) => {
            let dims = broadcast_all(op, &mut inputs)?;
            let bool_out = matches!(op, Op::Binary(b) if b.compares());
            (op, Operand::new(if bool_out { DType::Bool } else { dtype }, &dims)?)
        }
        Op::Reduce { kind, axes } => {
            let (axes, output) = reduced(kind, axes, dtype, &inputs[0].dims)?;
            (Op::Reduce { kind, axes }, output)
        }
        Op::MatMul => (op, Operand::new(dtype, &matmul_dims(&mut inputs)?)?),
        Op::Transpose { perm } => {
            let dims = &inputs[0].dims;
            let perm = if perm.rank() == 0 { Perm::reversed(dims.len()).unwrap_or_default() } else { perm };
            if perm.rank() != dims.len() {
                return Err(WorkloadError::Perm { perm: perm.to_string(), dims: dims.clone() });
            }
            let permuted: Dims = perm.iter().map(|a| dims[a]).collect();
            (Op::Transpose { perm }, Operand::new(dtype, &permuted)?)
        }
        Op::Conv2d { stride, pad } => (op, Operand::new(dtype, &conv_dims(&inputs, stride, pad)?)?),
    };
    Ok((op, inputs, output))
}

/// The result of reducing an array of these dimensions, and the axes that `axes` means for it.
pub(super) fn reduced(
    kind: ReduceOp,
    axes: Axes,
    dtype: DType,
    dims: &Dims,
) -> Result<(Axes, Operand), WorkloadError> {
    if let Some(axis) = axes.iter().find(|&a| a >= dims.len()) {
        return Err(WorkloadError::Axis { op: kind.name(), axis, dims: dims.clone() });
    }
    let axes = axes.or_all(dims.len());
    let kept: Dims = (0..dims.len()).filter(|&a| !axes.contains(a)).map(|a| dims[a]).collect();
    let reduces_nothing = axes.iter().any(|a| dims[a] == 0);
    if reduces_nothing && !kind.has_identity() && !kept.contains(&0) {
        return Err(WorkloadError::EmptyReduce { op: kind.name(), dims: dims.clone() });
    }
    Ok((axes, Operand::new(kind.result(dtype), &kept)?))
}

fn check_dtypes(op: Op, inputs: &Inputs) -> Result<(), WorkloadError> {
    let data = match op {
        Op::Ternary(TernaryOp::Where) => {
            if inputs[0].dtype != DType::Bool {
                return Err(WorkloadError::MixedDTypes {
                    op: "where's condition",
                    a: inputs[0].dtype,
                    b: DType::Bool,
                });
            }
            &inputs[1..]
        }
        _ => &inputs[..],
    };
    let dtype = data[0].dtype;
    if let Some(other) = data.iter().find(|o| o.dtype != dtype) {
        return Err(WorkloadError::MixedDTypes { op: op.name(), a: dtype, b: other.dtype });
    }
    if op.takes(dtype) { Ok(()) } else { Err(WorkloadError::DType { op: op.name(), dtype }) }
}

/// Broadcasts every input to the common shape (stride 0 where one repeats) and returns that shape.
fn broadcast_all(op: Op, inputs: &mut Inputs) -> Result<Dims, WorkloadError> {
    let mut dims: Dims = inputs[0].dims.clone();
    for o in &inputs[1..] {
        dims = broadcast(op.name(), &dims, &o.dims)?;
    }
    for o in inputs.iter_mut().filter(|o| o.dims != dims) {
        stretch(o, &dims);
    }
    Ok(dims)
}

pub(super) fn broadcast(op: &'static str, a: &Dims, b: &Dims) -> Result<Dims, WorkloadError> {
    if a == b {
        return Ok(a.clone());
    }
    let rank = a.len().max(b.len());
    let at = |d: &Dims, i: usize| (i + d.len()).checked_sub(rank).map_or(1, |j| d[j]);
    let mut out: Dims = SmallVec::with_capacity(rank);
    for i in 0..rank {
        match (at(a, i), at(b, i)) {
            (x, y) if x == y => out.push(x),
            (1, y) => out.push(y),
            (x, 1) => out.push(x),
            _ => return Err(WorkloadError::Broadcast { op, a: a.clone(), b: b.clone() }),
        }
    }
    Ok(out)
}

pub(super) fn stretch(o: &mut Operand, dims: &Dims) {
    let lead = dims.len() - o.dims.len();
    let mut strides: Strides = SmallVec::from_elem(0, dims.len());
    for (i, (&d, &s)) in o.dims.iter().zip(&o.strides).enumerate() {
        strides[lead + i] = if d == dims[lead + i] { s } else { 0 };
    }
    o.dims = dims.clone();
    o.strides = strides;
}

/// `[..., m, k] · [..., k, n]`; a vector on the left is a row, on the right a column, and stays a
/// matrix of one row or column in the result.
fn matmul_dims(inputs: &mut Inputs) -> Result<Dims, WorkloadError> {
    for (i, o) in inputs.iter_mut().enumerate() {
        match o.dims.len() {
            0 => return Err(WorkloadError::NotMatrix { op: "matmul", need: 1, dims: o.dims.clone() }),
            1 if i == 0 => {
                let step = o.strides[0].saturating_mul(o.dims[0].max(1) as isize);
                o.dims.insert(0, 1);
                o.strides.insert(0, step);
            }
            1 => {
                o.dims.push(1);
                o.strides.push(1);
            }
            _ => {}
        }
    }
    let (a, b) = (&inputs[0].dims, &inputs[1].dims);
    let (m, k_a) = (a[a.len() - 2], a[a.len() - 1]);
    let (k_b, n) = (b[b.len() - 2], b[b.len() - 1]);
    if k_a != k_b {
        return Err(WorkloadError::Inner { a: a.clone(), b: b.clone(), k_a, k_b });
    }
    let batch_a = Dims::from_slice(&a[..a.len() - 2]);
    let batch_b = Dims::from_slice(&b[..b.len() - 2]);
    let mut dims = broadcast("matmul (batch dimensions)", &batch_a, &batch_b)?;
    for (o, rows, cols) in [(0, m, k_a), (1, k_b, n)] {
        if inputs[o].dims.len() != dims.len() + 2 || inputs[o].dims[..dims.len()] != dims[..] {
            let mut full = dims.clone();
            full.extend([rows, cols]);
            stretch(&mut inputs[o], &full);
        }
    }
    dims.extend([m, n]);
    Ok(dims)
}

fn conv_dims(inputs: &Inputs, stride: u16, pad: u16) -> Result<Dims, WorkloadError> {
    let (image, filter) = (&inputs[0].dims, &inputs[1].dims);
    for d in [image, filter] {
        if d.len() != 4 {
            return Err(WorkloadError::NotMatrix { op: "conv2d", need: 4, dims: d.clone() });
        }
    }
    let fail = |why| WorkloadError::Conv { image: image.clone(), filter: filter.clone(), stride, pad, why };
    if stride == 0 {
        return Err(fail("the stride must be at least 1"));
    }
    if image[1] != filter[1] {
        return Err(fail("the channels of image (second) and filter (second) must be equal"));
    }
    let out = |size: usize, taps: usize| {
        let padded = size + 2 * pad as usize;
        (taps > 0 && padded >= taps).then(|| (padded - taps) / stride as usize + 1)
    };
    match (out(image[2], filter[2]), out(image[3], filter[3])) {
        (Some(h), Some(w)) => Ok(Dims::from_slice(&[image[0], filter[0], h, w])),
        _ => Err(fail("the filter is larger than the padded image")),
    }
}
