//! Which of many variants is quickest, under a time budget: successive halving.
//!
//! Everyone is run once to compile and warm up, then timed; the slower half leaves, those left are timed twice
//! as often, and so on until one is left or the time is up. A variant that fails leaves with its reason.

use crate::cost::Variant;
use crate::kernel::{KernelError, Ran};
use crate::measure::Rig;
use crate::units::Seconds;
use std::time::{Duration, Instant};

/// What was found about one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Which.
    pub variant: Variant,
    /// Its first run, compiling included; `None` if there was no time for it.
    pub cold: Option<Seconds>,
    /// Whether that run had to compile.
    pub compiled: bool,
    /// Its quickest run after that; `None` if there was none.
    pub best: Option<Seconds>,
    /// Timed runs.
    pub runs: u32,
    /// Why it was given up, if it was.
    pub failed: Option<KernelError>,
}

/// Times `variants` on `rig` for about `budget`, or until `go_on`, asked before each run, says no; quickest first in
/// what comes back, those never timed last. The first is timed however short the budget, and so is whoever was warmed
/// up: of a search that is cut short again and again each part finds something out.
pub fn search(
    rig: &mut dyn Rig,
    variants: &[Variant],
    budget: Duration,
    go_on: &mut dyn FnMut() -> bool,
) -> Vec<Finding> {
    let started = Instant::now();
    let late = |share: f64| started.elapsed() >= budget.mul_f64(share);
    let finding =
        |&variant| Finding { variant, cold: None, compiled: false, best: None, runs: 0, failed: None };
    let mut all: Vec<Finding> = variants.iter().map(finding).collect();
    for (i, f) in all.iter_mut().enumerate() {
        if i > 0 && late(0.5) || !go_on() {
            break;
        }
        f.cold = timed(rig, f);
    }
    let mut alive: Vec<usize> = (0..all.len()).filter(|&i| all[i].cold.is_some()).collect();
    let mut rounds = 2;
    'timing: while !alive.is_empty() {
        for _ in 0..rounds {
            for &i in &alive {
                if all[i].best.is_some() && late(1.0) || !go_on() {
                    break 'timing;
                }
                let time = timed(rig, &mut all[i]);
                let f = &mut all[i];
                f.runs += u32::from(time.is_some());
                f.best = match (f.best, time) {
                    (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
                    (a, b) => a.or(b),
                };
            }
            alive.retain(|&i| all[i].failed.is_none());
        }
        if alive.len() <= 1 {
            break;
        }
        alive.sort_by(|&a, &b| key(&all[a]).total_cmp(&key(&all[b])));
        alive.truncate(alive.len().div_ceil(2));
        rounds *= 2;
    }
    all.sort_by(|a, b| key(a).total_cmp(&key(b)));
    all
}

fn timed(rig: &mut dyn Rig, f: &mut Finding) -> Option<Seconds> {
    rig.rouse(f.variant);
    let started = Instant::now();
    match rig.run(f.variant) {
        Ok(ran) => {
            f.compiled |= ran == Ran::Cold;
            Some(started.elapsed().into())
        }
        Err(e) => {
            f.failed = Some(e);
            None
        }
    }
}

/// What a variant is ranked by: failures last, those only run cold before them.
fn key(f: &Finding) -> f64 {
    match (f.failed.is_some(), f.best, f.cold) {
        (true, ..) => f64::INFINITY,
        (_, Some(best), _) => best.0,
        (_, None, Some(cold)) => 1e6 + cold.0,
        _ => 1e12,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Params;

    /// Runs of each variant, and how often it was roused.
    struct Sleeps(Vec<u32>, u32);
    impl Rig for Sleeps {
        fn rouse(&mut self, _: Variant) {
            self.1 += 1;
        }
        fn run(&mut self, v: Variant) -> Result<Ran, KernelError> {
            self.0[v.params.variant as usize] += 1;
            match v.params.variant {
                3 => Err(KernelError::Failed("too large".into())),
                i => {
                    std::thread::sleep(Duration::from_millis(1 + 4 * u64::from(i)));
                    Ok(Ran::Clean)
                }
            }
        }
        fn check(&mut self, _: Variant) -> Result<(), String> {
            Ok(())
        }
    }

    fn variants(n: u16) -> Vec<Variant> {
        (0..n).rev().map(|variant| Variant { kernel: 0, params: Params { threads: 1, variant } }).collect()
    }

    #[test]
    fn the_quickest_is_run_most_and_comes_first_and_failures_last() {
        let mut rig = Sleeps(vec![0; 4], 0);
        let found = search(&mut rig, &variants(4), Duration::from_millis(400), &mut || true);
        assert_eq!(found[0].variant.params.variant, 0);
        assert_eq!(found[3].variant.params.variant, 3);
        assert!(found[3].failed.is_some() && rig.0[3] == 1);
        assert!(rig.0[0] > rig.0[2], "{:?}", rig.0);
        assert_eq!(rig.1, rig.0.iter().sum::<u32>(), "before each");
    }

    #[test]
    fn without_time_one_variant_is_still_timed() {
        let mut rig = Sleeps(vec![0; 3], 0);
        let found = search(&mut rig, &variants(3), Duration::ZERO, &mut || true);
        assert_eq!(rig.0.iter().sum::<u32>(), 2);
        assert!(found[0].best.is_some() && found[1].cold.is_none());
    }

    #[test]
    fn who_is_told_to_stop_does_not_run_another() {
        let mut rig = Sleeps(vec![0; 3], 0);
        let mut asked = 0;
        let mut twice = || {
            asked += 1;
            asked <= 2
        };
        let found = search(&mut rig, &variants(3), Duration::from_secs(60), &mut twice);
        assert_eq!(rig.0.iter().sum::<u32>(), 2);
        assert!(found.iter().all(|f| f.best.is_none()));
    }
}
