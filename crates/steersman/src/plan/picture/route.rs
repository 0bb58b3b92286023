//! Ways for arrows: straight down to the next card of a column, else through the gutter beside it, each on a track that
//! no other arrow has at that height.

use super::card::WIDTH;

/// Pixels between two tracks, and tracks that fit a gutter.
const TRACK: usize = 9;
const TRACKS: usize = 7;
/// A gutter's width: its tracks, and room for arrowheads on both sides.
pub(super) const GUTTER: usize = TRACK * TRACKS + 24;

/// Where a card lies.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub column: usize,
    pub row: usize,
    pub x: usize,
    pub y: usize,
    pub height: usize,
}

/// Tracks that are taken: gutter, track, from which height to which.
#[derive(Default)]
pub(super) struct Router {
    taken: Vec<(usize, usize, usize, usize)>,
}

impl Router {
    /// The path of an arrow, `nth` of those that end at `to`.
    pub fn path(&mut self, from: Spot, to: Spot, nth: usize) -> String {
        if from.column == to.column && to.row == from.row + 1 {
            let x = from.x + WIDTH / 2;
            return format!("M{x} {}V{}", from.y + from.height, to.y - 3);
        }
        // The gutter to the right of a column has the column's number.
        let leftward = to.column < from.column;
        let gutter = if leftward { from.column - 1 } else { from.column };
        let (start, end) = (from.y + from.height - 12, (to.y + 14 + 10 * nth).min(to.y + to.height - 6));
        let clashes = |t: &(usize, usize, usize, usize), track: usize| {
            t.0 == gutter && t.1 == track && t.2 < end + 6 && start < t.3 + 6
        };
        let free = (0..TRACKS).find(|&track| !self.taken.iter().any(|t| clashes(t, track)));
        let track = free.unwrap_or(TRACKS - 1);
        self.taken.push((gutter, track, start, end));
        let out = if leftward { from.x } else { from.x + WIDTH };
        // Same column: back into the right side; another one: into the side that faces it.
        let into = if to.column > from.column { to.x - 3 } else { to.x + WIDTH + 3 };
        let offset = 14 + TRACK * track;
        let x = if leftward { from.x - offset } else { from.x + WIDTH + offset };
        format!("M{out} {start}H{x}V{end}H{into}")
    }
}
