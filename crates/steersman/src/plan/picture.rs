//! Plans as pictures.

use super::show::{Plan, PlanStage};
use std::collections::BTreeSet;
use std::fmt::Write;
use steersman_core::Seconds;

/// Characters of a stage's text that a box shows.
const SHOWN: usize = 68;
const WIDTH: usize = 560;
const HEIGHT: usize = 62;
const GAP: usize = 34;
const MARGIN: usize = 24;

impl Plan {
    /// As a graph for Graphviz.
    pub fn to_dot(&self) -> String {
        let mut out =
            String::from("digraph plan {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n");
        for input in self.inputs() {
            let _ = writeln!(out, "  {input} [shape=ellipse];");
        }
        for (i, s) in self.stages.iter().enumerate() {
            let label = format!("{}\n{}", short(&s.workload), timing(s));
            let fill = if s.fused { ", style=filled, fillcolor=\"#dceaf7\"" } else { "" };
            let _ = writeln!(out, "  s{i} [label={label:?}{fill}];");
            for from in s.reads.iter().filter(|r| is_drawn(r)) {
                let _ = writeln!(out, "  {from} -> s{i};");
            }
        }
        out.push_str("}\n");
        out
    }

    /// As a picture: stages from top to bottom, fused ones shaded.
    pub fn to_svg(&self) -> String {
        let inputs: Vec<&str> = self.inputs().into_iter().collect();
        let top = if inputs.is_empty() { MARGIN } else { MARGIN + 30 + GAP };
        let height = top + self.stages.len() * (HEIGHT + GAP) + MARGIN;
        let width = WIDTH + 2 * MARGIN + 120;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let step = WIDTH / inputs.len().max(1);
        let input_x = |i: usize| MARGIN + step * i + step / 2;
        let y_of = |i: usize| top + i * (HEIGHT + GAP);
        for (i, s) in self.stages.iter().enumerate() {
            for (k, from) in s.reads.iter().filter(|r| is_drawn(r)).enumerate() {
                let to_x = MARGIN + WIDTH * (k + 1) / (s.reads.len() + 1);
                let (x, y) = match from.strip_prefix('s').and_then(|n| n.parse::<usize>().ok()) {
                    Some(n) => (MARGIN + WIDTH / 2, y_of(n) + HEIGHT),
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
        for (i, s) in self.stages.iter().enumerate() {
            let fill = if s.fused { "#dceaf7" } else { "#f5f5f5" };
            let (x, y) = (MARGIN, y_of(i));
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\" fill=\"{fill}\" stroke=\"#7a8794\"/>"
            );
            let lines =
                [format!("s{i}  {}", short(&s.workload)), timing(s), format!("{} on {}", s.kernel, s.place)];
            for (n, line) in lines.iter().enumerate() {
                let _ =
                    writeln!(out, "<text x=\"{}\" y=\"{}\">{}</text>", x + 10, y + 19 + 17 * n, escape(line));
            }
        }
        out.push_str("</svg>\n");
        out
    }

    fn inputs(&self) -> BTreeSet<&str> {
        let reads = self.stages.iter().flat_map(|s| &s.reads);
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
