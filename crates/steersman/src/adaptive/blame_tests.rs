use super::*;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use steersman_core::guard::Offence;

fn engine() -> Arc<Engine> {
    Arc::new(Engine::default())
}

fn panics<R>(work: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(work)).is_err()
}

/// The largest element: of nothing there is none.
fn largest(engine: &Arc<Engine>) -> Adaptive<[u32], u32, Reading> {
    Adaptive::reading("largest", engine)
        .variant("iter", |v: &[u32]| *v.iter().max().expect("an element"))
        .variant("fold", |v: &[u32]| v[1..].iter().fold(v[0], |a, b| a.max(*b)))
        .size(|v| v.len())
        .build()
        .unwrap()
}

#[test]
fn an_argument_that_no_variant_copes_with_is_to_blame_itself() {
    let largest = largest(&engine());
    for _ in 0..3 {
        assert!(panics(|| largest.call(&[])));
        assert!(largest.engine().guard().is_empty(), "{:?}", largest.engine().guard().list());
        assert_eq!(largest.call(&[1, 3, 2]), 3);
        assert_eq!(largest.choice(&[]), Some("iter"));
    }
}

#[test]
fn a_variant_that_another_outdid_stays_put_away_when_an_argument_is_to_blame() {
    let add = Adaptive::reading("add", &engine())
        .variant("broken", |_: &u32| -> u32 { panic!("not today") })
        .variant("sound", |x: &u32| x.checked_add(1).expect("room for one more"))
        .build()
        .unwrap();
    assert_eq!(add.call(&1), 2);
    assert!(panics(|| add.call(&u32::MAX)));
    assert_eq!(add.choice(&1), Some("sound"));
    let kept = add.engine().guard().list();
    assert_eq!((kept.len(), kept[0].0.kernel), (1, 0));
}

#[test]
fn without_copies_bad_arguments_do_not_leave_a_function_without_variants() {
    let first = Adaptive::new("first", &engine())
        .variant("index", |v: &mut Vec<u32>| v[0] += 1)
        .variant("get", |v: &mut Vec<u32>| *v.first_mut().expect("an element") += 1)
        .build()
        .unwrap();
    for _ in 0..2 {
        assert!(panics(|| first.call(&mut Vec::new())));
    }
    let mut data = vec![1];
    first.call(&mut data);
    assert_eq!((data, first.choice(&vec![1])), (vec![2], Some("index")));
}

#[test]
fn a_panic_of_the_callers_own_code_reaches_the_caller_and_convicts_nobody() {
    let first = |checks: bool| {
        Adaptive::reading("work", &engine())
            .variant("a", |n: &usize| *n)
            .variant("b", |n: &usize| *n)
            .size(|n| *n)
            .check(move |a, b| if checks { a == b } else { panic!("no check today") })
            .build()
            .unwrap()
    };
    let (broken, sound) = (first(false), first(true));
    assert!(panics(|| broken.calibrate(&[4], |n| n, Duration::from_millis(20))));
    assert!(broken.engine().guard().is_empty());
    // At each of the times that an input is made.
    for nth in 0..8 {
        let made = Cell::new(0);
        let make = |n: usize| {
            made.set(made.get() + 1);
            assert!(made.get() <= nth, "no input today");
            n
        };
        assert!(panics(|| sound.calibrate(&[4], make, Duration::from_secs(5))), "{nth}");
        assert!(sound.engine().guard().is_empty(), "{nth}: {:?}", sound.engine().guard().list());
    }
}

#[test]
fn inputs_that_no_variant_copes_with_are_to_blame_in_calibration_too() {
    let largest = largest(&engine());
    let make = |n: usize| vec![7u32; n];
    assert!(panics(|| largest.calibrate(&[8, 0], make, Duration::from_millis(50))));
    assert!(largest.engine().guard().is_empty(), "{:?}", largest.engine().guard().list());
    let c = largest.calibrate(&[8], make, Duration::from_millis(50));
    assert!(c.rows[0].times.iter().all(Option::is_some), "{c:?}");
}

#[test]
fn a_variant_that_panics_where_another_does_not_is_put_away_in_calibration() {
    for checks in [false, true] {
        let mut work = Adaptive::reading("work", &engine())
            .variant("sound", |n: &usize| *n)
            .variant("broken", |n: &usize| if *n > 10 { panic!("too large") } else { *n })
            .size(|n| *n);
        if checks {
            work = work.check(|a, b| a == b);
        }
        let work = work.build().unwrap();
        work.calibrate(&[5, 50], |n| n, Duration::from_millis(50));
        let kept = work.engine().guard().list();
        assert_eq!(
            kept.iter().map(|(c, why)| (c.kernel, why.offence)).collect::<Vec<_>>(),
            [(1, Offence::Panicked)]
        );
        assert_eq!(work.choice(&50), Some("sound"));
    }
}
