//! `steer log`: the last decisions of all processes.

use crate::exit::{Failure, Outcome};
use crate::open::{self, words};
use crate::screen::Screen;
use crate::table::{
    Column::{Left, Right},
    Table,
};
use steersman_core::Seconds;
use steersman_core::log::{Entry, to_chrome_trace, to_csv, to_json};

pub fn run(screen: &Screen, csv: bool, trace: bool, limit: usize) -> Outcome {
    if screen.json && (csv || trace) {
        return Err(Failure::input("--json, --csv and --trace are three formats; give one"));
    }
    let entries = open::runtime()?.wisdom().read_log(limit);
    if screen.json {
        return screen.line(&to_json(&entries));
    }
    if csv {
        return screen.print(&to_csv(&entries));
    }
    if trace {
        return screen.line(&to_chrome_trace(&entries));
    }
    if limit == 0 {
        return screen.line("No decisions are shown, as --limit 0 says.");
    }
    if entries.is_empty() {
        return screen.line("No decisions are logged yet; `steer run \"add f32 1000 1000\"` makes one.");
    }
    let mut table = Table::new(&[
        Right("#"),
        Left("workload"),
        Left("kernel"),
        Left("params"),
        Left("reason"),
        Right("predicted"),
        Right("measured"),
        Right("confidence"),
        Left("note"),
    ]);
    for e in &entries {
        table.row(cells(e));
    }
    screen.print(&table.show(&screen.paint))
}

fn cells(e: &Entry) -> [String; 9] {
    let time = |s: f64| if s.is_finite() { Seconds(s).to_string() } else { "unknown".into() };
    [
        e.seq.to_string(),
        e.workload.clone(),
        e.kernel.clone(),
        e.params.to_string(),
        words(e.reason),
        time(e.predicted_s),
        e.measured_s.map_or("not timed".into(), time),
        format!("{:.0}%", e.confidence * 100.0),
        e.note.clone().unwrap_or_default(),
    ]
}
