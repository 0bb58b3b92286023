use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use steersman_core::guard::Offence;
use steersman_core::registry::RegistryError;
use steersman_core::{Settings, Workload};

fn engine() -> Arc<Engine> {
    Arc::new(Engine::default())
}

/// Without time spent nothing is explored, so the choice is the model's alone.
fn steady() -> Arc<Engine> {
    Arc::new(Engine::new(Settings { explore_budget: 0.0, ..Settings::default() }))
}

#[test]
fn a_call_runs_exactly_one_variant_and_returns_its_value() {
    let runs = Arc::new(AtomicUsize::new(0));
    let (one, two) = (runs.clone(), runs.clone());
    let push = Adaptive::new("push", &engine())
        .variant("one", move |v: &mut Vec<u32>| {
            one.fetch_add(1, Ordering::Relaxed);
            v.push(1);
            v.len()
        })
        .variant("two", move |v: &mut Vec<u32>| {
            two.fetch_add(1, Ordering::Relaxed);
            v.extend([1]);
            v.len()
        })
        .size(|v| v.len())
        .build()
        .unwrap();
    let mut data = Vec::new();
    for i in 1..=500 {
        assert_eq!(push.call(&mut data), i);
    }
    assert_eq!(runs.load(Ordering::Relaxed), 500);
}

#[test]
fn threads_may_call_at_once() {
    let sum = Adaptive::reading("sum", &engine())
        .variant("fold", |v: &[u64]| v.iter().sum::<u64>())
        .variant("loop", |v: &[u64]| {
            let mut s = 0;
            for x in v {
                s += x;
            }
            s
        })
        .size(|v| v.len())
        .build()
        .unwrap();
    std::thread::scope(|s| {
        for t in 0..4usize {
            let sum = &sum;
            s.spawn(move || {
                for n in 0..2000 {
                    let data = vec![1u64; (n * (t + 1)) % 300];
                    assert_eq!(sum.call(&data), data.len() as u64);
                }
            });
        }
    });
}

#[test]
fn a_variant_that_panics_on_a_read_argument_is_replaced_within_the_call() {
    let double = Adaptive::reading("double", &engine())
        .variant("broken", |_: &u32| -> u32 { panic!("not today") })
        .variant("sound", |x: &u32| x * 2)
        .build()
        .unwrap();
    assert_eq!(double.call(&21), 42);
    assert_eq!(double.choice(&21), Some("sound"));
    let kept = double.engine().guard().list();
    assert_eq!((kept[0].1.offence, kept[0].1.detail.as_str()), (Offence::Panicked, "not today"));
}

#[test]
fn a_half_done_change_is_undone_from_the_copy_and_done_again() {
    let add = Adaptive::new("add", &engine())
        .variant("broken", |v: &mut Vec<u32>| {
            v[0] += 1;
            assert!(v.is_empty(), "half way");
        })
        .variant("sound", |v: &mut Vec<u32>| v.iter_mut().for_each(|x| *x += 1))
        .cloning()
        .build()
        .unwrap();
    let mut data = vec![1, 2, 3];
    add.call(&mut data);
    assert_eq!(data, [2, 3, 4]);
}

#[test]
fn without_a_copy_the_panic_reaches_the_caller_and_the_variant_is_not_chosen_again() {
    let add = Adaptive::new("add", &engine())
        .variant("broken", |_: &mut u32| panic!("half way"))
        .variant("sound", |x: &mut u32| *x += 1)
        .build()
        .unwrap();
    let mut x = 0;
    assert!(catch_unwind(AssertUnwindSafe(|| add.call(&mut x))).is_err());
    add.call(&mut x);
    assert_eq!(x, 1);
}

#[test]
fn when_every_variant_panicked_the_caller_hears_of_it_each_time() {
    let broken =
        Adaptive::reading("broken", &engine()).variant("only", |_: &u32| panic!("always")).build().unwrap();
    for _ in 0..3 {
        assert!(catch_unwind(AssertUnwindSafe(|| broken.call(&1))).is_err());
    }
}

#[test]
fn calibration_quarantines_a_variant_that_disagrees_with_the_first() {
    let sort = Adaptive::new("sort", &steady())
        .variant("std", |v: &mut [u32]| v.sort_unstable())
        .variant("idle", |_: &mut [u32]| {})
        .size(|v| v.len())
        .check(|a, b| a == b)
        .build()
        .unwrap();
    let make = |n: usize| (0..n as u32).rev().collect::<Vec<_>>();
    let c = sort.calibrate(&[16, 256], make, Duration::from_millis(30));
    assert_eq!(sort.engine().guard().list()[0].1.offence, Offence::Wrong);
    assert!(c.rows.iter().all(|r| r.times[1].is_none() && r.chosen.as_deref() == Some("std")), "{c:?}");
}

#[test]
fn calibration_learns_to_avoid_the_slow_variant_at_each_size() {
    fn spin(rounds: usize) -> u64 {
        (0..rounds as u64).fold(1, |h, i| std::hint::black_box(h ^ i))
    }
    // `flat` costs the same always, `steep` 100 times as much at the large size and a tenth at the small.
    let work = Adaptive::reading("work", &steady())
        .variant("flat", |_: &usize| spin(3_000))
        .variant("steep", |n: &usize| spin(*n))
        .size(|n| *n)
        .build()
        .unwrap();
    let sizes = [300, 3_000, 30_000, 300_000];
    let c = work.calibrate(&sizes, |n| n, Duration::from_millis(200));
    assert!(c.samples > 20);
    assert_eq!(work.choice(&300), Some("steep"));
    assert_eq!(work.choice(&300_000), Some("flat"));
}

#[test]
fn a_function_without_variants_or_with_a_name_twice_is_refused_with_the_reason() {
    let e = engine();
    let none = Adaptive::<u32, u32, Reading>::reading("none", &e).build();
    assert_eq!(none.err(), Some(BuildError::NoVariants("none")));
    let twice = Adaptive::reading("twice", &e).variant("a", |x: &u32| *x).variant("a", |x: &u32| *x).build();
    assert!(matches!(twice.err(), Some(BuildError::Registry(_))));
    let again = Adaptive::reading("twice", &e).variant("a", |x: &u32| *x).variant("b", |x: &u32| *x).build();
    assert_eq!(again.unwrap().choice(&1), Some("a"), "nothing was left of the first try");
}

#[test]
fn an_engine_has_one_function_of_a_name() {
    let e = engine();
    let build = |variant| Adaptive::reading("same", &e).variant(variant, |x: &u32| *x).build();
    let first = build("a").unwrap();
    let taken = BuildError::Registry(RegistryError::FunctionTaken("same".into()));
    assert_eq!(build("b").err(), Some(taken));
    assert_eq!((first.call(&1), first.choice(&1)), (1, Some("a")));
}

/// Counts its runs, each of which takes 20 ms at least.
fn slow(runs: &Arc<AtomicUsize>) -> impl Fn(&usize) -> usize + Send + Sync + use<> {
    let runs = runs.clone();
    move |n| {
        runs.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
        *n
    }
}

#[test]
fn comparing_keeps_to_the_budget_too_and_it_is_said() {
    let runs = Arc::new(AtomicUsize::new(0));
    let work = Adaptive::reading("work", &steady())
        .variant("one", slow(&runs))
        .variant("two", slow(&runs))
        .variant("three", slow(&runs))
        .size(|n| *n)
        .check(|a, b| a == b)
        .build()
        .unwrap();
    let sizes: Vec<usize> = (1..=50).collect();
    let c = work.calibrate(&sizes, |n| n, Duration::from_millis(100));
    let runs = runs.load(Ordering::Relaxed);
    // Two may begin just before each of both ends.
    assert!(runs <= 100 / 20 + 4, "{runs} runs");
    assert!(c.cut_short && !c.checked, "{c:?}");
}

#[test]
fn the_first_variant_makes_one_reference_however_many_others_there_are() {
    let asked = Arc::new(AtomicUsize::new(0));
    let first = asked.clone();
    // Every result of the first is another: only as long as they are compared with one of them do they agree.
    let mut work = Adaptive::reading("work", &steady()).variant("first", move |_: &usize| {
        let nth = first.fetch_add(1, Ordering::Relaxed);
        if nth < 2 { 0 } else { nth }
    });
    for name in ["a", "b", "c"] {
        work = work.variant(name, |_: &usize| 0);
    }
    let work = work.check(|a, b| a == b).build().unwrap();
    assert!(work.calibrate(&[1], |n| n, Duration::from_millis(50)).checked);
    assert!(work.engine().guard().is_empty());
}

#[test]
fn calibrating_a_function_leaves_what_others_are_learning_alone() {
    let e = steady();
    let mine = Adaptive::reading("mine", &e).variant("a", |n: &usize| *n).size(|n| *n).build().unwrap();
    let other = Adaptive::reading("other", &e).variant("a", |n: &usize| *n).size(|n| *n).build().unwrap();
    let at = |n: usize| Workload::custom("other", &[n]).unwrap();
    // As a calibration does that is under way: what it learns is settled at its end.
    let learn = |n: usize| {
        let variant = e.estimates(&at(n))[0].variant;
        e.learn(variant, &at(n), n as f64 * 1e-6, 1.0);
    };
    [10, 20, 40, 80].into_iter().for_each(learn);
    let state = || {
        let written = |key: &steersman_core::cost::CellKey| key.op == Some("other");
        e.with_model(|m| m.cells().find(|(key, _)| written(key)).map(|(_, known)| known.into_bytes()))
    };
    let before = state();
    mine.calibrate(&[10, 20, 40, 80], |n| n, Duration::from_millis(20));
    assert!(before.is_some() && state() == before);
    assert_eq!(other.choice(&10), Some("a"));
}

#[test]
fn the_first_variant_is_the_default_whatever_its_size_and_threads() {
    let work = Adaptive::reading("work", &steady())
        .variant_threads("first", 4, |n: &usize| *n)
        .variant("second", |n: &usize| *n)
        .size(|n| *n)
        .build()
        .unwrap();
    for n in [0, 1, 1_000, 1 << 40] {
        assert_eq!(work.choice(&n), Some("first"), "{n}");
    }
}
