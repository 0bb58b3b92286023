//! Views as offsets and strides into memory that is already there.

use crate::array::node::NodeOp;
use crate::array::value::is_contiguous;
use smallvec::SmallVec;
use steersman_core::{Dims, Strides};

/// How a view looks at its base's memory, in elements.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Look {
    pub offset: isize,
    pub strides: Strides,
}

/// The view that `op` makes of elements of shape `dims` that lie as `look` says; `None` if no strides can say it.
pub(super) fn view(op: &NodeOp, dims: &[usize], look: &Look, to: &[usize]) -> Option<Look> {
    let Look { offset, strides } = look;
    Some(match op {
        NodeOp::Reshape => Look { offset: *offset, strides: reshape(dims, strides, to)? },
        NodeOp::Permute(perm) => Look { offset: *offset, strides: perm.iter().map(|a| strides[a]).collect() },
        NodeOp::Slice(steps) => {
            let first: isize = steps.iter().zip(strides).map(|(&(start, _), &s)| start as isize * s).sum();
            let by = steps.iter().zip(strides).map(|(&(_, step), &s)| step * s).collect();
            Look { offset: offset + first, strides: by }
        }
        NodeOp::Broadcast => {
            let lead = to.len() - dims.len();
            let mut by: Strides = SmallVec::from_elem(0, to.len());
            for (i, (&d, &s)) in dims.iter().zip(strides).enumerate() {
                by[lead + i] = if d == to[lead + i] { s } else { 0 };
            }
            Look { offset: *offset, strides: by }
        }
        NodeOp::Contiguous if is_contiguous(dims, strides) => look.clone(),
        _ => return None,
    })
}

/// Strides of the same elements in another shape. Runs of axes that lie one after another in memory are taken
/// as one and cut up anew; where the new shape cuts across two runs there are none.
fn reshape(dims: &[usize], strides: &[isize], to: &[usize]) -> Option<Strides> {
    let mut runs: SmallVec<[(usize, isize); 8]> = SmallVec::new();
    for (&d, &s) in dims.iter().zip(strides).filter(|(d, _)| **d != 1) {
        match runs.last_mut() {
            Some((n, step)) if *step == s * d as isize => (*n, *step) = (*n * d, s),
            _ => runs.push((d, s)),
        }
    }
    let mut by: Strides = SmallVec::from_elem(1, to.len());
    let wide: Dims = (0..to.len()).filter(|&i| to[i] != 1).collect();
    let mut axis = wide.len();
    for &(n, step) in runs.iter().rev() {
        let (mut left, mut at) = (n, step);
        while left > 1 {
            axis = axis.checked_sub(1)?;
            let d = to[wide[axis]];
            if left % d != 0 {
                return None;
            }
            by[wide[axis]] = at;
            at *= d as isize;
            left /= d;
        }
    }
    (axis == 0).then_some(by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::value::contiguous;

    #[test]
    fn reshapes_need_no_copy_where_strides_can_say_them() {
        let by =
            |dims: &[usize], strides: &[isize], to: &[usize]| reshape(dims, strides, to).map(|s| s.to_vec());
        assert_eq!(by(&[2, 3, 4], &contiguous(&[2, 3, 4]), &[6, 4]), Some(vec![4, 1]));
        assert_eq!(by(&[6, 4], &[8, 1], &[2, 3, 4]), Some(vec![24, 8, 1]), "a cut of wider rows");
        assert_eq!(by(&[6, 4], &[8, 1], &[24]), None);
        assert_eq!(by(&[4, 6], &[1, 4], &[24]), None, "a transpose");
        assert_eq!(by(&[3], &[-1], &[1, 3, 1]).map(|s| s[1]), Some(-1));
        assert_eq!(by(&[1, 1], &[7, 9], &[]), Some(vec![]));
        assert_eq!(by(&[2, 2], &[0, 0], &[4]), Some(vec![0]), "the same element four times");
    }
}
