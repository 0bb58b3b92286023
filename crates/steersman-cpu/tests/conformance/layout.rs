//! Random shapes, and ways an operand may lie in memory.

use proptest::prelude::*;
use steersman_core::{DType, Operand, Strides};

/// How an operand lies: the order of its dimensions in memory, the gaps between them, which run backwards
/// and which repeat.
#[derive(Clone, Debug)]
pub struct Lie {
    pub order: Vec<u32>,
    pub gaps: Vec<usize>,
    pub backwards: Vec<bool>,
    pub repeats: Vec<bool>,
}

pub fn lie() -> impl Strategy<Value = Lie> {
    let row = || prop::collection::vec(any::<u32>(), 4);
    let gaps = prop::collection::vec(prop_oneof![3 => Just(0usize), 1 => 1..3usize], 4);
    let mask = || prop::collection::vec(prop::bool::weighted(0.25), 4);
    let order = prop_oneof![Just(vec![0, 1, 2, 3]), row()];
    (order, gaps, mask(), mask()).prop_map(|(order, gaps, backwards, repeats)| Lie {
        order,
        gaps,
        backwards,
        repeats,
    })
}

impl Lie {
    pub fn operand(&self, d: DType, dims: &[usize], may_repeat: bool) -> Operand {
        let mut order: Vec<usize> = (0..dims.len()).collect();
        order.sort_by_key(|&i| self.order[i]);
        let mut strides = Strides::from_elem(0, dims.len());
        let mut step = 1isize;
        for &i in order.iter().rev() {
            if may_repeat && self.repeats[i] {
                continue;
            }
            step *= 1 + self.gaps[i] as isize;
            strides[i] = if self.backwards[i] { -step } else { step };
            step *= dims[i].max(1) as isize;
        }
        Operand::strided(d, dims, strides).expect("a small operand")
    }
}

/// Up to four dimensions of up to 40, a few thousand elements in all.
pub fn shape() -> impl Strategy<Value = Vec<usize>> {
    let dim = prop_oneof![1 => Just(0usize), 2 => Just(1), 6 => 2..8usize, 6 => 8..41usize];
    prop::collection::vec(dim, 0..=4).prop_map(|mut dims| {
        while dims.iter().product::<usize>() > 5000 {
            let largest = dims.iter_mut().max().expect("a product above 5000 has factors");
            *largest = *largest / 2 + 1;
        }
        dims
    })
}
