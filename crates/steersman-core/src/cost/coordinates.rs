//! Where workloads lie among others of their op.

use super::local::Coordinates;
use crate::op::OpClass;
use crate::workload::{Layout, Workload};

/// Where a workload lies among others of its op: logs of the sizes its time depends on.
pub fn coordinates(w: &Workload) -> Coordinates {
    let ln = |n: usize| (n.max(1) as f64).ln();
    match w.class() {
        OpClass::MatMul => w.matmul_dims().map_or([0.0; 3], |(b, m, k, n)| [ln(b * m), ln(k), ln(n)]),
        OpClass::Reduce => match w.reduce_dims() {
            Some((outer, reduced, inner)) => [ln(outer), ln(reduced), ln(inner)],
            None => [ln(w.inputs()[0].elements()), 0.0, 0.0],
        },
        OpClass::Custom => {
            let dims = &w.inputs()[0].dims;
            std::array::from_fn(|i| dims.get(i).map_or(0.0, |d| ln(*d)))
        }
        // As the product it amounts to: positions, depth, filters.
        OpClass::Conv => {
            let (image, filter, out) = (&w.inputs()[0].dims, &w.inputs()[1].dims, &w.output().dims);
            let depth = filter[1..].iter().product();
            [ln(image[0] * out[2] * out[3]), ln(depth), ln(filter[0])]
        }
        OpClass::Move => {
            let dims = &w.inputs()[0].dims;
            let last = dims.last().copied().unwrap_or(1);
            [ln(w.inputs()[0].elements() / last.max(1)), ln(last), 0.0]
        }
        // Groups of one size differ by how much they do with an element.
        OpClass::Fused => {
            let flops = w.expr().map_or(1.0, |e| e.flops());
            let last = w.dims().last().copied().unwrap_or(1);
            let rows = if w.layout() == Layout::Contiguous { 0.0 } else { ln(last) };
            [ln(w.dims().iter().product()), flops.max(1.0).ln(), rows]
        }
        OpClass::Unary | OpClass::Binary | OpClass::Ternary if w.layout() == Layout::Contiguous => {
            [ln(w.output().elements()), 0.0, 0.0]
        }
        OpClass::Unary | OpClass::Binary | OpClass::Ternary => {
            [ln(w.output().elements()), ln(w.output().row()), 0.0]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_repeat_are_told_from_values_that_do() {
        let layout = |text: &str| text.parse::<Workload>().unwrap().layout();
        assert_eq!(layout("add f32 9x4 9x4"), Layout::Contiguous);
        assert_eq!(layout("add f32 9x4 4"), Layout::Broadcast);
        assert_eq!(layout("add f32 5x9x4 9x4"), Layout::Broadcast);
        assert_eq!(layout("add f32 9x4 9x1"), Layout::PerRow);
        assert_eq!(layout("add f32 9 1"), Layout::PerRow);
    }

    #[test]
    fn dimensions_of_one_are_no_rows() {
        let at = |text: &str| coordinates(&text.parse().unwrap());
        assert_eq!(at("add f32 2862x1 1"), at("add f32 2862 1"));
        assert_ne!(at("add f32 53x54 54"), at("add f32 54x53 53"));
    }
}
