//! Plans as drawings: given arrays on the left, one column for each place, time from top to bottom.

use super::card::{Card, WIDTH, text};
use super::route::{GUTTER, Router, Spot};
use super::{Shown, What};
use crate::plan::show::Plan;
use std::collections::HashMap;
use std::fmt::Write;
use steersman_core::{Bytes, Seconds};

const MARGIN: usize = 24;
const TAGS: usize = 150;
/// Height of the heading.
const HEAD: usize = 92;
const GAP: usize = 22;
/// Stages of a long plan that are drawn: the first ones.
const DRAWN: usize = 120;

/// The places' colours, the host's first.
const COLOURS: [&str; 6] = ["#2563eb", "#059669", "#7c3aed", "#db2777", "#ea580c", "#0891b2"];

/// Heading, work, quiet, small, input, key.
const STYLE: &str = "text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#0f172a}\
.h{font-size:17px;font-weight:600}.w{font-size:12.5px;font-weight:600}.q{font-size:11.5px;fill:#475569}\
.t{font-size:10.5px;fill:#475569}.i{font-size:12px;font-weight:600;fill:#334155}\
.k{font-size:12.5px;font-weight:700;fill:#64748b}.p{font-size:13px;font-weight:700}\
.e{fill:none;stroke:#64748b;stroke-width:1.4;stroke-linejoin:round;marker-end:url(#a)}";

impl Plan {
    /// As a picture: a card for each stage, fused ones in stacks, pills for moves, places in columns.
    pub fn to_svg(&self) -> String {
        let shown = self.shown();
        let places = self.places();
        let cards: Vec<Card<'_>> = shown.iter().take(DRAWN).map(Card::new).collect();
        let column_of = |s: &Shown<'_>| places.iter().position(|p| *p == s.place()).unwrap_or(0);
        let left = MARGIN + TAGS + 34;
        let x_of = |column: usize| left + column * (WIDTH + GUTTER);
        let mut spots: HashMap<&str, Spot> = HashMap::new();
        let mut y = HEAD + 44;
        for (row, card) in cards.iter().enumerate() {
            let column = column_of(card.shown);
            let spot = Spot { column, row, x: x_of(column), y, height: card.height };
            spots.insert(&card.shown.name, spot);
            y += card.height + GAP;
        }
        let (bottom, width) = (y, x_of(places.len().max(1)) + MARGIN / 2);
        let height = bottom + 58;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\">\n<style>{STYLE}</style>\n<defs><marker id=\"a\" viewBox=\"0 0 8 8\" \
             refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" \
             orient=\"auto\"><path d=\"M0 0.5L8 4L0 7.5z\" fill=\"#64748b\"/></marker></defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        self.heading(&mut out);
        for (i, place) in places.iter().enumerate() {
            let (x, colour) = (x_of(i) - 14, colour(i));
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"{HEAD}\" width=\"{}\" height=\"{}\" rx=\"12\" fill=\"{colour}\" \
                 fill-opacity=\"0.05\"/>\n<circle cx=\"{}\" cy=\"{}\" r=\"5\" fill=\"{colour}\"/>",
                WIDTH + 30,
                bottom - HEAD,
                x + 20,
                HEAD + 20
            );
            text(&mut out, (x + 32, HEAD + 25), "p", place);
        }
        // Arrows first: what they pass lies over them.
        let mut router = Router::default();
        for card in &cards {
            let Some(&to) = spots.get(card.shown.name.as_str()) else { continue };
            let sources = card.shown.reads.iter().filter_map(|r| spots.get(r.as_str()));
            for (nth, &from) in sources.enumerate() {
                let path = router.path(from, to, nth);
                let _ = writeln!(out, "<path d=\"{path}\" class=\"e\"/>");
            }
        }
        let longest = self.stages.iter().flat_map(|s| [Some(s.predicted_s), s.measured_s]).flatten();
        let longest = longest.fold(1e-12, f64::max);
        for card in &cards {
            let Some(spot) = spots.get(card.shown.name.as_str()) else { continue };
            card.tags(&mut out, self, MARGIN, TAGS, spot.y, spot.x);
            card.draw(&mut out, self, (spot.x, spot.y), colour(spot.column), 1.0 / longest);
        }
        if shown.len() > cards.len() {
            let more = format!("… {} more, not drawn", shown.len() - cards.len());
            text(&mut out, (left, bottom + 4), "q", &more);
        }
        self.legend(&mut out, (MARGIN, bottom + 26));
        out.push_str("</svg>\n");
        out
    }

    fn heading(&self, out: &mut String) {
        text(out, (MARGIN, 36), "h", &self.result);
        let mut all = format!("{} expected", Seconds(self.predicted_s));
        if let Some(measured) = self.measured_s {
            let _ = write!(all, " · {} measured", Seconds(measured));
        }
        let bytes = |n: usize| Bytes(n as u64);
        let _ = write!(
            all,
            " · {} ops in {} stages · {} in, {} more at the peak",
            self.stages.iter().map(|s| s.ops).sum::<usize>(),
            self.stages.len(),
            bytes(self.input_bytes),
            bytes(self.peak_bytes)
        );
        for (device, &peak) in &self.device_peak_bytes {
            let _ = write!(all, ", {} on {device}", bytes(peak));
        }
        text(out, (MARGIN, 58), "q", &all);
        let notes = self.notes.join(" · ");
        text(out, (MARGIN, 76), "q", &notes);
    }

    /// What the marks mean, as far as they occur.
    fn legend(&self, out: &mut String, (x, y): (usize, usize)) {
        let card = "rx=\"3\" fill=\"#f1f7ff\" stroke=\"#94a3b8\"";
        let tag = "rx=\"3\" fill=\"#f8fafc\" stroke=\"#cbd5e1\"";
        let mut marks = vec![(tag, "given array")];
        if self.stages.iter().any(|s| s.fused) {
            marks.push((card, "ops fused into one stage"));
        }
        if self.shown().iter().any(|s| matches!(s.what, What::Move(_))) {
            marks.push(("rx=\"8\" fill=\"#fef3c7\" stroke=\"#d97706\"", "moved from place to place"));
        }
        marks.push(("rx=\"2\" fill=\"#bfdbfe\"", "expected time"));
        if self.stages.iter().any(|s| s.measured_s.is_some()) {
            marks.push(("rx=\"2\" fill=\"#2563eb\"", "measured, in the place's colour"));
        }
        let mut x = x;
        for (look, meaning) in marks {
            let _ = writeln!(out, "<rect x=\"{x}\" y=\"{}\" width=\"22\" height=\"12\" {look}/>", y - 10);
            text(out, (x + 28, y), "t", meaning);
            x += 46 + 6 * meaning.len();
        }
    }
}

fn colour(column: usize) -> &'static str {
    COLOURS[column % COLOURS.len()]
}
