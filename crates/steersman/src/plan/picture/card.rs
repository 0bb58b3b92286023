//! One card or pill of a picture: what is on it, and how large that makes it.

use super::{Shown, What, headline, wrapped};
use crate::plan::show::{Plan, PlanStage, PlanTransfer};
use std::fmt::Write;
use steersman_core::{Bytes, Seconds};

/// A card's width; its text fits.
pub(super) const WIDTH: usize = 430;
/// Characters of a line in a card.
const LINE: usize = 58;
/// Height of a line.
const STEP: usize = 17;
/// Pixels of the longest bar.
const BAR: f64 = 190.0;
/// Height of a given array's tag, with the space below it.
pub(super) const TAG: usize = 38;

/// What is drawn for one thing that is shown.
pub(super) struct Card<'a> {
    pub shown: &'a Shown<'a>,
    lines: Vec<String>,
    pub height: usize,
}

impl<'a> Card<'a> {
    pub fn new(shown: &'a Shown<'a>) -> Card<'a> {
        let lines = match shown.what {
            What::Move(_) => Vec::new(),
            What::Work(s) => wrapped(&s.does, " · ", LINE - 8, 3),
        };
        let own = match shown.what {
            What::Move(_) => 46,
            What::Work(_) => 78 + STEP * lines.len(),
        };
        Card { shown, lines, height: own.max(TAG * shown.given.len()) }
    }

    /// Draws it with its upper left corner there; bars are so long for a second.
    pub fn draw(&self, out: &mut String, plan: &Plan, (x, y): (usize, usize), colour: &str, second: f64) {
        match self.shown.what {
            What::Move(t) => self.pill(out, plan, t, (x, y)),
            What::Work(s) => self.stage(out, s, (x, y), colour, second),
        }
    }

    fn pill(&self, out: &mut String, plan: &Plan, t: &PlanTransfer, (x, y): (usize, usize)) {
        let h = self.height;
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{h}\" rx=\"23\" fill=\"#fef3c7\" stroke=\"#d97706\"/>"
        );
        let first =
            format!("move {} · {} → {} · {}", plan.called(&t.value), t.from, t.to, Bytes(t.bytes as u64));
        let mut second = super::times(t.predicted_s, t.measured_s);
        if let Some(start) = t.beside_from {
            let _ = write!(second, " · beside work, from s{start} on");
        }
        text(out, (x + 24, y + h / 2 - 4), "w", &short(&first));
        text(out, (x + 24, y + h / 2 + 13), "q", &short(&second));
    }

    fn stage(&self, out: &mut String, s: &PlanStage, (x, y): (usize, usize), colour: &str, second: f64) {
        let h = self.height;
        if s.fused {
            // A second card behind it: several ops in one.
            let _ = writeln!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{WIDTH}\" height=\"{h}\" rx=\"8\" fill=\"#e2e8f0\" stroke=\"#94a3b8\"/>",
                x + 5,
                y + 5
            );
        }
        let fill = if s.fused { "#f1f7ff" } else { "#ffffff" };
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{h}\" rx=\"8\" fill=\"{fill}\" stroke=\"#94a3b8\"/>\n\
             <rect x=\"{x}\" y=\"{y}\" width=\"6\" height=\"{h}\" rx=\"3\" fill=\"{colour}\"/>"
        );
        text(out, (x + 18, y + 21), "k", &self.shown.name);
        for (i, line) in self.lines.iter().enumerate() {
            text(out, (x + 52, y + 21 + STEP * i), "w", line);
        }
        let y = y + 21 + STEP * self.lines.len();
        let about = [s.gives.join(", "), headline(s)].into_iter().filter(|t| !t.is_empty());
        text(out, (x + 52, y), "q", &short(&about.collect::<Vec<_>>().join(" · ")));
        let mut kernel = s.kernel.clone();
        if let (Some(other), Some(instead)) = (s.instead, s.instead_s) {
            let _ = write!(kernel, " ({other} {})", Seconds(instead));
        }
        text(out, (x + 52, y + STEP), "q", &short(&kernel));
        let bars = [(Some(s.predicted_s), "#bfdbfe", "expected"), (s.measured_s, colour, "measured")];
        for (i, (time, colour, called)) in bars.into_iter().enumerate() {
            let Some(time) = time else { continue };
            let (at, length) = (y + 26 + 12 * i, (time * second * BAR).clamp(1.5, BAR));
            let _ = writeln!(
                out,
                "<rect x=\"{}\" y=\"{at}\" width=\"{length:.1}\" height=\"8\" rx=\"2\" fill=\"{colour}\"/>",
                x + 52
            );
            let label = format!("{} {called}", Seconds(time));
            text(out, (x + 58 + length.ceil() as usize, at + 8), "t", &label);
        }
    }

    /// Tags for the given arrays that it reads, to its left, each with an arrow to it.
    pub fn tags(&self, out: &mut String, plan: &Plan, x: usize, width: usize, y: usize, card_x: usize) {
        for (i, &n) in self.shown.given.iter().enumerate() {
            let at = y + TAG * i;
            let middle = at + (TAG - 6) / 2;
            let _ = writeln!(
                out,
                "<path d=\"M{} {middle}H{}\" class=\"e\"/>\n<rect x=\"{x}\" y=\"{at}\" width=\"{width}\" \
                 height=\"{}\" rx=\"6\" fill=\"#f8fafc\" stroke=\"#cbd5e1\"/>",
                x + width,
                card_x - 3,
                TAG - 6
            );
            text(out, (x + 8, at + 14), "i", &cut(&plan.called(&format!("in{n}")), 18));
            let what = plan.inputs.get(n).map_or("", |i| i.what.as_str());
            text(out, (x + 8, at + 27), "t", &cut(what, 22));
        }
    }
}

/// Text at a baseline, in one of the picture's classes.
pub(super) fn text(out: &mut String, (x, y): (usize, usize), class: &str, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(out, "<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{content}</text>");
}

fn short(content: &str) -> String {
    cut(content, LINE)
}

fn cut(content: &str, most: usize) -> String {
    if content.chars().count() <= most {
        return content.into();
    }
    content.chars().take(most - 1).chain(['…']).collect()
}
