//! The same workload at another size, along one of its dimensions: for counterfactuals and crossovers.

use crate::op::Op;
use crate::workload::{Operand, Workload};

/// The dimensions along which a workload can grow, with their sizes.
pub fn dimensions(w: &Workload) -> Vec<(String, usize)> {
    match w.op() {
        Op::MatMul => {
            let (_, m, k, n) = w.matmul_dims().unwrap_or((1, 1, 1, 1));
            vec![("m".into(), m), ("k".into(), k), ("n".into(), n)]
        }
        Op::Custom(_) => {
            w.inputs()[0].dims.iter().enumerate().map(|(i, &d)| (format!("size{i}"), d)).collect()
        }
        Op::Conv2d { .. } => {
            let (image, filters) = (&w.inputs()[0].dims, w.inputs()[1].dims[0]);
            let sizes = image.iter().copied().chain([filters]);
            CONV.iter().map(|name| name.to_string()).zip(sizes).collect()
        }
        Op::Fused(_) if w.dims().len() <= 1 => vec![("n".into(), w.dims().iter().product())],
        Op::Fused(_) => w.dims().iter().enumerate().map(|(i, &d)| (format!("dim{i}"), d)).collect(),
        _ if w.inputs()[0].rank() <= 1 => vec![("n".into(), w.inputs()[0].elements())],
        _ => w.inputs()[0].dims.iter().enumerate().map(|(i, &d)| (format!("dim{i}"), d)).collect(),
    }
}

/// What the dimensions of a convolution's image are called, and the number of its filters.
const CONV: [&str; 5] = ["batch", "channels", "height", "width", "filters"];

/// The workload with one dimension resized; `None` where that makes no valid one. Everything lives where it lived.
pub fn resized(w: &Workload, dimension: &str, size: usize) -> Option<Workload> {
    let resize = |(i, o): (usize, &Operand)| match axis(w.op(), i, o.rank(), dimension) {
        Some(axis) => grown(o, axis, size),
        None => Some(o.clone()),
    };
    let inputs = w.inputs().iter().enumerate().map(resize).collect::<Option<Vec<Operand>>>()?;
    let grown = match w.expr() {
        Some(expr) => {
            let mut dims = w.dims().clone();
            *dims.get_mut(axis_of(dimension))? = size;
            Workload::fused(expr, &dims, inputs)
        }
        None => Workload::new(w.op(), inputs),
    };
    Some(grown.ok()?.with_numerics(w.numerics()).with_output_at(w.output().place))
}

/// Which axis of its `i`th operand, of so many, an op's dimension is.
fn axis(op: Op, i: usize, rank: usize, dimension: &str) -> Option<usize> {
    match (op, i, dimension) {
        (Op::MatMul, 0, "m") | (Op::MatMul, 1, "k") => Some(rank - 2),
        (Op::MatMul, 0, "k") | (Op::MatMul, 1, "n") => Some(rank - 1),
        (Op::MatMul, ..) => None,
        (Op::Conv2d { .. }, 1, "filters") => Some(0),
        (Op::Conv2d { .. }, 1, "channels") => Some(1),
        (Op::Conv2d { .. }, 0, _) => CONV[..rank].iter().position(|name| *name == dimension),
        (Op::Conv2d { .. }, ..) => None,
        _ if rank == 0 => None,
        _ => Some(axis_of(dimension)),
    }
}

/// The axis in a name such as `dim1`; the first in one without a number.
fn axis_of(dimension: &str) -> usize {
    dimension.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)
}

/// The operand with one axis resized. A transposed or broadcast operand stays that.
fn grown(o: &Operand, axis: usize, size: usize) -> Option<Operand> {
    let mut dims = o.dims.clone();
    *dims.get_mut(axis)? = size;
    let as_it_was = |grown: Operand| Operand { place: o.place, align_log2: o.align_log2, ..grown };
    if o.is_contiguous() {
        return Operand::new(o.dtype, &dims).ok().map(as_it_was);
    }
    // Strides are rebuilt in the order of the old ones, so that the layout stays what it was.
    let mut order: Vec<usize> = (0..dims.len()).filter(|&i| o.strides[i] != 0).collect();
    order.sort_by_key(|&i| (o.strides[i].unsigned_abs(), std::cmp::Reverse(i)));
    let mut strides = o.strides.clone();
    let mut step = 1isize;
    for i in order {
        strides[i] = step;
        step = step.checked_mul(dims[i].max(1) as isize)?;
    }
    Operand::strided(o.dtype, &dims, strides).ok().map(as_it_was)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_grows_on_both_sides_of_its_inner_dimension() {
        let w: Workload = "matmul f32 3x4 4x5".parse().unwrap();
        assert_eq!(resized(&w, "k", 9).unwrap().to_string(), "matmul f32 3x9 9x5");
        let t: Workload = "matmul f32 3x4:1,3 4x5".parse().unwrap();
        assert_eq!(resized(&t, "m", 7).unwrap().to_string(), "matmul f32 7x4:1,7 4x5");
    }

    #[test]
    fn a_reduction_grows_along_the_named_axis() {
        let w: Workload = "sum f32 3x4 axis=1".parse().unwrap();
        assert_eq!(resized(&w, "dim0", 8).unwrap().to_string(), "sum f32 8x4 axis=1");
    }

    #[test]
    fn a_convolution_grows_by_its_own_dimensions() {
        let w: Workload = "conv2d f32 8x3x32x32 16x3x5x5 stride=1 pad=2".parse().unwrap();
        let grown = |name: &str| resized(&w, name, 64).map(|w| w.to_string());
        let named: Vec<(String, usize)> = dimensions(&w);
        assert_eq!(named.iter().map(|d| d.1).collect::<Vec<_>>(), [8, 3, 32, 32, 16]);
        let shapes =
            |name: &str| grown(name).unwrap().split(' ').skip(2).take(2).collect::<Vec<_>>().join(" ");
        assert_eq!(shapes("batch"), "64x3x32x32 16x3x5x5");
        assert_eq!(shapes("channels"), "8x64x32x32 16x64x5x5");
        assert_eq!(shapes("width"), "8x3x32x64 16x3x5x5");
        assert_eq!(shapes("filters"), "8x3x32x32 64x3x5x5");
    }

    #[test]
    fn what_lives_on_a_device_still_does() {
        let place = crate::Place::Device(crate::DeviceId(1));
        for text in ["matmul f32 3x4 4x5", "add f32 6 6", "sum f32 3x4 axis=1"] {
            let w: Workload = text.parse().unwrap();
            let w = w.with_input_at(0, place).with_output_at(place);
            let name = &dimensions(&w)[0].0;
            let grown = resized(&w, name, 9).unwrap();
            assert_eq!((grown.inputs()[0].place, grown.output().place), (place, place), "{text}");
        }
    }
}
