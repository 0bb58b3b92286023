//! What a workload's reductions run over, and whether tiles can serve them all.

use smallvec::SmallVec;
use steersman_core::expr::Output;
use steersman_core::{Axes, Refusal, Workload};

/// Which elements a reduction takes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// All of them.
    All,
    /// Runs that lie side by side: trailing axes.
    Trailing,
    /// Those below one another: leading axes.
    Leading,
}

/// A group's shape as its reductions see it: `rows` of `columns`.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Elements in all.
    pub elements: usize,
    /// Elements of a row: what trailing reductions take together, or leading ones keep.
    pub columns: usize,
    /// For each output, what it reduces over; `None` for arrays.
    pub over: SmallVec<[Option<Over>; 2]>,
}

impl Shape {
    /// The shape of a workload, or why its reductions do not go together.
    pub fn new(w: &Workload) -> Result<Shape, Refusal> {
        let dims = w.dims();
        let outputs = w.expr().map_or(&[][..], |e| e.outputs());
        let mut shape = Shape {
            elements: dims.iter().product(),
            columns: 0,
            over: SmallVec::with_capacity(outputs.len()),
        };
        let mut seen: Option<(Over, usize)> = None;
        for output in outputs {
            let Output::Reduce { axes, .. } = *output else {
                shape.over.push(None);
                continue;
            };
            let (over, columns) = classify(dims, axes)?;
            shape.over.push(Some(over));
            if over == Over::All {
                continue;
            }
            match seen {
                Some(other) if other != (over, columns) => {
                    return Err(Refusal::new("its reductions run over different axes: one set a group"));
                }
                _ => seen = Some((over, columns)),
            }
            shape.columns = columns;
        }
        if shape.columns == 0 {
            shape.columns = shape.elements;
        }
        Ok(shape)
    }

    /// Rows of `columns`.
    pub fn rows(&self) -> usize {
        self.elements.checked_div(self.columns).unwrap_or(0)
    }

    /// Whether some output reduces over this.
    pub fn has(&self, over: Over) -> bool {
        self.over.contains(&Some(over))
    }
}

/// What these axes are of such a shape, and the length of its rows. Dimensions of one element are on any side.
fn classify(dims: &[usize], axes: Axes) -> Result<(Over, usize), Refusal> {
    let axes = axes.or_all(dims.len());
    let long = |a: &usize| dims[*a] != 1;
    let mut kept = (0..dims.len()).filter(|a| !axes.contains(*a)).filter(long);
    let mut reduced = axes.iter().filter(|&a| a < dims.len()).filter(long);
    let (first_kept, first_reduced) = (kept.next(), reduced.next());
    let (last_kept, last_reduced) = (kept.next_back().or(first_kept), reduced.last().or(first_reduced));
    match (first_kept, last_kept, first_reduced, last_reduced) {
        (None, ..) => Ok((Over::All, 0)),
        // Nothing to reduce: every element is a row of its own.
        (_, _, None, _) => Ok((Over::Trailing, 1)),
        (_, Some(kept), Some(reduced), _) if kept < reduced => {
            Ok((Over::Trailing, dims[reduced..].iter().product()))
        }
        (Some(kept), _, _, Some(reduced)) if reduced < kept => {
            Ok((Over::Leading, dims[kept..].iter().product()))
        }
        _ => {
            Err(Refusal::new("it reduces over all, the leading or the trailing axes, not over some between"))
        }
    }
}

/// How many elements go into each result.
pub fn reduced(shape: &Shape, over: Over) -> usize {
    match over {
        Over::All => shape.elements,
        Over::Trailing => shape.columns,
        Over::Leading => shape.rows(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_leading_trailing_or_all_whatever_dimensions_of_one_do() {
        let of = |dims: &[usize], axes: &[usize]| classify(dims, Axes::from_list(axes).unwrap()).ok();
        assert_eq!(of(&[3, 4, 5], &[]), Some((Over::All, 0)));
        assert_eq!(of(&[3, 4, 5], &[0, 1, 2]), Some((Over::All, 0)));
        assert_eq!(of(&[3, 4, 5], &[2]), Some((Over::Trailing, 5)));
        assert_eq!(of(&[3, 4, 5], &[1, 2]), Some((Over::Trailing, 20)));
        assert_eq!(of(&[3, 4, 5], &[0]), Some((Over::Leading, 20)));
        assert_eq!(of(&[3, 4, 5], &[0, 1]), Some((Over::Leading, 5)));
        assert_eq!(of(&[3, 4, 5], &[1]), None);
        assert_eq!(of(&[3, 4, 5], &[0, 2]), None);
        assert_eq!(of(&[3, 1, 5], &[1]), Some((Over::Trailing, 1)));
        assert_eq!(of(&[1, 4, 1], &[1]), Some((Over::All, 0)));
        assert_eq!(of(&[3, 1, 5], &[1, 2]), Some((Over::Trailing, 5)));
        assert_eq!(of(&[1, 4, 5], &[0, 2]), Some((Over::Trailing, 5)));
    }
}
