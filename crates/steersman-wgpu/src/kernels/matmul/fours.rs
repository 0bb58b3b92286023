//! Which operands of a product come in fours, and along what.

use super::block::Lane;
use super::last_two;
use crate::kernels::bound::Spot;
use steersman_core::{Operand, Workload};

/// Four bytes each, and four of them start at a multiple of sixteen.
const ALIGNED: u8 = 4;

/// How an operand of `deep` terms and `wide` results can be fetched, whose strides along those are given.
fn lane(o: &Operand, (deep, deep_stride): (usize, isize), (wide, wide_stride): (usize, isize)) -> Lane {
    let fours = |s: isize| s % 4 == 0;
    let batches = o.strides[..o.rank() - 2].iter().all(|s| fours(*s));
    if !batches || o.align_log2 < ALIGNED {
        return Lane::Single;
    }
    match () {
        _ if wide_stride == 1 && fours(deep_stride) && wide.is_multiple_of(4) => Lane::Wide,
        _ if deep_stride == 1 && fours(wide_stride) && deep.is_multiple_of(4) => Lane::Deep,
        _ => Lane::Single,
    }
}

fn first(w: &Workload) -> Lane {
    let Some((_, m, k, _)) = w.matmul_dims() else { return Lane::Single };
    let (rs, cs) = last_two(&w.inputs()[0]);
    lane(&w.inputs()[0], (k, cs), (m, rs))
}

/// How the second operand can be fetched.
pub(super) fn second(w: &Workload) -> Lane {
    let Some((_, _, k, n)) = w.matmul_dims() else { return Lane::Single };
    let (rs, cs) = last_two(&w.inputs()[1]);
    lane(&w.inputs()[1], (k, rs), (n, cs))
}

/// How operands at these spots are fetched, and whether results are stored in fours. Workloads promise alignment;
/// an address that has it not takes single elements.
pub(super) fn lanes(w: &Workload, spots: &[Spot]) -> ([Lane; 2], bool) {
    let there = |k: usize| spots[k].offset.is_multiple_of(4);
    let on = |k: usize, lane: Lane| if there(k) { lane } else { Lane::Single };
    let lanes = [on(0, first(w)), on(1, second(w))];
    let out = w.output();
    let (rs, cs) = last_two(out);
    let n = out.dims[out.rank() - 1];
    let batches = out.strides[..out.rank() - 2].iter().all(|s| s % 4 == 0);
    let fours = cs == 1 && rs % 4 == 0 && n.is_multiple_of(4) && batches && there(2);
    // Results stored one by one into a buffer of fours would race with their neighbours.
    let shared = |k: usize| spots[k].binding == spots[2].binding && lanes[k] != Lane::Single;
    if !fours && (shared(0) || shared(1)) {
        return ([Lane::Single; 2], false);
    }
    (lanes, fours)
}
