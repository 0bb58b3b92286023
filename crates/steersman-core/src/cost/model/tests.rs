use super::*;
use crate::Params;

#[test]
fn a_draft_says_what_is_known_so_far_and_settles_nothing() {
    let variant = Variant { kernel: 0, params: Params { threads: 1, variant: 0 } };
    let workload = |n: usize| -> Workload { format!("exp f64 {n}").parse().expect("a workload") };
    // A hole of a factor of four that no counted work explains.
    let seconds = |n: usize| n as f64 * if (1000..9000).contains(&n) { 4e-9 } else { 1e-9 };
    let terms = |n: usize| Terms::launch(1e-9).and(n as f64 * 1e-9);
    let mut model = Model::default();
    let learn = |model: &mut Model| {
        for n in [10, 40, 100, 300, 1500, 3000, 6000, 20_000, 60_000, 200_000] {
            model.observe(variant, &workload(n), n as u64, &terms(n), seconds(n), 1.0);
        }
    };
    let off = |model: &Model| {
        let w = workload(2900);
        let e = model.estimate(variant, &model.subject(&w, 1), &terms(2900), 1.0, 0, f64::INFINITY);
        (e.expect("an estimate").mean.0 / seconds(2900)).ln().abs()
    };
    learn(&mut model);
    let before = off(&model);
    model.draft();
    let drafted = off(&model);
    assert!(drafted < 0.5 * before, "{drafted} after {before}");
    // More samples, another draft, the end: none counts a sample twice.
    learn(&mut model);
    model.draft();
    model.refit();
    let mut at_once = Model::default();
    learn(&mut at_once);
    learn(&mut at_once);
    at_once.refit();
    assert_eq!(off(&model), off(&at_once));
}

#[test]
fn beyond_its_own_sizes_an_op_follows_the_other_ops_of_its_kernel() {
    let variant = Variant { kernel: 0, params: Params { threads: 1, variant: 0 } };
    let workload = |op: &str, n: usize| -> Workload {
        let text = format!("{op} f64 {n} {n}");
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    };
    let terms = |n: usize| Terms::launch(20e-9).and(n as f64 * 0.2e-9);
    // Beyond a million elements memory is five times slower, which no counted work says.
    let seconds = |n: usize| 20e-9 + n as f64 * if n > 1_000_000 { 1e-9 } else { 0.2e-9 };
    let mut model = Model::default();
    let mut learn = |op: &str, sizes: &[usize]| {
        for (i, &n) in sizes.iter().enumerate() {
            model.observe(variant, &workload(op, n), i as u64, &terms(n), seconds(n), 1.0);
        }
    };
    for op in ["add", "mul", "div", "max"] {
        learn(op, &[100, 1_000, 10_000, 100_000, 900_000, 4_900_000, 5_300_000, 9_800_000]);
    }
    learn("sub", &[100, 1_000, 10_000, 100_000]);
    model.refit();
    let n = 5_900_000;
    let w = workload("sub", n);
    let found = model.estimate(variant, &model.subject(&w, 999), &terms(n), 1.0, 0, f64::INFINITY);
    let Some(found) = found else { panic!("nothing is hopeless without a limit") };
    assert_eq!(found.evidence.source, Source::Pool);
    assert!(!found.evidence.extrapolated);
    let ratio = found.mean.0 / seconds(n);
    assert!((0.6..1.6).contains(&ratio), "{ratio}: {found:?}");
}

#[test]
fn what_may_stop_early_says_nothing_of_other_ops() {
    let variant = Variant { kernel: 0, params: Params { threads: 1, variant: 0 } };
    let workload = |op: &str, n: usize| -> Workload { format!("{op} f64 {n}").parse().expect("a workload") };
    let terms = |n: usize| Terms::launch(20e-9).and(n as f64 * 0.1e-9);
    let foretold = |with_any: bool| {
        let mut model = Model::default();
        for n in [100, 1_000, 10_000, 100_000, 1_000_000] {
            for op in ["sum", "max"] {
                let (w, t) = (workload(op, n), terms(n));
                model.observe(variant, &w, n as u64, &t, t.total(), 1.0);
            }
            if with_any {
                model.observe(variant, &workload("any", n), n as u64, &terms(n), 20e-9, 1.0);
            }
        }
        model.refit();
        // Real data, after the calibration: found at once.
        for n in [2_000, 20_000, 200_000] {
            if with_any {
                model.observe(variant, &workload("any", n), n as u64, &terms(n), 20e-9, 1.0);
            }
        }
        let (w, t) = (workload("norm", 200_000), terms(200_000));
        let found = model.estimate(variant, &model.subject(&w, 1), &t, 1.0, 0, f64::INFINITY);
        let own = CellKey::of(variant, &workload("any", 1));
        (found.expect("an estimate").mean.0, model.samples(&own))
    };
    let ((alone, none), (beside, own)) = (foretold(false), foretold(true));
    assert_eq!((none, own), (0, 8));
    assert_eq!(alone, beside);
}

#[test]
fn beyond_all_sizes_nothing_is_many_times_faster_than_the_machine_was_probed_to() {
    let variant = Variant { kernel: 0, params: Params { threads: 1, variant: 0 } };
    let workload = |n: usize| -> Workload { format!("exp f64 {n}").parse().expect("a workload") };
    // Near memory, and far memory that begins at a thousand elements: what was seen of it was quicker than it is.
    let far = |n: usize| n.saturating_sub(1000) as f64 * 2e-9;
    let terms = |n: usize| Terms::launch(20e-9).and(n.min(1000) as f64 * 1e-9).and(far(n));
    let mut model = Model::default();
    for (i, n) in [10, 100, 500, 900, 1000, 1050, 1100].into_iter().enumerate() {
        let seconds = 20e-9 + n.min(1000) as f64 * 1e-9 - far(n);
        model.observe(variant, &workload(n), i as u64, &terms(n), seconds, 1.0);
    }
    model.refit();
    let n = 1_000_000;
    let w = workload(n);
    let found = model.estimate(variant, &model.subject(&w, 999), &terms(n), 1.0, 0, f64::INFINITY);
    let found = found.expect("nothing is hopeless without a limit");
    assert!(found.evidence.extrapolated);
    assert!(found.mean.0 >= LEAST * terms(n).total(), "{found:?}");
}

#[test]
fn the_quick_exponential_is_close_everywhere() {
    for i in -40..=40 {
        let x = f64::from(i) * 0.1;
        assert!((super::exp(x) / x.exp() - 1.0).abs() < 2e-5, "{x}");
    }
}

#[test]
fn what_was_taken_back_is_as_if_it_had_never_been() {
    let variant = Variant { kernel: 0, params: Params { threads: 1, variant: 0 } };
    let workload = |n: usize| -> Workload { format!("exp f64 {n}").parse().expect("a workload") };
    let terms = |n: usize| Terms::launch(1e-9).and(n as f64 * 1e-9);
    let learned = || {
        let mut model = Model::default();
        for n in [10, 40, 100, 300, 1500, 3000, 6000, 20_000] {
            model.observe(variant, &workload(n), n as u64, &terms(n), n as f64 * 2e-9, 1.0);
        }
        model
    };
    let estimate = |model: &Model, n: usize| {
        let w = workload(n);
        let subject = model.subject(&w, n as u64);
        model.estimate(variant, &subject, &terms(n), 1.0, 0, f64::INFINITY).expect("an estimate").mean.0
    };
    let (mut clean, mut disturbed) = (learned(), learned());
    let (n, late) = (2000, 2000.0 * 9e-9);
    disturbed.observe(variant, &workload(n), n as u64, &terms(n), late, 1.0);
    disturbed.draft();
    let expected = disturbed.without(variant, &workload(n), &terms(n), late).expect("enough is known");
    assert!((expected / (n as f64 * 2e-9)).ln().abs() < 0.5, "{expected}");
    assert!(estimate(&disturbed, n) > 1.5 * expected, "it believes what it saw");
    disturbed.take_back(variant, &workload(n), n as u64, late);
    for model in [&mut clean, &mut disturbed] {
        model.refit();
    }
    for n in [50, 2000, 9000] {
        let (a, b) = (estimate(&clean, n), estimate(&disturbed, n));
        assert!((a / b - 1.0).abs() < 1e-6, "{n}: {a} and {b}");
    }
}

#[test]
fn wide_spreads_have_long_tails_and_narrow_ones_are_noise() {
    assert_eq!([0.0, 0.05, 0.1].map(central), [1.0; 3]);
    assert_eq!([0.2, 0.5, 3.0].map(central), [CENTRAL; 3]);
    assert!((central(0.15) - (1.0 + CENTRAL) / 2.0).abs() < 1e-12);
}

#[test]
fn what_is_as_it_was_remembered_need_not_be_written_down_again() {
    let variant = Variant { kernel: 0, params: Params { threads: 1, variant: 0 } };
    let workload: Workload = "exp f64 300".parse().expect("a workload");
    let terms = Terms::launch(300e-9);
    let mut model = Model::default();
    model.restore_history(1, variant, History { n: 16, mean: -15.0, m2: 0.01 });
    let new = |model: &Model, since: u64| {
        let mut all: Vec<(u64, u64)> = model.histories_since(since).map(|(hash, _, h)| (hash, h.n)).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(new(&model, 0), []);
    model.observe(variant, &workload, 1, &terms, 300e-9, 1.0);
    model.observe(variant, &workload, 2, &terms, 300e-9, 1.0);
    let saved = model.changes();
    assert_eq!(new(&model, 0), [(1, 17), (2, 1)]);
    model.observe(variant, &workload, 2, &terms, 300e-9, 1.0);
    assert_eq!(new(&model, saved), [(2, 2)]);
}

/// A cell that programs measure over and over, without a calibration. Says how far off it is in a hole that no counted
/// work explains, and how many samples were kept at most.
fn often_seen(sizes: &[usize], calibrating: bool) -> (f64, usize) {
    let variant = Variant { kernel: 0, params: Params { threads: 1, variant: 0 } };
    let workload = |n: usize| -> Workload { format!("exp f64 {n}").parse().expect("a workload") };
    let seconds = |n: usize| n as f64 * if (1000..9000).contains(&n) { 4e-9 } else { 1e-9 };
    let terms = |n: usize| Terms::launch(1e-9).and(n as f64 * 1e-9);
    let mut model = Model::default();
    model.calibrating(calibrating);
    let mut most = 0;
    for n in sizes.iter().cycle().take(3000).copied() {
        let w = workload(n);
        if model.observe(variant, &w, n as u64, &terms(n), seconds(n), 1.0) {
            model.settle_often_seen(variant, &w);
        }
        most = most.max(model.kept());
    }
    let w = workload(2900);
    let e = model.estimate(variant, &model.subject(&w, 1), &terms(2900), 1.0, 0, f64::INFINITY);
    ((e.expect("an estimate").mean.0 / seconds(2900)).ln().abs(), most)
}

#[test]
fn what_programs_measure_often_is_settled_without_a_calibration() {
    let sizes = [10, 40, 100, 300, 1500, 3000, 6000, 20_000, 60_000, 200_000];
    let (off, most) = often_seen(&sizes, false);
    assert!(off < 0.2, "{off}");
    // Of the cell and its pool.
    assert_eq!(most, 2 * (settle::OFTEN - 1));
    let (off, most) = often_seen(&sizes, true);
    assert!(off > 0.5 && most == 6000, "a calibration settles all at its end: {off}, {most}");
}

#[test]
fn what_was_always_of_one_size_is_not_settled_and_not_kept() {
    let (off, most) = often_seen(&[300, 310], false);
    assert!(off > 0.5, "nothing was seen there: {off}");
    assert_eq!(most, 2 * (settle::OFTEN - 1));
}

#[test]
fn settling_some_cells_leaves_the_others_as_they_are() {
    let variant = |kernel| Variant { kernel, params: Params { threads: 1, variant: 0 } };
    let workload = |n: usize| -> Workload { format!("exp f64 {n}").parse().expect("a workload") };
    let terms = |n: usize| Terms::launch(1e-9).and(n as f64 * 1e-9);
    let learn = |model: &mut Model, sizes: &[usize]| {
        for (&n, kernel) in sizes.iter().flat_map(|n| [(n, 0), (n, 1)]) {
            let seconds = n as f64 * if n > 1000 { 4e-9 } else { 1e-9 };
            model.observe(variant(kernel), &workload(n), n as u64, &terms(n), seconds, 1.0);
        }
    };
    let said = |model: &Model, kernel| {
        let w = workload(7000);
        model
            .estimate(variant(kernel), &model.subject(&w, 1), &terms(7000), 1.0, 0, f64::INFINITY)
            .unwrap()
            .mean
    };
    let (first, later) = ([10, 100, 1000, 10_000], [30, 300, 3000, 30_000, 100_000]);
    let (mut model, mut at_once) = (Model::default(), Model::default());
    learn(&mut model, &first);
    model.refit_of(|key| key.variant.kernel == 0);
    learn(&mut model, &later);
    model.refit();
    learn(&mut at_once, &first);
    learn(&mut at_once, &later);
    at_once.refit();
    assert_eq!(said(&model, 1), said(&at_once, 1), "its samples were kept until all were there");
    assert_ne!(said(&model, 0), said(&at_once, 0));
}
