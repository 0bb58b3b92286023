//! Everything behind a decision, and where it would change.

use super::{Engine, EngineError, read};
use crate::candidate::Candidate;
use crate::cost::Variant;
use crate::decision::{Crossover, Explanation};
use crate::workload::Workload;

impl Engine {
    /// Everything behind the decision for this workload.
    pub fn explain(&self, w: &Workload) -> Result<Explanation, EngineError> {
        let decision = self.judge(w)?;
        let hash = decision.hash;
        let (candidates, refused) = self.all_candidates(w, hash);
        let mut candidates: Vec<Candidate> = candidates.into_iter().collect();
        candidates.sort_by(|a, b| a.estimate.mean.0.total_cmp(&b.estimate.mean.0));
        for c in &mut candidates {
            c.estimate.setup = self.setup(w, c.variant).unwrap_or_default();
        }
        let crossovers = self.crossovers(w, decision.variant);
        let once = self.judge_for(w, 1)?;
        let policy = read(&self.policy).name();
        Ok(Explanation { decision, once, candidates, refused, crossovers, policy })
    }

    /// Along each dimension, the nearest size above and below at which another candidate wins.
    pub fn crossovers(&self, w: &Workload, winner: Variant) -> Vec<Crossover> {
        let mut found = Vec::new();
        for (dimension, size) in crate::vary::dimensions(w) {
            for above in [false, true] {
                // Steps of a quarter octave over three and a half decades, then a bisection between the last two.
                let step = |i: i32| {
                    (size as f64 * 2f64.powf(f64::from(i) * if above { 0.25 } else { -0.25 })) as usize
                };
                let at = |n: usize| -> Option<Variant> {
                    self.judge(&crate::vary::resized(w, &dimension, n)?).ok().map(|d| d.variant)
                };
                let mut last = size;
                for i in 1..48 {
                    let n = step(i);
                    if n == last || n == 0 {
                        continue;
                    }
                    match at(n) {
                        None => break,
                        Some(v) if v != winner => {
                            let (mut same, mut other, mut who) = (last, n, v);
                            while same.abs_diff(other) > 1 && same.abs_diff(other) * 50 > same.max(other) {
                                let mid = same.midpoint(other);
                                match at(mid) {
                                    Some(v) if v != winner => (other, who) = (mid, v),
                                    _ => same = mid,
                                }
                            }
                            found.push(Crossover {
                                dimension: dimension.clone(),
                                at: other,
                                above,
                                winner: who,
                            });
                            break;
                        }
                        Some(_) => last = n,
                    }
                }
            }
        }
        found
    }
}
