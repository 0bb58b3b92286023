//! Plans as pictures.

use super::show::{Plan, PlanStage, PlanTransfer};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use steersman_core::{Bytes, Seconds};

/// Characters of a stage's text that a box shows.
const SHOWN: usize = 68;
const WIDTH: usize = 560;
const HEIGHT: usize = 62;
const GAP: usize = 34;
const MARGIN: usize = 24;

/// What a picture shows one below the other.
enum Shown<'a> {
    Move(&'a PlanTransfer),
    Work(&'a PlanStage),
}

impl Plan {
    /// As a graph for Graphviz.
    pub fn to_dot(&self) -> String {
        let mut out =
            String::from("digraph plan {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n");
        for input in self.inputs() {
            let _ = writeln!(out, "  {input} [shape=ellipse];");
        }
        for (name, shown, reads) in self.shown() {
            let label = match shown {
                Shown::Move(t) => format!("{} to {}\n{}", t.from, t.to, moving(t)),
                Shown::Work(s) => {
                    format!("{}\n{}\n{} on {}", short(&s.workload), timing(s), s.kernel, s.place)
                }
            };
            let looks = match shown {
                Shown::Move(_) => ", shape=cds",
                Shown::Work(s) if s.fused => ", style=filled, fillcolor=\"#dceaf7\"",
                Shown::Work(_) => "",
            };
            let _ = writeln!(out, "  {name} [label={label:?}{looks}];");
            for from in reads {
                let _ = writeln!(out, "  {from} -> {name};");
            }
        }
        out.push_str("}\n");
        out
    }

    /// Everything in order, with its name and what it reads: a stage reads what was moved for it.
    fn shown(&self) -> Vec<(String, Shown<'_>, Vec<String>)> {
        let mut all = Vec::with_capacity(self.stages.len() + self.transfers.len());
        let mut arrived: HashMap<(&str, &str), String> = HashMap::new();
        for i in 0..=self.stages.len() {
            for (n, t) in self.transfers.iter().enumerate().filter(|(_, t)| t.before == i) {
                let source = arrived.get(&(t.value.as_str(), t.from.as_str()));
                let source = source.cloned().unwrap_or_else(|| t.value.clone());
                all.push((format!("m{n}"), Shown::Move(t), vec![source]));
                arrived.insert((&t.value, &t.to), format!("m{n}"));
            }
            if let Some(s) = self.stages.get(i) {
                let read = |r: &String| arrived.get(&(r.as_str(), s.place.as_str())).unwrap_or(r).clone();
                let reads = s.reads.iter().filter(|r| is_drawn(r)).map(read).collect();
                all.push((format!("s{i}"), Shown::Work(s), reads));
            }
        }
        all
    }

    /// As a picture: stages and moves from top to bottom, fused stages shaded, moves rounded.
    pub fn to_svg(&self) -> String {
        let inputs: Vec<&str> = self.inputs().into_iter().collect();
        let shown = self.shown();
        let top = if inputs.is_empty() { MARGIN } else { MARGIN + 30 + GAP };
        let height = top + shown.len() * (HEIGHT + GAP) + MARGIN;
        let width = WIDTH + 2 * MARGIN + 120;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let step = WIDTH / inputs.len().max(1);
        let input_x = |i: usize| MARGIN + step * i + step / 2;
        let y_of = |i: usize| top + i * (HEIGHT + GAP);
        let row_of: HashMap<&str, usize> =
            shown.iter().enumerate().map(|(i, (name, ..))| (name.as_str(), i)).collect();
        for (i, (_, _, reads)) in shown.iter().enumerate() {
            for (k, from) in reads.iter().enumerate() {
                let to_x = MARGIN + WIDTH * (k + 1) / (reads.len() + 1);
                let (x, y) = match row_of.get(from.as_str()) {
                    Some(&row) => (MARGIN + WIDTH / 2, y_of(row) + HEIGHT),
                    None => (input_x(inputs.iter().position(|n| n == from).unwrap_or(0)), MARGIN + 30),
                };
                let far = y_of(i).saturating_sub(y) > GAP;
                // Edges past other stages bend out to the right of them.
                let bend = if far { MARGIN + WIDTH + 60 } else { (x + to_x) / 2 };
                let _ = writeln!(
                    out,
                    "<path d=\"M{x} {y} C{bend} {}, {bend} {}, {to_x} {}\" fill=\"none\" stroke=\"#7a8794\"/>",
                    y + GAP,
                    y_of(i) - GAP.min(y_of(i)),
                    y_of(i)
                );
            }
        }
        for (i, name) in inputs.iter().enumerate() {
            let x = input_x(i);
            let _ = writeln!(
                out,
                "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" fill=\"#333\">{name}</text>",
                MARGIN + 20
            );
        }
        for (i, (name, shown, _)) in shown.iter().enumerate() {
            let (fill, round, lines) = match shown {
                Shown::Move(t) => {
                    let lines = vec![
                        format!("{name}  move {}", t.value),
                        moving(t),
                        format!("{} to {}", t.from, t.to),
                    ];
                    ("#fdf3dc", HEIGHT / 2, lines)
                }
                Shown::Work(s) => {
                    let fill = if s.fused { "#dceaf7" } else { "#f5f5f5" };
                    let on = format!("{} on {}", s.kernel, s.place);
                    (fill, 6, vec![format!("{name}  {}", short(&s.workload)), timing(s), on])
                }
            };
            let (x, y, indent) = (MARGIN, y_of(i), if round > 6 { 28 } else { 10 });
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"{round}\" fill=\"{fill}\" stroke=\"#7a8794\"/>"
            );
            for (n, line) in lines.iter().enumerate() {
                let _ = writeln!(
                    out,
                    "<text x=\"{}\" y=\"{}\">{}</text>",
                    x + indent,
                    y + 19 + 17 * n,
                    escape(line)
                );
            }
        }
        out.push_str("</svg>\n");
        out
    }

    fn inputs(&self) -> BTreeSet<&str> {
        let reads = self.stages.iter().flat_map(|s| &s.reads).chain(self.transfers.iter().map(|t| &t.value));
        reads.map(String::as_str).filter(|r| r.starts_with("in")).collect()
    }
}

fn is_drawn(read: &str) -> bool {
    read.starts_with("in") || read.starts_with('s')
}

fn short(text: &str) -> String {
    if text.chars().count() <= SHOWN {
        return text.into();
    }
    text.chars().take(SHOWN - 1).chain(['…']).collect()
}

fn moving(t: &PlanTransfer) -> String {
    let mut text = format!("{}, {} expected", Bytes(t.bytes as u64), Seconds(t.predicted_s));
    if let Some(measured) = t.measured_s {
        let _ = write!(text, ", {} measured", Seconds(measured));
    }
    text
}

fn timing(s: &PlanStage) -> String {
    let mut text = if s.fused { format!("{} ops fused, ", s.ops) } else { String::new() };
    let _ = write!(text, "{} expected", Seconds(s.predicted_s));
    if let (Some(other), Some(instead)) = (s.instead, s.instead_s) {
        let _ = write!(text, " ({other} {})", Seconds(instead));
    }
    if let Some(measured) = s.measured_s {
        let _ = write!(text, ", {} measured", Seconds(measured));
    }
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
