//! Export, import, merge.

use super::*;

#[test]
fn an_export_makes_the_same_wisdom_elsewhere() {
    let (from, to) = (Wisdom::open(None).wisdom, Wisdom::open(None).wisdom);
    let mut batch = everything();
    batch.cells.push(Cell { payload: vec![0, 255, 128], ..cell("binary", 3) });
    batch.cells.push(Cell { payload: b"hex:zz".to_vec(), ..cell("tricky", 3) });
    from.save(batch).unwrap();
    let json = from.export().unwrap();
    let report = to.import(&json, false).unwrap();
    assert_eq!((report.added, report.updated, report.unchanged), (8, 0, 0));
    assert_eq!(to.load(HERE), from.load(HERE));
    assert_eq!(to.hash(), from.hash());
    let again = to.import(&json, false).unwrap();
    assert_eq!((again.added, again.updated, again.unchanged), (0, 0, 8), "importing twice changes nothing");
    assert_eq!(to.load(HERE), from.load(HERE));
}

#[test]
fn numbers_travel_without_losing_a_bit() {
    let (from, to) = (Wisdom::open(None).wisdom, Wisdom::open(None).wisdom);
    let row = |i: u64| HistoryRow {
        workload: format!("add f32 {i}"),
        mean_ln: -(i as f64 + 0.1).ln() * 7.3,
        m2_ln: (i as f64).sqrt() / 3.0,
        updated: 1.7e9 + (i as f64).sqrt(),
        ..everything().history[0].clone()
    };
    from.save(Batch { history: (1..1000).map(row).collect(), ..Batch::default() }).unwrap();
    to.import(&from.export().unwrap(), false).unwrap();
    assert_eq!(to.load(HERE), from.load(HERE));
}

#[test]
fn a_dry_run_reports_before_and_after_and_writes_nothing() {
    let (from, to) = (Wisdom::open(None).wisdom, Wisdom::open(None).wisdom);
    from.save(cells(&[("new", 1), ("better", 9), ("worse", 2)])).unwrap();
    to.save(cells(&[("better", 4), ("worse", 3)])).unwrap();
    let hash = to.hash();
    let report = to.import(&from.export().unwrap(), true).unwrap();
    assert_eq!((report.added, report.updated, report.unchanged), (1, 1, 1));
    assert_eq!(to.hash(), hash);
    let better = report.cells.iter().find(|c| c.cell.contains("better")).unwrap();
    assert_eq!((better.before.as_ref().unwrap().samples, better.after.samples), (4, 9));
    assert!(report.cells.iter().any(|c| c.cell.contains("new") && c.before.is_none()));
    assert!(report.to_string().contains("dry run"));
}

#[test]
fn senseless_rows_are_refused_with_reasons_and_the_rest_is_taken() {
    let (from, to) = (Wisdom::open(None).wisdom, Wisdom::open(None).wisdom);
    let mut batch = everything();
    batch.cells.push(Cell { updated: 9e12, ..cell("from the future", 3) });
    batch.cells.push(Cell { payload: vec![], ..cell("empty", 3) });
    batch.history[0].m2_ln = -1.0;
    from.save(batch).unwrap();
    let report = to.import(&from.export().unwrap(), false).unwrap();
    assert_eq!(report.refused.len(), 3);
    assert!(report.refused.iter().any(|r| r.row.contains("from the future") && r.reason.contains("time")));
    assert_eq!(to.load(HERE).cells, [cell("cpu/simd", 9)]);
}

#[test]
fn rows_of_what_does_not_exist_are_refused_one_by_one() {
    let from = Wisdom::open(None).wisdom;
    from.save(cells(&[("good", 3)])).unwrap();
    let export: serde_json::Value = serde_json::from_str(&from.export().unwrap()).unwrap();
    for (key, value, why) in [
        ("dtype", serde_json::json!("f99"), "element type"),
        ("layout", serde_json::json!("sideways"), "layout"),
        ("op", serde_json::json!("binary/frob"), "op is unknown"),
        ("op", serde_json::json!("bin/add"), "class"),
        ("threads", serde_json::json!(0), "no threads"),
        ("threads", serde_json::json!(-1), "invalid value"),
        ("samples", serde_json::json!(u64::MAX), "so many"),
        ("samples", serde_json::json!("many"), "invalid type"),
    ] {
        let mut changed = export.clone();
        let mut bad = changed["cells"][0].clone();
        bad["kernel"] = "bad".into();
        bad[key] = value.clone();
        changed["cells"].as_array_mut().unwrap().push(bad);
        let to = Wisdom::open(None).wisdom;
        let report = to.import(&changed.to_string(), false).unwrap();
        assert!(matches!(&report.refused[..], [r] if r.reason.contains(why)), "{key}={value}: {report:?}");
        assert_eq!(to.load(HERE).cells.len(), 1, "{key}={value}: the other is taken");
    }
}

#[test]
fn what_is_no_export_is_refused_whole() {
    let wisdom = Wisdom::open(None).wisdom;
    for bad in [
        "",
        "{}",
        "[1]",
        r#"{"format":"other","version":1}"#,
        r#"{"format":"steersman-wisdom","version":99}"#,
    ] {
        let said = wisdom.import(bad, false).expect_err(bad).to_string();
        assert!(said.contains("not a wisdom export"), "{said}");
    }
    let cut = wisdom.export().unwrap();
    assert!(wisdom.import(&cut[..cut.len() / 2], false).is_err());
}

#[test]
fn merging_takes_the_richer_of_two_files_and_leaves_the_other_alone() {
    let (_dir, path) = fresh();
    let (_dir2, other) = fresh();
    let wisdom = open(&path);
    wisdom.save(cells(&[("a", 1), ("b", 5)])).unwrap();
    open(&other).save(cells(&[("a", 2), ("b", 2), ("c", 2)])).unwrap();
    let beside = |p: &Path| std::fs::read_dir(p.parent().unwrap()).unwrap().count();
    assert_eq!(beside(&other), 1);
    let report = wisdom.merge(&other).unwrap();
    assert_eq!(beside(&other), 1, "nothing is left beside it");
    assert_eq!((report.added, report.updated, report.unchanged), (1, 1, 1));
    let samples: Vec<u64> = wisdom.load(HERE).cells.iter().map(|c| c.samples).collect();
    assert_eq!(samples, [2, 5, 2]);
    assert_eq!(open(&other).load(HERE).cells.len(), 3);
    let folder = wisdom.merge(other.parent().unwrap()).unwrap_err().to_string();
    assert!(folder.contains("it is a folder"), "{folder}");
    let missing = wisdom.merge(&other.with_extension("gone")).unwrap_err();
    assert!(missing.to_string().contains("no such file"));
    assert!(!other.with_extension("gone").exists());
}
