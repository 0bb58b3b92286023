//! Plans as graphs for Graphviz: one cluster for each place.

use super::{What, headline, moved, stage_times, wrapped};
use crate::plan::show::Plan;
use std::fmt::Write;
use steersman_core::{Bytes, Seconds};

impl Plan {
    /// As a graph for Graphviz.
    pub fn to_dot(&self) -> String {
        let mut out = String::from(
            "digraph plan {\n  rankdir=TB;\n  labelloc=t;\n  node [shape=box, fontname=\"sans-serif\", fontsize=11];\n  \
             edge [color=\"#64748b\"];\n  fontname=\"sans-serif\";\n",
        );
        let mut label = format!("{}\nin all {} expected", self.result, Seconds(self.predicted_s));
        if let Some(measured) = self.measured_s {
            let _ = write!(label, ", {} measured", Seconds(measured));
        }
        let _ = writeln!(out, "  label={label:?};");
        let all = self.shown();
        for n in all.iter().flat_map(|s| &s.given).collect::<std::collections::BTreeSet<_>>() {
            let (name, input) = (self.called(&format!("in{n}")), self.inputs.get(*n));
            let what = input.map_or(String::new(), |i| format!("\n{}, {}", i.what, Bytes(i.bytes as u64)));
            let _ = writeln!(out, "  in{n} [label={:?}, shape=ellipse];", format!("{name}{what}"));
        }
        for (p, place) in self.places().iter().enumerate() {
            let _ = writeln!(out, "  subgraph cluster_{p} {{\n    label={place:?}; color=\"#cbd5e1\";");
            for shown in all.iter().filter(|s| s.place() == *place) {
                let (label, looks) = match shown.what {
                    What::Move(t) => (
                        format!("move {}\n{} to {}\n{}", self.called(&t.value), t.from, t.to, moved(t)),
                        ", shape=cds, style=filled, fillcolor=\"#fef3c7\"",
                    ),
                    What::Work(s) => {
                        let mut lines = wrapped(&s.does, " · ", 48, 3);
                        lines[0] = format!("{}  {}", shown.name, lines[0]);
                        lines.push([s.gives.join(", "), headline(s)].join("  ").trim().into());
                        lines.extend([s.kernel.clone(), stage_times(s)]);
                        let looks = if s.fused { ", style=filled, fillcolor=\"#dbeafe\"" } else { "" };
                        (lines.join("\n"), looks)
                    }
                };
                let _ = writeln!(out, "    {} [label={label:?}{looks}];", shown.name);
            }
            out.push_str("  }\n");
        }
        for shown in &all {
            let given = shown.given.iter().map(|n| format!("in{n}"));
            for from in given.chain(shown.reads.iter().cloned()) {
                let _ = writeln!(out, "  {from} -> {};", shown.name);
            }
        }
        out.push_str("}\n");
        out
    }
}
