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
        Op::Fused(_) if w.dims().len() <= 1 => vec![("n".into(), w.dims().iter().product())],
        Op::Fused(_) => w.dims().iter().enumerate().map(|(i, &d)| (format!("dim{i}"), d)).collect(),
        _ if w.inputs()[0].rank() <= 1 => vec![("n".into(), w.inputs()[0].elements())],
        _ => w.inputs()[0].dims.iter().enumerate().map(|(i, &d)| (format!("dim{i}"), d)).collect(),
    }
}

/// The workload with one dimension resized; `None` where that makes no valid one.
pub fn resized(w: &Workload, dimension: &str, size: usize) -> Option<Workload> {
    if let Some(expr) = w.expr() {
        let mut dims = w.dims().clone();
        *dims.get_mut(axis_of(dimension))? = size;
        let inputs: Option<Vec<Operand>> =
            w.inputs().iter().map(|o| grown(o, axis_of(dimension), size)).collect();
        return Some(Workload::fused(expr, &dims, inputs?).ok()?.with_numerics(w.numerics()));
    }
    let inputs: Option<Vec<Operand>> = match w.op() {
        Op::MatMul => w
            .inputs()
            .iter()
            .enumerate()
            .map(|(i, o)| {
                let r = o.rank();
                let axis = match (i, dimension) {
                    (0, "m") => r - 2,
                    (0, "k") => r - 1,
                    (1, "k") => r - 2,
                    (1, "n") => r - 1,
                    _ => return Some(o.clone()),
                };
                grown(o, axis, size)
            })
            .collect(),
        _ => {
            let axis = axis_of(dimension);
            w.inputs()
                .iter()
                .map(|o| if o.rank() == 0 { Some(o.clone()) } else { grown(o, axis, size) })
                .collect()
        }
    };
    Some(Workload::new(w.op(), inputs?).ok()?.with_numerics(w.numerics()))
}

/// The axis in a name such as `dim1`; the first in one without a number.
fn axis_of(dimension: &str) -> usize {
    dimension.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)
}

/// The operand with one axis resized. A transposed or broadcast operand stays that.
fn grown(o: &Operand, axis: usize, size: usize) -> Option<Operand> {
    let mut dims = o.dims.clone();
    *dims.get_mut(axis)? = size;
    if o.is_contiguous() {
        return Operand::new(o.dtype, &dims).ok();
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
    Operand::strided(o.dtype, &dims, strides).ok()
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
}
