//! What to time next: the workload that teaches most for the time it costs, and which of its candidates.

use super::Wanted;
use crate::candidate::{Candidate, Candidates};
use crate::cost::{Source, Variant};
use crate::engine::Engine;
use crate::measure::UNMOVED;
use crate::op::OpClass;
use crate::workload::Workload;
use std::collections::VecDeque;
use std::time::Duration;

/// Workloads looked at to find the next: enough to find a good one, few enough to cost nothing.
const LOOK: usize = 16;

/// Short runs cost nothing to time, so that everyone is timed there: seconds.
const SHORT: f64 = 1e-6;

/// Runs this long (seconds) cost so much that only those likely to win are timed.
const LONG: f64 = 100e-6;
/// Runs up to this long (seconds) are also timed of those unlikely to win that were only seen at smaller sizes: what their kernel's
/// other ops take there says little of an op whose rate was probed wrong. (`atan2` of 80,714 f32 on one thread was thought to take
/// 19 µs by these, after 6,101 had shown that it takes 1.7 times what was probed: 32 µs, where two threads take 17. It cost
/// 93%.)
const BEYOND: f64 = 300e-6;
/// How far behind the best a candidate may be thought and still be likely to win a long run.
const LIKELY: f64 = 2.5;

/// Whether every run of it is so long that it hardly matters how far apart cores are.
pub(super) fn is_long(engine: &Engine, w: &Workload) -> bool {
    unmoved(engine, w).iter().all(|c| c.estimate.mean.0 > UNMOVED)
}

/// Candidates for which nothing has to be moved: work is learned here, not links.
fn unmoved(engine: &Engine, w: &Workload) -> Candidates {
    let mut all = engine.estimates(w);
    all.retain(|c| !c.is_moved());
    all
}

/// Times that a workload is put off at most.
const PUT_OFF: u8 = 4;

/// A workload still to be measured.
pub(super) struct Pending {
    pub(super) wanted: Wanted,
    /// The variants that are left, if not all of them.
    left: Option<Vec<Variant>>,
    /// Times that it was put off because the machine was disturbed.
    put_off: u8,
}

impl Pending {
    fn lacks(&self, v: Variant) -> bool {
        self.left.as_ref().is_none_or(|left| left.contains(&v))
    }

    /// Whether only parallel variants are left.
    pub(super) fn is_parallel(&self) -> bool {
        self.left.as_ref().is_some_and(|left| left.iter().all(|v| v.params.threads > 1))
    }

    /// Whether it may be put off once more.
    pub(super) fn can_wait(&self) -> bool {
        self.put_off < PUT_OFF
    }

    /// Candidates worth timing: those that may win, and where it costs nothing everyone.
    pub(super) fn contenders(&self, engine: &Engine) -> Vec<Variant> {
        let all = unmoved(engine, &self.wanted.workload);
        let mut wanted: Vec<Variant> = likely(&all).map(|c| c.variant).collect();
        let cheap = |c: &&Candidate| {
            let (mean, evidence) = (c.estimate.mean.0, c.estimate.evidence);
            let beyond = evidence.extrapolated || evidence.source == Source::Pool;
            mean < SHORT || mean < LONG && evidence.samples < 3 || mean < BEYOND && beyond
        };
        wanted.extend(all.iter().filter(cheap).map(|c| c.variant));
        wanted.retain(|v| self.lacks(*v));
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// Summed variance of the candidates that may win, for each second that timing them takes.
    fn score(&self, engine: &Engine) -> f64 {
        let all = unmoved(engine, &self.wanted.workload);
        let (mut doubt, mut cost) = (0.0, 300e-6);
        for c in likely(&all).filter(|c| self.lacks(c.variant)) {
            doubt += c.estimate.spread.min(1.0).powi(2);
            cost += 4.0 * c.estimate.mean.0.max(30e-6);
        }
        self.wanted.importance * doubt / cost
    }
}

/// How much of the time a class of ops is worth: how often people run it, and how much its kernels differ. (By doubt alone
/// products, which have most candidates, took 60% of a calibration, element-wise ops 12%, and some of these were
/// never timed at all.)
fn share(class: OpClass) -> f64 {
    match class {
        OpClass::MatMul => 12.0,
        OpClass::Unary | OpClass::Binary | OpClass::Reduce => 5.0,
        OpClass::Move => 2.0,
        OpClass::Ternary | OpClass::Conv | OpClass::Fused | OpClass::Custom => 1.0,
    }
}

/// The workloads of one class.
struct Class {
    class: OpClass,
    pending: Vec<Pending>,
    /// Those that wait for the machine to be quiet.
    waiting: Vec<Pending>,
    cursor: usize,
    /// Seconds spent on it, for each part of its share.
    spent: f64,
}

impl Class {
    /// Takes out the workload with the most doubt per second, among a window of them, unless that is little enough.
    fn next(&mut self, engine: &Engine, enough: f64) -> Option<Pending> {
        let n = self.pending.len();
        let window = (0..LOOK.min(n)).map(|i| (self.cursor + i * 7919) % n);
        let scored = window.map(|i| (i, self.pending[i].score(engine)));
        let (at, score) = scored.max_by(|a, b| a.1.total_cmp(&b.1))?;
        self.cursor = self.cursor.wrapping_add(LOOK);
        (score >= enough || n > LOOK).then(|| self.pending.swap_remove(at))
    }
}

/// The workloads still to be measured. After those that come first every class of ops has its share of the time.
pub(super) struct Queue {
    first: VecDeque<Pending>,
    classes: Vec<Class>,
}

impl Queue {
    pub(super) fn new(wanted: Vec<Wanted>) -> Queue {
        let mut queue = Queue { first: VecDeque::new(), classes: Vec::new() };
        for wanted in wanted {
            let p = Pending { wanted, left: None, put_off: 0 };
            match p.wanted.importance == Wanted::FIRST {
                true => queue.first.push_back(p),
                false => queue.class(&p).pending.push(p),
            }
        }
        queue
    }

    /// Does without what is left of those that come first.
    pub(super) fn drop_first(&mut self) {
        self.first.clear();
    }

    fn class(&mut self, p: &Pending) -> &mut Class {
        let class = p.wanted.workload.class();
        let at = self.classes.iter().position(|c| c.class == class).unwrap_or_else(|| {
            let (pending, waiting) = Default::default();
            self.classes.push(Class { class, pending, waiting, cursor: 0, spent: 0.0 });
            self.classes.len() - 1
        });
        &mut self.classes[at]
    }

    /// Takes out one of those that come first, else a workload of the class that had the least of its share so far.
    pub(super) fn next(&mut self, engine: &Engine, enough: f64) -> Option<Pending> {
        if let Some(first) = self.first.pop_front() {
            return Some(first);
        }
        if self.classes.iter().all(|c| c.pending.is_empty()) {
            self.resume();
        }
        self.classes.sort_by(|a, b| a.spent.total_cmp(&b.spent));
        self.classes.iter_mut().find_map(|c| c.next(engine, enough))
    }

    /// Counts time that went into it, unless it came first.
    pub(super) fn spent(&mut self, p: &Pending, time: Duration) {
        if p.wanted.importance == Wanted::FIRST {
            return;
        }
        let class = self.class(p);
        class.spent += time.as_secs_f64() / share(class.class);
    }

    /// The machine is quiet: what waited for that may be next.
    pub(super) fn resume(&mut self) {
        for class in &mut self.classes {
            class.pending.append(&mut class.waiting);
        }
    }

    /// Has it wait as it is.
    pub(super) fn wait(&mut self, p: Pending) {
        self.class(&p).waiting.push(p);
    }

    /// Has these variants of it wait, unless there are none or it was put off often enough.
    pub(super) fn put_off(&mut self, p: &Pending, left: Vec<Variant>) {
        if !left.is_empty() && p.can_wait() {
            self.wait(Pending { wanted: p.wanted.clone(), left: Some(left), put_off: p.put_off + 1 });
        }
    }
}

/// Candidates that may win.
fn likely(all: &Candidates) -> impl Iterator<Item = &Candidate> {
    let least = |time: fn(&Candidate) -> f64| all.iter().map(time).fold(f64::INFINITY, f64::min);
    let (best, best_high) = (least(|c| c.estimate.mean.0), least(|c| c.estimate.high.0));
    all.iter().filter(move |c| {
        let e = &c.estimate;
        e.low.0 <= best_high && (best < LONG || e.mean.0 <= LIKELY * best)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Machine, Terms};
    use crate::device::DeviceId;
    use crate::kernel::{Kernel, Params, Refusal};
    use crate::op::Op;
    use std::sync::Arc;

    fn queue(all: &[&str]) -> Queue {
        let wanted = |w: &&str| Wanted { workload: w.parse().unwrap(), importance: 1.0 };
        Queue::new(all.iter().map(wanted).collect())
    }

    #[test]
    fn what_is_put_off_is_only_about_what_is_left_and_not_for_ever() {
        let [serial, parallel] = [1, 2].map(|t| Variant { kernel: 0, params: Params::threads(t) });
        let mut queue = queue(&["exp f32 100"]);
        let mut p = queue.classes[0].pending.pop().unwrap();
        assert!(p.lacks(serial) && p.lacks(parallel) && !p.is_parallel());
        queue.put_off(&p, Vec::new());
        assert!(queue.classes[0].waiting.is_empty(), "nothing is left");
        for _ in 0..PUT_OFF {
            queue.put_off(&p, vec![parallel]);
            assert!(queue.classes[0].pending.is_empty(), "it waits");
            queue.resume();
            p = queue.classes[0].pending.pop().unwrap();
            assert!(!p.lacks(serial) && p.lacks(parallel) && p.is_parallel());
        }
        queue.put_off(&p, vec![parallel]);
        assert!(queue.classes[0].waiting.is_empty());
    }

    /// So many seconds an element.
    struct Line(&'static str, f64);

    impl Kernel for Line {
        fn name(&self) -> &str {
            self.0
        }
        fn device(&self) -> DeviceId {
            DeviceId(0)
        }
        fn handles(&self, _: Op) -> bool {
            true
        }
        fn supports(&self, _: &Workload) -> Result<(), Refusal> {
            Ok(())
        }
        fn terms(&self, w: &Workload, _: Params, _: &Machine) -> Terms {
            Terms::launch(1e-8).and(self.1 * w.output().elements() as f64)
        }
    }

    #[test]
    fn who_is_unlikely_to_win_is_timed_where_it_was_only_seen_at_smaller_sizes_and_costs_little() {
        let engine = Engine::new(Default::default());
        let all = [Line("quick", 1e-10), Line("slow", 4e-10)];
        for line in all {
            let seconds = |n: usize| line.1 * n as f64;
            let kernel = engine.register(Arc::new(Line(line.0, line.1))).unwrap();
            let seen: &[usize] =
                if kernel == 0 { &[100, 1_000, 10_000, 700_000] } else { &[100, 1_000, 10_000] };
            for &n in seen {
                let w: Workload = format!("exp f32 {n}").parse().unwrap();
                (0..6).for_each(|_| {
                    engine.learn(Variant { kernel, params: Params::SERIAL }, &w, seconds(n), 1.0)
                });
            }
        }
        let timed = |n: usize| {
            let p = queue(&[&format!("exp f32 {n}")]).classes[0].pending.pop().unwrap();
            p.contenders(&engine).iter().map(|v| v.kernel).collect::<Vec<_>>()
        };
        assert_eq!(timed(10_500), [0], "it was seen there, and lost");
        assert_eq!(timed(500_000), [0, 1]);
        assert_eq!(timed(1_000_000), [0], "it would take 400 µs");
    }

    #[test]
    fn what_comes_first_does_so_in_its_order_and_costs_its_class_nothing() {
        let wanted = |(w, importance): (&str, f64)| Wanted { workload: w.parse().unwrap(), importance };
        let all = [
            ("exp f32 9", 1.0),
            ("exp f32 7", Wanted::FIRST),
            ("exp f32 8", Wanted::FIRST),
            ("sum f32 5", 1.0),
        ];
        let engine = Engine::new(Default::default());
        let taken = |queue: &mut Queue| {
            let p = queue.next(&engine, 0.0)?;
            queue.spent(&p, Duration::from_millis(1));
            Some(p.wanted.workload.output().elements() + p.wanted.workload.inputs()[0].elements())
        };
        let mut queue = Queue::new(all.map(wanted).to_vec());
        assert_eq!([taken(&mut queue), taken(&mut queue)], [Some(14), Some(16)]);
        assert!(queue.classes.iter().all(|c| c.spent == 0.0));
        queue = Queue::new(all.map(wanted).to_vec());
        assert_eq!(taken(&mut queue), Some(14));
        queue.drop_first();
        let mut rest = [taken(&mut queue), taken(&mut queue)];
        rest.sort();
        assert_eq!((rest, taken(&mut queue)), ([Some(6), Some(18)], None), "the other was dropped");
    }

    #[test]
    fn every_class_has_its_share_and_what_one_leaves_goes_to_the_others() {
        let products = (1..=60).map(|n| format!("matmul f32 {n}x9 9x9"));
        let others = (1..=6).flat_map(|n| [format!("exp f32 {n}"), format!("sum f32 {n}")]);
        let all: Vec<String> = products.chain(others).collect();
        let mut queue = queue(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let engine = Engine::new(Default::default());
        let mut order = Vec::new();
        while let Some(p) = queue.next(&engine, 0.0) {
            queue.spent(&p, Duration::from_millis(1));
            order.push(p.wanted.workload.class());
        }
        assert_eq!(order.len(), all.len(), "each once");
        let count = |class| order[..22].iter().filter(|c| **c == class).count();
        let shares = [OpClass::MatMul, OpClass::Reduce, OpClass::Unary].map(count);
        assert_eq!(shares, [12, 5, 5], "{order:?}");
        assert!(order[40..].iter().all(|c| *c == OpClass::MatMul), "{order:?}");
    }
}
