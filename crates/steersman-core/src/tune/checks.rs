//! Which kernels have been compared with the reference, and which still have to be.

use crate::cost::Variant;
use crate::dtype::DType;
use crate::workload::Workload;
use std::collections::{HashMap, HashSet};

/// Kernels are checked on workloads up to this size (operations, or elements where there are none): every
/// reference takes them, and they say as much as large ones.
const CHECKED: f64 = 3e5;

type What = (u16, &'static str, DType);

/// Every kernel is checked once for each op and element type: on a small workload, or, if it takes no small ones
/// (as those that write past the caches), on the smallest it was timed on.
#[derive(Default)]
pub struct Checks {
    done: HashSet<What>,
    larger: HashMap<What, (f64, Workload, Variant)>,
}

fn size(w: &Workload) -> f64 {
    w.flops().max(w.output().elements() as f64)
}

impl Checks {
    /// Those of `variants` to check on `w` now.
    pub fn due(&mut self, w: &Workload, variants: &[Variant]) -> Vec<Variant> {
        let what = |v: &Variant| (v.kernel, w.op().name(), w.dtype());
        let size = size(w);
        if size <= CHECKED {
            return variants.iter().copied().filter(|v| self.done.insert(what(v))).collect();
        }
        for v in variants {
            let smallest = self.larger.entry(what(v)).or_insert_with(|| (size, w.clone(), *v));
            if size < smallest.0 {
                *smallest = (size, w.clone(), *v);
            }
        }
        Vec::new()
    }

    /// What was only seen on larger workloads, smallest first.
    pub fn left(self) -> Vec<(Workload, Variant)> {
        let mut left: Vec<_> =
            self.larger.into_iter().filter(|(what, _)| !self.done.contains(what)).collect();
        left.sort_by(|a, b| a.1.0.total_cmp(&b.1.0).then(a.1.2.cmp(&b.1.2)));
        left.into_iter().map(|(_, (_, w, v))| (w, v)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Params;

    #[test]
    fn a_kernel_is_checked_once_small_if_it_can_be_and_at_the_end_if_not() {
        let parse = |text: &str| text.parse::<Workload>().unwrap();
        let kernel = |kernel| Variant { kernel, params: Params::SERIAL };
        let threads = |kernel| Variant { kernel, params: Params::threads(2) };
        let mut checks = Checks::default();
        let (small, large, larger) =
            (parse("exp f32 100"), parse("exp f32 900000"), parse("exp f32 9000000"));
        assert!(checks.due(&larger, &[kernel(1), kernel(2)]).is_empty());
        assert_eq!(checks.due(&small, &[kernel(1), threads(1)]), [kernel(1)]);
        assert!(checks.due(&small, &[kernel(1)]).is_empty());
        assert_eq!(checks.due(&parse("exp f64 100"), &[kernel(1)]), [kernel(1)], "another type");
        assert!(checks.due(&large, &[kernel(2)]).is_empty());
        assert_eq!(checks.left(), [(large, kernel(2))]);
    }
}
