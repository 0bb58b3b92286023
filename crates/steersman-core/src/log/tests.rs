use super::*;

fn entry(workload: &str) -> Entry {
    Entry { workload: workload.into(), kernel: "cpu/simd".into(), ..Entry::default() }
}

#[test]
fn the_ring_keeps_the_newest_and_numbers_go_on() {
    let log = DecisionLog::new(3);
    for i in 0..10 {
        assert_eq!(log.push(entry(&format!("add f32 {i}"))), i + 1);
    }
    let seqs: Vec<u64> = log.entries().iter().map(|e| e.seq).collect();
    assert_eq!(seqs, [8, 9, 10]);
    log.reset();
    assert!(log.is_empty());
    assert_eq!(log.push(entry("exp f32 1")), 11);
    assert!(log.entries()[0].time > 1e9);
}

#[test]
fn each_entry_is_taken_once() {
    let log = DecisionLog::new(4);
    log.push(entry("a"));
    log.push(entry("b"));
    assert_eq!(log.take_new().len(), 2);
    assert!(log.take_new().is_empty());
    log.push(entry("c"));
    assert_eq!(log.take_new()[0].workload, "c");
    for _ in 0..9 {
        log.push(entry("d"));
    }
    assert_eq!(log.take_new().len(), 4, "those already dropped are gone");
}

#[test]
fn pushes_from_many_threads_all_arrive() {
    let log = DecisionLog::new(10_000);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..1000 {
                    log.push(entry("add f32 1"));
                }
            });
        }
    });
    let mut seqs: Vec<u64> = log.entries().iter().map(|e| e.seq).collect();
    seqs.dedup();
    assert_eq!(seqs, (1..=4000).collect::<Vec<_>>());
}

#[test]
fn reason_names_are_the_stored_names_and_read_back() {
    for reason in ReasonCode::ALL {
        assert_eq!(serde_json::to_string(&reason).unwrap(), format!("\"{reason}\""));
        assert_eq!(reason.name().parse(), Ok(reason));
    }
    assert_eq!("whim".parse::<ReasonCode>(), Err(()));
}

#[test]
fn json_reads_back_as_the_same_entries() {
    let entries = [Entry { measured_s: Some(1.5e-6), note: Some("disturbed".into()), ..entry("add f32 7") }];
    let back: Vec<Entry> = serde_json::from_str(&to_json(&entries)).unwrap();
    assert_eq!(back, entries);
}

#[test]
fn csv_quotes_what_needs_it_and_leaves_the_unmeasured_empty() {
    let csv = to_csv(&[Entry { note: Some("slow, \"odd\"".into()), ..entry("add f32 7") }]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[1].ends_with(",,0,\"slow, \"\"odd\"\"\""), "{}", lines[1]);
    assert_eq!(lines[0].split(',').count(), 13);
}

#[test]
fn a_trace_has_a_complete_event_an_entry_ending_at_its_time() {
    let e = Entry { time: 100.0, measured_s: Some(0.5), ..entry("add f32 7") };
    let trace: serde_json::Value = serde_json::from_str(&to_chrome_trace(&[e.clone(), e])).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let spans: Vec<_> = events.iter().filter(|e| e["ph"] == "X").collect();
    assert_eq!((spans.len(), events.len()), (2, 3));
    assert_eq!(spans[0]["ts"].as_f64(), Some(99.5e6));
    assert_eq!(spans[0]["dur"].as_f64(), Some(0.5e6));
}
