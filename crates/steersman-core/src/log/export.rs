//! The log for other programs: JSON, CSV, and the trace format that browsers and Perfetto open.

use super::Entry;
use serde_json::json;
use std::collections::HashMap;
use std::fmt::Write;

/// A JSON list with one object an entry.
pub fn to_json(entries: &[Entry]) -> String {
    serde_json::to_string_pretty(entries).expect("an entry is plain data with text keys, which JSON can hold")
}

/// Comma-separated values after RFC 4180, with a header line. What was not measured is an empty field.
pub fn to_csv(entries: &[Entry]) -> String {
    let mut out = String::from(
        "seq,time,workload,kernel,threads,variant,reason,predicted_s,low_s,high_s,measured_s,confidence,note\n",
    );
    for e in entries {
        let measured = e.measured_s.map_or(String::new(), |m| m.to_string());
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{},{:.6},{},{},{},{},{},{:e},{:e},{:e},{measured},{},{}",
            e.seq,
            e.time,
            field(&e.workload),
            field(&e.kernel),
            e.params.threads,
            e.params.variant,
            e.reason,
            e.predicted_s,
            e.low_s,
            e.high_s,
            e.confidence,
            field(e.note.as_deref().unwrap_or("")),
        );
    }
    out
}

fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

/// Complete events (`"ph": "X"`), one track a kernel. An entry's time is when its run ended, so it begins
/// that much earlier; one that was not timed is drawn with the time it was thought to take, and says so.
pub fn to_chrome_trace(entries: &[Entry]) -> String {
    let mut tracks: HashMap<&str, usize> = HashMap::new();
    let mut events = Vec::with_capacity(entries.len());
    for e in entries {
        let next = tracks.len() + 1;
        let track = *tracks.entry(&e.kernel).or_insert_with(|| {
            events.push(json!({
                "ph": "M", "name": "thread_name", "pid": 1, "tid": next, "args": { "name": e.kernel },
            }));
            next
        });
        let seconds = e.measured_s.unwrap_or(e.predicted_s);
        events.push(json!({
            "ph": "X",
            "name": e.workload,
            "cat": e.reason.name(),
            "pid": 1,
            "tid": track,
            "ts": (e.time - seconds) * 1e6,
            "dur": seconds * 1e6,
            "args": {
                "seq": e.seq,
                "params": e.params.to_string(),
                "predicted_s": e.predicted_s,
                "low_s": e.low_s,
                "high_s": e.high_s,
                "measured_s": e.measured_s,
                "confidence": e.confidence,
                "note": e.note,
            },
        }));
    }
    json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string()
}
