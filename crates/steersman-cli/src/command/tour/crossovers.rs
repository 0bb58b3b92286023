//! Where the choice changes as a workload grows.

use crate::open;
use crate::paint::Paint;
use crate::table::{Column::Left, Table};
use serde::Serialize;
use steersman::Runtime;
use steersman_core::units::si;
use steersman_core::{Variant, Workload};

/// What wins from which size on.
#[derive(Debug, Serialize)]
pub struct Ladder {
    /// `matmul f32 n×n · n×n`.
    pub what: &'static str,
    /// Smallest first.
    pub rungs: Vec<Rung>,
}

/// From `from` on, `winner` is thought to be the quickest.
#[derive(Debug, Serialize)]
pub struct Rung {
    pub from: usize,
    pub winner: String,
}

struct Line {
    what: &'static str,
    /// The workload's text, with `n` for the size.
    text: &'static str,
    last: usize,
}

const LINES: [Line; 6] = [
    Line { what: "add f32 n", text: "add f32 n n", last: 50_000_000 },
    Line { what: "exp f32 n", text: "exp f32 n", last: 50_000_000 },
    Line { what: "sum f32 n", text: "sum f32 n", last: 50_000_000 },
    Line { what: "transpose f32 n×n", text: "transpose f32 nxn", last: 6_000 },
    Line { what: "matmul f32 n×n · n×n", text: "matmul f32 nxn nxn", last: 3_000 },
    Line { what: "matmul f32 n×n · n×1", text: "matmul f32 nxn nx1", last: 8_000 },
];

/// Whoever leads keeps the lead until another is this much quicker: crossovers of equals are none.
const MARGIN: f64 = 1.05;

/// A lead that ends sooner, as a factor of its size, is not shown.
const SHORTEST: f64 = 1.3;

/// Every line's ladder, from what is known.
pub fn all(runtime: &Runtime) -> Vec<Ladder> {
    LINES.iter().map(|line| Ladder { what: line.what, rungs: climb(runtime, line) }).collect()
}

fn climb(runtime: &Runtime, line: &Line) -> Vec<Rung> {
    let mut rungs: Vec<(usize, Variant)> = Vec::new();
    let mut last = 0;
    // Steps of an eighth octave, then a bisection between the last two.
    for step in 0.. {
        let n = (4.0 * 2f64.powf(f64::from(step) / 8.0)) as usize;
        if n > line.last {
            break;
        }
        let lead = rungs.last().map(|r| r.1);
        let Some(winner) = winner(runtime, line, n, lead) else { continue };
        if lead != Some(winner) {
            let from = if rungs.is_empty() { n } else { bisect(runtime, line, last, n, lead) };
            rungs.push((from, winner));
        }
        last = n;
    }
    let rungs = without_short(rungs, line.last);
    rungs.into_iter().map(|(from, v)| Rung { from, winner: open::name(runtime, v) }).collect()
}

/// Leaves out whoever leads over less than a factor of [`SHORTEST`]: special sizes (powers of two, above all)
/// would else crowd out the picture.
fn without_short(rungs: Vec<(usize, Variant)>, last: usize) -> Vec<(usize, Variant)> {
    let ends: Vec<usize> = rungs.iter().skip(1).map(|r| r.0).chain([last]).collect();
    let long = rungs.into_iter().zip(ends).filter(|((from, _), end)| *end as f64 >= *from as f64 * SHORTEST);
    let mut kept: Vec<(usize, Variant)> = long.map(|(rung, _)| rung).collect();
    kept.dedup_by_key(|rung| rung.1);
    kept
}

/// The quickest, or the leader while nobody is clearly quicker.
fn winner(runtime: &Runtime, line: &Line, n: usize, lead: Option<Variant>) -> Option<Variant> {
    let w: Workload = sized(line.text, n).parse().ok()?;
    let all = runtime.engine().estimates(&w);
    let best = all.iter().min_by(|a, b| a.estimate.mean.0.total_cmp(&b.estimate.mean.0))?;
    let leader = all.iter().find(|c| Some(c.variant) == lead);
    let holds = leader.is_some_and(|l| l.estimate.mean.0 <= MARGIN * best.estimate.mean.0);
    Some(if holds { leader?.variant } else { best.variant })
}

fn bisect(runtime: &Runtime, line: &Line, mut same: usize, mut other: usize, lead: Option<Variant>) -> usize {
    while other - same > 1 && (other - same) * 100 > other {
        let mid = same.midpoint(other);
        if winner(runtime, line, mid, lead) == lead { same = mid } else { other = mid }
    }
    other
}

/// The text with `n` filled in where it stands for a size.
fn sized(text: &str, n: usize) -> String {
    let (head, shapes) = text.split_once(" f32 ").unwrap_or((text, ""));
    format!("{head} f32 {}", shapes.replace('n', &n.to_string()))
}

/// Exact while it is short, else with three digits: `579`, `1.51 M`.
fn size(n: usize) -> String {
    if n < 10_000 { n.to_string() } else { si(n as f64, "") }
}

/// One line a ladder.
pub fn show(ladders: &[Ladder], paint: &Paint) -> String {
    let mut table = Table::new(&[Left(""), Left("")]);
    for ladder in ladders {
        for (i, rung) in ladder.rungs.iter().enumerate() {
            let what = if i == 0 { format!("  {}", ladder.what) } else { String::new() };
            let from = if i == 0 { "at first".to_string() } else { format!("n ≥ {}", size(rung.from)) };
            table.row([what, format!("{from:<12}  {}", rung.winner)]);
        }
    }
    table.show(paint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_leads_are_left_out_and_what_lay_around_them_joins() {
        let v = |kernel| Variant { kernel, params: steersman_core::Params::SERIAL };
        let rungs = vec![(4, v(1)), (100, v(2)), (110, v(1)), (1000, v(3)), (4000, v(4))];
        assert_eq!(without_short(rungs, 4100), [(4, v(1)), (1000, v(3))]);
    }

    #[test]
    fn every_line_is_a_workload_at_every_size() {
        for line in &LINES {
            for n in [4, 100, line.last] {
                let text = sized(line.text, n);
                assert!(text.parse::<Workload>().is_ok(), "{text}");
            }
        }
        assert_eq!(sized("transpose f32 nxn", 7), "transpose f32 7x7");
    }
}
