use super::*;

fn at<'a>(kernel: &'a str, op: &'a str) -> Use<'a> {
    Use { device: 7, kernel, params: Params::threads(2), op }
}

#[test]
fn the_most_used_come_first_with_their_success_rate() {
    let t = Tracker::new();
    t.ran(at("a", "add"), 3, 3.0);
    t.ran(at("b", "add"), 5, 1.0);
    t.failed(at("b", "add"));
    t.ran(at("b", "exp"), 1, f64::NAN);
    let rows = t.most_used(2);
    assert_eq!((rows[0].kernel.as_str(), rows[0].runs, rows[0].threads), ("b", 6, 2));
    assert_eq!(rows[0].success_rate(), Some(5.0 / 6.0));
    assert_eq!((rows[1].kernel.as_str(), rows[1].total_s), ("a", 3.0));
    assert_eq!(t.most_used(9)[2].total_s, 0.0);
    assert_eq!(UsageRow::default().success_rate(), None);
}

#[test]
fn the_least_recently_used_are_dropped_and_their_counts_still_saved() {
    let t = Tracker::new();
    for i in 0..MAX_KEYS {
        t.ran(at(&format!("k{i}"), "add"), 1, 0.0);
    }
    t.ran(at("k0", "add"), 1, 0.0);
    for i in 0..100 {
        t.ran(at(&format!("new{i}"), "add"), 1, 0.0);
    }
    assert!(t.len() <= MAX_KEYS);
    let kept = t.most_used(usize::MAX);
    assert!(kept.iter().any(|r| r.kernel == "k0" && r.runs == 2), "used again, so kept");
    assert!(!kept.iter().any(|r| r.kernel == "k1"));
    let saved: u64 = t.take_unsaved().iter().map(|r| r.runs).sum();
    assert_eq!(saved, MAX_KEYS as u64 + 101);
}

#[test]
fn counts_travel_through_wisdom_without_being_added_twice() {
    let wisdom = crate::Wisdom::open(None).wisdom;
    let save = |t: &Tracker| {
        let batch = crate::wisdom::Batch { usage: t.take_unsaved(), ..Default::default() };
        wisdom.save(batch).unwrap();
    };
    let first = Tracker::new();
    first.ran(at("a", "add"), 3, 1.0);
    save(&first);
    save(&first);
    let second = Tracker::new();
    second.restore(&wisdom.load(7).usage);
    assert_eq!(second.most_used(1)[0].runs, 3);
    second.ran(at("a", "add"), 2, 1.0);
    save(&second);
    assert_eq!(wisdom.load(7).usage[0].runs, 5);
}

#[test]
fn accuracy_agrees_with_figures_worked_out_by_hand() {
    let mut a = Accuracy::default();
    assert_eq!((a.mae(), a.r2(), a.coverage()), (None, None, None));
    a.add(1.0, 0.5, 1.5, 1.0);
    a.add(2.0, 1.9, 2.1, 4.0);
    a.add(6.0, 4.0, 7.0, 4.0);
    a.add(f64::NAN, 0.0, 9.0, 1.0);
    a.add(1.0, 0.0, 9.0, 0.0);
    let close = |got: Option<f64>, want: f64| assert!((got.unwrap() - want).abs() < 1e-12, "{got:?} {want}");
    assert_eq!(a.samples(), 3);
    close(a.mae(), 4.0 / 3.0);
    close(a.rmse(), (8.0f64 / 3.0).sqrt());
    close(a.mape(), 1.0 / 3.0);
    close(a.coverage(), 2.0 / 3.0);
    close(a.r2(), 1.0 - 8.0 / 6.0);
    let (l4, l2, l15) = (4f64.ln(), 2f64.ln(), 1.5f64.ln());
    close(a.r2_ln(), 1.0 - (l2 * l2 + l15 * l15) / (l4 * l4 * 2.0 / 3.0));
}

#[test]
fn accuracy_is_kept_by_kernel_and_overall() {
    let t = Tracker::new();
    t.foretold("a", 1.0, 0.9, 1.1, 1.0);
    t.foretold("b", 2.0, 1.9, 2.1, 1.0);
    assert_eq!(t.accuracy().mape(), Some(0.5));
    let by = t.accuracy_by_kernel();
    assert_eq!((by[0].0.as_str(), by[0].1.mape()), ("a", Some(0.0)));
    assert_eq!((by[1].1.mape(), by[1].1.coverage()), (Some(1.0), Some(0.0)));
}
