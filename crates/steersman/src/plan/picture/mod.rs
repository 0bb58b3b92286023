//! Plans as pictures: cards for stages, in one column for each place, and pills for what is moved.

mod card;
mod dot;
mod route;
mod svg;

use super::show::{Plan, PlanStage, PlanTransfer};
use std::collections::HashMap;
use std::fmt::Write;
use steersman_core::{Bytes, Seconds};

/// What a picture shows one below the other.
#[derive(Clone, Copy)]
enum What<'a> {
    Move(&'a PlanTransfer),
    Work(&'a PlanStage),
}

/// One of them.
struct Shown<'a> {
    /// `s3` or `m0`.
    name: String,
    what: What<'a>,
    /// What it reads that is shown too.
    reads: Vec<String>,
    /// Given arrays that it reads, by their place among the inputs.
    given: Vec<usize>,
}

impl Shown<'_> {
    /// Where it happens; what is moved is shown where it arrives.
    fn place(&self) -> &str {
        match self.what {
            What::Move(t) => &t.to,
            What::Work(s) => &s.place,
        }
    }
}

impl Plan {
    /// Everything in order. A stage reads what was moved for it.
    fn shown(&self) -> Vec<Shown<'_>> {
        let mut all = Vec::with_capacity(self.stages.len() + self.transfers.len());
        let mut arrived: HashMap<(&str, &str), String> = HashMap::new();
        for i in 0..=self.stages.len() {
            for (n, t) in self.transfers.iter().enumerate().filter(|(_, t)| t.before == i) {
                let source = arrived.get(&(t.value.as_str(), t.from.as_str())).unwrap_or(&t.value);
                all.push(shown(format!("m{n}"), What::Move(t), [source.as_str()].into_iter()));
                arrived.insert((&t.value, &t.to), format!("m{n}"));
            }
            if let Some(s) = self.stages.get(i) {
                let read = |r: &'_ String| arrived.get(&(r.as_str(), s.place.as_str())).unwrap_or(r).clone();
                let reads: Vec<String> = s.reads.iter().map(read).collect();
                all.push(shown(format!("s{i}"), What::Work(s), reads.iter().map(String::as_str)));
            }
        }
        all
    }

    /// The places that take part, the host first.
    fn places(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        let named = self.stages.iter().map(|s| s.place.as_str());
        for place in named.chain(self.transfers.iter().flat_map(|t| [t.from.as_str(), t.to.as_str()])) {
            if !all.contains(&place) {
                all.push(place);
            }
        }
        all.sort_by_key(|p| (*p != "host", *p));
        all
    }
}

fn shown<'a, 'r>(name: String, what: What<'a>, sources: impl Iterator<Item = &'r str>) -> Shown<'a> {
    let (mut reads, mut given) = (Vec::new(), Vec::new());
    for source in sources {
        match source.strip_prefix("in").and_then(|n| n.parse::<usize>().ok()) {
            Some(n) if !given.contains(&n) => given.push(n),
            None if source.starts_with(['s', 'm']) && !reads.contains(&source.to_string()) => {
                reads.push(source.into());
            }
            _ => {}
        }
    }
    Shown { name, what, reads, given }
}

/// What something was expected to take, and what it took.
fn times(predicted: f64, measured: Option<f64>) -> String {
    let mut text = format!("{} expected", Seconds(predicted));
    if let Some(measured) = measured {
        let _ = write!(text, ", {} measured", Seconds(measured));
    }
    text
}

/// The same of a stage, with the other way there would have been.
fn stage_times(s: &PlanStage) -> String {
    let mut text = times(s.predicted_s, s.measured_s);
    if let (Some(other), Some(instead)) = (s.instead, s.instead_s) {
        let _ = write!(text, " ({other} {})", Seconds(instead));
    }
    text
}

fn moved(t: &PlanTransfer) -> String {
    let mut text = format!("{}, {}", Bytes(t.bytes as u64), times(t.predicted_s, t.measured_s));
    if t.beside_from.is_some() {
        text.push_str(", beside work");
    }
    text
}

/// The kind of work, and how much of it is one stage.
fn headline(s: &PlanStage) -> String {
    match (s.fused, s.in_place) {
        (true, true) => format!("{} ops fused, in place", s.ops),
        (true, false) => format!("{} ops fused", s.ops),
        (false, true) => "in place".into(),
        (false, false) => String::new(),
    }
}

/// Words in lines of at most so many characters, and so many lines; the last says if there is more.
fn wrapped(words: &[String], between: &str, width: usize, lines: usize) -> Vec<String> {
    let mut out: Vec<String> = vec![String::new()];
    for (i, word) in words.iter().enumerate() {
        let word = if i + 1 < words.len() { format!("{word}{between}") } else { word.clone() };
        let line = out.len() - 1;
        if !out[line].is_empty() && out[line].chars().count() + word.chars().count() > width {
            if out.len() == lines {
                out[line] = format!("{}…", out[line]);
                return out;
            }
            out.push(word);
        } else {
            out[line].push_str(&word);
        }
    }
    out
}
